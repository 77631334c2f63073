# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A namespace with three members of etcd on its loopback, and appliances that share its database."""

import os
import re
import tempfile

import pytest

import net
from etcd import Etcd
from fleet import ADDRESSES, ASKER, Fleet, Host, LEASE, caught_up, num_own_ports, status, until
from polca import Polca, port
from sawire import SM_KEY


@pytest.fixture
def ns():
    with net.Namespace() as n:
        yield n


@pytest.fixture
def where(kept, request):
    # the initials, and a number: the path of a Unix socket has at most 107 bytes
    initials = ''.join(w[0] for w in re.split(r'[\[_]', request.node.name)[1:])
    return tempfile.mkdtemp(prefix=initials + '-', dir=kept)


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
def three(fleet, host, request):
    """Three appliances with a wire each; the leader first. gsi[i] belongs to node i. A module gives appliance i
    more ports with more_ports(ns, i)."""
    more_ports = getattr(request.module, 'more_ports', lambda ns, i: [])
    for i, name in enumerate('abc'):
        d = os.path.join(fleet.dir, name)
        os.makedirs(d)
        fleet.nodes[name] = Polca(
            d, [host.wire(i), *more_ports(fleet.ns, i)], ns=fleet.ns, name=name,
            sa=dict(path=os.path.join(d, 'db'), map_mb=64, sm_key=SM_KEY,
                    notice_interval_ms=3000, notices_max=512),
            fleet=dict(endpoints=fleet.etcd.urls(), name=name, lease_s=LEASE))
    nodes = fleet.start('a', 'b', 'c')
    fleet.leader()
    for p in nodes:
        until('%s watches' % p.name, lambda: caught_up(p))
        until('own ports of all at %s' % p.name, lambda: num_own_ports(p) == 3)
    gsi = [host.gsi(i) for i in range(3)]
    lead = next(i for i, p in enumerate(nodes) if status(p)['leads'])
    yield nodes, gsi, [lead] + [i for i in range(3) if i != lead]
    for g in gsi:
        g.close()


@pytest.fixture
def asker(fleet, ns, request):
    """A fourth appliance, which asks; the fleet's nodes are a, b and c, in the order of ADDRESSES. A module
    gives their ports more with PORT = dict(...), and the fourth one more addresses with ASKER_TOO = [...]."""
    more, asker_too = getattr(request.module, 'PORT', {}), getattr(request.module, 'ASKER_TOO', [])

    ns.ip('link', 'add', 'br0', 'up', 'type', 'bridge', 'mcast_snooping', 0)

    def wire(i, *addresses, **more):
        ns.veth('p%d' % i, 'b%d' % i)
        ns.ip('link', 'set', 'b%d' % i, 'master', 'br0')
        return port('port0', 'net_af_packet%d,iface=p%d,framecnt=512' % (i, i), *addresses, **more)
    for i, name in enumerate('abc'):
        d = os.path.join(fleet.dir, name)
        os.makedirs(d)
        fleet.nodes[name] = Polca(
            d, [wire(i, ADDRESSES[i] + '/24', **more)], ns=ns, name=name,
            sa=dict(path=os.path.join(d, 'db'), map_mb=64),
            fleet=dict(endpoints=fleet.etcd.urls(), name=name, lease_s=LEASE))
    d = os.path.join(fleet.dir, 'q')
    os.makedirs(d)
    q = Polca(d, [wire(9, ASKER + '/24', *asker_too)], ns=ns, name='q')
    try:
        fleet.start('a', 'b', 'c')
        fleet.leader()
        for p in fleet.alive():
            until('%s watches' % p.name, lambda: caught_up(p))
        yield q.start()
    finally:
        q.kill()
