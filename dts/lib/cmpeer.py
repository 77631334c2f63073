# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A communication manager for which a test writes every message, and its connections: bytes from
cmwire, without Polca's code.

    with wire.peer() as p:
        c = p.connect(7)            # REQ, REP, RTU, each checked
        c.data.send_only(...)       # roce.Peer
        c.disconnect()
"""

import collections
import itertools
import os
import queue
import shutil
import threading
import time
import weakref

import capture
import cmwire
import umad  # noqa: F401: where ibwire is
import ibwire
import services
import time_limit
from cmwire import DREP, DREQ, MRA, Message, QKEY, REJ, REP, REQ, RTU
from conn import wait_until
from net import Namespace
from polca import Polca, port
from roce import NO_CREDITS, Op, Peer, Station

POLCA_MAC, STATION_MAC = '02:00:00:00:78:01', '02:00:00:00:78:02'
POLCA_IP, POLCA_IP6, STATION_IP, STATION_IP6 = '10.78.0.1', 'fd78::1', '10.78.0.2', 'fd78::2'
POLCA_IP_SECOND, STATION_IP_SECOND = '10.78.0.11', '10.78.0.12'
PEER_GUID = 0x0200deadbeef0001
LOCAL_TIMEOUT = 18  # of our REQs: a second, after which Polca repeats REP and DREQ
ACK_TIMEOUT = 16  # of our REQs: TIMEWAIT lasts 256 ms

_numbers = itertools.count(1)


# ---- how datagrams travel

class RoceWay:
    """QP1 of a station, over RoCEv2. The station's addresses share it: each takes the packets
    for itself."""

    encapsulation = 'roce'
    aside = weakref.WeakKeyDictionary()  # station: {address: packets}

    def __init__(self, station, mac, ip, remote_ip):
        self.station, self.ip, self.remote_ip, self.mac = station, ip, remote_ip, mac
        self.qp1 = Peer(station, 1, ip, mac, remote_ip, remote_qpn=1)
        self.mine = self.others().setdefault(ip, collections.deque())
        while self.receive(0) is not None:  # for the previous owner of the address
            pass

    def others(self):
        return self.aside.setdefault(self.station, {})

    def send(self, mad, **kw):
        self.qp1.tx(Op.UD_SEND_ONLY, next(_numbers) & 0xffffff, mad,
                    **dict(dict(deth=(QKEY, 1)), **kw))

    def frame(self, mad):
        """As bytes, for floods."""
        return self.qp1.build(Op.UD_SEND_ONLY, 0, mad, deth=(QKEY, 1))

    def receive(self, timeout):
        """The next MAD, or None."""
        end = time.monotonic() + timeout
        while not self.mine:
            try:
                r = self.qp1.queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return None
            self.others().setdefault(r.dst, collections.deque()).append(r)
        r = self.mine.popleft()
        # cm 1
        assert r.icrc_ok and (r.op, r.qkey, r.sqpn, r.bth.pkey, r.bth.padcount) == (
            Op.UD_SEND_ONLY, QKEY, 1, 0xffff, 0), r
        return r.payload

    def path(self):
        """The path as a REQ describes it, and as Polca's REQ must describe it (cm 7)."""
        return dict(local_lid=0xffff, remote_lid=0xffff, local_gid=cmwire.gid(self.ip),
                    remote_gid=cmwire.gid(self.remote_ip), hop_limit=64)

    def rdma(self, source_port):
        return cmwire.rdma(self.ip, self.remote_ip, source_port)

    def close(self):
        pass  # the station keeps its QP1


