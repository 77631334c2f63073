# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Class version 1, Polca receives: Config in many packets (sa-multipacket A3 to A6), Set, Inform."""

import re
import time

import pytest

import mad
import sapeer
import time_limit
from conn import wait_until
from mad import NODE, SERVICE, v1
from sapeer import Failed, Script, segments1

from sawire import config, gid, GUID, node_bytes, nodes1, SM_KEY

DATABASE = 20
N = 200  # records of a Config here: 113 segments


def bare(lid, **other):
    return NODE.bare(**dict(dict(base_version=1, class_version=1, node_type=1, num_ports=1,
                                 node_guid=GUID + lid, port_guid=GUID + lid), **other))


def records(first, n=N, **other):
    return [(lid << 16, bare(lid, **other)) for lid in range(first, first + n)]


def head(edit=mad.ADD, **fields):
    return v1(mad.CONFIG, NODE.attr, tid=sapeer.new_tid(), edit=edit,
              **dict(dict(sm_key=SM_KEY), **fields))


def raw(recs):
    return b''.join(rid.to_bytes(4, 'big') + b for rid, b in recs)


@pytest.fixture(autouse=True)
def clean(wire):
    """The database is unchanged."""
    yield
    wire.load(DATABASE)


def count(gsi):
    return len(nodes1(gsi)[0])


def present(gsi, recs):
    have = nodes1(gsi)[0]
    return [have.get(rid) == b for rid, b in recs]


# ---- received in order

def test_in_order(gsi):
    """An Ack for each window of 64, ConfigResp at the end."""
    recs, s = records(100), Script()
    a = config(gsi, mad.ADD, recs, script=s)
    assert (a.method, a.status, a.flags) == (mad.CONFIG_RESP, 0, 0)
    assert s.acks[:1] == [64] and s.resends == []
    assert all(present(gsi, recs)) and count(gsi) == DATABASE + N


def test_one_packet(gsi):
    recs = records(100, 1)
    a = config(gsi, mad.ADD, recs)
    assert a.status == 0 and (a.flags, a.segment) == (0, 0)
    assert all(present(gsi, recs))


def test_first_and_last_in_one_segment_is_accepted(gsi):
    """A3: vM3 code sends it."""
    recs = records(100, 1)
    data = raw(recs)
    gsi.tx(head(segment=1, flags=mad.FIRST | mad.LAST, length=len(data), data=data))
    assert gsi.rx().status == 0
    assert all(present(gsi, recs))


def test_acks_are_the_header_with_r_set(gsi):
    """A3: the Ack of a Config 0x14 is sent as 0x94, with the same TID and keys, PayloadLength 0."""
    q = head()
    packets = segments1(q, raw(records(100)))
    for p in packets[:64]:
        gsi.tx(p)
    a = gsi.rx()
    assert (a.method, a.flags, a.segment, a.length) == (mad.CONFIG_RESP, mad.ACK, 64, 0)
    assert (a.tid, a.attr, a.status) == (q.tid, q.attr, 0)
    for p in packets[64:]:
        gsi.tx(p)
    assert gsi.expect(flags=0).status == 0


def test_edit_and_delete(gsi):
    recs = records(100, 5)
    config(gsi, mad.ADD, recs)
    edited = records(100, 5, device_id=0x77)
    assert config(gsi, mad.EDIT, edited).status == 0
    assert all(present(gsi, edited))
    assert config(gsi, mad.REMOVE, edited).status == 0
    assert count(gsi) == DATABASE


# ---- with gaps

@pytest.mark.parametrize('lose', [(1,), (2,), (64,), (65,), (113,), (7, 8, 9, 100), (5, 5, 5)])
def test_gaps(gsi, lose):
    recs = records(100)
    assert config(gsi, mad.ADD, recs, script=Script(lose=lose, silence=1.5)).status == 0
    assert all(present(gsi, recs))


def only_resends(gsi, segment):
    """Resends for this segment, at most seven: one because of the gap, further ones when the
    segment has not arrived for a while."""
    time.sleep(0.05)
    got = [sapeer.as_mad(x) for x in gsi.drain()]
    assert len(got) < 7 and all((m.flags, m.segment) == (mad.RESEND, segment) for m in got), got


def test_a_gap(gsi):
    """All segments after the missing one are discarded; it alone is accepted."""
    q = head()
    packets = segments1(q, raw(records(100)))
    for i in (1, 2, 4, 5, 6, 7):
        gsi.tx(packets[i - 1])
    r = gsi.expect(flags=mad.RESEND, segment=3)
    assert (r.method, r.tid, r.length) == (mad.CONFIG_RESP, q.tid, 0)
    only_resends(gsi, 3)
    gsi.tx(packets[2])
    gsi.tx(packets[4])  # segment 5, which is next after the discarded 4
    gsi.expect(flags=mad.RESEND, segment=4)
    only_resends(gsi, 4)
    for p in packets[3:67]:
        gsi.tx(p)
    assert gsi.expect(flags=mad.ACK).segment >= 64
    for p in packets[67:]:
        gsi.tx(p)
    while True:
        m = gsi.rx()
        if m.flags == 0:
            break
    assert m.status == 0


