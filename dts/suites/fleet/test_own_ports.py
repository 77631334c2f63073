# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Each appliance's own ports are in the database while its lease lasts, whoever leads."""

import json
import os

import pytest

from fleet import LEASE, caught_up, put, records, status, until
from polca import Polca

TABLES = {'NodeRecord': 2, 'PortInfoRecord': 2, 'GUIDInfoRecord': 2, 'P_KeyTableRecord': 2, 'LinkRecord': 2}

NATIVE_GUIDS = [0x0002c90300990001 + i for i in range(3)]


def guids(i):
    """Port GUIDs of appliance i: the interface IDs of its link-local addresses."""
    return {0xa00 + i, 0xb00 + i}


@pytest.fixture
def nodes(fleet):
    """Three appliances with two ports each, which are joined."""
    for i, name in enumerate('abc'):
        d = os.path.join(fleet.dir, name)
        os.makedirs(d)
        fleet.nodes[name] = Polca(
            d, [dict(name='port%d' % k, back_to_back='port%d' % (1 - k),
                     addresses=['192.0.2.%d/24' % (k + 1), 'fe80::%x/64' % guid])
                for k, guid in enumerate(sorted(guids(i)))],
            ns=fleet.ns, name=name, sa=dict(path=os.path.join(d, 'db'), map_mb=64),
            fleet=dict(endpoints=fleet.etcd.urls(), name=name, lease_s=LEASE))
    fleet.start('a', 'b', 'c')
    fleet.leader()
    return list(fleet.nodes.values())


def exported(polca):
    return json.loads(polca.ctl('sa', 'export', '-').stdout)['records']


def ports(polca):
    """GUID: LID of all ports that are stored."""
    return {int(r['port_guid'], 0): int(r['lid'], 0) for r in exported(polca) if r['record'] == 'NodeRecord'}


def all_have(nodes, *owners):
    want = set().union(*(guids(i) for i in owners))
    for p in nodes:
        if p.alive():
            until('the ports of %s at %s' % (owners, p.name), lambda: set(ports(p)) == want)


def test_ports_are_stored_by_whoever_leads(fleet, nodes):
    all_have(nodes, 0, 1, 2)
    until('all are alike', lambda: exported(nodes[0]) == exported(nodes[1]) == exported(nodes[2]))
    rows = exported(nodes[0])
    for record, each in TABLES.items():
        assert len([r for r in rows if r['record'] == record]) == 3 * each, record
    lids = ports(nodes[0])
    assert set(lids.values()) == set(range(0xbfff, 0xbfff - 6, -1))
    # links join the ports of one appliance
    links = {(int(r['from_lid'], 0), int(r['to_lid'], 0)) for r in rows if r['record'] == 'LinkRecord'}
    pairs = {tuple(lids[g] for g in sorted(guids(i))) for i in range(3)}
    assert links == pairs | {(b, a) for a, b in pairs}
    up = [r for r in rows if r['record'] == 'PortInfoRecord']
    assert {r['port_state'] for r in up} == {'active'}
    assert {(int(r['lid'], 0), int(r['base_lid'], 0)) for r in up} == {(x, x) for x in lids.values()}
    # a path to a port by its GID, at another appliance
    r = nodes[2].ctl('sa', 'get', 'path', 'sgid=fe80::a02', 'dgid=fe80::b02', '--json')
    path, = json.loads(r.stdout)['records']
    assert int(str(path['dlid']), 0) == lids[0xb02]


@pytest.mark.parametrize('leads', [True, False], ids=['leader', 'follower'])
def test_they_go_with_the_lease_and_come_back(fleet, nodes, leads):
    all_have(nodes, 0, 1, 2)
    before = ports(nodes[0])
    leader = fleet.leader()
    dead = next(i for i, p in enumerate(nodes) if (p is leader) == leads)
    nodes[dead].kill()
    others = [i for i in range(3) if i != dead]
    all_have(nodes, *others)
    p = nodes[others[0]]
    assert {g: lid for g, lid in before.items() if g not in guids(dead)} == ports(p)
    for record, each in TABLES.items():
        assert len([r for r in exported(p) if r['record'] == record]) == 2 * each, record
    until('its line', lambda: '%s has gone' % nodes[dead].name in fleet.leader().tail())
    nodes[dead].start()
    all_have(nodes, 0, 1, 2)


