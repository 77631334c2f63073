# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""saquery, unmodified from Debian, against a fleet whose members are killed: what one appliance does not
answer, the next one does."""

import subprocess

import pytest

from fleet import until
from ibports import ib_port
from umad import Bridge, dumps

TEST_SECONDS = 180
LID = 0x100  # of the first appliance's native port; all are in the database
QUERIES = 12  # around each death


def more_ports(ns, i):
    """A native port, with fabric tools behind it that know it as the subnet administration."""
    ns.veth('pi%d' % i, 'si%d' % i)
    p = ib_port('port1', 'pi%d' % i, lid=LID + i, sm_lid=LID + i, active=True,
                guid='0x%016x' % (0x0002c90300880001 + i))
    return [dict(p, device='net_af_packet%d,iface=pi%d,framecnt=512' % (10 + i, i))]


@pytest.fixture
def bridges(three, fleet):
    made = [Bridge(fleet.ns, 'si%d' % i, fleet.dir, name='bridge%d' % i, sm_lid=LID + i) for i in range(3)]
    try:
        yield [b.start() for b in made]
    finally:
        for b in made:
            b.kill()


def answers(bridge, lid):
    """True if the appliance behind the bridge tells about the port of an appliance."""
    try:
        r = bridge.run('saquery', '-t', '1000', 'NR', lid, check=False, timeout=20)
    except subprocess.TimeoutExpired:
        return False
    told = [(kind, row['lid']) for kind, row in dumps(r.stdout)]
    return r.returncode == 0 and told == [('NodeRecord', str(lid))]


def query_all(bridges, count, lid):
    """Ask one after the other first. Each query is answered; returns how many needed another appliance, as
    those do that are too late for saquery on a slow machine."""
    again = 0
    for k in range(count):
        tries = [bridges[(k + i) % len(bridges)] for i in range(len(bridges))]
        first = next((i for i, b in enumerate(tries) if answers(b, lid)), None)
        assert first is not None, 'no appliance answers'
        again += first > 0
    return again


def test_a_loop_of_saquery_while_members_are_killed(three, bridges, etcd):
    nodes, _, (lead, one, two) = three
    port = LID + two  # of the appliance that lives
    for b in bridges:
        until('each has the port', lambda: answers(b, port))
    query_all(bridges, QUERIES, port)
    for victim in (lead, one):
        nodes[victim].kill()
        # those that asked the dead one first
        assert query_all(bridges, QUERIES, port) >= QUERIES // 3
        nodes[victim].start()
        until('it answers', lambda: answers(bridges[victim], port))
    leader = etcd.leader()
    for member in (leader, (leader + 1) % 3):  # queries do not ask etcd
        etcd.kill(member)
        query_all(bridges, QUERIES, port)
        etcd.launch(member)
        etcd.wait()
    for victim in (lead, one):
        nodes[victim].kill()
    assert query_all(bridges, QUERIES, port) >= 2 * QUERIES // 3
