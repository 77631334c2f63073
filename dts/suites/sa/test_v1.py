# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Class version 1, Polca answers: single packets, streams in windows, and their errors
(sa-multipacket A1 to A8, seed 000)."""

import time

import pytest

import mad
import sapeer
import time_limit
from mad import NODE, v1
from sapeer import receive1, Script

from sawire import GUID, node_bytes, nodes1, NODES, SM_KEY

TOTAL = NODES * NODE.stride1  # bytes of the whole table
SEGMENTS = -(-TOTAL // 192)


def table(**fields):
    return v1(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY,
              **dict(dict(window=64, end_rid=mad.ALL_RIDS), **fields))


def get(**fields):
    return v1(mad.GET, NODE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY, **fields)


def burst(gsi, first, last, n=SEGMENTS, **fields):
    """Receive these segments, in order."""
    got = []
    for i in range(first, last + 1):
        m = gsi.rx()
        while got and m.segment == got[-1].segment or m.segment == first - 1:
            m = gsi.rx()  # repeated: our Ack was late
        for k, v in dict(fields, segment=i, status=0).items():
            assert getattr(m, k) == v, (k, v, m)
        assert m.flags == (mad.FIRST if i == 1 else 0) | (mad.LAST if i == n else 0), m
        got.append(m)
    return got


def ack(gsi, m, segment, window=64, **fields):
    gsi.tx(m.turned(flags=mad.ACK, segment=segment, window=window, length=0, **fields))


def finish(gsi, m, at, n=SEGMENTS):
    """Receive the rest of the stream, from segment at on."""
    while at <= n:
        m = gsi.rx()
        if m.segment == at:
            at += 1
            if m.flags & mad.LAST or m.segment % 32 == 0:
                ack(gsi, m, m.segment)


def refused(gsi, m, segment):
    """Request a segment that was acknowledged; returns the answer with the status."""
    gsi.tx(m.turned(flags=mad.RESEND, segment=segment, length=0))
    a = gsi.rx()
    assert (a.status, a.method, a.tid) == (mad.INVALID, mad.TABLE_RESP, m.tid), a
    assert (a.flags, a.segment) == (0, 0), a


def over(wire, gsi):
    """The stream is over: its session is gone."""
    end = time_limit.end(30)
    while any(s['qp_num'] == gsi.qpn for s in wire.polca.rpc('sa_sessions')['sessions']):
        assert time.monotonic() < end, wire.polca.rpc('sa_sessions')
        time.sleep(0.05)
    gsi.drain()


# ---- single packets (A1, A2, A6)

def test_get_by_template(gsi):
    """The answer: R bit, the request's TID, RID and attribute, and no stream flags."""
    q = get(modifier=mad.BY_TEMPLATE, mask=NODE.mask1('port_guid'),
            data=NODE.bare(port_guid=GUID + 7))
    a = gsi.ask(q)
    assert bytes(a)[:4] == b'\x01\x03\x01\x81' and (a.status, a.tid) == (0, q.tid)
    assert (a.flags, a.segment, a.attr) == (0, 0, NODE.attr)
    assert a.data[:NODE.stride1] == (7 << 16).to_bytes(4, 'big') + node_bytes(7)[4:]
    assert not any(a.data[NODE.stride1:])


def test_get_by_rid(gsi):
    a = gsi.ask(get(modifier=1000 << 16))
    assert (a.status, a.modifier) == (0, 1000 << 16)
    assert a.data[4:NODE.stride1] == node_bytes(1000)[4:]


@pytest.mark.parametrize('fields,status', [
    (dict(modifier=1001 << 16), mad.NO_RECORDS),
    (dict(modifier=mad.BY_TEMPLATE, mask=NODE.mask1('device_id'),
          data=NODE.bare(device_id=0x1234)), mad.TOO_MANY),
    (dict(modifier=mad.BY_TEMPLATE, mask=NODE.mask1('device_id'),
          data=NODE.bare(device_id=0x4321)), mad.NO_RECORDS)])
def test_get_of_not_one_record(gsi, fields, status):
    a = gsi.ask(get(**fields))
    assert (a.method, a.status) == (mad.GET_RESP, status)