def test_lost_first_is_asked_for(gsi):
    """As any other packet (seed 000)."""
    q, recs = head(), records(100, 5)
    packets = segments1(q, raw(recs))
    for p in packets[1:]:
        gsi.tx(p)
    r = gsi.expect(flags=mad.RESEND, segment=1)
    assert (r.method, r.tid, r.length) == (mad.CONFIG_RESP, q.tid, 0)
    only_resends(gsi, 1)
    for p in packets:
        gsi.tx(p)
    m = gsi.rx()
    assert (m.flags, m.status) == (0, 0), m
    assert all(present(gsi, recs))


def test_duplicates_are_acknowledged_again(gsi):
    q = head()
    packets = segments1(q, raw(records(100)))
    for p in packets[:64]:
        gsi.tx(p)
    gsi.expect(flags=mad.ACK, segment=64)
    gsi.tx(packets[9])
    gsi.expect(flags=mad.ACK, segment=64)
    for p in packets[64:]:
        gsi.tx(p)
        gsi.tx(p)
    while True:
        m = gsi.rx()
        if m.flags == 0:
            break
    assert m.status == 0
    gsi.drain()


def test_at_most_seven_resends_then_over(wire, gsi, counted):
    """The SegmentTimer, while packets are outstanding: Resend, at most seven times."""
    packets = segments1(head(), raw(records(100)))
    for p in packets[:3]:
        gsi.tx(p)
    resends = 0
    end = time_limit.end(40)
    while any(s['qp_num'] == gsi.qpn for s in wire.polca.rpc('sa_sessions')['sessions']):
        assert time.monotonic() < end
        m = gsi.maybe(0.5)
        if m is not None and m.flags == mad.RESEND:
            assert m.segment == 4
            resends += 1
    assert 1 <= resends <= 7
    assert counted['sessions_failed'] == 1
    assert count(gsi) == DATABASE


# ---- lengths

@pytest.mark.parametrize('off', [-192, -109, 192, 1 << 31])
def test_segments_that_disagree_with_the_total(gsi, off):
    """A4: status 0x001C, and nothing is executed."""
    packets = segments1(head(), raw(records(100, 10)))
    packets[0].length = packets[0].length + off & 0xffffffff
    for p in packets:
        gsi.tx(p)
    assert gsi.rx().status in ((mad.INVALID, mad.NO_RESOURCES) if off == 1 << 31 else
                               (mad.INVALID,))
    assert count(gsi) == DATABASE


def test_length_of_the_last_segment_is_reserved(gsi):
    """A4, read literally: the length of the tail follows from the first segment's total."""
    recs = records(100, 10)
    packets = segments1(head(), raw(recs))
    packets[-1].length = 1
    for p in packets:
        gsi.tx(p)
    assert gsi.rx().status == 0
    assert all(present(gsi, recs))


def test_half_a_record_is_refused(gsi):
    data = raw(records(100, 10))[:-50]
    for p in segments1(head(), data):
        gsi.tx(p)
    assert gsi.rx().status != 0
    assert count(gsi) == DATABASE


# ---- executed once, completely or not at all

def test_config_resp_is_repeated_and_nothing_done_twice(wire, gsi):
    recs = records(100)
    packets = segments1(head(), raw(recs))
    for p in packets:
        gsi.tx(p)
    while True:
        a = gsi.rx()
        if a.flags == 0:
            break
    assert a.status == 0
    before = wire.polca.rpc('sa_stats')['store']['commits']
    for _ in range(3):
        gsi.tx(packets[-1])
        again = gsi.expect(method=mad.CONFIG_RESP, flags=0)
        assert bytes(again) == bytes(a)
    assert wire.polca.rpc('sa_stats')['store']['commits'] == before


def test_all_or_nothing(wire, gsi):
    """One of the records already exists: none is added. The log sums up what was changed, and refused."""
    refused = re.compile(r'^engine: SA: \d+ changes? of records, [1-9]\d* of them refused$', re.M)
    lines = len(refused.findall(wire.polca.tail(100000)))
    recs = records(DATABASE - 3, N)
    a = config(gsi, mad.ADD, recs)
    assert a.status != 0
    assert count(gsi) == DATABASE
    wait_until(lambda: len(refused.findall(wire.polca.tail(100000))) > lines, timeout=30)
    have = nodes1(gsi)[0]
    assert have[DATABASE << 16] == node_bytes(DATABASE)[4:]


@pytest.mark.parametrize('edit', [mad.EDIT, mad.REMOVE])
def test_what_is_not_there_is_not_edited_or_deleted(gsi, edit):
    assert config(gsi, edit, records(DATABASE - 3, 10)).status != 0
    assert count(gsi) == DATABASE


