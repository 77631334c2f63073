# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Two workers: whichever receives a packet, QP0 has one owner, and a manager's settings apply to
both at once."""

import struct

import pytest

import ibports
from conn import wait_until
from ibports import LID, STATIC
from smp import GET, lid_routed, live, NODE_DESC, PKEY_TABLE, PORT_INFO, SET

SOURCES = 64


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = ibports.Wire(kept, sockets, ib=STATIC, live=dict(rate=0), workers=2)
    w.polca.config['ports'][0]['device'] += ',qpairs=2'
    try:
        w.polca.start()
        w.by_hand()
        yield w
        w.audit()
    finally:
        w.close()


def replies(station, n, **kw):
    """Echoes of many sources, spread over the workers: how many were answered, and from which
    LIDs."""
    lids = set()
    for i in range(n):
        station.tx(live(1), qpn=1, sqp=0x1000 + i, **kw)
    for _ in range(n):
        p = station.maybe(0.5)
        if p is None:
            break
        lids.add(p.slid)
        n -= 1
    return n, lids


def test_smps_and_echoes(station):
    """In any order, each is answered."""
    for i in range(SOURCES):
        station.tx(lid_routed(GET, NODE_DESC))
        station.tx(live(1), qpn=1, sqp=0x1000 + i)
    got = [station.rx() for _ in range(2 * SOURCES)]
    assert sum(p.dqp == 0 for p in got) == SOURCES
    assert {p.dqp for p in got if p.dqp} == {0x1000 + i for i in range(SOURCES)}


@pytest.mark.parametrize('lid', [0x55, 0x66, LID])
def test_a_new_lid_holds_everywhere(station, polca, lid):
    now = polca.rpc('port_list')['ports'][0]['lid']
    data = bytearray(station.ask(lid_routed(GET, PORT_INFO.attr), dlid=now).smp.data)
    data[16:18] = struct.pack('>H', lid)
    data[32], data[33] = data[32] & 0xf0, data[33] & 0x0f
    assert station.ask(lid_routed(SET, PORT_INFO.attr, data=bytes(data)), dlid=now).smp.status == 0
    missing, lids = replies(station, SOURCES, dlid=lid)
    assert (missing, lids) == (0, {lid})
    assert replies(station, 1, dlid=now)[0] == (1 if now != lid else 0)


def test_a_new_p_key_holds_everywhere(station):
    keys = struct.pack('>HH', 0xffff, 0x8042).ljust(64, b'\0')
    assert replies(station, 8, pkey=0x8042)[0] == 8
    assert station.ask(lid_routed(SET, PKEY_TABLE, data=keys)).smp.status == 0
    assert replies(station, SOURCES, pkey=0x8042) == (0, {LID})
    assert station.ask(lid_routed(SET, PKEY_TABLE, data=b'\xff\xff' + bytes(62))).smp.status == 0
    assert replies(station, 8, pkey=0x8042)[0] == 8
    wait_until(lambda: not station.drain())


def test_violations_of_all_workers_count(station):
    """PortInfo's counter is the sum."""
    def counter():
        return PORT_INFO.get(station.ask(lid_routed(GET, PORT_INFO.attr)).smp.data,
                             'qkey_violations')
    before = counter()
    for i in range(SOURCES):
        station.tx(live(1), qpn=1, sqp=0x1000 + i, qkey=1)
    wait_until(lambda: counter() == before + SOURCES)
