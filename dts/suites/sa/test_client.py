# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca queries a scripted server: its requests, and its reaction to right and wrong answers
(sa-multipacket A5, B6)."""

import time

import pytest

import mad
import time_limit
from conn import wait_until
from mad import NODE
from sapeer import receive1, Script, segments1, segments2, send1, send2
from sawire import node_bytes, node_json, STATION_IP

DATABASE = 10
CONFIG = dict(mad=dict(rmpp_total_ms=10000, keepalive_total_ms=6000))
N = 300  # records of the server's table: 169 segments in either version


@pytest.fixture
def server(wire):
    """QP1 of the station."""
    with wire.gsi(qpn=1) as g:
        g.drain()
        yield g
    assert wire.polca.alive(), wire.polca.tail()


class Query:
    def __init__(self, polca, **params):
        self.rpc = polca.rpc
        params = dict(dict(to=STATION_IP, record='node', resp_time=14, sm_key=77), **params)
        self.id = self.rpc('sa_query', **{k: v for k, v in params.items() if v is not None})['query']

    def end(self, timeout=60):
        """How the query ended, and its records."""
        end = time_limit.end(timeout)
        while True:
            r = self.rpc('sa_result', query=self.id, max=0, timeout_ms=1000)
            if r['state'] == 'done':
                break
            assert time.monotonic() < end, r
        rows, cursor = [], 0
        while cursor is not None:
            page = self.rpc('sa_result', query=self.id, cursor=cursor, max=200)
            rows += page['records']
            cursor = page['cursor']
        self.rpc('sa_cancel', query=self.id)
        r['rows'] = rows
        return r

    def good(self, lids):
        r = self.end()
        assert r['status'] == 'OK', r
        assert [int(row['lid'], 0) for row in r['rows']] == list(lids)
        assert [row['node_desc'] for row in r['rows']] == ['node %d' % lid for lid in lids]
        return r


@pytest.fixture
def ask(wire):
    return lambda **params: Query(wire.polca, **params)


def answer1(lids):
    return b''.join((lid << 16).to_bytes(4, 'big') + node_bytes(lid)[4:] for lid in lids)


def answer2(lids):
    return b''.join(node_bytes(lid).ljust(112, b'\0') for lid in lids)


LIDS = range(1, N + 1)


# ---- requests

def test_request_of_version_1(server, ask):
    q = ask(class_version=1, fields={'port_guid': '0x1234'}, sa_key=99)
    m = server.rx()
    assert bytes(m)[:4] == b'\x01\x03\x01\x12' and (m.attr, m.status) == (NODE.attr, 0)
    assert (m.modifier, m.flags, m.segment, m.length, m.edit) == (mad.BY_TEMPLATE, 0, 0, 0, 0)
    assert m.window >= 64 and (m.sm_key, m.sa_key) == (77, 99)
    assert m.mask == NODE.mask1('port_guid') and m.data[:104] == NODE.bare(port_guid=0x1234)
    assert m.packet.sqpn == 1
    send1(server, m.turned(), answer1([5]), window=m.window)
    q.good([5])


def test_request_of_version_2(server, ask):
    q = ask(fields={'lid': 5})
    m = server.rx()
    assert bytes(m)[:4] == b'\x01\x03\x02\x12'
    assert m.rflags & mad.ACTIVE == 0 and (m.segment, m.length) == (0, 0)
    assert (m.mask, m.sm_key) == (NODE.mask('lid'), 77) and m.data[:108] == NODE.put(lid=5)
    send2(server, m.turned(stride=14), answer2([5]))
    q.good([5])


def test_resp_time_of_the_sa(server, ask):
    """Get(ClassPortInfo) precedes the first query, and its RespTimeValue is used later: the next
    query loses its first answer, and is repeated after that time."""
    announced = 18  # 1.07 s; 2 flights of 1.07 s are the rest of the Response timeout
    q = ask(fields={'lid': 5}, resp_time=None)
    m = server.rx()
    assert (m.class_version, m.method, m.attr, m.sm_key) == (2, mad.GET, 1, 77)
    server.tx(m.turned(data=mad.CLASS_PORT_INFO.put(base_version=1, class_version=2,
                                                    resp_time=announced)))
    m = server.rx()
    assert (m.method, m.attr) == (mad.TABLE, NODE.attr)
    send2(server, m.turned(stride=14), answer2([5]))
    q.good([5])
    q = ask(op='get', fields={'lid': 5}, resp_time=None)
    m = server.rx()
    t0 = time.monotonic()
    assert (m.method, m.attr) == (mad.GET, NODE.attr)
    assert bytes(server.rx()) == bytes(m)
    assert time.monotonic() - t0 >= 3 * 4.096e-6 * 2**announced * 0.95
    server.tx(m.turned(data=answer2([5])))
    q.good([5])


def test_rid_range(server, ask):
    q = ask(class_version=1, rid=0x10000, end_rid=0x50000)
    m = server.rx()
    assert (m.modifier, m.end_rid) == (0x10000, 0x50000)
    send1(server, m.turned(), answer1([1, 5]), window=m.window)
    q.good([1, 5])


@pytest.mark.parametrize('version', [1, 2])
def test_get(server, ask, version):
    q = ask(class_version=version, op='get', fields={'node_guid': '0x0002c90300000005'})
    m = server.rx()
    assert m.method == mad.GET
    a = m.turned(data=answer1([5]) if version == 1 else answer2([5]))
    server.tx(a)
    q.good([5])


def test_bulk(server, ask):
    q = ask(op='bulk', record=None)
    m = server.rx()
    assert (m.class_version, m.method) == (1, mad.BULK)
    data = b''.join(n.to_bytes(w, 'big') for n, w in (
        (NODE.attr, 2), (NODE.stride1, 2), (3, 4))) + answer1([7, 8, 9])
    send1(server, m.turned(), data, window=m.window)
    q.good([7, 8, 9])


# ---- version 1, streams

@pytest.mark.parametrize('lose', [(), (1,), (64,), (65,), (100, 101), (5, 5, 5), (169,)])
def test_table_of_version_1(server, ask, lose):
    """One Ack at each window's end and one at Last, if nothing is lost."""
    q = ask(class_version=1)
    m = server.rx()
    s = Script(lose=lose, silence=3)
    send1(server, m.turned(), answer1(LIDS), s, window=m.window)
    q.good(LIDS)
    if not lose:
        assert s.acks == [64, 128, 169] and s.resends == []
    server.drain()


