# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Appliances that share the database in etcd: what one acknowledges, all have; who dies is
replaced; etcd may go away and come back."""

import json
import os
import re
import shutil
import subprocess
import threading
import time

import guide
from fleet import LEASE, caught_up, put, records, staged, status, until, write_import
from polca import CTL_PROGRAM, Polca

TEST_SECONDS = 120


def test_change_at_leader_is_seen_at_follower(fleet):
    fleet.start('a', 'b')
    leader = fleet.leader()
    follower = next(p for p in fleet.alive() if p is not leader)
    until('the follower watches', lambda: caught_up(follower))
    assert put(leader, 7, text='seven')
    until('the record at the follower', lambda: records(follower) == {7: 'seven'})
    assert put(leader, 7, text='eight')
    until('the change', lambda: records(follower) == {7: 'eight'})
    s = until('both are seen', lambda: (lambda s: s if len(s['members']) == 2 else None)(
        status(follower)))
    assert s['leader'] == leader.name and not s['leads']
    assert {m['name']: m['leader'] for m in s['members']} == {
        p.name: p is leader for p in fleet.alive()}
    # it leads, so it has looked at etcd: at all of its members
    assert [m['answers'] for m in status(leader)['etcd']] == [True] * 3
    assert sum(m['leader'] for m in status(leader)['etcd']) == 1


def test_debug_says_what_the_watch_brought(fleet):
    fleet.start('a')
    leader = fleet.leader()

    def lines():  # etcd may send both changes in one message
        with open(leader.log) as f:
            return re.findall(r'revision \d+ is here, changes: [12]$', f.read(), re.M)
    assert put(leader, 7, text='seven')
    assert not lines()
    leader.rpc('log_level_set', component='polca.fleet', level='debug')
    assert put(leader, 7, text='eight')
    until('the line', lines)


def test_import_at_a_follower(fleet, etcd):
    """It is there when it is answered, larger than one part and one transaction; all or nothing."""
    fleet.start('a', 'b')
    leader = fleet.leader()
    follower = next(p for p in fleet.alive() if p is not leader)
    until('the follower watches', lambda: caught_up(follower))
    lids = range(1, 8001)
    assert put(follower, *lids)
    have = records(follower)
    assert set(have) == set(lids)
    until('it is at the leader', lambda: records(leader) == have)
    until('nothing stays staged', lambda: staged(etcd) == 0)
    # the whole is refused for one record, with the reason
    wrong = os.path.join(follower.dir, 'wrong.json')
    with open(wrong, 'w') as f:
        json.dump([{'record': 'NodeRecord', 'lid': lid, 'node_guid': '0x5', 'port_guid': '0x5'}
                   for lid in (9001, 0)], f)
    r = follower.ctl('sa', 'import', wrong, '--replace', check=False)
    assert r.returncode != 0 and 'LID 0' in r.stderr, r
    assert records(follower) == have and records(leader) == have and staged(etcd) == 0
    # replace
    assert follower.ctl('sa', 'import', write_import(follower, 9), '--replace').returncode == 0
    assert records(follower) == {9: 'x'}
    until('it is at the leader', lambda: records(leader) == {9: 'x'})


def test_import_at_a_follower_survives_the_leader(fleet):
    """The leader dies while imports come to another appliance: each is there as a whole or not at all."""
    fleet.start('a', 'b', 'c')
    leader = fleet.leader()
    follower = next(p for p in fleet.alive() if p is not leader)
    until('the follower watches', lambda: caught_up(follower))
    lids = range(1, 3001)
    results = []

    def imports():
        for n in range(6):
            results.append((n, put(follower, *lids, text='round %d' % n, check=False)))
    thread = threading.Thread(target=imports)
    thread.start()
    until('one is made', lambda: len(results) >= 1)
    leader.kill()
    thread.join()
    assert len([n for n, ok in results if ok]) >= 5, results
    last = max(n for n, ok in results if ok)
    for p in fleet.alive():
        until('%s has caught up' % p.name, lambda: caught_up(p))
        have = records(p)
        assert set(have) == set(lids)
        text, = set(have.values())
        assert int(text.split()[1]) >= last


def test_events_tell_who_leads_and_when_etcd_is_away(fleet, etcd):
    a, = fleet.start('a')

    def events():
        return [e['event'] for e in a.rpc('events', since=0, max=1000)['events'] if e['event'].startswith('FLEET_')]
    until('it leads', lambda: events() == ['FLEET_CONNECTED', 'FLEET_LEADS'])
    for k in etcd.alive():
        etcd.kill(k)
    until('it is away', lambda: sorted(events()[2:]) == ['FLEET_AWAY', 'FLEET_FOLLOWS'])
    for k in range(3):
        etcd.launch(k)
    until('it leads again', lambda: events()[4:] == ['FLEET_CONNECTED', 'FLEET_LEADS'])
    text = [e['text'] for e in a.rpc('events', since=0, max=1000)['events'] if e['event'] == 'FLEET_AWAY']
    assert text == ['etcd does not answer: changes are refused']


def test_copied_directory_is_another_appliance(fleet):
    """An operator copies an appliance's directory and configuration to another machine: two never share one
    identity."""
    a, = fleet.start('a')
    assert fleet.leader() is a
    # once the second record is on its way to the disk, the first one is there
    for lid in 7, 9:
        assert put(a, lid, text='record %d' % lid)
        until('it is written', lambda: ('record %d' % lid).encode() in read_copy(a))
    d = os.path.join(fleet.dir, 'copied')
    os.makedirs(d)
    subprocess.run(['cp', '-a', os.path.join(a.dir, 'db'), d], check=True)
    copied = fleet.nodes['copied'] = Polca(
        d, a.config['ports'], ns=fleet.ns, name='copied',
        sa=dict(a.config['sa'], path=os.path.join(d, 'db')), fleet=a.config['fleet'])
    copied.start()
    until('it has noticed', lambda: 'takes part under a new identity' in copied.tail())
    until('it is kept out', lambda: 'another appliance has the name "a"' in copied.tail())
    assert records(copied)[7] == 'record 7' and put(a, 8)
    assert status(a)['leads'] and status(a)['leader_changes'] == 1
    # the first one goes, and the other one takes its name
    a.stop()
    until('it leads', lambda: status(copied)['leads'])
    until('it has caught up', lambda: caught_up(copied))
    assert records(copied) == {7: 'record 7', 8: 'x', 9: 'record 9'}


def read_copy(polca):
    with open(os.path.join(polca.dir, 'db', 'data.mdb'), 'rb') as f:
        return f.read()


def set_service(polca, number):
    """A Set by MAD to the appliance's own SA."""
    return polca.ctl('sa', 'set', 'service', 'service_id=%d' % number, 'service_gid=::ffff:192.0.2.1',
                     'service_pkey=0xffff', 'service_lease=600', 'service_name=s%d' % number,
                     check=False)