def test_stopped_appliance_takes_its_ports_along(fleet, nodes):
    all_have(nodes, 0, 1, 2)
    nodes[1].stop()
    all_have(nodes, 0, 2)


def test_ports_of_the_operator_are_left_alone(fleet, nodes):
    """Records that were imported stay, also those of a LID or GUID that a port would have."""
    all_have(nodes, 0, 1, 2)
    nodes[0].stop()
    nodes[1].stop()
    all_have(nodes, 2)
    imported = os.path.join(nodes[2].dir, 'own.json')
    taken = min(guids(0))
    with open(imported, 'w') as f:
        json.dump([{'record': 'NodeRecord', 'lid': 7, 'node_guid': '0x77', 'port_guid': '0x%x' % taken}], f)
    until('an import', lambda: nodes[2].ctl('sa', 'import', imported, check=False).returncode == 0)
    nodes[0].start()
    until('its other port', lambda: max(guids(0)) in ports(nodes[2]))
    assert ports(nodes[2])[taken] == 7
    until('a line about it', lambda: 'the port GUID 0x%016x' % taken in nodes[0].tail())
    until('it has caught up', lambda: caught_up(nodes[0]))
    put(fleet.leader(), 1)
    nodes[0].kill()
    until('its port has gone', lambda: max(guids(0)) not in ports(nodes[2]))
    assert ports(nodes[2])[taken] == 7 and records(nodes[2])[1] == 'x'


def test_removed_records_come_back(fleet, nodes):
    """Also if they are removed at once, and after an appliance had no etcd."""
    all_have(nodes, 0, 1, 2)
    leader = fleet.leader()
    empty = os.path.join(leader.dir, 'none.json')
    with open(empty, 'w') as f:
        json.dump([{'record': 'NodeRecord', 'lid': 5, 'node_guid': '0x5', 'port_guid': '0x5'}], f)
    assert leader.ctl('sa', 'import', empty, '--replace').returncode == 0
    for p in nodes:
        until('all ports', lambda: set(ports(p)) == set().union(*(guids(i) for i in range(3)), {5}))
    assert all(status(p)['changes_failed'] < 20 for p in nodes)


def exported_native(polca):
    """GUID: LID of the native ports that are stored."""
    return {g: lid for g, lid in ports(polca).items() if g in NATIVE_GUIDS}


@pytest.fixture
def native(fleet):
    """Three appliances with a native port each."""
    fleet.native_nodes(lambda i: dict(lid=0x100 + i, sm_lid=1, guid='0x%016x' % NATIVE_GUIDS[i]))
    fleet.leader()
    return list(fleet.nodes.values())


def test_native_ports_are_stored_by_whoever_leads(fleet, native):
    """With their own LIDs; they go with their appliance's lease, also the leader's, and come back."""
    lids = {g: 0x100 + i for i, g in enumerate(NATIVE_GUIDS)}
    for p in native:
        until('all ports at %s' % p.name, lambda: exported_native(p) == lids)
    rows = [r for r in exported(native[0]) if r['record'] == 'VLArbitrationTableRecord' or 'SLtoVL' in r['record']]
    assert {int(r['lid'], 0) for r in rows} == set(lids.values()), rows
    leader = fleet.leader()
    dead = native.index(leader)
    leader.kill()
    left = {g: lid for g, lid in lids.items() if g != NATIVE_GUIDS[dead]}
    for p in fleet.alive():
        until('the others at %s' % p.name, lambda: exported_native(p) == left)
    assert not [r for r in exported(fleet.alive()[0]) if int(str(r.get('lid', 0)), 0) == 0x100 + dead]
    leader.start()
    for p in native:
        until('all ports at %s' % p.name, lambda: exported_native(p) == lids)
