# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Malicious peers: limited, counted, answered as the standard requires; a second client is not
affected."""

import struct
import threading
import time

import pytest

import mad
import sapeer
import time_limit
from conn import wait_until
from mad import NODE, v1, v2
from roce import icrc
from sapeer import as_mad, receive1, receive2, Script

from sawire import node_bytes, NODES, SM_KEY

MAX, PER_PEER = 256, 64
MULTI_PATH = 0x3a
CONFIG = dict(mad=dict(max_sessions=MAX, max_sessions_per_peer=PER_PEER, max_bytes=1 << 20,
                       max_bytes_per_peer=1 << 18, rmpp_total_ms=3000, keepalive_total_ms=4000))


def first_only(tid, length=19200, **fields):
    return v1(mad.CONFIG, NODE.attr, tid=tid, edit=mad.ADD, segment=1, flags=mad.FIRST,
              length=length, sm_key=SM_KEY, **fields)


class Flood:
    """Frames of one template with different TIDs, sent in parallel to the test."""

    def __init__(self, gsi, m, n, pace=0.0003, source=False):
        self.gsi, self.n, self.pace, self.source = gsi, n, pace, source
        self.frame = bytearray(gsi.frame(m))
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        f, udp, mad_at = self.frame, 14 + 20, 14 + 20 + 8 + 12 + 8
        for i in range(self.n):
            struct.pack_into('!Q', f, mad_at + 8, 0xf100d00000000000 + i)
            if self.source:
                f[14 + 15] = 3 + i % 250
                f[24:26] = b'\0\0'
                total = sum(struct.unpack_from('!10H', f, 14))
                total = (total & 0xffff) + (total >> 16)
                struct.pack_into('!H', f, 24, 0xffff - ((total & 0xffff) + (total >> 16)))
            f[-4:] = icrc(bytes(f[14:-4]))
            self.gsi.station.send(bytes(f))
            time.sleep(self.pace)
        assert udp

    def join(self):
        self.thread.join()


def both_tables(gsi):
    """A table in either version, complete."""
    whole = [node_bytes(lid) for lid in range(1, NODES + 1)]
    req = v1(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), window=64, end_rid=mad.ALL_RIDS,
             sm_key=SM_KEY)
    data, m = receive1(gsi, req, Script(silence=1.5), timeout=30)
    assert [b for _, b in NODE.split1(data)] == [b[4:] for b in whole]
    data, m = receive2(gsi, v2(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY),
                       Script(silence=3), timeout=30)
    assert NODE.split2(data, m.stride) == whole


@pytest.fixture
def second(wire):
    """The second client has its own address, because limits are per address."""
    with wire.gsi(ip='10.79.0.99') as g:
        yield g


def quiet(wire):
    """All sessions are gone, and their memory is freed."""
    wait_until(lambda: wire.polca.rpc('sa_stats')['sessions'] == 0 or not
               wire.polca.rpc('sa_sessions')['sessions'] or lingering(wire), timeout=60, step=0.3)


def lingering(wire):
    return all(s['state'] == 'LINGER' for s in wire.polca.rpc('sa_sessions')['sessions'])


def test_first_only_flood(wire, gsi, second, counted):
    """Half-open Configs: no more than a peer may have, further ones are rejected; then they are
    reclaimed."""
    flood = Flood(gsi, first_only(1), 5000)
    both_tables(second)
    live = [s for s in wire.polca.rpc('sa_sessions', max=1000)['sessions']
            if s['peer'].endswith('10.79.0.2')]
    assert len(live) <= PER_PEER
    flood.join()
    both_tables(second)
    assert counted['sessions_refused'] > 0
    wait_until(lambda: not [s for s in wire.polca.rpc('sa_sessions', max=1000)['sessions']
                            if s['peer'].endswith('10.79.0.2') and s['state'] != 'LINGER'],
               timeout=60, step=0.5)
    gsi.drain()


def test_first_only_flood_from_many_addresses(wire, gsi, second, counted):
    """Strangers begin GetMultis until memory for requests is used up: they displace each other; a
    client whose transfer had begun continues."""
    q = v2(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY)
    second.tx(q)
    m = second.expect(segment=1)
    first = sapeer.segments2(v2(mad.MULTI, MULTI_PATH, tid=1), bytes(1000))[0]
    flood = Flood(gsi, first, 3000, source=True)
    wait_until(lambda: counted['sessions_reclaimed'] > 0, timeout=60)
    assert len(wire.polca.rpc('sa_sessions', max=1000)['sessions']) <= MAX
    # repeat the segment as a duplicate: Polca repeats its ACK, and the stream completes
    second.held.append(m)
    data, m = receive2(second, q, Script(silence=3), first=m, timeout=40)
    assert NODE.split2(data, m.stride) == [node_bytes(lid) for lid in range(1, NODES + 1)]
    flood.join()
    assert counted['sessions_refused'] == 0
    gsi.drain()
    wait_until(lambda: lingering(wire), timeout=60, step=0.5)


@pytest.mark.parametrize('length', [0xffffffff, 1 << 19, 0x7fffffff])
def test_lying_payload_length(wire, gsi, second, length):
    """More than a peer may send: rejected at once, or when the data arrive; memory stays
    limited."""
    gsi.tx(first_only(sapeer.new_tid(), length=length))
    gsi.maybe(0.2)
    both_tables(second)
    stats = wire.polca.rpc('sa_stats')
    assert stats['memory_used'] <= stats['memory_total']
    wait_until(lambda: lingering(wire), timeout=60, step=0.3)
    gsi.drain()


def test_too_much_is_refused(wire, gsi, second):
    """A Config beyond max_bytes_per_peer ends with a status, and nothing of it is executed."""
    data = bytes(300000)
    head = v1(mad.CONFIG, NODE.attr, tid=sapeer.new_tid(), edit=mad.ADD, sm_key=SM_KEY)
    with pytest.raises(sapeer.Failed) as e:
        sapeer.send1(gsi, head, data, Script(silence=3), answer=mad.CONFIG_RESP, timeout=60)
    assert e.value.status & 0xff00 == mad.NO_RESOURCES or e.value.status in (mad.BUSY, mad.INVALID)
    both_tables(second)


def test_endless_keepalive(wire, gsi, counted):
    """A session kept alive only by KeepAlives ends nevertheless."""
    m = first_only(sapeer.new_tid())
    gsi.tx(m)
    alive = m.but(flags=mad.KEEPALIVE, segment=0, length=0)

    def mine():
        gsi.tx(alive)
        return [s for s in wire.polca.rpc('sa_sessions')['sessions'] if s['qp_num'] == gsi.qpn]
    wait_until(mine)
    wait_until(lambda: not mine(), timeout=60, step=0.2)
    assert counted['sessions_failed'] == 1
    gsi.drain()


def segment_of(gsi, number):
    """This segment of a version 1 stream, ignoring other packets."""
    m = gsi.rx()
    while m.class_version != 1 or m.segment != number:
        m = gsi.rx()
    return m


def test_spoofed_transactions(wire, gsi, second, verdicts):
    """Acks, Resends, KeepAlives and ABORTs with a session's TID, but from another queue pair or
    another address: none of them affects it."""
    q = v2(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY)
    second.tx(q)
    m = second.expect(segment=1)
    one = v1(mad.TABLE, NODE.attr, tid=q.tid, window=2, end_rid=mad.ALL_RIDS, sm_key=SM_KEY)
    second.tx(one)
    segment_of(second, 1), segment_of(second, 2)
    for sqpn in (gsi.qpn, second.qpn):  # also the right queue pair's number from a wrong address
        gsi.tx(m.turned(rmpp_type=mad.ABORT, rmpp_flags=mad.ACTIVE, rmpp_status=mad.UNSPEC),
               sqpn=sqpn)
        gsi.tx(m.turned(rmpp_type=mad.RACK, rmpp_flags=mad.ACTIVE, segment=1, new_window_last=99),
               sqpn=sqpn)
        for flags in (mad.ACK, mad.RESEND, mad.KEEPALIVE):
            gsi.tx(one.but(flags=flags, segment=2), sqpn=sqpn)
    gsi.ask_until_served(lambda: v2(mad.GET, NODE.attr, NODE.put(lid=1), tid=sapeer.new_tid(),
                                    mask=NODE.mask('lid'), sm_key=SM_KEY))
    assert verdicts['mad_unmatched'] + verdicts['mad_discarded'] == 10
    rest = second.drain()
    # at most a repeated segment; a Resend from an address without this transaction is rejected
    assert all(x.class_version == 2 and x.segment == 1 or
               x.class_version == 1 and (x.segment == 2 or x.status == mad.INVALID)
               for x in map(as_mad, rest)), rest
    data, m = receive2(second, q, Script(silence=3), first=m, timeout=40)
    assert len(NODE.split2(data, m.stride)) == NODES
    second.tx(one.but(flags=mad.ACK, segment=2))
    segment_of(second, 3)


@pytest.mark.parametrize('kind', ['resend', 'ack'])
def test_storm_of_control_packets(wire, gsi, second, kind):
    """Each Resend of a whole window costs a window: limited, and the second client continues."""
    q = v1(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), window=64, end_rid=mad.ALL_RIDS,
           sm_key=SM_KEY)
    gsi.tx(q)
    for i in range(1, 65):
        m = gsi.expect(segment=i)
    for _ in range(300):
        gsi.tx(m.turned(flags=mad.RESEND if kind == 'resend' else mad.ACK, length=0,
                        segment=1 if kind == 'resend' else 63))
    both_tables(second)
    end = time_limit.end(30)
    while [s for s in wire.polca.rpc('sa_sessions')['sessions'] if s['qp_num'] == gsi.qpn]:
        gsi.tx(m.turned(flags=mad.RESEND, segment=1, length=0))
        time.sleep(0.05)
        assert time.monotonic() < end or kind == 'ack'
        if kind == 'ack':
            break
    gsi.drain()