def test_template_mask_has_no_bit_for_the_rid(gsi):
    """A7: bit 0 is the first component of the bare attribute: base_version, not the LID."""
    assert NODE.mask1('base_version') == 1
    a = gsi.ask(get(modifier=mad.BY_TEMPLATE, mask=1 | NODE.mask1('node_guid'),
                    data=NODE.bare(base_version=1, node_guid=GUID + 9)))
    assert a.status == 0 and a.data[:4] == (9 << 16).to_bytes(4, 'big')
    a = gsi.ask(get(modifier=mad.BY_TEMPLATE, mask=1 | NODE.mask1('node_guid'),
                    data=NODE.bare(base_version=2, node_guid=GUID + 9)))
    assert a.status == mad.NO_RECORDS


@pytest.mark.parametrize('method,attr,status', [
    (0x15, 0x11, mad.NO_METHOD), (0x7f, 0x11, mad.NO_METHOD),
    (mad.GET, 0x7777, mad.NO_METHOD_ATTR), (mad.TABLE, 0x7777, mad.NO_METHOD_ATTR),
    (mad.SET, NODE.attr, mad.NO_METHOD_ATTR)])
def test_unknown_method_or_attribute(gsi, method, attr, status):
    """B2, the same in version 1 (A8)."""
    gsi.tx(v1(method, attr, tid=sapeer.new_tid(), sm_key=SM_KEY))
    assert gsi.rx().status == status


def test_reserved_flags_of_a_request_are_ignored(gsi):
    a = gsi.ask(get(modifier=5 << 16, flags=0x4a))
    assert (a.status, a.flags) == (0, 0)


# ---- streams

def test_whole_table(gsi):
    """Segments from 1, First, Last, 192 bytes in each but the last, lengths in first and last."""
    s = Script()
    data, m = receive1(gsi, table(), s)
    assert sorted(set(s.seen)) == list(range(1, SEGMENTS + 1)) and s.total == TOTAL
    assert m.length == TOTAL - (SEGMENTS - 1) * 192
    assert [rid for rid, _ in NODE.split1(data)] == [lid << 16 for lid in range(1, NODES + 1)]
    assert all(bare == node_bytes(rid >> 16)[4:] for rid, bare in NODE.split1(data))


def test_rid_range(gsi):
    data, m = receive1(gsi, table(modifier=10 << 16, end_rid=13 << 16))
    assert [rid >> 16 for rid, _ in NODE.split1(data)] == [10, 11, 12, 13]


def test_template(gsi):
    data, m = receive1(gsi, table(modifier=mad.BY_TEMPLATE, mask=NODE.mask1('node_desc'),
                                  data=NODE.bare(node_desc=b'node 77')))
    assert [rid >> 16 for rid, _ in NODE.split1(data)] == [77]
    assert (m.flags, m.segment, m.length) == (0, 0, NODE.stride1)  # one packet is no stream


def test_no_match_is_a_table_of_no_records(gsi):
    q = table(modifier=mad.BY_TEMPLATE, mask=NODE.mask1('node_desc'),
              data=NODE.bare(node_desc=b'nobody'))
    gsi.tx(q)
    a = gsi.rx()
    assert (a.flags, a.segment, a.length) == (0, 0, 0) and a.status in (0, mad.NO_RECORDS)


def test_change_token(gsi):
    """A6: the last answer's SA_Key in a request: only changed tables are returned."""
    data, m = receive1(gsi, table())
    assert m.sa_key != 0
    a = gsi.ask(table(sa_key=m.sa_key))
    assert (a.flags, a.length) == (0, 0) and a.status in (0, mad.NO_RECORDS)
    data, again = receive1(gsi, table(sa_key=m.sa_key ^ 1 << 40))
    assert len(data) == TOTAL and again.sa_key == m.sa_key


@pytest.mark.parametrize('window,first', [(0, 64), (1, 1), (63, 63), (64, 64), (65, 65),
                                          (65535, SEGMENTS)])
