# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A namespace with three members of etcd on its loopback, and appliances that share its database."""

import os

import pytest

import net
from etcd import Etcd
from fleet import Fleet, Host, LEASE, caught_up, status, until
from polca import Polca
from sawire import SM_KEY


@pytest.fixture
def ns():
    with net.Namespace() as n:
        yield n


@pytest.fixture
def where(kept, request):
    # the initials: the path of a Unix socket has at most 107 bytes
    d = os.path.join(kept, ''.join(w[0] for w in request.node.name.split('_')[1:]))
    os.makedirs(d)
    return d


@pytest.fixture
def etcd(where, ns):
    e = Etcd(os.path.join(where, 'etcd'), ns, 3, options=('--max-txn-ops', '128'))
    try:
        yield e.start()
    finally:
        e.close()


@pytest.fixture
def fleet(where, ns, etcd):
    f = Fleet(where, ns, etcd)
    try:
        yield f
    finally:
        f.close()


@pytest.fixture
def host(ns):
    h = Host(ns)
    yield h
    h.close()


@pytest.fixture
def three(fleet, host):
    """Three appliances with a wire each; the leader first. gsi[i] belongs to node i."""
    for i, name in enumerate('abc'):
        d = os.path.join(fleet.dir, name)
        os.makedirs(d)
        fleet.nodes[name] = Polca(
            d, [host.wire(i)], ns=fleet.ns, name=name,
            sa=dict(path=os.path.join(d, 'db'), map_mb=64, sm_key=SM_KEY,
                    notice_interval_ms=3000, notices_max=512),
            fleet=dict(endpoints=fleet.etcd.urls(), name=name, lease_s=LEASE))
    nodes = fleet.start('a', 'b', 'c')
    fleet.leader()
    for p in nodes:
        until('%s watches' % p.name, lambda: caught_up(p))
    gsi = [host.gsi(i) for i in range(3)]
    lead = next(i for i, p in enumerate(nodes) if status(p)['leads'])
    yield nodes, gsi, [lead] + [i for i in range(3) if i != lead]
    for g in gsi:
        g.close()