def services(polca):
    r = polca.ctl('sa', 'table', 'service', '--json', check=False)
    return r.stdout.count('"service_id"') if r.returncode == 0 else 0


def test_set_by_mad_is_answered_by_its_status(fleet, etcd):
    """It is done and all have it, whoever is asked; without etcd, NO_RESOURCES. Queries are
    answered by all, always."""
    fleet.start('a', 'b')
    leader = fleet.leader()
    follower = next(p for p in fleet.alive() if p is not leader)
    until('the follower watches', lambda: caught_up(follower))
    assert set_service(leader, 1).returncode == 0
    until('the follower answers with it', lambda: services(follower) == 1)
    assert set_service(follower, 2).returncode == 0
    assert services(follower) == 2
    until('the leader has it', lambda: services(leader) == 2)
    for k in etcd.alive():
        etcd.kill(k)
    until('the leader has noticed', lambda: not status(leader)['connected'])
    until('the follower, too', lambda: not status(follower)['connected'])
    for p in (leader, follower):
        r = set_service(p, 3)
        assert r.returncode != 0 and 'resources' in (r.stdout + r.stderr).lower(), r
        assert services(p) == 2


LARGE = 20000  # records: some 160 transactions


class Watcher(threading.Thread):
    """Asks an appliance for the records of a large change, again and again: how many there are."""

    def __init__(self, polca):
        super().__init__(daemon=True)
        self.polca, self.stop, self.seen = polca, False, set()

    def run(self):
        while not self.stop:
            r = self.polca.ctl('sa', 'table', 'node', 'node_desc=large', '--json', check=False)
            if r.returncode == 0:
                self.seen.add(len(json.loads(r.stdout)['records']))