def test_acks_of_version_1(server, ask):
    q = ask(class_version=1)
    m = server.rx()
    for p in segments1(m.turned(), answer1(LIDS), m.window)[:64]:
        server.tx(p)
    a = server.rx()
    assert (a.method, a.flags, a.segment, a.length) == (mad.TABLE, mad.ACK, 64, 0)
    assert (a.tid, a.attr) == (m.tid, m.attr)
    for p in segments1(m.turned(), answer1(LIDS), m.window)[64:]:
        server.tx(p)
    q.good(LIDS)
    server.drain()


def test_one_resend_for_a_gap(server, ask):
    q = ask(class_version=1)
    m = server.rx()
    packets = segments1(m.turned(), answer1(LIDS), m.window)
    for i in (1, 2, 4, 5, 6):
        server.tx(packets[i - 1])
    server.expect(flags=mad.RESEND, segment=3, method=mad.TABLE)
    server.expect_nothing(0.05)
    send_rest1(server, packets, 3)
    q.good(LIDS)


def send_rest1(server, packets, start):
    at = start
    while at <= len(packets):
        for p in packets[at - 1:at + 31]:
            server.tx(p)
        at += 32
        if at <= len(packets):
            time.sleep(0.01)
    end = time_limit.end(10)
    while time.monotonic() < end:
        a = server.rx()
        if a.flags == mad.ACK and a.segment == len(packets):
            return
        if a.flags == mad.RESEND:
            for p in packets[a.segment - 1:]:
                server.tx(p)


def test_duplicates_are_acknowledged_again(server, ask):
    q = ask(class_version=1)
    m = server.rx()
    packets = segments1(m.turned(), answer1(LIDS), m.window)
    for p in packets[:64]:
        server.tx(p)
    server.expect(flags=mad.ACK, segment=64)
    server.tx(packets[3])
    server.expect(flags=mad.ACK, segment=64)
    for p in packets[64:]:
        server.tx(p)
    q.good(LIDS)
    server.drain()
    server.tx(packets[-1])  # our last Ack was lost
    server.expect(flags=mad.ACK, segment=169)


def test_last_counts_not_the_first_total(server, ask):
    """A4: the database may change: First announced more, or less."""
    before = set()
    for total in (0, 1, 1 << 20):
        q = ask(class_version=1)
        m = server.rx()
        while m.tid in before:  # a late packet of the query before
            m = server.rx()
        before.add(m.tid)
        packets = segments1(m.turned(), answer1(LIDS[:40]), m.window)
        packets[0].length = total
        for p in packets:
            server.tx(p)
        q.good(LIDS[:40])
        server.drain()


