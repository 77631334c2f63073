# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Two appliances with services from their configurations, and an operator with polca-ctl."""

import json
import os
import shutil

import pytest

from conn import wait_until
from net import Namespace
from polca import Polca, port
from services import connections, driver, established

A, B = '10.88.0.1', '10.88.0.2'
ECHO, RPING, MEMORY, SINK = 7, 7174, 4791, 0x1000000000000001
SERVICES = [dict(kind='echo', port=ECHO), dict(kind='rping', port=RPING, name='pong'),
            dict(kind='memory', port=MEMORY, length=1 << 20),
            dict(kind='sink', service_id='0x%x' % SINK)]
CM = dict(response_timeout=16, packet_life=12, max_retries=3)


class Two:
    def __init__(self, sockets, kept):
        self.kept, self.sockets = kept, sockets
        self.ns = Namespace()
        self.ns.veth('pa', 'pb')
        self.a = Polca(sockets, [port('port0', 'net_af_packet0,iface=pa', A + '/24')], ns=self.ns,
                       name='a', cm=CM)
        self.b = Polca(sockets, [port('port0', 'net_af_packet0,iface=pb', B + '/24')], ns=self.ns,
                       name='b', cm=CM, services=SERVICES)

    def ctl(self, *words, of='a', status=0):
        """polca-ctl's output, JSON decoded."""
        p = self.a if of == 'a' else self.b
        r = p.ctl(*words, check=False)
        assert r.returncode == status, (words, r)
        return json.loads(r.stdout) if words[0] == '--json' else r.stdout + r.stderr

    def quiet(self):
        for p in (self.a, self.b):
            wait_until(lambda p=p: not connections(p), timeout=30, step=0.05)

    def close(self):
        self.a.kill()
        self.b.kill()
        self.ns.close()
        for name in os.listdir(self.sockets):
            if name.endswith('.log'):
                shutil.copy(os.path.join(self.sockets, name), self.kept)


@pytest.fixture(scope='module')
def two(kept, sockets):
    t = Two(sockets, kept)
    try:
        t.a.start()
        t.b.start()
        yield t
        t.a.stop()
        t.b.stop()
    finally:
        t.close()


@pytest.fixture(autouse=True)
def both_live(two):
    yield
    assert two.a.alive() and two.b.alive(), two.a.tail() + two.b.tail()


def test_services_of_the_configuration(two):
    rows = two.ctl('--json', 'cm', 'services', of='b')['services']
    assert [(r['name'], r['kind'], r['state']) for r in rows] == [
        ('echo', 'echo', 'LISTENING'), ('pong', 'rping', 'LISTENING'),
        ('memory', 'memory', 'LISTENING'), ('sink', 'sink', 'LISTENING')]
    assert [r.get('port') for r in rows] == [ECHO, RPING, MEMORY, None]
    text = two.ctl('cm', 'services', of='b')
    assert 'pong' in text and '0x1000000000000001' in text


@pytest.mark.parametrize('where', [(str(RPING),), ('--port', str(RPING))])
def test_rping_counts_and_ends(two, where):
    text = two.ctl('cm', 'connect', B, *where, '--service', 'rping', '--count', '50', '--verify')
    assert '50 of 50 exchanges, 0 mismatches, 0 errors' in text, text
    two.quiet()


def test_echo(two):
    text = two.ctl('cm', 'connect', B, str(ECHO), '--service', 'echo', '--count', '1000',
                   '--size', '4000', '--verify')
    assert '1000 of 1000 exchanges, 0 mismatches, 0 errors' in text, text


def test_refused_is_said(two):
    text = two.ctl('cm', 'connect', B, '9999', '--service', 'rping', status=4)
    assert 'invalid service ID' in text and 'nobody listens there' in text, text


def test_nobody_there(two):
    r = two.a.ctl('cm', 'connect', '10.88.0.77', '7', '--service', 'echo', '--timeout-ms', '2000',
                  check=False)
    assert r.returncode in (1, 4) and r.stderr, r


