# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""An unconfigured port, and a subnet manager for which the test writes every packet: the
requests allowed in each state, and the only transitions between states (smp-sma 3, 4, 6, 7)."""

import struct
import time

import pytest

from conn import wait_until
from ibports import LID, PEER_LID, PORT_GUID
from ibwire import PERMISSIVE
from smp import (ACTIVE, ARMED, directed, DOWN, D_BIT, GET, INIT, INVALID_FIELD, lid_routed, live,
                 NODE_DESC, PORT_INFO, SET, SM_INFO)

CONFIG = dict(ib=dict(guid='0x%016x' % PORT_GUID,
                      sm=dict(priority=5, state='standby')))


def info(station, **kw):
    a = station.ask(directed(GET, PORT_INFO.attr, **kw), permissive=True).smp
    assert a.status == D_BIT, a
    return a.data


def configure(station, m_key=0, **values):
    """Send Set(PortInfo) along the route; returns the answer. State and PhysState are unchanged
    by default."""
    data = info(station, m_key=m_key)
    fields = {n: PORT_INFO.get(data, n) for n in PORT_INFO.fields}
    fields.update(dict(dict(state=0, phys_state=0, reregister=0, lid=fields['lid'] or LID,
                            sm_lid=fields['sm_lid'] or PEER_LID), **values))
    return station.ask(directed(SET, PORT_INFO.attr, data=PORT_INFO.put(**fields), m_key=m_key),
                       permissive=True).smp


def state(station):
    return PORT_INFO.get(info(station), 'state')


def events(polca):
    return [e['event'] for e in polca.rpc('events')['events']]


# the tests build on each other

def test_initialize(station, polca):
    data = info(station)
    got = {n: PORT_INFO.get(data, n) for n in ('lid', 'sm_lid', 'state', 'phys_state', 'lmc')}
    assert got == dict(lid=0, sm_lid=0, state=INIT, phys_state=5, lmc=0)
    assert polca.rpc('port_list')['ports'][0]['state'] == 'INIT'


def test_without_a_lid(station, verdict):
    """SMPs to the permissive LID reach it; other packets do not."""
    p = station.ask(lid_routed(GET, NODE_DESC), dlid=PERMISSIVE)
    assert p.smp.status == 0 and p.dlid == PEER_LID
    for dlid in (LID, 1, 0):
        station.tx(lid_routed(GET, NODE_DESC), dlid=dlid)
    assert state(station) == INIT
    assert verdict['not_our_lid'] == 3


@pytest.mark.parametrize('wanted', [ACTIVE, 5])
def test_no_way_from_initialize(station, wanted):
    a = configure(station, state=wanted)
    assert a.status & 0x7fff == INVALID_FIELD and PORT_INFO.get(a.data, 'state') == INIT


def test_lid(station, polca):
    a = configure(station, reregister=1)
    assert a.status == D_BIT and PORT_INFO.get(a.data, 'lid') == LID
    assert PORT_INFO.get(a.data, 'reregister') == 1  # echoed, but not stored in the port
    assert PORT_INFO.get(info(station), 'reregister') == 0
    assert station.ask(lid_routed(GET, NODE_DESC)).slid == LID
    wait_until(lambda: set(events(polca)) >= {'LID_CHANGE', 'SM_CHANGE', 'CLIENT_REREGISTER'})


def test_no_datagrams_in_initialize(station, verdict):
    station.tx(live(1), qpn=1)
    assert state(station) == INIT
    assert verdict['port_state'] == 1


def test_armed(station, verdict):
    a = configure(station, state=ARMED)
    assert a.status == D_BIT and PORT_INFO.get(a.data, 'state') == ARMED
    a = configure(station, state=INIT)
    assert a.status & 0x7fff == INVALID_FIELD and PORT_INFO.get(a.data, 'state') == ARMED


def test_first_datagram_makes_it_active(station, polca):
    """A valid packet on another VL than 15: the peer is Active."""
    bad = bytearray(station.build(live(1), qpn=1))
    bad[-5] ^= 1  # damage the ICRC
    station.raw(bytes(bad))
    assert state(station) == ARMED
    station.tx(live(1), qpn=1)  # its answer may not be sent yet
    wait_until(lambda: polca.rpc('port_list')['ports'][0]['state'] == 'ACTIVE')
    assert 'PORT_ACTIVE' in events(polca)


def test_active(station, polca):
    """The manager sets the present values again."""
    a = configure(station, state=ACTIVE)
    assert a.status == D_BIT and PORT_INFO.get(a.data, 'state') == ACTIVE
    assert station.ask(live(1), qpn=1).slid == LID


@pytest.mark.parametrize('wanted', [INIT, ARMED, 5, 15])
def test_no_way_back(station, wanted):
    a = configure(station, state=wanted)
    assert a.status & 0x7fff == INVALID_FIELD and PORT_INFO.get(a.data, 'state') == ACTIVE


def test_lmc(station):
    """The 2^LMC LIDs from the LID on belong to the port."""
    assert configure(station, lid=0x40, lmc=3).status == D_BIT
    for lid in (0x40, 0x43, 0x47):
        assert station.ask(lid_routed(GET, NODE_DESC), dlid=lid).slid == lid
        assert station.ask(live(1), qpn=1, dlid=lid).slid == lid
    station.tx(lid_routed(GET, NODE_DESC), dlid=0x48)
    assert configure(station, lid=LID, lmc=0).status == D_BIT


def test_gid_prefix(station, polca):
    assert configure(station, gid_prefix=0xfec0000000000001).status == D_BIT
    gids = [g['gid'] for g in polca.rpc('port_list')['ports'][0]['gids']]
    assert 'fec0::1:2:c903:77:1' in gids, gids
    assert configure(station, gid_prefix=0xfe80000000000000).status == D_BIT


def test_down_and_initialize_again(station, polca):
    """A port that an SM took down trains again, shows this in its answer, and waits for the SM."""
    seq = polca.rpc('events')['events'][-1]['seq']
    a = configure(station, state=DOWN)
    assert a.status == D_BIT
    assert (PORT_INFO.get(a.data, 'state'), PORT_INFO.get(a.data, 'phys_state')) == (INIT, 5)
    wait_until(lambda: 'PORT_ERR' in [e['event'] for e in polca.rpc('events')['events']
                                      if e['seq'] > seq])
    station.tx(live(1), qpn=1)  # no answer
    assert PORT_INFO.get(info(station), 'lid') == LID
    for wanted in (ARMED, ACTIVE):
        assert configure(station, state=wanted).status == D_BIT
    assert station.ask(live(1), qpn=1).slid == LID


def test_lease_of_an_m_key(station, polca):
    """A violation starts the lease; when it expires the protection ends, and the key stays."""
    key = 0x0123456789abcdef
    assert configure(station, m_key_lease=1).status == D_BIT
    data = bytearray(info(station))
    data[0:8] = struct.pack('>Q', key)
    data[32], data[33], data[34] = data[32] & 0xf0, data[33] & 0x0f, 2 << 6
    assert station.ask(directed(SET, PORT_INFO.attr, data=bytes(data)),
                       permissive=True).smp.status == D_BIT
    station.tx(directed(GET, PORT_INFO.attr), permissive=True)  # protected: no answer

    def open_again():
        station.tx(directed(GET, NODE_DESC), permissive=True)
        return station.maybe(0.1)
    then = time.monotonic()
    wait_until(open_again)
    assert time.monotonic() - then > 0.5
    station.drain()
    data = info(station)
    assert (PORT_INFO.get(data, 'm_key'), PORT_INFO.get(data, 'protect')) == (key, 0)
    data = bytearray(data)
    data[0:8], data[26:28], data[44:46] = bytes(8), bytes(2), bytes(2)
    data[32], data[33] = data[32] & 0xf0, data[33] & 0x0f
    assert station.ask(directed(SET, PORT_INFO.attr, data=bytes(data), m_key=key),
                       permissive=True).smp.status == D_BIT


def test_sm_info(station):
    """Served if the configuration has a manager: GUID, priority and state."""
    a = station.ask(lid_routed(GET, SM_INFO)).smp
    assert a.status == 0
    assert a.data[:8] == struct.pack('>Q', PORT_GUID) and a.data[20] == 5 << 4 | 2
    assert PORT_INFO.get(info(station), 'cap_mask') & 2  # IsSM


@pytest.mark.parametrize('modifier', [0, 6])
def test_sm_info_set_of_no_such_control(station, modifier):
    a = station.ask(lid_routed(SET, SM_INFO, modifier)).smp
    assert a.status == INVALID_FIELD, a