class IbWay:
    """QP1 of an IbStation, over native InfiniBand."""

    encapsulation = 'ib'

    def __init__(self, station, gid, remote_gid):
        self.station, self.gid, self.remote_gid = station, gid, remote_gid

    def send(self, mad, **kw):
        self.station.tx(mad, 1, **kw)

    def receive(self, timeout):
        """The next MAD, or None; data packets are ignored here."""
        p = self.station.maybe(timeout)
        while p is not None and p.mad is None:
            p = self.station.maybe(timeout)
        if p is None:
            return None
        assert (p.dqp, p.sqp, p.qkey, p.slid, p.dlid) == (
            1, 1, ibwire.QP1_QKEY, self.station.remote_lid, self.station.lid), p
        return p.mad

    def path(self):
        return dict(local_lid=self.station.lid, remote_lid=self.station.remote_lid,
                    local_gid=self.gid, remote_gid=self.remote_gid, subnet_local=1)

    def close(self):
        pass


# ---- the peer

class Connection:
    """A connection of the peer: its numbers and Polca's; .data is the peer's queue pair."""

    def __init__(self, peer, **numbers):
        self.peer = peer
        self.local_id, self.qpn = next(peer.ids), next(peer.qpns)
        self.psn, self.remote_psn = 0xfffff0, None  # Polca's first PSN, our first PSN
        self.remote_id = self.remote_qpn = 0
        self.tid = next(peer.tids)
        self.data, self.open = None, True
        for k, v in numbers.items():
            setattr(self, k, v)
        self.roce()

    def roce(self):
        way = self.peer.way
        if way.encapsulation == 'roce':
            self.data = Peer(way.station, self.qpn, way.ip, way.mac, way.remote_ip)

    # ---- send: each message is right except for the fields given

    def say(self, kind, **over):
        return self.peer.say(kind, **dict(dict(tid=self.tid, local_id=self.local_id,
                                               remote_id=self.remote_id), **over))

    def req(self, service_id, private=b'', header=None, **over):
        """private: the user's private data; RDMA-CM's header (or another) precedes it if the
        service ID has one."""
        if header is None and service_id >> 16 in (cmwire.PS_TCP, cmwire.PS_UDP, cmwire.PS_IB):
            header = self.peer.way.rdma(self.local_id & 0xffff)
        private = (header or b'') + private
        fields = dict(service_id=service_id, ca_guid=self.peer.guid, qpn=self.qpn, psn=self.psn,
                      responder_resources=4, initiator_depth=5, remote_timeout=20,
                      local_timeout=LOCAL_TIMEOUT, flow_control=1, retry_count=7,
                      rnr_retry_count=7, max_cm_retries=3, pkey=0xffff, mtu=3,
                      ack_timeout=ACK_TIMEOUT, private=private, **self.peer.way.path())
        fields.update(tid=self.tid, local_id=self.local_id)
        fields.update(over)
        return self.peer.say(REQ, **fields)

    def rep(self, **over):
        return self.say(REP, **dict(dict(qpn=self.qpn, psn=self.psn, responder_resources=4,
                                         initiator_depth=5, ack_delay=1, failover=1,
                                         flow_control=1, rnr_retry_count=7,
                                         ca_guid=self.peer.guid), **over))

    def rtu(self, **over):
        return self.say(RTU, **over)

    def rej(self, reason, **over):
        return self.say(REJ, reason=reason, **over)

    def mra(self, answers, service_timeout, **over):
        return self.say(MRA, answers=answers, service_timeout=service_timeout, **over)

    def dreq(self, **over):
        return self.say(DREQ, **dict(dict(qpn=self.remote_qpn), **over))

    def drep(self, dreq, **over):
        self.open = False
        return self.say(DREP, **dict(dict(tid=dreq.tid), **over))

    # ---- in

    def expect(self, kind, timeout=10, **fields):
        """The next message, which must be for this connection."""
        m = self.peer.expect(kind, timeout, remote_id=self.local_id, **fields)
        if kind not in (REJ, MRA):
            assert m.local_id == self.remote_id, m
        return m

    def expect_rep(self, timeout=10, **fields):
        m = self.peer.expect(REP, timeout, tid=self.tid, remote_id=self.local_id, **fields)
        self.learn(m)
        return m

    def learn(self, m):
        """Take Polca's numbers from its REP or REQ."""
        self.remote_id, self.remote_qpn, self.remote_psn = m.local_id, m.qpn, m.psn
        if self.data is not None:
            self.data.remote_qpn = m.qpn

    def expect_rej(self, reason, answers=cmwire.OF_REQ, local_id=0, timeout=10, **fields):
        """cm 2: the REJ of a REQ has no LocalCommID."""
        return self.peer.expect(REJ, timeout, tid=self.tid, remote_id=self.local_id,
                                local_id=local_id, reason=reason, answers=answers, **fields)

    def disconnect(self):
        self.tid = next(self.peer.tids)
        self.dreq()
        m = self.expect(DREP)
        assert m.tid == self.tid, m
        self.open = False

    def close(self):
        if self.data is not None:
            self.data.close()

    # ---- data: Sends against an echo service

    def echo(self, data, n, tries=1):
        """Send the n-th message (from 0) and receive its echo; our receive is posted. An earlier
        packet may be repeated, because our ACK may have been late. tries: for wires that lose
        packets."""
        psn, theirs = self.remote_psn + n & 0xffffff, self.psn + n & 0xffffff
        acked = back = False
        self.data.send_only(psn, data)
        while not (acked and back):
            try:
                r = self.data.rx(10 if tries == 1 else 1)
            except AssertionError:
                tries -= 1
                if tries <= 0:
                    raise
                self.data.send_only(psn, data)
                continue
            if r.op == Op.ACK and r.syndrome >> 5 == 1:  # the RTU was lost: no receive yet
                self.data.send_only(psn, data)
                continue
            if r.op == Op.ACK:
                assert r.syndrome >> 5 == 0, r
                acked |= r.psn == psn
                continue
            assert r.op == Op.SEND_ONLY and (theirs - r.psn) & 0xffffff < 0x1000, r
            assert r.psn != theirs or r.payload == data, r
            self.data.ack(r.psn, n + 1 - ((theirs - r.psn) & 0xffffff))
            back |= r.psn == theirs