@pytest.mark.parametrize('edit', [0, 4, 255])
def test_unknown_edit_modifier(gsi, edit):
    assert config(gsi, edit, records(100, 3)).status != 0
    assert count(gsi) == DATABASE


@pytest.mark.parametrize('key', [0, SM_KEY + 1])
def test_untrusted(gsi, key):
    try:
        a = config(gsi, mad.ADD, records(100), sm_key=key)
        assert a.status != 0
    except Failed as e:
        assert e.status != 0
    assert count(gsi) == DATABASE


def test_keepalive_of_the_client_keeps_the_session(wire, gsi):
    """Seed 000: the receiver's timer restarts; there is no Resend for longer than a Segment
    timeout."""
    packets = segments1(head(), raw(records(100, 10)))
    for p in packets[:3]:
        gsi.tx(p)
    wait_until(lambda: wire.polca.rpc('sa_sessions')['sessions'])
    for _ in range(8):
        time.sleep(0.3)
        gsi.tx(packets[2].but(flags=mad.KEEPALIVE, segment=0, length=0))
    gsi.expect_nothing()
    for p in packets[3:]:
        gsi.tx(p)
    assert gsi.rx().status == 0


def test_two_at_once(gsi, other):
    """Two Configs, interleaved packet by packet."""
    ones, twos = records(100), records(500)
    a, b = segments1(head(), raw(ones)), segments1(head(), raw(twos))
    for p, q in zip(a[:64], b[:64]):
        gsi.tx(p)
        other.tx(q)
    gsi.expect(flags=mad.ACK, segment=64)
    other.expect(flags=mad.ACK, segment=64)
    for p, q in zip(a[64:], b[64:]):
        gsi.tx(p)
        other.tx(q)
    for g in (gsi, other):
        m = g.rx()
        while m.flags:
            m = g.rx()
        assert m.status == 0
    assert all(present(gsi, ones + twos))


# ---- Set and Inform of version 1

def service(name=b'dts', number=0x1000, **other):
    return dict(dict(service_id=number, gid=gid(1), pkey=0xffff, lease=0xffffffff, name=name),
                **other)


def set1(**fields):
    return v1(mad.SET, SERVICE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY, **fields)


def test_set_add_and_delete(gsi):
    """Add: RID 0, the answer has the RID and the record; delete by that RID."""
    mask = SERVICE.mask('service_id', 'gid', 'pkey', 'lease', 'name')
    a = gsi.ask(set1(edit=mad.ADD, mask=mask, data=SERVICE.put(**service())))
    assert (a.method, a.status, a.sa_key) == (mad.GET_RESP, 0, 0)
    rid = int.from_bytes(a.data[:4], 'big')
    assert rid and SERVICE.get(a.data[4:], 'service_id') == 0x1000
    q = v1(mad.GET, SERVICE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY, modifier=rid)
    assert gsi.ask(q).status == 0
    a = gsi.ask(set1(edit=mad.REMOVE, modifier=rid))
    assert a.status == 0
    assert gsi.ask(q.but(tid=sapeer.new_tid())).status == mad.NO_RECORDS
    assert gsi.ask(set1(edit=mad.REMOVE, modifier=rid)).status != 0


def test_repeated_set_is_done_once(wire, gsi):
    """The answer was lost: it is repeated; or a KeepAlive is sent while the disk is busy."""
    mask = SERVICE.mask('service_id', 'gid', 'pkey', 'lease', 'name')
    q = set1(edit=mad.ADD, mask=mask, data=SERVICE.put(**service(number=0x2000)))
    gsi.tx(q)
    gsi.tx(q)
    a = gsi.rx()
    while a.flags == mad.KEEPALIVE:
        a = gsi.rx()
    assert a.status == 0
    more = gsi.maybe(0.3)
    assert more is None or bytes(more) == bytes(a)
    req = v1(mad.TABLE, SERVICE.attr, tid=sapeer.new_tid(), window=64, sm_key=SM_KEY,
             modifier=mad.BY_TEMPLATE, mask=SERVICE.mask('service_id'),
             data=SERVICE.put(service_id=0x2000))
    data, m = sapeer.receive1(gsi, req)
    assert len(SERVICE.split1(data)) == 1


def test_inform(gsi):
    q = v1(mad.INFORM, mad.INFORM_INFO.attr, tid=sapeer.new_tid(), sm_key=SM_KEY,
           data=mad.INFORM_INFO.put(lid_begin=0xffff, is_generic=1, subscribe=1, type=0xffff,
                                    trap_number=0xffff, qpn=gsi.qpn, resp_time=18,
                                    producer_type=0xffffff))
    a = gsi.ask(q)
    assert (a.method, a.status) == (mad.INFORM_RESP, 0)
    off = bytearray(q.data)
    off[23] = 0
    a = gsi.ask(q.but(tid=sapeer.new_tid(), data=bytes(off)))
    assert (a.method, a.status) == (mad.INFORM_RESP, 0)
    gsi.drain()
