# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Requests whose answers are long, from an address that never acknowledges: it may be forged, so it
gets three packets for each one from it. A client that acknowledges gets its whole table. Bystanders
go on."""

import pytest

import mad
import sapeer
from conn import wait_until
from mad import NODE, v1, v2

from sawire import CmWire, Delta, inform, join, node_bytes, NODES, ready, SM_KEY

STRANGER, CLIENT = '10.78.0.66', '10.78.0.67'
FACTOR = 3
WINDOW = 100  # most packets that a test acknowledges at once
UNHARMED = {'test_silent_address_gets_three_for_one': {},
            'test_client_that_acknowledges_gets_all': dict(amplified=WINDOW),
            'test_subscriber_that_is_silent': {}}
SUBSCRIPTIONS = 64


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = CmWire(kept, sockets, sa=dict(notice_retries=1, notice_interval_ms=100, notices_max=1024))
    try:
        w.start()
        ready(w)
        yield w
        w.audit()
    finally:
        w.close()


@pytest.fixture
def counted(wire):
    return Delta(wire.stats)


def table1(**fields):
    return v1(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY, end_rid=mad.ALL_RIDS,
              **fields)


def bulk(**fields):
    return v1(mad.BULK, 0, tid=sapeer.new_tid(), sm_key=SM_KEY, **fields)


def table2(**fields):
    return v2(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY, **fields)


LONG = [pytest.param(table1, dict(window=65535), id='GetTable of class version 1'),
        pytest.param(bulk, dict(window=65535), id='GetBulk'),
        pytest.param(table2, {}, id='GetTable of class version 2')]


def sessions(wire, gsi):
    return [s for s in wire.polca.rpc('sa_sessions')['sessions'] if s['qp_num'] == gsi.qpn]


@pytest.mark.parametrize('request_of,fields', LONG)
def test_silent_address_gets_three_for_one(wire, bystanders, counted, request_of, fields):
    """It asks a few times, once with a repeat and a Resend request, and is silent. Polca repeats
    what it sent until its retries are over."""
    with wire.gsi(ip=STRANGER) as gsi:
        asked = [request_of(**fields) for _ in range(3)]
        asked += asked[-1:]
        if asked[0].class_version == 1:
            asked.append(asked[-1].but(flags=mad.RESEND, segment=1))
        else:  # an ACK that acknowledges nothing
            asked.append(asked[-1].but(rmpp_version=1, rmpp_type=mad.RACK, rmpp_flags=mad.ACTIVE,
                                       segment=0, new_window_last=1000))
        sent = [gsi.frame(m) for m in asked]
        for frame in sent:
            gsi.station.send(frame)
        got = [gsi.rx().packet]
        bystanders.exchange()
        wait_until(lambda: not sessions(wire, gsi), timeout=90)
        got += gsi.drain()
        assert sum(len(r.frame) for r in got) <= FACTOR * sum(map(len, sent))
        assert len(got) >= len(asked) and counted['unproven'] > 0


def test_client_that_acknowledges_gets_all(wire, counted):
    """Its first requests ever: Acks prove its address, and from then on windows are whole."""
    with wire.gsi(ip=CLIENT) as gsi:
        data, m = sapeer.receive1(gsi, table1(window=64))
        assert dict(NODE.split1(data)).keys() >= {lid << 16 for lid in range(1, NODES + 1)}
        data, m = sapeer.receive1(gsi, bulk(window=64))
        assert m.flags & mad.LAST
        data, m = sapeer.receive2(gsi, table2())
        assert node_bytes(NODES) in data
        gsi.tx(table1(window=WINDOW))
        assert gsi.expect(segment=1).window == WINDOW
        for segment in range(2, WINDOW + 1):
            m = gsi.expect(segment=segment)
        sapeer.receive1(gsi, table1(window=64))
        assert counted['sessions_failed'] == 0


def test_subscriber_that_is_silent(wire, bystanders, counted):
    """64 subscriptions to the same, and ten events: two Reports for each subscription, with
    repeats. A subscriber that answers gets one of each event."""
    reports = Delta(wire.sa_stats)
    with wire.gsi(ip=STRANGER) as gsi, wire.gsi(ip=CLIENT) as client, wire.gsi() as member:
        for i in range(SUBSCRIPTIONS):
            assert inform(gsi, 1, lid_end=1 + i).status == 0
        gsi.drain()
        assert inform(client, 1).status == 0
        for i in range(10):
            assert join(member, mad.DELETE if i % 2 else mad.SET).status == 0
            m = client.rx(timeout=60)
            assert m.method == mad.REPORT
            client.tx(m.turned())
        bystanders.exchange()
        wait_until(lambda: reports['reports_given_up'] == 10 * SUBSCRIPTIONS, timeout=240)
        assert len(gsi.drain()) <= (FACTOR - 1) * SUBSCRIPTIONS
        assert counted['unproven'] > 0 and reports['reports_answered'] == 10
        for i in range(SUBSCRIPTIONS):
            assert inform(gsi, 0, lid_end=1 + i).status == 0
        assert inform(client, 0).status == 0