def test_keepalive_before_the_answer(server, ask):
    """The request is not repeated while KeepAlives arrive in time."""
    q = ask(class_version=1)
    m = server.rx()
    for _ in range(6):
        server.tx(m.turned(flags=mad.KEEPALIVE))
        time.sleep(0.5)
    server.expect_nothing()
    send1(server, m.turned(), answer1([1]), window=m.window)
    q.good([1])


@pytest.mark.parametrize('version', [1, 2])
def test_request_is_repeated_seven_times(server, ask, version):
    t0 = time.monotonic()
    q = ask(class_version=version)
    r = q.end()
    assert r['end'] == 'TIMEOUT' or 'TIMEOUT' in r['status'], r
    got = [mad.Mad(x.payload) for x in server.drain()]
    assert 2 <= len(got) <= 8 and len({bytes(m) for m in got}) == 1
    # between two of them is a Response timeout (2 * flight + process), except for two early repeats
    # of version 2
    early = 2 if version == 2 else 0
    assert time.monotonic() - t0 >= (len(got) - early) * (2 * 4.096e-6 * 2**18) * 0.9


def test_at_most_seven_resends(server, ask):
    q = ask(class_version=1)
    m = server.rx()
    server.tx(segments1(m.turned(), answer1(LIDS), m.window)[0])
    r = q.end()
    assert r['status'] != 'OK'
    resends = [x for x in map(lambda x: mad.Mad(x.payload), server.drain())
               if x.flags == mad.RESEND]
    assert 1 <= len(resends) <= 7 and {x.segment for x in resends} == {2}


@pytest.mark.parametrize('version', [1, 2])
@pytest.mark.parametrize('status', [mad.NO_RECORDS, mad.TOO_MANY, mad.DENIED, mad.INVALID,
                                    mad.NO_METHOD_ATTR])
def test_status(server, ask, version, status):
    q = ask(class_version=version)
    m = server.rx()
    server.tx(m.turned(status=status))
    r = q.end()
    assert r['end'] == 'STATUS' and r['mad_status'] == '0x%04x' % status, r


def test_status_in_the_middle(server, ask):
    """A5: any response with a status ends it."""
    q = ask(class_version=1)
    m = server.rx()
    for p in segments1(m.turned(), answer1(LIDS), m.window)[:3]:
        server.tx(p)
    server.tx(m.turned(status=mad.INVALID))
    assert q.end()['mad_status'] == '0x001c'


# ---- version 1, Config

def config(ask, n=N, op='config_add'):
    return ask(op=op, class_version=1, records=[node_json(lid) for lid in range(1, n + 1)])


@pytest.mark.parametrize('lose', [(), (1,), (64,), (65,), (5, 5, 5), (169,)])
def test_config(server, ask, lose):
    q = config(ask)
    first = server.rx()
    assert (first.method, first.flags, first.segment) == (mad.CONFIG, mad.FIRST, 1)
    assert first.length == N * NODE.stride1 and (first.edit, first.sm_key) == (mad.ADD, 77)
    data, m = receive1(server, first, Script(lose=lose, silence=1), first=first)
    assert data == answer1(LIDS)
    server.tx(m.turned(flags=0, segment=0, length=0))  # counts as the last Ack
    assert q.end()['status'] == 'OK'
    server.drain()


def segments(server, m, last):
    """The segments of the Config that m began, up to last, in order; repeated segments do not
    count."""
    while m.segment < last:
        x = server.rx()
        if x.tid == m.tid and x.segment > m.segment:
            assert x.segment == m.segment + 1, x
            m = x
    return m


@pytest.mark.parametrize('window', [0, 1, 63, 64, 100])
def test_window_of_a_config(server, ask, window):
    """64 at first; a Window below 64 in an Ack counts as 64."""
    q = config(ask)
    first = server.rx()
    last = segments(server, first, 64)
    server.expect_no_more(64)
    server.tx(last.turned(flags=mad.ACK, window=window, length=0))
    end = 64 + max(64, window)
    last = segments(server, last, end)
    server.expect_no_more(end)
    server.tx(last.turned(flags=0, status=mad.NO_RESOURCES, length=0, segment=0))
    assert q.end()['mad_status'] == '0x0100'