def test_large_import_is_seen_as_a_whole(fleet):
    """Many transactions of etcd's, and one change of the database."""
    fleet.start('a', 'b')
    leader = fleet.leader()
    follower = next(p for p in fleet.alive() if p is not leader)
    assert put(leader, *range(1, 100), text='small')
    until('the follower has it', lambda: len(records(follower)) == 99)
    watchers = [Watcher(p) for p in (leader, follower)]
    for w in watchers:
        w.start()
    until('they look', lambda: all(w.seen for w in watchers))
    assert put(leader, *range(1, LARGE + 1), text='large')
    for p in (leader, follower):
        until('%s has all' % p.name, lambda: len(records(p)) == LARGE)
    for w in watchers:
        until('it has seen the change', lambda: LARGE in w.seen)
        w.stop = True
        w.join()
        assert w.seen == {0, LARGE}
    assert status(leader)['changes_failed'] < 5
    follower.kill()
    follower.start()
    assert len(records(follower)) == LARGE and status(follower)['loads'] == 0
    # without its copy it reads all from etcd, in pages
    follower.kill()
    shutil.rmtree(os.path.join(follower.dir, 'db'))
    follower.start()
    until('it has all', lambda: caught_up(follower) and len(records(follower)) == LARGE)
    assert status(follower)['loads'] == 1


