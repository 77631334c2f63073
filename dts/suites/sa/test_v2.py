# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Class version 2 (RMPP), Polca answers (sa-multipacket B1 to B8)."""

import time

import pytest

import mad
import sapeer
import time_limit
from mad import NODE, PATH, SERVICE, v2
from sapeer import receive2, Script

from sawire import gid, GUID, node_bytes, NODES, SM_KEY

STRIDE = 112
TOTAL = NODES * STRIDE
SEGMENTS = TOTAL // 200


def table(mask=0, data=b'', **fields):
    return v2(mad.TABLE, NODE.attr, data, tid=sapeer.new_tid(),
              **dict(dict(sm_key=SM_KEY, mask=mask), **fields))


def get(record=NODE, mask=0, data=b'', **fields):
    return v2(mad.GET, record.attr, data, tid=sapeer.new_tid(), sm_key=SM_KEY, mask=mask, **fields)


def rack(m, segment, nwl, **fields):
    return m.turned(**dict(dict(rmpp_version=1, rmpp_type=mad.RACK, rmpp_flags=mad.ACTIVE, rmpp_status=0,
                                segment=segment, new_window_last=nwl), **fields))


def data_segments(gsi, first, last):
    got = []
    for i in range(first, last + 1):
        m = gsi.rx()
        while m.segment < i:
            m = gsi.rx()  # repeated: our ACK was late
        assert (m.rmpp_type, m.segment, m.status, m.rmpp_status, m.rmpp_version) == (
            mad.DATA, i, 0, 0, 1), m
        assert m.rflags == mad.ACTIVE | (mad.RFIRST if i == 1 else 0) | \
            (mad.RLAST if i == SEGMENTS else 0), m
        got.append(m)
    return got


def sessions(wire, gsi):
    return [s for s in wire.polca.rpc('sa_sessions')['sessions'] if s['qp_num'] == gsi.qpn]


def over(wire, gsi):
    end = time_limit.end(40)
    while sessions(wire, gsi):
        assert time.monotonic() < end, sessions(wire, gsi)
        time.sleep(0.05)
    gsi.drain()


def opened(gsi, nwl=17):
    """A stream in progress: its first window has arrived and been acknowledged."""
    q = table()
    gsi.tx(q)
    m = data_segments(gsi, 1, 1)[0]
    gsi.tx(rack(m, 1, nwl))
    return data_segments(gsi, 2, nwl)[-1]


def give_up(wire, gsi, m):
    gsi.tx(m.turned(rmpp_type=mad.ABORT, rmpp_flags=mad.ACTIVE, rmpp_status=mad.UNSPEC, segment=0,
                    length=0))
    over(wire, gsi)


# ---- single packets (B7)

def test_get(gsi):
    """GetResp: RMPP header zero, SM_Key 0, the record in its version 2 form."""
    q = get(mask=NODE.mask('lid'), data=NODE.put(lid=7))
    a = gsi.ask(q)
    assert bytes(a)[:4] == b'\x01\x03\x02\x81' and (a.status, a.tid) == (0, q.tid)
    assert (a.rmpp_version, a.rmpp_type, a.rmpp_flags & 7, a.rmpp_status) == (0, 0, 0, 0)
    assert (a.segment, a.length, a.sm_key) == (0, 0, 0)
    assert a.data[:108] == node_bytes(7)


@pytest.mark.parametrize('mask,values,status', [
    ('lid', dict(lid=NODES + 1), mad.NO_RECORDS), ('node_type', dict(node_type=1), mad.TOO_MANY),
    ('node_guid', dict(node_guid=GUID + NODES), 0)])
def test_get_status(gsi, mask, values, status):
    assert gsi.ask(get(mask=NODE.mask(mask), data=NODE.put(**values))).status == status