def test_config_asked_for_what_was_acknowledged(server, ask):
    """Seed 000: a MAD with status 0x001C ends it at once; only the SA decides the end."""
    q = config(ask)
    m = segments(server, server.rx(), 64)
    server.tx(m.turned(flags=mad.ACK, window=64, length=0))
    segments(server, m, 65)
    server.tx(m.turned(flags=mad.RESEND, segment=3, length=0))
    while True:
        a = server.rx()
        if a.status:
            break
    assert (a.status, a.method, a.tid) == (mad.INVALID, mad.CONFIG, m.tid)
    server.tx(m.turned(flags=0, status=mad.INVALID, length=0, segment=0))
    assert q.end()['mad_status'] == '0x001c'
    server.drain()


def test_keepalive_while_the_config_is_executed(server, ask):
    q = config(ask, 10)
    first = server.rx()
    data, m = receive1(server, first, Script(), first=first)
    server.tx(m.turned(flags=mad.ACK, length=0))
    server.expect_no_more(m.segment)
    for _ in range(6):
        server.tx(m.turned(flags=mad.KEEPALIVE, segment=0, length=0))
        time.sleep(0.5)
    server.expect_nothing()
    server.tx(m.turned(flags=0, segment=0, length=0))
    assert q.end()['status'] == 'OK'


def test_config_of_one_packet(server, ask):
    q = config(ask, 1)
    m = server.rx()
    assert (m.flags, m.segment, m.length) == (0, 0, NODE.stride1)
    server.tx(m.turned())
    assert q.end()['status'] == 'OK'


# ---- version 2

@pytest.mark.parametrize('lose', [(), (1,), (2,), (17,), (18,), (20, 21, 22), (5, 5, 5), (168,)])
def test_table_of_version_2(server, ask, lose):
    q = ask()
    m = server.rx()
    s = Script(lose=lose, silence=0.5)
    send2(server, m.turned(stride=14), answer2(LIDS), s)
    q.good(LIDS)
    if not lose:
        assert s.acks[0] == 1 and s.acks[-1] == 168 and len(s.acks) <= 2 + 168 // 16 + 1
    server.drain()


def test_acks_of_version_2(server, ask):
    """B6: header copied, R toggled, flags Active only; window one, then the step further."""
    q = ask()
    m = server.rx()
    packets = segments2(m.turned(stride=14), answer2(LIDS))
    server.tx(packets[0])
    a = server.expect_rack(m, segment=1)
    assert (a.method, a.rflags, a.rmpp_status, a.status) == (mad.TABLE, mad.ACTIVE, 0, 0)
    assert a.new_window_last == 17 and (a.tid, a.attr) == (m.tid, m.attr)
    for p in packets[1:16]:
        server.tx(p)
    server.expect_nothing(0.05)
    server.tx(packets[16])
    a = server.expect(rmpp_type=mad.RACK, segment=17, new_window_last=33)
    # beyond the window: dropped
    server.tx(packets[33])
    server.tx(packets[17])
    server.expect_nothing(0.05)
    # a duplicate covered by the last ACK: repeat that ACK
    server.tx(packets[4])
    again = server.expect(rmpp_type=mad.RACK)
    assert again.segment in (17, 18)
    server.tx(packets[5].turned(rmpp_type=mad.ABORT, rmpp_flags=mad.ACTIVE,
                                rmpp_status=mad.UNSPEC, segment=0, length=0).but(
        method=mad.TABLE_RESP))
    assert q.end()['rmpp_status'] == mad.UNSPEC


def test_out_of_order_is_kept(server, ask):
    """Segments that arrived out of order are not requested again."""
    q = ask()
    m = server.rx()
    packets = segments2(m.turned(stride=14), answer2(LIDS[:25]))  # 14 segments
    server.tx(packets[0])
    server.expect_rack(m, segment=1)
    for i in (13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2):
        server.tx(packets[i])
    server.tx(packets[1])
    q.good(LIDS[:25])
    while server.expect(rmpp_type=mad.RACK).segment != 14:
        pass  # the Acks before the first segment was complete


def test_last_ack_is_repeated(server, ask):
    q = ask()
    m = server.rx()
    send2(server, m.turned(stride=14), answer2([1]))
    q.good([1])
    server.tx(segments2(m.turned(stride=14), answer2([1]))[0])
    assert server.expect(rmpp_type=mad.RACK).segment == 1


