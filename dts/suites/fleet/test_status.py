# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What `fleet status` says about appliances that follow and one that does not, and about etcd's members."""

import json
import re
import signal
import subprocess

from etcd import PROGRAM
from fleet import num_own_ports, put, until

TEST_SECONDS = 180
LEASE = 30  # an appliance that stands still has its lease meanwhile; it looks at etcd each 10 s


def members(polca):
    """{name: (revision, lag)}"""
    s = json.loads(polca.ctl('fleet', 'status', '--json').stdout)
    return {m['name']: (m['revision'], m['lag']) for m in s['members']}


def last_change(etcd):
    """etcd's revision of the last change."""
    return int(etcd.key('/polca/c/change')['mod_revision'])


def test_a_member_that_stands_still_is_behind(fleet, etcd):
    for name in 'abc':
        config = fleet.node(name).config
        config['fleet']['lease_s'] = LEASE
        # the ports in memory of all appliances have the same GUIDs otherwise, and only the first one's are stored
        for i, p in enumerate(config['ports']):
            p['mac'] = '02:00:00:00:%02x:%02x' % (ord(name), i)
    nodes = fleet.start('a', 'b', 'c')
    leader = fleet.leader()
    still, other = (p for p in nodes if p is not leader)
    for p in nodes:
        until('own ports of all at %s' % p.name, lambda: num_own_ports(p) == 6)

    def all_have_all():
        return dict.fromkeys('abc', (last_change(etcd), 0))
    for p in nodes:
        until('all have all, says %s' % p.name, lambda: members(p) == all_have_all(), 60)
    before = last_change(etcd)
    still.proc.send_signal(signal.SIGSTOP)
    try:
        for lid in 1, 2:
            assert put(leader, lid)
        now = last_change(etcd)
        assert now > before
        want = dict(all_have_all(), **{still.name: (before, now - before)})
        for p in leader, other:
            until('%s is behind, says %s' % (still.name, p.name), lambda: members(p) == want)
        assert last_change(etcd) == now
    finally:
        still.proc.send_signal(signal.SIGCONT)
    for p in nodes:
        until('all have all again, says %s' % p.name, lambda: members(p) == all_have_all(), 60)


def test_versions_of_etcd(fleet):
    a, = fleet.start('a')
    text = subprocess.run([PROGRAM, '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout
    version = re.search(r'^etcd Version: (\S+)$', text, re.M).group(1)
    until('the versions of all three', lambda: [
        m['version'] for m in json.loads(a.ctl('fleet', 'status', '--json').stdout)['etcd']] == [version] * 3)