@pytest.mark.parametrize('bit', range(15))
def test_each_mask_bit_of_node(gsi, bit):
    """B11: a template that differs in one component matches exactly when its bit is clear."""
    name = next(n for n in NODE.fields if NODE.bit[n][0] == bit)
    raw = bytearray(node_bytes(3))
    at = NODE.at[name][0] // 8
    raw[at] ^= 0x80
    rest = NODE.mask(*[n for n in NODE.fields if n != name and n != 'r1'])
    assert gsi.ask(get(mask=rest, data=bytes(raw))).status == 0
    if name != 'r1':  # reserved fields match anything
        assert gsi.ask(get(mask=rest | 1 << bit, data=bytes(raw))).status == mad.NO_RECORDS


def test_rmpp_fields_are_not_examined_without_active(gsi):
    """B3: byte 25 and the following have no meaning then."""
    q = get(mask=NODE.mask('lid'), data=NODE.put(lid=7), rmpp_version=9, rmpp_type=77,
            rmpp_flags=6, rmpp_status=99, segment=12345, length=999)
    a = gsi.ask(q)
    assert a.status == 0 and a.data[:108] == node_bytes(7)


def test_class_port_info(gsi):
    a = gsi.ask(get(mad.CLASS_PORT_INFO))
    c = mad.CLASS_PORT_INFO
    assert a.status == 0
    assert (c.get(a.data, 'base_version'), c.get(a.data, 'class_version')) == (1, 2)
    # mad.resp_time by default; multicast and MultiPathRecords
    assert c.get(a.data, 'resp_time') == 14 and a.data[2:4] == b'\x06\x00'


@pytest.mark.parametrize('method,attr,status', [
    (0x7e, NODE.attr, mad.NO_METHOD),
    (mad.GET, 0x7777, mad.NO_METHOD_ATTR), (mad.TABLE, 0x7777, mad.NO_METHOD_ATTR),
    (mad.SET, NODE.attr, mad.NO_METHOD_ATTR), (mad.DELETE, NODE.attr, mad.NO_METHOD_ATTR)])
def test_unknown_method_or_attribute(gsi, method, attr, status):
    gsi.tx(v2(method, attr, tid=sapeer.new_tid(), sm_key=SM_KEY))
    assert gsi.rx().status == status


def test_wrong_sm_key_is_denied(gsi):
    assert gsi.ask(get(mask=NODE.mask('lid'), data=NODE.put(lid=7)).but(
        sm_key=SM_KEY + 1)).status == mad.DENIED


def test_set_get_delete_of_a_service(gsi):
    values = dict(service_id=0x77, gid=gid(1), pkey=0xffff, lease=0xffffffff, name=b'dts 2')
    mask = SERVICE.mask(*values)
    q = v2(mad.SET, SERVICE.attr, SERVICE.put(**values), tid=sapeer.new_tid(), mask=mask,
           sm_key=SM_KEY)
    a = gsi.ask(q)
    assert (a.method, a.status) == (mad.SET_RESP, 0)
    one = get(SERVICE, SERVICE.mask('service_id'), SERVICE.put(service_id=0x77))
    a = gsi.ask(one)
    assert a.status == 0 and SERVICE.get(a.data, 'name') == SERVICE.get(
        SERVICE.put(name=b'dts 2'), 'name')
    gsi.tx(v2(mad.DELETE, SERVICE.attr, SERVICE.put(**values), tid=sapeer.new_tid(), mask=mask,
              sm_key=SM_KEY))
    a = gsi.rx()
    assert (a.method, a.status) == (mad.DELETE_RESP, 0)
    assert gsi.ask(one.but(tid=sapeer.new_tid())).status == mad.NO_RECORDS


def test_path_without_ports_is_an_answer(gsi):
    """PathRecords are computed: there are none for ports that are not in the database."""
    q = get(PATH, PATH.mask('dgid', 'sgid'), PATH.put(dgid=gid(60000), sgid=gid(60001)))
    assert gsi.ask(q).status in (mad.NO_RECORDS, mad.BAD_GID)


# ---- streams (B4, B5)