@pytest.mark.parametrize('number,fields,status', [
    (2, dict(rmpp_flags=mad.ACTIVE | mad.RFIRST), mad.BAD_FIRST),
    (1, dict(rmpp_flags=mad.ACTIVE), mad.BAD_FIRST),
    (2, dict(rmpp_flags=mad.ACTIVE | mad.RLAST, length=221), mad.BAD_LEN),
    (2, dict(rmpp_flags=mad.ACTIVE | mad.RLAST, length=19), mad.BAD_LEN),
    (2, dict(rmpp_type=5), mad.BAD_TYPE), (2, dict(rmpp_type=0), mad.BAD_TYPE),
    (2, dict(rmpp_version=2), mad.BAD_VERSION), (1, dict(rmpp_version=2), mad.BAD_VERSION),
    (2, dict(rmpp_status=1), mad.BAD_STATUS), (2, dict(rmpp_status=126), mad.BAD_STATUS),
    (2, dict(rmpp_type=mad.STOP, rmpp_status=5), mad.BAD_STATUS),
    (2, dict(rmpp_type=mad.ABORT, rmpp_status=5), mad.BAD_STATUS)])
def test_answered_with_abort(server, ask, number, fields, status):
    q = ask()
    m = server.rx()
    packets = segments2(m.turned(stride=14), answer2(LIDS))
    if number > 1:
        server.tx(packets[0])
        server.expect_rack(m)
    server.tx(packets[number - 1].but(**fields))
    a = server.expect(rmpp_type=mad.ABORT, rmpp_status=status)
    assert (a.method, a.tid, a.segment, a.length) == (mad.TABLE, m.tid, 0, 0)
    r = q.end()
    assert r['end'] == 'PROTOCOL' and r['rmpp_status'] == status, r


@pytest.mark.parametrize('kind,status', [(mad.STOP, mad.RESX)] + [
    (mad.ABORT, s) for s in range(118, 128)])
def test_stop_and_abort_end_it_without_an_answer(server, ask, kind, status):
    q = ask()
    m = server.rx()
    server.tx(segments2(m.turned(stride=14), answer2(LIDS))[0])
    server.expect_rack(m)
    server.tx(m.turned(rmpp_version=1, rmpp_type=kind, rmpp_flags=mad.ACTIVE, rmpp_status=status))
    r = q.end()
    assert r['end'] == 'ABORTED' and r['rmpp_status'] == status, r
    server.expect_nothing()


def test_total_time(server, ask):
    """B6: an incomplete message times out: ABORT 118."""
    q = ask()
    m = server.rx()
    packets = segments2(m.turned(stride=14), answer2(LIDS))
    server.tx(packets[0])
    server.expect_rack(m)
    end, at = time_limit.end(30), 2
    while True:  # a segment now and then is not enough progress
        assert time.monotonic() < end
        server.tx(packets[at - 1])
        at += 1
        a = server.maybe(0.5)
        if a is not None and a.tid == m.tid and a.rmpp_type == mad.ABORT:
            break
    assert a.rmpp_status == mad.T2L
    assert q.end()['rmpp_status'] == mad.T2L


def test_cancelled(server, ask):
    """The server receives an ABORT."""
    q = ask()
    m = server.rx()
    server.tx(segments2(m.turned(stride=14), answer2(LIDS))[0])
    server.expect_rack(m)
    q.rpc('sa_cancel', query=q.id)
    a = server.expect(rmpp_type=mad.ABORT)
    assert a.rmpp_status in (mad.UNSPEC, mad.T2L)


def test_tids_of_two_queries_differ(server, ask):
    qs = [ask() for _ in range(5)]
    ms = [server.rx() for _ in qs]
    assert len({m.tid for m in ms}) == 5
    for m in ms:
        server.tx(m.turned(status=mad.NO_RECORDS))
    for q in qs:
        assert q.end()['status'] != 'OK'


def test_answers_from_elsewhere_are_not_taken(server, wire, ask, verdicts):
    """The right TID, but from another queue pair or address."""
    q = ask()
    m = server.rx()
    with wire.gsi(ip='10.79.0.99') as far:
        far.tx(m.turned(status=mad.NO_RECORDS), sqpn=1)
    server.tx(m.turned(status=mad.NO_RECORDS), sqpn=2)
    server.tx(m.but(tid=m.tid ^ 1).turned(status=mad.NO_RECORDS))
    wait_until(lambda: verdicts['mad_unmatched'] == 3)
    send2(server, m.turned(stride=14), answer2([4]))
    q.good([4])
