# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Requests for changes reach an appliance that does not lead: the leader executes them, once,
whichever appliances a client repeats them to."""

import json
import threading

import mad
import sapeer
from fleet import CLIENT_QP, OWN_LIDS, answer, ask, caught_up, staged, status, until
from fleetclient import service, services
from mad import INFORM_INFO, NODE, SERVICE, v1, v2
from sawire import SM_KEY, config

TEST_SECONDS = 120
REQ_INVALID = 2 << 8  # class version 1: a Set cannot edit


def rid(a):
    assert a.status == 0, a
    return a.data[:4]


def test_change_at_follower_is_there_when_it_is_answered(three):
    nodes, gsi, (lead, one, two) = three
    for n in range(1, 6):
        assert ask(gsi[one], service(n)).status == 0
        assert services(nodes[one]) == {i: 1 for i in range(1, n + 1)}
    until('it is at the leader', lambda: services(nodes[lead]) == services(nodes[one]))
    # what the leader refuses is refused
    assert ask(gsi[one], service(3)).status == REQ_INVALID
    q = v2(mad.DELETE, SERVICE.attr, SERVICE.put(service_id=3, gid=1 << 64 | 3), sm_key=SM_KEY,
           tid=sapeer.new_tid(), mask=SERVICE.mask('service_id', 'gid'))
    assert ask(gsi[two], q).status == 0
    assert 3 not in services(nodes[two])
    assert ask(gsi[lead], service(3)).status == 0


def test_repeated_to_other_appliances_it_has_one_effect(three):
    nodes, gsi, (lead, one, two) = three
    # at the same time
    for n in range(1, 9):
        q = service(n)
        for g in gsi:
            g.tx(q)
        answers = [ask(g, q) for g in gsi]
        assert len({rid(a) for a in answers}) == 1, answers
    # one after the other, from and to the leader too
    for n, order in enumerate(((one, two, lead), (lead, one, two)), 9):
        q = service(n)
        answers = [ask(gsi[i], q) for i in order]
        assert len({rid(a) for a in answers}) == 1, answers
    for p in nodes:
        until('the records', lambda: services(p) == {i: 1 for i in range(1, 11)})
    # the TID again for something else: it is another request
    q, other = service(11), service(12)
    other.tid = q.tid
    assert ask(gsi[one], q).status == 0 and ask(gsi[two], other).status == 0
    assert services(nodes[two]) == {i: 1 for i in range(1, 13)}


def test_config_and_subscription_at_follower(three):
    nodes, gsi, (lead, one, two) = three
    records = [(lid << 16, NODE.bare(lid=lid, node_guid=lid)) for lid in range(1, 61)]
    assert config(gsi[one], mad.ADD, records).status == 0
    rows = json.loads(nodes[one].ctl('sa', 'export', '-').stdout)['records']
    assert sum(r['record'] == 'NodeRecord' and int(r['lid'], 0) < OWN_LIDS for r in rows) == 60
    # all or nothing: one of these is there already
    records = [(lid << 16, NODE.bare(lid=lid, node_guid=lid)) for lid in range(60, 70)]
    assert config(gsi[two], mad.ADD, records).status == REQ_INVALID
    rows = json.loads(nodes[two].ctl('sa', 'export', '-').stdout)['records']
    assert sum(r['record'] == 'NodeRecord' and int(r['lid'], 0) < OWN_LIDS for r in rows) == 60
    q = v2(mad.SET, INFORM_INFO.attr, INFORM_INFO.put(
        gid=0, lid_begin=0xffff, is_generic=1, subscribe=1, type=0xffff, trap_number=0xffff,
        producer_type=0xffffff), tid=sapeer.new_tid(), sm_key=SM_KEY)
    assert ask(gsi[two], q).status == 0
    rows = json.loads(nodes[two].ctl('sa', 'export', '-').stdout)['records']
    assert sum(r['record'] == 'InformInfoRecord' for r in rows) == 1


class Setter(threading.Thread):
    """Services, each repeated to one appliance after the other until one answers."""

    def __init__(self, gsis, first):
        super().__init__(daemon=True)
        self.gsis, self.number, self.stop = gsis, first, False
        self.answered, self.wrong = [], []

    def run(self):
        while not self.stop:
            self.number += 1
            q, tries, a = service(self.number), 0, None
            while a is None and not self.stop:
                a = answer(self.gsis[tries // 2 % len(self.gsis)], q, 0.5)
                tries += 1
            if a is not None and a.status == 0:
                self.answered.append(self.number)
            elif a is not None:
                self.wrong.append((self.number, hex(a.status)))


def test_leader_is_killed_while_requests_go_to_followers(three, fleet, host):
    nodes, gsi, (lead, one, two) = three
    setters = [Setter([host.gsi(i, CLIENT_QP + 1 + k) for i in order], k * 10000)
               for k, order in enumerate(((one, two), (two, one), (lead, one)))]
    for s in setters:
        s.start()
    until('changes', lambda: all(len(s.answered) > 5 for s in setters))
    nodes[lead].kill()
    n = [len(s.answered) for s in setters]
    until('changes at the new leader',
          lambda: all(len(s.answered) > k + 5 for s, k in zip(setters, n)))
    for s in setters:
        s.stop = True
    for s in setters:
        s.join()
    assert not any(s.wrong for s in setters), [s.wrong for s in setters]
    nodes[lead].start()
    for p in nodes:
        until('%s is back' % p.name, lambda: caught_up(p))
        have = services(p)
        assert set(have.values()) == {1}, have
        for s in setters:
            assert not set(s.answered) - set(have), p.name
            for g in s.gsis:
                g.drain()
    print('%d answered' % sum(len(s.answered) for s in setters))


def test_etcd_is_away(three, etcd):
    """Changes are refused at once, and queries are answered; nothing happens later."""
    nodes, gsi, (lead, one, two) = three
    assert ask(gsi[one], service(1)).status == 0
    for p in nodes:
        until('%s has it' % p.name, lambda: services(p) == {1: 1})
    for k in etcd.alive():
        etcd.kill(k)
    for p in nodes:
        until('%s has noticed' % p.name, lambda: not status(p)['connected'])
    for i in range(3):
        assert ask(gsi[i], service(2 + i)).status != 0
        assert services(nodes[i]) == {1: 1}
    for k in range(3):
        etcd.launch(k)
    etcd.wait()
    for p in nodes:
        until('%s is back' % p.name, lambda: caught_up(p))
    until('a change', lambda: ask(gsi[two], service(9)).status == 0)
    assert services(nodes[two]) == {1: 1, 9: 1}


def node_records(lids, guid):
    return [(lid << 16, NODE.bare(lid=lid, node_guid=guid)) for lid in lids]


def guids(polca):
    """The NodeRecords that clients have made: {LID: NodeGUID}."""
    rows = json.loads(polca.ctl('sa', 'export', '-').stdout)['records']
    return {int(r['lid'], 0): int(r['node_guid'], 0) for r in rows
            if r['record'] == 'NodeRecord' and int(r['lid'], 0) < OWN_LIDS}


def test_large_config_at_follower(three, etcd):
    """Larger than a request, and than a part of the stage: it is there when it is answered; all or nothing."""
    nodes, gsi, (lead, one, two) = three
    lids = range(1, 6001)
    assert config(gsi[one], mad.ADD, node_records(lids, 1), timeout=60).status == 0
    want = dict.fromkeys(lids, 1)
    assert guids(nodes[one]) == want
    for i in (lead, two):
        until('it is at %s' % nodes[i].name, lambda: guids(nodes[i]) == want)
    # one of these is there already
    assert config(gsi[two], mad.ADD, node_records(range(6000, 12000), 2), timeout=60).status == REQ_INVALID
    # at the leader the same
    assert config(gsi[lead], mad.EDIT, node_records(lids, 3), timeout=60).status == 0
    assert guids(nodes[lead]) == dict.fromkeys(lids, 3)
    until('it is at the follower', lambda: guids(nodes[two]) == dict.fromkeys(lids, 3))
    until('nothing stays staged', lambda: staged(etcd) == 0)


def test_large_config_survives_the_leader(three, etcd):
    """The leader dies while they come to another appliance: each is there as a whole or not at all."""
    nodes, gsi, (lead, one, two) = three
    lids = range(1, 5001)
    assert config(gsi[one], mad.ADD, node_records(lids, 1), timeout=60).status == 0
    done = [1]

    def edit():
        for guid in range(2, 5):
            if config(gsi[one], mad.EDIT, node_records(lids, guid), timeout=90).status == 0:
                done.append(guid)
    editor = threading.Thread(target=edit)
    editor.start()
    until('a part is staged', lambda: staged(etcd) > 0)
    nodes[lead].kill()
    editor.join()
    assert len(done) >= 3, done
    for i in (one, two):
        until('%s has caught up' % nodes[i].name, lambda: caught_up(nodes[i]))
        have = guids(nodes[i])
        assert set(have) == set(lids)
        guid, = set(have.values())
        assert guid >= done[-1]
    until('nothing stays staged', lambda: staged(etcd) == 0)


def test_stage_of_a_dead_appliance_ends(three, etcd):
    """Its parts have its lease. What it was asked for is there as a whole, or not at all."""
    nodes, gsi, (lead, one, two) = three
    lids = range(1, 20001)

    def ask_for_config():
        try:
            config(gsi[one], mad.ADD, node_records(lids, 1), timeout=20)
        except AssertionError:
            pass  # nobody answers any more
    asker = threading.Thread(target=ask_for_config)
    asker.start()
    until('a part is staged', lambda: staged(etcd) > 0)
    nodes[one].kill()
    until('nothing stays staged', lambda: staged(etcd) == 0)
    asker.join()
    for i in (lead, two):
        until('%s has caught up' % nodes[i].name, lambda: caught_up(nodes[i]))
        assert guids(nodes[i]) in ({}, dict.fromkeys(lids, 1))


def leased(number, seconds):
    values = dict(service_id=number, gid=1 << 64 | number, pkey=0, lease=seconds,
                  name=b'service %d' % number)
    return v1(mad.SET, SERVICE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY, edit=mad.ADD,
              mask=SERVICE.mask(*values), data=SERVICE.put(**values))


def changes(etcd):
    """Number of changes that etcd has executed."""
    return int(etcd.key('/polca/c/change')['version'])


def own_ports(etcd, revision):
    """Keys of appliances' own ports, each with the revision of its last change."""
    keys = etcd.keys('/polca/r/', revision=str(revision))
    return {key: changed for key, changed in keys.items() if int(key[-8:-4], 16) >= OWN_LIDS}


