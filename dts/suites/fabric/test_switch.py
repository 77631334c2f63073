# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Two appliances on one switch: opensm assigns LIDs and routes, and queue pairs communicate by
them."""

import json
import re

import pytest

from conn import wait_until
from hca import Hca
from ibports import verdicts
from polcapair import PolcaPair
from umad import dumps

NAMES = ['a', 'b']


@pytest.fixture(scope='module')
def managed(subnet):
    subnet.opensm.start()
    for name in NAMES:
        wait_until(lambda: subnet.port(name)['state'] == 'ACTIVE')
    return subnet


@pytest.fixture(scope='module')
def pair(managed):
    return PolcaPair(Hca(managed.polca['a']), managed.lid('a'), Hca(managed.polca['b']),
                     managed.lid('b'))


def test_subnet_up(managed):
    assert managed.opensm.errors() == []
    lids = [managed.lid(n) for n in NAMES]
    assert len({0, 1, *lids}) == 4, lids  # 1 is the manager's own
    assert all(managed.port(n)['sm_lid'] == 1 for n in NAMES)


def test_topology(managed):
    """ibnetdiscover and the manager's LinkRecords: each appliance on its port of the switch."""
    text = managed.bridge.run('ibnetdiscover').stdout
    for i, name in enumerate(NAMES):
        assert re.search(r'\[%d\]\s+"H-%016x"\[1\]\(%x\)\s+# "polca %s" lid %d ' % (
            i + 2, managed.guid(name) - 1, managed.guid(name), name, managed.lid(name)), text), text
    switch = next(int(r['lid']) for _, r in dumps(managed.bridge.run('saquery', 'NR').stdout)
                  if r['node_type'] == 'Switch')
    links = {tuple(int(r[k]) for k in ('FromLID', 'FromPort', 'ToLID', 'ToPort'))
             for _, r in dumps(managed.bridge.run('saquery', 'LR').stdout)}
    for i, name in enumerate(NAMES):
        assert (managed.lid(name), 1, switch, i + 2) in links
        assert (switch, i + 2, managed.lid(name), 1) in links


def test_directed_route_over_the_switch(managed):
    for i, name in enumerate(NAMES):
        text = managed.bridge.run('smpquery', '-D', 'nodedesc', '0,1,%d' % (i + 2)).stdout
        assert text.rstrip().endswith('polca ' + name)


def test_appliances_see_each_other(managed):
    """polca-ctl smp get across the switch: by directed route and by LID."""
    a, b = managed.polca['a'], managed.polca['b']
    for args in (['--path', '0,1,3'], ['--dlid', managed.lid('b')]):
        text = a.ctl('smp', 'get', 'NodeDescription', *args).stdout
        assert 'polca b' in text, text
    assert 'bridge switch' in b.ctl('smp', 'get', 'NodeDescription', '--path', '0,1').stdout


def test_ping(managed):
    r = managed.polca['a'].rpc('live_ping', dlid=managed.lid('b'), count=3)
    assert (r['sent'], r['received']) == (3, 3)


def test_path_of_the_manager(managed):
    """The manager's PathRecord between the two: by LIDs, and by GUIDs as -G queries it."""
    pairs = {(r['slid'], r['dlid']) for _, r in dumps(
        managed.bridge.run('saquery', 'PR').stdout)}
    a, b = str(managed.lid('a')), str(managed.lid('b'))
    assert (a, b) in pairs and (b, a) in pairs
    text = managed.bridge.run('smpquery', '-G', 'nodedesc', '0x%x' % managed.guid('a')).stdout
    assert text.rstrip().endswith('polca a')


def test_all_paths_at_once(managed):
    """sa table path asks opensm for all of them, in one RMPP transfer: as saquery has them. sa import
    takes their SLs."""
    a = managed.polca['a']
    said = a.ctl('--json', 'sa', 'table', 'path', '--dlid', 1, '--sm-key', 1).stdout
    records = json.loads(said)['records']
    keys = ('slid', 'dlid', 'sl')
    theirs = {tuple(int(r[k], 0) for k in keys) for _, r in dumps(managed.bridge.run('saquery', 'PR').stdout)}
    assert {tuple(int(r[k]) for k in keys) for r in records} == theirs
    assert len(theirs) > 3  # more than one packet has room for
    a.rpc('sa_import', text=said, format='json')
    stored = a.rpc('sa_export', max=1000)['records']
    assert {r['lid'] for r in stored if r['record'] == 'PathSLRecord'} == {r['slid'] for r in records}


def test_traffic(managed, pair):
    """Send, Write and Read, with and without immediate data, of all sizes; every byte is
    compared."""
    pair.all_operations(sizes=(0, 1, 255, 1024, 5003, 100000))


def test_traffic_the_other_way(managed):
    PolcaPair(Hca(managed.polca['b']), managed.lid('b'), Hca(managed.polca['a']),
              managed.lid('a'), mtu=256).all_operations(sizes=(1, 3000))


def test_atomics(pair):
    pair.atomics()


def test_traffic_while_the_manager_restarts(managed, pair):
    """A sweep of a new manager does not disturb a connection."""
    managed.opensm.kill()
    pair.move('write', 4096, seed=5)
    managed.opensm.start(up=False)
    for seed in range(20):
        pair.move('send', 2000, seed=100 + seed)
    managed.opensm.wait('SUBNET UP')
    pair.move('read', 4096, seed=6)
    assert managed.opensm.errors() == []


def test_nothing_was_lost(managed, pair):
    """No appliance dropped a packet for its LID, key, length or CRC."""
    for name in NAMES:
        v = verdicts(managed.polca[name])
        assert not any(v[k] for k in ('not_our_lid', 'icrc', 'vcrc', 'length', 'grh', 'opcode',
                                      'pkey_violation', 'qkey_violation', 'address')), v