def test_window(wire, gsi, window, first):
    """n packets, then Polca waits for an Ack; each response has n; 0 counts as 64."""
    said = window or 64
    gsi.tx(table(window=window))
    m = burst(gsi, 1, first, window=said)[-1]
    if first < SEGMENTS:
        gsi.expect_no_more(first)
        ack(gsi, m, first, window)
        m = burst(gsi, first + 1, min(first + said, SEGMENTS), window=said)[-1]
        gsi.expect_no_more(m.segment)
    ack(gsi, m, SEGMENTS if m.segment == SEGMENTS else m.segment, 65535)
    if m.segment < SEGMENTS:  # an Ack may open the window, but never narrows it
        burst(gsi, m.segment + 1, SEGMENTS)
        ack(gsi, m, SEGMENTS)
    over(wire, gsi)


def test_ack_never_narrows_the_window(wire, gsi):
    gsi.tx(table())
    m = burst(gsi, 1, 64)[-1]
    ack(gsi, m, 64, window=1)
    m = burst(gsi, 65, 128)[-1]
    finish_after(gsi, m, 128)
    over(wire, gsi)


def finish_after(gsi, m, segment):
    ack(gsi, m, segment)
    finish(gsi, m, segment + 1)


def test_ack_in_the_middle_of_a_window(wire, gsi):
    gsi.tx(table())
    m = burst(gsi, 1, 64)[-1]
    ack(gsi, m, 40)
    burst(gsi, 65, 104)
    gsi.expect_no_more(104)
    ack(gsi, m, 104)
    finish(gsi, m, 105)
    over(wire, gsi)


@pytest.mark.parametrize('start', [1, 33, 64])
def test_resend(wire, gsi, start):
    """The stream continues from the requested segment, to the same window's end."""
    gsi.tx(table())
    first = burst(gsi, 1, 64)
    m = first[-1]
    gsi.tx(m.turned(flags=mad.RESEND, segment=start, length=0))
    again = burst(gsi, start, 64)
    assert [bytes(x) for x in again] == [bytes(x) for x in first[start - 1:]]
    gsi.expect_no_more(64)
    finish_after(gsi, m, 64)
    over(wire, gsi)


def test_resend_of_the_next_segment_is_an_ack(wire, gsi):
    """A5, WAIT: our Ack was lost; it is repeated without waiting for a timer."""
    gsi.tx(table())
    m = burst(gsi, 1, 64)[-1]
    gsi.tx(m.turned(flags=mad.RESEND, segment=65, length=0))
    m = burst(gsi, 65, 128)[-1]
    finish_after(gsi, m, 128)
    over(wire, gsi)


def test_resend_beyond_is_ignored(wire, gsi, counted):
    gsi.tx(table())
    m = burst(gsi, 1, 64)[-1]
    gsi.tx(m.turned(flags=mad.RESEND, segment=66, length=0))
    gsi.tx(m.turned(flags=mad.RESEND, segment=0xffffffff, length=0))
    gsi.expect_no_more(64)
    finish_after(gsi, m, 64)
    over(wire, gsi)
    assert counted['sessions_failed'] == 0


def test_acknowledged_segment_asked_again_is_001c(wire, gsi, counted):
    """Seed 000: Invalid Attribute, at the first Resend and after the final Ack. An Ack may just
    have overtaken a Resend: if Acks follow, the rest is sent."""
    gsi.tx(table())
    m = burst(gsi, 1, 64)[-1]
    ack(gsi, m, 64)
    burst(gsi, 65, 128)
    refused(gsi, m, 64)
    finish_after(gsi, m, 128)
    over(wire, gsi)
    assert counted['sessions_completed'] == 1
    refused(gsi, m, SEGMENTS)
    refused(gsi, m, 1)


def test_keepalive_and_slow_acks(wire, gsi, counted):
    """A slow requester announces it (table 33-11): nothing is repeated for longer than a
    Response timeout."""
    gsi.tx(table())
    m = burst(gsi, 1, 64)[-1]
    end = time.monotonic() + 2.5  # 2 * 1.07 s + 67 ms is the Response timeout
    while time.monotonic() < end:
        gsi.tx(m.turned(flags=mad.KEEPALIVE, segment=0, length=0))
        m2 = gsi.maybe(0.3)
        assert m2 is None, m2
    finish_after(gsi, m, 64)
    over(wire, gsi)
    assert counted['segments_resent'] == 0


