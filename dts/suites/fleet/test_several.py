# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A client that knows several SAs of one fleet has its answer although some are dead or silent."""

import json
import os
import signal

import pytest

from fleet import LEASE, caught_up, until
from polca import Polca, port

ADDRESSES = ['10.81.0.%d' % i for i in (1, 2, 3)]
ASKER = '10.81.0.9'
QUERIES = 20


@pytest.fixture
def asker(fleet, ns):
    """A fourth appliance, which asks; the fleet's nodes are a, b and c, in the order of ADDRESSES."""
    ns.ip('link', 'add', 'br0', 'up', 'type', 'bridge', 'mcast_snooping', 0)

    def wire(i, address):
        ns.veth('p%d' % i, 'b%d' % i)
        ns.ip('link', 'set', 'b%d' % i, 'master', 'br0')
        return port('port0', 'net_af_packet%d,iface=p%d,framecnt=512' % (i, i), address + '/24')
    for i, name in enumerate('abc'):
        d = os.path.join(fleet.dir, name)
        os.makedirs(d)
        fleet.nodes[name] = Polca(
            d, [wire(i, ADDRESSES[i])], ns=ns, name=name,
            sa=dict(path=os.path.join(d, 'db'), map_mb=64),
            fleet=dict(endpoints=fleet.etcd.urls(), name=name, lease_s=LEASE))
    d = os.path.join(fleet.dir, 'q')
    os.makedirs(d)
    q = Polca(d, [wire(9, ASKER)], ns=ns, name='q')
    try:
        fleet.start('a', 'b', 'c')
        fleet.leader()
        for p in fleet.alive():
            until('%s watches' % p.name, lambda: caught_up(p))
        yield q.start()
    finally:
        q.kill()


def set_service(asker, number, *to, check=True):
    return asker.ctl('sa', 'set', 'service', 'service_id=%d' % number, 'service_gid=::ffff:' + ASKER,
                     'service_pkey=0xffff', 'service_lease=600', 'service_name=s%d' % number, *to,
                     check=check)


def services(asker, *to):
    """The numbers of all services, as the SAs answer."""
    r = asker.ctl('sa', 'table', 'service', '--json', *to)
    return {int(str(row['service_id']), 0) for row in json.loads(r.stdout)['records']}


def to(*order):
    first, *others = (ADDRESSES[i] for i in order)
    return ['--to', first, '--or', ','.join(others)]


def test_dead_and_silent_appliances_are_passed_over(fleet, asker):
    a = fleet.nodes['a']
    set_service(asker, 1, *to(0, 1, 2))
    for p in fleet.alive():
        until('the record', lambda: p.ctl('sa', 'table', 'service').stdout)
    assert services(asker, *to(0, 1, 2)) == services(asker, *to(2, 1, 0)) == {1}
    # silent: another one is asked after --hedge-ms, and the first may go on answering later
    a.proc.send_signal(signal.SIGSTOP)
    try:
        for _ in range(QUERIES):
            assert services(asker, *to(0, 1, 2), '--hedge-ms', '20') == {1}
    finally:
        a.proc.send_signal(signal.SIGCONT)
    assert services(asker, '--to', ADDRESSES[0]) == {1}
    # dead: questions and changes go on
    a.kill()
    assert services(asker, *to(0, 1, 2)) == {1}
    until('a change at those who are left',
          lambda: set_service(asker, 2, *to(0, 1, 2), '--timeout-ms', '500', check=False).returncode == 0)
    assert services(asker, *to(0, 2)) == {1, 2}
    until('no transfer is left', lambda: not asker.rpc('sa_sessions')['sessions'])
    for name in 'bc':
        fleet.nodes[name].kill()
    r = asker.ctl('sa', 'get', 'service', 'service_id=1', *to(0, 1, 2), '--timeout-ms', '500', check=False)
    assert r.returncode != 0 and 'none of 3 SAs has answered' in r.stderr, r
    assert 'the first: ' in r.stderr and all(x in r.stderr for x in ADDRESSES[1:]), r


def test_an_answer_of_the_first_counts(asker):
    """What it says about the question itself is the answer: nobody else is asked. Wrong options are
    refused."""
    r = asker.ctl('sa', 'get', 'service', 'service_id=99', *to(0, 1, 2), '--hedge-ms', '60000', check=False)
    assert r.returncode != 0 and 'NO_RECORDS' in r.stderr and 'none of' not in r.stderr, r
    for more, text in (
            (['--or', '10.81.0.2,somewhere'], 'got "somewhere", allowed: addresses, lid:N or N'),
            (['--or', ','.join(['10.81.0.2'] * 16)], 'allowed: 15'),
            (['--or', '10.81.0.2', '--hedge-ms', '0'], 'allowed: 1 to 60000')):
        r = asker.ctl('sa', 'table', 'service', '--to', ADDRESSES[0], *more, check=False)
        assert r.returncode == 2 and text in r.stderr, r