def test_whole_table(gsi):
    s = Script()
    data, m = receive2(gsi, table(), s)
    assert sorted(set(s.seen)) == list(range(1, SEGMENTS + 1)) and m.stride == STRIDE // 8
    assert s.total == 20 * SEGMENTS + TOTAL and m.length == 20 + 200
    rows = NODE.split2(data, m.stride)
    assert rows == [node_bytes(lid) for lid in range(1, NODES + 1)]


def test_one_segment(gsi):
    """Active, First and Last are set in a single packet too."""
    q = table(NODE.mask('lid'), NODE.put(lid=9))
    gsi.tx(q)
    m = gsi.rx()
    assert (m.rmpp_type, m.rflags, m.segment) == (mad.DATA, 7, 1)
    assert m.length == 20 + STRIDE
    assert m.data[:108] == node_bytes(9)
    gsi.tx(rack(m, 1, 17))


def test_no_match_is_success_without_records(gsi):
    q = table(NODE.mask('lid'), NODE.put(lid=0xbff0))
    gsi.tx(q)
    m = gsi.rx()
    assert (m.status, m.rflags, m.segment, m.length) == (0, 7, 1, 20)
    gsi.tx(rack(m, 1, 17))


@pytest.mark.parametrize('step', [1, 2, 16, 100])
def test_windows(wire, gsi, step):
    """One segment first; after each ACK as many as NewWindowLast allows, and no more."""
    gsi.tx(table())
    at, m = 1, None
    for window_end in (1, 1 + step, 1 + 2 * step, 1 + 3 * step):
        while at <= window_end:
            m = data_segments(gsi, at, at)[0]
            at += 1
            if (at - 1) % 60 == 0 and at <= window_end:
                gsi.tx(rack(m, at - 1, window_end))  # Polca may send fewer
        gsi.expect_no_more(window_end)
        gsi.tx(rack(m, window_end, window_end + step))
    give_up(wire, gsi, m)


def test_old_acks_are_ignored(wire, gsi, counted):
    m = opened(gsi)
    gsi.tx(rack(m, 17, 33))
    m = data_segments(gsi, 18, 33)[-1]
    gsi.tx(rack(m, 1, 17))
    gsi.tx(rack(m, 17, 20))
    gsi.expect_no_more(33)
    assert counted['ack_ignored'] >= 2 and len(sessions(wire, gsi)) == 1
    give_up(wire, gsi, m)


@pytest.mark.parametrize('lose', [(1,), (2,), (17,), (18,), (SEGMENTS,), (10, 11, 12, 300),
                                  (5, 5, 5)])
def test_lost_segments(gsi, lose):
    data, m = receive2(gsi, table(), Script(lose=lose, silence=3))
    assert NODE.split2(data, m.stride) == [node_bytes(lid) for lid in range(1, NODES + 1)]


def test_nobody_acknowledges(wire, gsi, counted):
    """Segments are repeated from the last Ack on; then ABORT 126."""
    m = opened(gsi)
    end = time_limit.end(60)
    again = []
    while True:
        assert time.monotonic() < end, again
        x = gsi.maybe(1)
        if x is None:
            continue
        if x.rmpp_type == mad.ABORT:
            break
        assert x.segment <= 17, x
        again.append(x.segment)
    assert (x.rmpp_status, x.segment, x.length, x.rflags) == (mad.RETRIES, 0, 0, mad.ACTIVE)
    assert x.tid == m.tid
    assert again and again.count(17) <= 1 + 7 + counted['probes']
    over(wire, gsi)
    assert counted['sessions_failed'] == 1


def test_repeated_request_starts_no_second_stream(wire, gsi, counted):
    q = table()
    gsi.tx(q)
    m = data_segments(gsi, 1, 1)[0]
    gsi.tx(q)
    gsi.tx(rack(m, 1, 3))
    data_segments(gsi, 2, 3)
    assert counted['sessions_opened'] == 1 and counted['repeated_requests'] == 1
    give_up(wire, gsi, m)


# ---- protocol errors (B3, B5)