def own_port_changes(etcd, first):
    """How many of the changes after this revision were about appliances' own ports."""
    return sum(own_ports(etcd, r) != own_ports(etcd, r + 1) for r in range(first, etcd.revision()))


def test_lease_of_a_service_ends_once(three, etcd):
    """At all appliances, by one change: also if the leader has died meanwhile, and one more time
    in life."""
    nodes, gsi, (lead, one, two) = three
    assert ask(gsi[one], leased(1, 2)).status == 0
    before = changes(etcd)
    until('it has ended', lambda: changes(etcd) > before)
    for p in nodes:
        until('nobody has it', lambda: services(p) == {})
    assert ask(gsi[two], leased(2, 4)).status == 0
    assert ask(gsi[two], leased(3, 0xffffffff)).status == 0
    before, first = changes(etcd), etcd.revision()
    nodes[lead].kill()
    until('another one leads', lambda: any(status(nodes[i])['leads'] for i in (one, two)))
    for i in (one, two):
        until('nobody has it', lambda: services(nodes[i]) == {3: 1})
    # the former leader, which comes back with the service in its copy, does not end it again
    nodes[lead].start()
    until('it is back', lambda: caught_up(nodes[lead]))
    until('it has seen the end', lambda: services(nodes[lead]) == {3: 1})
    new = next(i for i in (one, two) if status(nodes[i])['leads'])
    nodes[new].stop()
    until('a third one leads', lambda: any(status(nodes[i])['leads'] for i in range(3)
                                           if i != new))
    # refused until this appliance knows the new leader: what was refused is not executed
    until('a change', lambda: ask(gsi[lead], service(4)).status == 0)
    # the end of the lease, and the last service
    assert changes(etcd) - own_port_changes(etcd, first) == before + 2
