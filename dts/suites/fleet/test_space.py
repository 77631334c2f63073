# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""etcd whose quota is exceeded."""

import os
import re
import urllib.error

import pytest

from etcd import Etcd, b64
from fleet import caught_up, put, records, status, until

TEST_SECONDS = 120
QUOTA = 4 << 20


@pytest.fixture
def etcd(where, ns):
    e = Etcd(os.path.join(where, 'etcd'), ns, 3, options=('--max-txn-ops', '128',
                                                          '--quota-backend-bytes', str(QUOTA)))
    try:
        yield e.start()
    finally:
        e.close()


def fill(etcd):
    """Another program of the same etcd overwrites a key of its own until etcd refuses it."""
    value = b64('x' * (256 << 10))
    for _ in range(100 * QUOTA // (256 << 10)):
        try:
            etcd.call('/v3/kv/put', {'key': b64('x'), 'value': value})
        except urllib.error.HTTPError as e:
            assert b'space exceeded' in e.read()
            return
    raise AssertionError('etcd takes everything')


def make_room(etcd):
    """As docs/fleet.md says."""
    etcd.compact()
    for k in etcd.alive():
        etcd.call('/v3/maintenance/defragment', {}, k)
    for alarm in etcd.call('/v3/maintenance/alarm', {})['alarms']:
        etcd.call('/v3/maintenance/alarm', dict(alarm, action='DEACTIVATE'))


def set_service(polca, number):
    r = polca.ctl('sa', 'set', 'service', 'service_id=%d' % number, 'service_gid=::ffff:192.0.2.1',
                  'service_pkey=0xffff', 'service_lease=600', 'service_name=s', check=False)
    return r.returncode, r.stdout + r.stderr


def fleet_events(polca):
    return [e['event'] for e in polca.rpc('events', since=0, max=1000)['events']
            if e['event'].startswith('FLEET_')]


def metrics(polca, name):
    return [float(v) for v in re.findall(r'^%s(?:{.*})? (\S+)$' % name, polca.ctl('stats', 'metrics').stdout, re.M)]


def test_etcd_whose_quota_is_exceeded(fleet, etcd):
    a, b = fleet.start('a', 'b')
    leader = fleet.leader()
    follower = b if leader is a else a
    until('the follower watches', lambda: caught_up(follower))
    assert put(leader, 1)
    s = until('sizes of all', lambda: (lambda s: s if len(s['etcd']) == 3 else None)(status(leader)))
    assert all(0 < m['db_used'] <= m['db_bytes'] < QUOTA and m['alarms'] == '' for m in s['etcd'])
    fill(etcd)
    for p in a, b:
        until('%s knows' % p.name, lambda: status(p)['full'])
        until('%s shows the alarm' % p.name,
              lambda: 'NOSPACE' in [m['alarms'] for m in status(p)['etcd']])
        until('%s has its event' % p.name, lambda: fleet_events(p)[-1] == 'FLEET_FULL')
        assert 'has raised an alarm: NOSPACE' in p.tail(100000)
        assert metrics(p, 'polca_fleet_etcd_full') == [1]
        assert sum(metrics(p, 'polca_fleet_etcd_alarm')) >= 1
        assert max(metrics(p, 'polca_fleet_etcd_db_bytes')) > QUOTA / 2
        # an operator is told the reason, a client the status
        r = p.ctl('sa', 'import', os.path.join(leader.dir, 'import.json'), check=False)
        assert r.returncode != 0 and '--quota-backend-bytes' in r.stderr, r
        rc, text = set_service(p, 3)
        assert rc != 0 and 'resources' in text.lower(), text
        assert records(p) == {1: 'x'}
    for p in a, b:
        assert status(p)['connected'] and status(p)['disconnects'] == 0
        assert 'etcd is away' not in p.tail(100000)
    assert status(leader)['leads'] and status(leader)['leader_changes'] == 1
    make_room(etcd)
    for p in a, b:
        until('%s knows' % p.name, lambda: not status(p)['full'])
        until('%s has its event' % p.name, lambda: fleet_events(p)[-1] == 'FLEET_ROOM')
    assert put(follower, 2)
    assert set_service(follower, 4)[0] == 0
    for p in a, b:
        until('%s has both' % p.name, lambda: records(p) == {1: 'x', 2: 'x'})