class CmPeer:
    """guid: of its channel adapter."""

    def __init__(self, way, guid=PEER_GUID):
        self.way, self.guid = way, guid
        # no number is used twice in a run, so that tests do not affect each other
        self.tids = (0x1122334400000000 + i for i in _numbers)
        self.ids = (0x50000000 + i * 0x10001 & 0xffffffff for i in _numbers)
        self.qpns = (0x80400 + i for i in _numbers)  # apart from those of conn.Conn
        self.made = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        try:
            if exc[0] is None:
                self.end_all()
        finally:
            for c in self.made:
                c.close()
            self.way.close()

    def end_all(self):
        """Disconnect all connections; no other message may be pending."""
        left = self.drain()
        assert not left, left
        for c in self.made:
            if c.open and c.remote_id:
                c.disconnect()

    def new(self, **numbers):
        c = Connection(self, **numbers)
        self.made.append(c)
        return c

    def say(self, kind, **fields):
        mad = cmwire.build(kind, **fields)
        self.way.send(mad)
        return Message(mad)

    # ---- in

    def maybe(self, timeout=0.0):
        mad = self.way.receive(timeout)
        if mad is None:
            return None
        m = Message(mad)
        if m.kind is not None:
            # cm 1
            assert (m.base_version, m.mad_status, m.modifier) == (1, 0, 0), m
            assert not m.reserved(), (m, m.reserved())
        return m

    def rx(self, timeout=10):
        m = self.maybe(time_limit.limit(timeout))
        assert m is not None, 'no message within %g s' % timeout
        return m

    def expect(self, kind, timeout=10, **fields):
        """The next message must be this one."""
        m = self.rx(timeout)
        want = 'expected %s %s, got %r' % (kind.name, fields, m)
        assert m.kind is kind and m.class_version == cmwire.CLASS_VERSION, want
        for k, v in fields.items():
            assert getattr(m, k) == v, want
        return m

    def expect_any(self, *kinds):
        """The next message must be one of these."""
        m = self.rx()
        assert m.kind in kinds, m
        return m

    def drain(self):
        return list(iter(self.maybe, None))

    # ---- whole handshakes

    def connect(self, port, private=b'', **req):
        """As active side; the REP is .rep_seen."""
        c = self.new()
        c.req(cmwire.service_id(port), private, **req)
        c.rep_seen = c.expect_rep()
        c.rtu()
        return c

    def expect_req(self, timeout=20, **fields):
        """A REQ of Polca: the connection, not yet answered, and the message."""
        m = self.expect(REQ, timeout, **fields)
        c = self.new(tid=m.tid)
        c.learn(m)
        return c, m

    def accept(self, asking, **rep):
        """As passive side: complete the cm_connect of Polca that asking has started; returns the
        connection."""
        c, _ = self.expect_req()
        c.rep(**rep)
        c.expect(RTU)
        c.answer = asking.result()
        return c