def test_leader_is_killed_within_a_large_import(fleet, etcd):
    """All of it or nothing, at all appliances; it can be made again."""
    fleet.start('a', 'b')
    leader = fleet.leader()
    follower = next(p for p in fleet.alive() if p is not leader)
    assert put(leader, *range(1, 100), text='small')
    until('the follower has it', lambda: len(records(follower)) == 99)
    path = write_import(leader, *range(1, LARGE + 1), text='large')
    importing = subprocess.Popen([CTL_PROGRAM, '-s', leader.socket, 'sa', 'import', path],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until('some parts', lambda: etcd.count('/polca/r/') > 1000)
    leader.kill()
    importing.wait()
    until('another one leads', lambda: status(follower)['leads'])
    assert records(follower) == {i: 'small' for i in range(1, 100)}
    assert etcd.count('/polca/r/') < 1000 and 'undoes a large change' in follower.tail()
    leader.start()
    until('it is back', lambda: caught_up(leader))
    assert records(leader) == records(follower)
    assert put(follower, *range(1, LARGE + 1), text='again')
    for p in (leader, follower):
        until('%s has all' % p.name, lambda: len(records(p)) == LARGE)


class Writer(threading.Thread):
    """Changes one after the other at whoever leads; remembers those that were acknowledged."""

    def __init__(self, fleet):
        super().__init__(daemon=True)
        self.fleet, self.acknowledged, self.stopped, self.gap = fleet, [], False, 0
        self.lid = 0

    def run(self):
        last = time.monotonic()
        while not self.stopped:
            for p in self.fleet.alive():
                try:
                    good = put(p, self.lid + 1, text='t%d' % (self.lid + 1), check=False)
                except OSError:
                    continue
                if good:
                    self.lid += 1
                    self.acknowledged.append(self.lid)
                    now = time.monotonic()
                    self.gap, last = max(self.gap, now - last), now
                    break
            else:
                time.sleep(0.02)

    def end(self):
        self.stopped = True
        self.join()


def lost(writer, polca):
    have = records(polca)
    return [i for i in writer.acknowledged if have.get(i) != 't%d' % i]


def test_leader_is_killed_under_changes(fleet):
    fleet.start('a', 'b', 'c')
    fleet.leader()
    for p in fleet.alive():
        until('%s watches' % p.name, lambda: caught_up(p))
    w = Writer(fleet)
    w.start()
    for _ in range(2):
        until('changes', lambda n=len(w.acknowledged): len(w.acknowledged) > n + 5)
        old = fleet.leader()
        n = len(w.acknowledged)
        old.kill()
        began = time.monotonic()
        new = fleet.leader()
        print('another leads %.1f s after a kill, leases last %d s' % (time.monotonic() - began, LEASE))
        assert new is not old
        until('changes at the new leader', lambda: len(w.acknowledged) > n + 5)
        old.start()
        until('%s is back' % old.name, lambda: caught_up(old))
    w.end()
    print('%d changes, longest gap %.1f s' % (len(w.acknowledged), w.gap))
    for p in fleet.alive():
        until('%s has all' % p.name, lambda: not lost(w, p))
        assert status(p)['loads'] <= 1  # those who came back went on from their copy


def test_etcd_is_killed_and_comes_back(fleet, etcd):
    """Its leader alone: changes go on. All of it: queries go on, changes are refused."""
    fleet.start('a', 'b')
    leader = fleet.leader()
    follower = next(p for p in fleet.alive() if p is not leader)
    until('the follower watches', lambda: caught_up(follower))
    assert put(leader, 1, text='t1')
    until('the record', lambda: records(follower) == {1: 't1'})
    i = until("etcd's leader", etcd.leader, 60) if etcd.leader() is None else etcd.leader()
    etcd.kill(i)
    until('a change with two of three', lambda: put(fleet.leader(), 2, text='t2', check=False))
    for k in etcd.alive():
        etcd.kill(k)
    for p in fleet.alive():
        until('%s has noticed' % p.name, lambda: not status(p)['connected'])
        assert not put(p, 3, check=False)
        assert records(p)[1] == 't1'
        assert 'etcd is away' in p.tail(100000)
        until('it says how old its copy may be', lambda: status(p)['silent_ms'] > 1000)
        assert re.search(r'^silent +[1-9][0-9.]* s$', p.ctl('fleet', 'status').stdout, re.M)
    for k in range(3):
        etcd.launch(k)
    etcd.wait()
    for p in fleet.alive():
        until('%s is back' % p.name, lambda: caught_up(p))
        until('etcd was just heard', lambda: status(p)['silent_ms'] < 1000)
    until('changes', lambda: put(fleet.leader(), 4, text='t4', check=False))
    for p in fleet.alive():
        until('%s has all' % p.name, lambda: records(p) == {1: 't1', 2: 't2', 4: 't4'})


def test_start_without_etcd_answers_from_the_copy(fleet, etcd):
    a, = fleet.start('a')
    fleet.leader()
    assert put(a, 1, 2, 3, text='kept')
    until('the copy is written', lambda: status(a)['revision'] > 0)
    a.stop()
    for k in etcd.alive():
        etcd.kill(k)
    a.start()
    assert records(a) == {1: 'kept', 2: 'kept', 3: 'kept'}
    assert not put(a, 4, check=False)


def test_compaction_while_an_appliance_is_down(fleet, etcd):
    """Whoever was away for too long reads everything, and what was removed meanwhile is gone."""
    a, b = fleet.start('a', 'b')
    leader = fleet.leader()
    assert put(leader, 1, 2, text='old')
    down = a if leader is b else b
    until('the follower has it', lambda: len(records(down)) == 2)
    down.kill()
    leader.ctl('sa', 'import', write_import(leader, 3, text='new'), '--replace')
    etcd.compact()
    down.start()
    until('it has read all', lambda: records(down) == {3: 'new'})
    assert status(down)['loads'] == 1
    assert 'compacted' in down.tail(100000)


def test_restart_goes_on_from_the_copy(fleet):
    a, = fleet.start('a')
    fleet.leader()
    assert put(a, 5, text='five')
    a.kill()
    a.start()
    fleet.leader()
    until('its record', lambda: records(a) == {5: 'five'})
    assert status(a)['loads'] == 0
    assert put(a, 6, text='six')
    a.stop()
    a.start()
    assert records(a) == {5: 'five', 6: 'six'}


def test_database_of_one_appliance_is_not_replaced(fleet):
    a = fleet.node('a')
    config = a.config.pop('fleet')
    a.start()
    put(a, 1)
    a.stop()
    a.config['fleet'] = config
    assert 'holds records of an appliance without a fleet' in a.fails()


def test_alerts_name_metrics_that_exist(fleet):
    a, = fleet.start('a')
    fleet.leader()
    names = set(re.findall(r'^(polca_fleet_\w+)', a.ctl('stats', 'metrics').stdout, re.M))
    with open(os.path.join(guide.ROOT, 'config/monitoring/alerts.yml')) as f:
        used = set(re.findall(r'polca_fleet_\w+', f.read()))
    assert len(used) > 5 and not used - names
    assert 'polca_fleet_silent_ms' in names
