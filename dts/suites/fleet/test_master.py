# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""InfiniBand: hosts ask at the LID of the master subnet manager. Each appliance of a fleet has a manager behind its
port; when the master's machine dies, another one sets its own LID at all ports, and hosts ask there."""

import os
import subprocess

import pytest

from fleet import caught_up, until
from rpc import RpcError
from umad import Bridge, dumps

TEST_SECONDS = 180
HOST_LID, LIDS = 1, (2, 3, 4)  # of the host with fabric tools, and of the appliances
STORED = LIDS[-1]  # whose record the host asks for: the appliance that lives
LINEAR_FORWARDING_TABLE = '0x19'


class Manager:
    """What a subnet manager does about masters, through the control socket of the appliance that it is behind: it looks
    whether the master answers, and if not, it is the master."""

    def __init__(self, polca, number):
        self.polca, self.number, self.lid = polca, number, LIDS[number]

    def sees(self, master):
        try:
            a = self.polca.rpc('smp_get', attribute='SMInfo', dlid=LIDS[master], timeout_ms=300, retries=1)
        except RpcError:
            return False
        return a['fields']['sm_state'] == 'master'

    def route(self):
        """The switch forwards to all, once for ever."""
        self.set('0,1', LINEAR_FORWARDING_TABLE, data=bytes((0xff, 1, 2, 3, 4)).ljust(64, b'\xff').hex())
        for port in range(1, 5):
            for state in 'armed', 'active':
                self.set('0,1', 'PortInfo', modifier=port, fields=dict(port_state=state))

    def be_master(self):
        self.polca.rpc('sm_set', state='master', priority=5)
        for port, lid in enumerate((HOST_LID, *LIDS), 1):
            if lid == self.lid:
                self.set('0', 'PortInfo', fields=dict(sm_lid=self.lid))
                continue
            try:
                self.set('0,1,%d' % port, 'PortInfo', fields=dict(sm_lid=self.lid))
            except RpcError:
                pass  # a dead machine

    def set(self, path, attribute, **what):
        a = self.polca.rpc('smp_set', path=path, attribute=attribute, timeout_ms=300, **what)
        assert a['status'] == 'OK', (path, attribute, what, a)


@pytest.fixture
def nodes(fleet):
    return fleet.native_nodes(lambda i: dict(
        lid=LIDS[i], sm_lid=LIDS[i], guid='0x%016x' % (0x0002c903007a0001 + i), sm=dict(priority=5, state='standby')))


@pytest.fixture
def host(nodes, fleet):
    """A host with Debian's fabric tools; a switch joins it and the appliances. Nobody has told it of a master."""
    b = Bridge(fleet.ns, ['si%d' % i for i in range(3)], fleet.dir, lid=HOST_LID, sm_lid=0)
    try:
        yield b.start()
        assert not b.wrong(), b.wrong()
    finally:
        b.kill()


def asked(host):
    """The LID at which the host's tools ask."""
    with open(os.path.join(host.dir, 'sys/class/infiniband/umad0/ports/1/sm_lid')) as f:
        return int(f.read(), 0)


def answered(host):
    """True if whoever the host asks has the record."""
    try:
        r = host.run('saquery', '-t', '1000', 'NR', STORED, check=False, timeout=20)
    except subprocess.TimeoutExpired:
        return False
    return r.returncode == 0 and [row['lid'] for _, row in dumps(r.stdout)] == [str(STORED)]


def test_hosts_follow_the_master(fleet, nodes, host):
    managers = [Manager(p, i) for i, p in enumerate(nodes)]
    fleet.leader()
    for p in nodes:
        until('%s has all' % p.name, lambda: caught_up(p))
    managers[0].route()
    managers[0].be_master()
    for master, dead in ((0, None), (1, 0), (2, 1)):
        if dead is not None:
            assert all(m.sees(dead) for m in managers[master:])
            nodes[dead].kill()
            assert not answered(host)
            until('the master is missed', lambda: not managers[master].sees(dead))
            managers[master].be_master()
        until('the host knows the master', lambda: asked(host) == LIDS[master])
        until('the master answers', lambda: answered(host))
        # so do hosts that are appliances
        for p in fleet.alive():
            assert p.rpc('port_list')['ports'][0]['sm_lid'] == LIDS[master]