class Asking:
    """A call of the control socket that takes time: asked(polca, 'cm_connect', ...).result()"""

    def __init__(self, polca, method, **params):
        self.box, self.client = [], polca.client(timeout=100)

        def work():
            try:
                self.box.append((True, self.client(method, **params)))
            except BaseException as e:  # raised in result()
                self.box.append((False, e))
        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def result(self, timeout=60):
        self.thread.join(time_limit.limit(timeout))
        assert self.box, 'no answer within %g s' % timeout
        self.client.close()
        good, value = self.box[0]
        if not good:
            raise value
        return value


# ---- the bench

class Wire:
    """An appliance and a station on one wire, and its capture. config: of the appliance."""

    polca_mac, polca_ip, polca_ip6, station_ip = POLCA_MAC, POLCA_IP, POLCA_IP6, STATION_IP

    def __init__(self, kept, sockets, **config):
        self.kept = kept
        self.ns = Namespace()
        self.ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)
        self.station = Station(self.ns, 'st0', STATION_MAC, STATION_IP, STATION_IP6)
        self.capture = capture.Capture(self.ns, 'st0', os.path.join(kept, 'wire.pcap'))
        self.polca = Polca(sockets, [port(
            'port0', 'net_af_packet0,iface=pv0,framecnt=4096,framesz=2048', POLCA_IP + '/24',
            POLCA_IP6 + '/64', POLCA_IP_SECOND + '/24')], ns=self.ns, **config)

    def peer(self, ip=STATION_IP, **kw):
        remote = POLCA_IP6 if ':' in ip else POLCA_IP
        return CmPeer(RoceWay(self.station, POLCA_MAC, ip, remote), **kw)

    def cm(self):
        # reasons that did not occur are missing
        return collections.Counter(self.polca.rpc('stats_get')['cm'])

    def verdicts(self):
        row = self.polca.rpc('stats_get', port=0)['ports'][0]
        return dict(row['served'], **row['dropped'])

    def connections(self):
        return services.connections(self.polca)

    def stands(self, c):
        """Wait until Polca has received the RTU."""
        wait_until(lambda: self.connections()[c.remote_id]['state'] == 'ESTABLISHED')

    def gone(self, c):
        """Wait until Polca has removed the connection."""
        wait_until(lambda: c.remote_id not in self.connections(), timeout=20, step=0.02)

    def wait_idle(self, timeout=20):
        """Wait until there is no connection, not even in TIMEWAIT."""
        wait_until(lambda: not self.connections(), timeout=timeout, step=0.05)

    def audit(self, whole=True):
        """whole: no packet was lost on the way to either side."""
        if whole:
            capture.audit(self.polca, self.capture, POLCA_MAC)
            return
        self.polca.stop()
        self.capture.stop()
        assert capture.check(self.capture.path, POLCA_MAC)['infiniband']

    def close(self):
        self.polca.kill()
        self.capture.stop()
        self.station.close()
        self.ns.close()
        if os.path.exists(self.polca.log):
            shutil.copy(self.polca.log, self.kept)


__all__ = ['CmPeer', 'Connection', 'Wire', 'Asking', 'RoceWay', 'IbWay', 'REQ', 'REP', 'RTU', 'MRA',
           'REJ', 'DREQ', 'DREP', 'NO_CREDITS']