@pytest.mark.parametrize('fields,status', [
    (dict(rmpp_status=1), mad.BAD_STATUS),
    (dict(segment=17, nwl=16), mad.W2S),
    (dict(segment=18, nwl=40), mad.S2B),
    (dict(segment=SEGMENTS + 1, nwl=SEGMENTS + 9), mad.S2B),
    (dict(rmpp_type=5), mad.BAD_TYPE), (dict(rmpp_type=255), mad.BAD_TYPE),
    (dict(rmpp_version=2), mad.BAD_VERSION), (dict(rmpp_version=0), mad.BAD_VERSION),
    (dict(rmpp_type=mad.STOP, rmpp_status=2), mad.BAD_STATUS),
    (dict(rmpp_type=mad.STOP, rmpp_status=0), mad.BAD_STATUS),
    (dict(rmpp_type=mad.ABORT, rmpp_status=117), mad.BAD_STATUS),
    (dict(rmpp_type=mad.ABORT, rmpp_status=128), mad.BAD_STATUS)])
def test_answered_with_abort(wire, gsi, counted, fields, status):
    m = opened(gsi)
    gsi.tx(rack(m, **dict(dict(segment=17, nwl=33), **fields)))
    x = gsi.rx()
    while x.rmpp_type == mad.DATA:
        x = gsi.rx()
    assert (x.rmpp_type, x.rmpp_status) == (mad.ABORT, status), x
    assert (x.rflags, x.segment, x.length, x.tid) == (mad.ACTIVE, 0, 0, m.tid)
    assert x.method == mad.TABLE_RESP
    over(wire, gsi)
    assert counted['abort_sent'] == 1


@pytest.mark.parametrize('kind,status', [(mad.STOP, mad.RESX)] + [
    (mad.ABORT, s) for s in range(118, 128)])
def test_valid_stop_and_abort_are_not_answered(wire, gsi, counted, kind, status):
    m = opened(gsi)
    gsi.tx(m.turned(rmpp_type=kind, rmpp_flags=mad.ACTIVE, rmpp_status=status, segment=0, length=0))
    over(wire, gsi)
    assert counted['abort_received'] == 1 and counted['abort_sent'] == 0
    name = wire.stats()['received']
    assert sum(name.values()) >= 1
    gsi.expect_no_more(17)  # the window's last segments may have been repeated before


def test_ack_of_no_transfer_is_dropped(gsi, verdicts):
    q = table()
    gsi.tx(rack(q.but(method=mad.TABLE_RESP), 1, 17))
    a = gsi.ask(get(mask=NODE.mask('lid'), data=NODE.put(lid=1)))  # orders the wire
    assert a.status == 0 and verdicts['mad_unmatched'] == 1


def test_data_for_a_single_packet_method(gsi):
    """A segmented Get is invalid: it is rejected in any case, and no session stays."""
    q = get(mask=NODE.mask('lid'), data=NODE.put(lid=1), rmpp_version=1, rmpp_type=mad.DATA,
            rmpp_flags=mad.NO_RESPTIME | mad.ACTIVE | mad.RFIRST, segment=1, length=400)
    gsi.tx(q)
    a = gsi.ask(get(mask=NODE.mask('lid'), data=NODE.put(lid=2))) if gsi.maybe(0.2) is None else None
    assert a is None or a.status == 0


def test_get_multi_is_answered(gsi):
    """MultiPathRecord without GIDs: status 0x0200; for unknown ports: 0x0500."""
    gsi.tx(v2(mad.MULTI, 0x3a, tid=sapeer.new_tid(), sm_key=SM_KEY))
    assert gsi.rx().status == 0x0200
    record = bytes(15) + b'\1\1' + bytes(7)
    gsi.tx(v2(mad.MULTI, 0x3a, tid=sapeer.new_tid(), sm_key=SM_KEY, mask=1 << 19 | 1 << 20,
              data=record + gid(60000).to_bytes(16, 'big') + gid(60001).to_bytes(16, 'big')))
    assert gsi.rx().status == 0x0500
