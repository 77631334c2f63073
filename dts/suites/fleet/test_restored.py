# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""etcd comes back with another history: from a backup, or as a new cluster. The appliances have what it has then."""

import shutil

from fleet import caught_up, put, records, status, until

TEST_SECONDS = 120


def etcd_ends(etcd, nodes):
    for k in etcd.alive():
        etcd.kill(k)
    for p in nodes:
        until('%s has noticed' % p.name, lambda: not status(p)['connected'])


def wait_all_have(nodes, want):
    for p in nodes:
        until('%s has all' % p.name, lambda: caught_up(p) and records(p) == want, 60)


def start(fleet):
    nodes = fleet.start('a', 'b')
    assert put(fleet.leader(), 1, text='one')
    wait_all_have(nodes, {1: 'one'})
    return nodes


def test_a_backup_is_restored(fleet, etcd):
    """What was changed after the backup is gone at all appliances, and changes go on."""
    nodes = start(fleet)
    etcd_ends(etcd, nodes)
    for k in range(3):
        shutil.copytree(etcd.data(k), etcd.data(k) + '.backup')
    etcd.start()
    for n in range(2, 6):
        until('a change', lambda: put(fleet.leader(), n, text='lost', check=False))
    wait_all_have(nodes, {n: 'one' if n == 1 else 'lost' for n in range(1, 6)})
    loads = [status(p)['loads'] for p in nodes]
    etcd_ends(etcd, nodes)
    for k in range(3):
        shutil.rmtree(etcd.data(k))
        shutil.move(etcd.data(k) + '.backup', etcd.data(k))
    etcd.start()
    wait_all_have(nodes, {1: 'one'})
    assert [status(p)['loads'] for p in nodes] == [n + 1 for n in loads]
    for p in nodes:
        said = p.tail(100000)
        assert 'was restored' in said or "etcd's history is not that of our copy" in said, said[-2000:]
    until('a change', lambda: put(fleet.leader(), 9, text='nine', check=False))
    wait_all_have(nodes, {1: 'one', 9: 'nine'})


def test_a_new_cluster_is_empty(fleet, etcd):
    """Nobody gives its copy up for an empty database, until an operator says so; then all have the new one."""
    nodes = start(fleet)
    etcd_ends(etcd, nodes)
    for k in range(3):
        shutil.rmtree(etcd.data(k))
    etcd.options += ['--initial-cluster-token', 'another']
    etcd.start()
    for p in nodes:
        until('%s refuses it' % p.name, lambda: 'etcd has no records below' in p.tail(100000))
        assert records(p) == {1: 'one'} and not put(p, 2, check=False)
    nodes[0].ctl('fleet', 'accept')
    until('it leads', lambda: status(nodes[0])['leads'], 60)
    assert put(nodes[0], 7, text='seven')
    wait_all_have(nodes, {7: 'seven'})
    for p in nodes:
        assert 'our copy is of another cluster' in p.tail(100000)