def test_listen_list_show_disconnect(two):
    made = two.ctl('--json', 'cm', 'listen', 'memory', '--port', '77', '--name', 'mine', of='b')
    assert (made['name'], made['port'], made['port_space']) == ('mine', 77, 'TCP')
    c = two.ctl('--json', 'cm', 'connect', B, '77', '--service', 'memory', '--detach')
    ours, theirs = established(two.a)[0], established(two.b)[0]
    assert (ours['connection'], ours['peer'], theirs['peer'], theirs['service']) == (
        c['connection'], B, A, 'mine')
    assert (ours['qp_num'], ours['remote_qpn']) == (theirs['remote_qpn'], theirs['qp_num'])
    assert '0x%08x' % c['connection'] in two.ctl('cm', 'list')
    show = two.ctl('--json', 'cm', 'show', str(c['connection']))
    assert show['state'] == 'ESTABLISHED' and show['remote_id'] == theirs['connection']
    two.ctl('cm', 'disconnect', str(c['connection']))
    two.quiet()
    two.ctl('cm', 'unlisten', 'mine', of='b')
    two.ctl('cm', 'disconnect', str(c['connection']), status=1)
    assert all(r['name'] != 'mine' for r in two.ctl('--json', 'cm', 'services', of='b')['services'])


def test_each_ends_the_others(two):
    for side in (two.a, two.b):
        c = two.a.rpc('cm_connect', dgid=B, port=MEMORY, service='memory')
        assert c['path_mtu'] == 1024
        wait_until(lambda: established(two.b))
        side.rpc('cm_disconnect', connection=established(side)[0]['connection'])
        two.quiet()


def test_a_hundred_at_a_time(two):
    """They exist at the same time, in both directions; unlisten with its connections ends them
    all."""
    for p in (two.a, two.b):
        p.rpc('cm_listen', kind='memory', name='many', port=78, length=4096)
    for _ in range(50):
        two.a.rpc('cm_connect', dgid=B, port=78, service='memory')
        two.b.rpc('cm_connect', dgid=A, port=78, service='memory')
    wait_until(lambda: len(established(two.a)) == len(established(two.b)) == 100)
    for p in (two.a, two.b):
        p.rpc('cm_unlisten', service='many', disconnect=True)
    two.quiet()


def test_two_hundred_in_a_row(two):
    before = two.b.rpc('stats_get')['cm']
    for _ in range(200):
        c = two.a.rpc('cm_connect', dgid=B, port=MEMORY, service='memory')
        two.a.rpc('cm_disconnect', connection=c['connection'])
    two.quiet()
    after = two.b.rpc('stats_get')['cm']
    assert after['connections'] - before['connections'] == 200
    assert after['refused'] == before['refused'] and after['stale'] == before['stale']


def test_kill_9_of_who_serves(two):
    """Its peer, which always has requests under way, detects this by the QP's retries, and
    connects again to the new process."""
    c = two.a.rpc('cm_connect', dgid=B, service_id=SINK, service='sink', count=100000000)
    wait_until(lambda: established(two.b))
    two.b.kill()
    two.b.start()
    assert [r['name'] for r in two.b.rpc('service_list')['services']][:2] == ['echo', 'pong']
    wait_until(lambda: not connections(two.a), timeout=60, step=0.1)
    assert driver(two.a, c['connection'])['state'] == 'ENDED'
    text = two.ctl('cm', 'connect', B, str(RPING), '--service', 'rping', '--count', '5', '--verify')
    assert '5 of 5 exchanges' in text
    two.quiet()


def test_kill_9_of_who_connected(two):
    """The server's side: its retries are exhausted, the new process answers its DREQ, and its
    place is free."""
    two.a.rpc('cm_connect', dgid=B, port=RPING, service='rping', count=100000000)
    wait_until(lambda: established(two.b))
    two.a.kill()
    two.a.start()
    text = two.ctl('cm', 'connect', B, str(RPING), '--service', 'rping', '--count', '5', '--verify')
    assert '5 of 5 exchanges' in text
    if established(two.b):  # rping's server only waits, so an operator ends it
        for row in established(two.b):
            two.b.rpc('cm_disconnect', connection=row['connection'])
    two.quiet()
