# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A port asks the subnet administration at the LID that subnet management has set as its MasterSMLID: when
another appliance of a fleet becomes master, the port follows."""

import concurrent.futures

import pytest

from ibports import PEER_LID
from rpc import RpcError
from smp import GET, lid_routed, PORT_INFO, SET

MEMORY_PORT, SA_CLASS, GSI = 77, 3, 1
NEXT_MASTER = 9
PEER_GID = 'fe80::2:c903:77:ff'


def set_master(station, lid):
    data = station.ask(lid_routed(GET, PORT_INFO.attr)).smp.data
    fields = {n: PORT_INFO.get(data, n) for n in PORT_INFO.fields}
    fields.update(state=0, phys_state=0, reregister=0, sm_lid=lid)
    a = station.ask(lid_routed(SET, PORT_INFO.attr, data=PORT_INFO.put(**fields))).smp
    assert a.status == 0 and PORT_INFO.get(a.data, 'sm_lid') == lid


def asked(station, polca):
    """Connect by a GID that nobody has; where the question for the path goes to."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        attempt = pool.submit(polca.rpc, 'cm_connect', dgid=PEER_GID, port=MEMORY_PORT, service='memory',
                              timeout_ms=300)
        p = station.rx()
        assert (p.dqp, p.mad[1]) == (GSI, SA_CLASS), p
        with pytest.raises(RpcError):
            attempt.result()
    assert {q.dlid for q in station.drain()} <= {p.dlid}
    return p.dlid


def test_the_port_follows_the_master(station, polca):
    assert polca.rpc('port_list')['ports'][0]['sm_lid'] == PEER_LID
    assert asked(station, polca) == PEER_LID
    set_master(station, NEXT_MASTER)
    assert asked(station, polca) == NEXT_MASTER
    set_master(station, PEER_LID)
    assert asked(station, polca) == PEER_LID