@pytest.mark.parametrize('segment', [65, 1000, 0xffffffff, 0])
def test_ack_of_what_was_not_sent_is_ignored(wire, gsi, counted, segment):
    gsi.tx(table())
    m = burst(gsi, 1, 64)[-1]
    ack(gsi, m, segment)
    gsi.expect_no_more(64)
    assert counted['ack_ignored'] == 1
    finish_after(gsi, m, 64)
    over(wire, gsi)


def test_old_ack_is_ignored(wire, gsi, counted):
    gsi.tx(table())
    m = burst(gsi, 1, 64)[-1]
    ack(gsi, m, 64)
    m = burst(gsi, 65, 128)[-1]
    for _ in range(3):
        ack(gsi, m, 64)
        ack(gsi, m, 1)
    gsi.expect_no_more(128)
    finish_after(gsi, m, 128)
    over(wire, gsi)
    assert counted['sessions_completed'] == 1


def test_repeated_request_starts_no_second_stream(wire, gsi, counted):
    q = table()
    gsi.tx(q)
    m = burst(gsi, 1, 64)[-1]
    gsi.tx(q)
    gsi.tx(q)
    gsi.expect_no_more(64)
    assert (counted['sessions_opened'], counted['repeated_requests']) == (1, 2)
    finish_after(gsi, m, 64)
    over(wire, gsi)


@pytest.mark.parametrize('lose', [(1,), (2,), (64,), (65,), (SEGMENTS,), (10, 11, 12, 300),
                                  (5, 5, 5)])
def test_lost_segments(gsi, lose):
    data, m = receive1(gsi, table(), Script(lose=lose, silence=0.3))
    assert len(data) == TOTAL


def test_nobody_acknowledges(wire, gsi, counted):
    """The last segment is repeated, at most seven times, a Response timeout apart; then the
    session ends."""
    gsi.tx(table(window=4))
    burst(gsi, 1, 4)
    end = time_limit.end(40)
    seen = 0
    while any(s['qp_num'] == gsi.qpn for s in wire.polca.rpc('sa_sessions')['sessions']):
        assert time.monotonic() < end
        m = gsi.maybe(0.5)
        if m is not None:
            assert m.segment == 4 or not seen, m
            seen += 1
    assert counted['sessions_failed'] == 1
    assert 1 <= seen <= 7 and counted['probes'] == 0
    assert counted['timeouts'] >= 1


def test_version_1_and_2_of_one_transaction_are_two(wire, gsi):
    """The same TID from the same queue pair in both versions: the transfers do not mix."""
    q = table(window=1)
    gsi.tx(q)
    burst(gsi, 1, 1)
    two = mad.v2(mad.TABLE, NODE.attr, tid=q.tid, sm_key=SM_KEY, mask=NODE.mask('lid'),
                 data=NODE.put(lid=3))
    gsi.tx(two)
    m = gsi.expect(class_version=2, segment=1)
    assert m.data[:108] == node_bytes(3)
    gsi.tx(m.turned(rmpp_type=mad.RACK, rmpp_flags=mad.ACTIVE, segment=1, new_window_last=17))
    gsi.drain()
    ack(gsi, q.but(method=mad.TABLE_RESP), 1, window=1)
    m = gsi.expect(class_version=1, segment=2)
    refused(gsi, m, 1)  # the last one
    over(wire, gsi)


def test_bulk(gsi):
    """GetBulk: every table under a header {AttributeID, record length, count}."""
    q = v1(mad.BULK, 0, tid=sapeer.new_tid(), window=64, sm_key=SM_KEY)
    data, m = receive1(gsi, q)
    assert m.method == mad.BULK_RESP and m.sa_key != 0
    at, tables = 0, {}
    while at < len(data):
        attr, length = int.from_bytes(data[at:at + 2], 'big'), int.from_bytes(
            data[at + 2:at + 4], 'big')
        count = int.from_bytes(data[at + 4:at + 8], 'big')
        tables[attr] = data[at + 8:at + 8 + count * length]
        at += 8 + count * length
    assert at == len(data)
    assert dict(NODE.split1(tables[NODE.attr])) == nodes1(gsi)[0]


def test_nothing_is_left(wire):
    stats = wire.stats()
    assert stats['sessions_opened'] == stats['sessions_completed'] + stats['sessions_failed'] + \
        stats['live']
