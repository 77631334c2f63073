# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A peer for subnet administration that can violate any rule.

Gsi is a queue pair of a station that sends and receives datagrams; it implements no protocol.
The four state machines of the two protocols (sa-multipacket A5, B5, B6), each as client and as
server, use it: they obey the rules, except where the test's script makes them lose, repeat or
change packets.
"""

import itertools
import queue
import struct
import time

import mad
import time_limit
from mad import (AREA1, AREA2, HEADER2, Mad, NODE, v1, v2)
from roce import Op, Peer

QP1 = 1
_tids = itertools.count(0x5a00000000000001)
_qpns = itertools.count(0x40200)  # apart from those of conn.Conn and cmpeer.CmPeer


def new_tid():
    return next(_tids)


class Gsi:
    """Datagrams between QP1 of one address and this queue pair."""

    def __init__(self, station, mac, remote_ip, ip=None, qpn=None):
        self.peer = Peer(station, next(_qpns) if qpn is None else qpn, ip or station.ip, mac,
                         remote_ip, QP1)
        self.station, self.qpn = station, self.peer.qpn
        self.psn, self.held = 0, []
        self._templates = {}

    def close(self):
        self.peer.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def frame(self, m, qkey=mad.QKEY, **kw):
        self.psn = self.psn + 1 & 0xffffff
        return self.peer.build(Op.UD_SEND_ONLY, self.psn, bytes(m),
                               deth=(qkey, kw.pop('sqpn', self.qpn)), **kw)

    def tx(self, m, **kw):
        """Send a datagram; keywords as for Peer.build(), or qkey, sqpn."""
        self.station.send(self.frame(m, **kw))

    def rx(self, timeout=10):
        """The next datagram; an error after the timeout."""
        if self.held:
            return self.held.pop(0)
        r = self.peer.rx(timeout)
        assert r.op == Op.UD_SEND_ONLY and len(r.payload) == mad.MAD_LEN, r
        assert r.qkey == mad.QKEY and r.bth.padcount == 0, r
        m = Mad(r.payload)
        object.__setattr__(m, 'packet', r)
        return m

    def maybe(self, timeout):
        """The next datagram, or None."""
        if self.held:
            return self.held.pop(0)
        try:
            r = self.peer.queue.get(timeout=max(0, timeout))
        except queue.Empty:
            return None
        assert r.icrc_ok and r.op == Op.UD_SEND_ONLY, r
        m = Mad(r.payload)
        object.__setattr__(m, 'packet', r)
        return m

    def expect(self, timeout=10, **fields):
        """The next datagram, which must have these fields."""
        m = self.rx(timeout)
        for k, v in fields.items():
            assert getattr(m, k) == v, 'expected %r, got %r' % (fields, m)
        return m

    def expect_rack(self, request, **fields):
        """The first Ack of an answer; the request may have been repeated before the answer came."""
        m = self.rx()
        while bytes(m) == bytes(request):
            m = self.rx()
        self.held.insert(0, m)
        return self.expect(rmpp_type=mad.RACK, **fields)

    def ask(self, m, timeout=10, **kw):
        """Send a request and return its single answer."""
        self.tx(m, **kw)
        a = self.rx(timeout)
        assert (a.tid, a.method) == (m.tid, m.method | mad.R) or m.method == mad.SET or \
            m.method == mad.TRACE, (m, a)
        return a

    def ask_until_served(self, make, timeout=10):
        """Wait until a request is answered: then everything that a flood sent before it has been
        processed."""
        end = time_limit.end(timeout)
        while True:
            m = make()
            self.tx(m)
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                a = self.maybe(until - time.monotonic())
                if a is not None and a.tid == m.tid:
                    return a
            assert time.monotonic() < end, 'the request is not answered'

    def drain(self):
        held, self.held = self.held, []
        return held + self.peer.drain()

    def expect_nothing(self, quiet=0.0):
        """No datagram has arrived. Call it after an event that orders the wire."""
        assert not self.held, self.held
        self.peer.expect_nothing(quiet)


    def expect_no_more(self, segment, quiet=0.05):
        """No segment beyond this one arrives. Earlier segments may be repeated, because Polca
        retransmits rather than wait for a timer if our Ack may have been lost."""
        time.sleep(quiet)
        for m in map(as_mad, self.drain()):
            assert m.segment <= segment and m.status == 0, 'expected no more than %d, got %r' % (
                segment, m)


def as_mad(x):
    return x if isinstance(x, Mad) else Mad(x.payload)


class Failed(AssertionError):
    """A transfer ended with a status, an abort, or silence."""

    def __init__(self, why, m=None):
        self.mad, self.status = m, getattr(m, 'status', 0) if m is not None else 0
        self.rmpp_status = m.rmpp_status if m is not None and m.class_version == 2 else 0
        super().__init__('%s: %r' % (why, m))


class Script:
    """Deviations: segments to lose (each number once, or as often as it is listed), segments to
    send twice; silence is how long to wait for the next packet."""

    def __init__(self, lose=(), twice=(), silence=0.5, tries=7):
        self.lose, self.twice = list(lose), set(twice)
        self.silence, self.tries = silence, tries
        self.seen = []  # received segments, including those lost on purpose
        self.sent = []  # segments sent
        self.acks, self.resends, self.keepalives = [], [], 0

    def loses(self, segment):
        if segment in self.lose:
            self.lose.remove(segment)
            return True
        return False


def prove(gsi, tables=1):
    """Acknowledge an answer: from now on Polca sends whole windows to this address. tables: how
    many answers, because each worker of the appliance looks for itself."""
    for _ in range(tables):
        receive2(gsi, v2(mad.TABLE, NODE.attr, NODE.put(lid=1), tid=new_tid(),
                         mask=NODE.mask('lid')))


# ---- version 1

def receive1(gsi, request, script=None, window=64, first=None, timeout=20):
    """Receiver of a version 1 stream: the answer to request, or (if first is given) an incoming
    Config.

    Returns the data and the last segment's datagram. It follows the rules: Ack when a window is
    full, on Last and on a duplicate; Resend once on a gap, and again after silence."""
    s = script or Script()
    expected, since_ack, tries, recovering = 1, 0, 0, False
    data, last_ack, total, latest = bytearray(), 0, None, None
    window = window or 64
    end = time_limit.end(timeout)
    if first is None:
        gsi.tx(request)
    else:
        gsi.held.insert(0, first)

    def control(m, flags, segment):
        a = m.turned(flags=flags, segment=segment, length=0, status=0)
        if flags == mad.ACK:
            a.window = window
        gsi.tx(a)

    while True:
        assert time.monotonic() < end, 'no end of the stream within %g s: %r' % (timeout, s.seen)
        m = gsi.maybe(s.silence)
        if m is None:
            tries += 1
            if tries > time_limit.limit(s.tries):
                raise Failed('silence', latest)
            if expected == 1 and not s.seen:
                gsi.tx(request)
            else:
                s.resends.append(expected)
                control(latest, mad.RESEND, expected)
            continue
        if m.tid != request.tid or m.class_version != 1:
            continue
        if m.status:
            raise Failed('status', m)
        if m.flags & mad.KEEPALIVE:
            s.keepalives += 1
            continue
        if m.flags == 0 and m.segment == 0:  # all in one packet (A4)
            s.seen.append(0)
            return bytes(m.data[:min(m.length, AREA1)]), m
        latest = m
        s.seen.append(m.segment)
        if s.loses(m.segment):
            continue
        if m.segment < expected:
            control(m, mad.ACK, last_ack)
            s.acks.append(last_ack)
            continue
        if m.segment > expected:
            if not recovering:
                s.resends.append(expected)
                control(m, mad.RESEND, expected)
                recovering = True
            continue
        assert bool(m.flags & mad.FIRST) == (expected == 1), m
        assert m.flags & ~(mad.FIRST | mad.LAST) == 0, m
        if expected == 1:
            total = m.length
        elif not m.flags & mad.LAST:
            assert m.length == 0, m
        recovering, tries = False, 0
        is_last = bool(m.flags & mad.LAST)
        data += m.data[:m.length if is_last and not first else AREA1]
        expected += 1
        since_ack += 1
        if is_last or since_ack >= min(window, m.window or window):
            last_ack, since_ack = m.segment, 0
            if not (is_last and first):
                control(m, mad.ACK, last_ack)
                s.acks.append(last_ack)
        if is_last:
            if first:
                assert 0 < total - (m.segment - 1) * AREA1 <= AREA1, (total, m)
                return bytes(data[:total]), m
            s.total = total
            return bytes(data), m


def segments1(head, data, window=64):
    """The datagrams of a version 1 stream; head has method, attribute, keys and TID."""
    n = max(1, -(-len(data) // AREA1))
    if n == 1:
        return [head.but(segment=0, length=len(data), window=window, flags=0, data=data)]
    out = []
    for i in range(n):
        part = data[i * AREA1:(i + 1) * AREA1]
        out.append(head.but(segment=i + 1, window=window, data=part,
                            flags=(mad.FIRST if i == 0 else 0) | (mad.LAST if i == n - 1 else 0),
                            length=len(data) if i == 0 else len(part) if i == n - 1 else 0))
    return out


def send1(gsi, head, data, script=None, window=64, timeout=20, answer=None):
    """Sender of a version 1 stream: a Config (answer: the method that ends it), or a server's
    response. Returns the answer, or the last Ack."""
    s = script or Script()
    packets = segments1(head, data, window)
    n, at, acked, edge, tries = len(packets), 1, 0, window, 0
    end = time_limit.end(timeout)
    while True:
        assert time.monotonic() < end, 'no end within %g s: sent %r' % (timeout, s.sent)
        while at <= min(edge, n):
            s.sent.append(at)
            if not s.loses(at):
                for _ in range(2 if at in s.twice else 1):
                    gsi.tx(packets[at - 1])
            at += 1
        if n == 1 and answer is None:
            return None  # one packet is not a stream and is not acknowledged
        m = gsi.maybe(s.silence)
        if m is None:
            tries += 1
            if tries > time_limit.limit(s.tries):
                raise Failed('silence')
            # a receiver that lost the First does not know the stream and cannot request a Resend
            gsi.tx(packets[at - 2 if s.acks or s.resends or answer is None else 0])
            continue
        if m.tid != head.tid or m.class_version != 1:
            continue
        if m.status:
            raise Failed('status', m)
        if m.flags & mad.KEEPALIVE:
            s.keepalives += 1
        elif m.flags & mad.RESEND:
            s.resends.append(m.segment)
            assert acked < m.segment <= at, (m, at)
            at = m.segment
        elif m.flags & mad.ACK:
            s.acks.append(m.segment)
            if acked < m.segment < at:
                acked, tries = m.segment, 0
                edge = acked + max(64 if answer else window, m.window)
            if acked == n and answer is None:
                return m
        elif answer is not None and m.method == answer:
            return m


# ---- version 2

def receive2(gsi, request, script=None, step=16, first=None, timeout=20):
    """Receiver of RMPP DATA: the answer to request, or (if first is given) an incoming request.
    Returns the SA's data and the last segment's datagram."""
    s = script or Script()
    parts, contiguous, nwl, last, tries = {}, 0, 1, None, 0
    end = time_limit.end(timeout)
    if first is None:
        gsi.tx(request)
    else:
        gsi.held.insert(0, first)

    def ack(m):
        s.acks.append(contiguous)
        gsi.tx(m.turned(rmpp_type=mad.RACK, rmpp_flags=mad.ACTIVE, rmpp_status=0, status=0,
                        segment=contiguous, new_window_last=nwl))
    while True:
        assert time.monotonic() < end, 'no end of the message within %g s: %r' % (timeout, s.seen)
        m = gsi.maybe(s.silence)
        if m is None:
            tries += 1
            if tries > time_limit.limit(s.tries):
                raise Failed('silence')
            if not s.seen:
                gsi.tx(request)
            continue
        if m.tid != request.tid or m.class_version != 2:
            continue
        if m.status:
            raise Failed('status', m)
        if not m.rflags & mad.ACTIVE:
            return m.data, m
        if m.rmpp_type in (mad.STOP, mad.ABORT):
            raise Failed('aborted', m)
        assert (m.rmpp_version, m.rmpp_type, m.rmpp_status) == (1, mad.DATA, 0), m
        s.seen.append(m.segment)
        if s.loses(m.segment):
            continue
        assert m.segment <= nwl, '%r is beyond the window %d' % (m, nwl)
        assert bool(m.rflags & mad.RFIRST) == (m.segment == 1), m
        if m.segment <= contiguous:
            ack(m)
            continue
        tries = 0
        parts[m.segment] = m
        if m.rflags & mad.RLAST:
            last = m.segment
        before = contiguous
        while contiguous + 1 in parts:
            contiguous += 1
        if before < contiguous and (before == 0 or contiguous >= nwl or contiguous == last):
            nwl = contiguous + step
            ack(m)
        if contiguous == last:
            break
    s.total = parts[1].length
    tail = parts[last].length - HEADER2
    assert 0 <= tail <= AREA2, parts[last]
    for i in range(2, last):
        assert parts[i].length == 0, parts[i]
    data = b''.join(parts[i].data for i in range(1, last)) + parts[last].data[:tail]
    return data, parts[last]


def segments2(head, data):
    """The DATA packets of one message."""
    n = max(1, -(-len(data) // AREA2))
    out = []
    for i in range(n):
        part = data[i * AREA2:(i + 1) * AREA2]
        flags = (mad.RFIRST if i == 0 else 0) | (mad.RLAST if i == n - 1 else 0) | mad.ACTIVE
        length = HEADER2 + len(part) if i == n - 1 else HEADER2 * n + len(data) if i == 0 else 0
        out.append(head.but(rmpp_version=1, rmpp_type=mad.DATA, rmpp_flags=mad.NO_RESPTIME | flags,
                            rmpp_status=0, segment=i + 1, length=length, data=part))
    return out


def send2(gsi, head, data, script=None, timeout=20):
    """Send RMPP DATA until all of it is acknowledged."""
    s = script or Script()
    packets = segments2(head, data)
    n, at, acked, edge, tries = len(packets), 1, 0, 1, 0
    end = time_limit.end(timeout)
    while acked < n:
        assert time.monotonic() < end, 'no end within %g s: sent %r' % (timeout, s.sent)
        while at <= min(edge, n):
            s.sent.append(at)
            if not s.loses(at):
                for _ in range(2 if at in s.twice else 1):
                    gsi.tx(packets[at - 1])
            at += 1
        m = gsi.maybe(s.silence)
        if m is None:
            tries += 1
            if tries > time_limit.limit(s.tries):
                raise Failed('silence')
            at = acked + 1
            continue
        if m.tid != head.tid or m.class_version != 2 or not m.rflags & mad.ACTIVE:
            continue
        if m.rmpp_type in (mad.STOP, mad.ABORT):
            raise Failed('aborted', m)
        if m.rmpp_type == mad.RACK:
            s.acks.append(m.segment)
            assert m.segment <= edge and m.new_window_last >= m.segment, m
            if m.segment > acked:
                acked, tries = m.segment, 0
                at = max(at, acked + 1)
            edge = max(edge, m.new_window_last)
    return s


def table(gsi, version, record, mask=0, script=None, timeout=20, window=64, step=16, sm_key=0,
          template=None, **fields):
    """A whole GetTable in either version: the records as bytes of that version."""
    template = template or {}
    if version == 1:
        req = v1(mad.TABLE, record.attr, record.bare(**template), tid=new_tid(), window=window,
                 modifier=fields.pop('modifier', mad.BY_TEMPLATE), mask=mask, sm_key=sm_key,
                 **fields)
        data, m = receive1(gsi, req, script, window=window, timeout=timeout)
        return [d for _, d in record.split1(data)], m
    req = v2(mad.TABLE, record.attr, record.put(**template), tid=new_tid(), mask=mask,
             sm_key=sm_key, **fields)
    data, m = receive2(gsi, req, script, step=step, timeout=timeout)
    return (record.split2(data, m.stride) if data else []), m


def packed(*numbers):
    return b''.join(struct.pack('!I', n) for n in numbers)
