# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Notices in a fleet: whoever leads reports them, at least once, and again only after another one
has taken the lead; then with the same Notice and TID. None is lost."""

import threading

import mad
import sapeer
from fleet import status, until
from mad import NODE
from sawire import config
from subscriber import Subscriber, kept, trap_of

TEST_SECONDS = 180
PORT_UP = 64


def guid(lid):
    return lid << 8 | 1


def of_port(sub, lid, trap=PORT_UP):
    """Reports about the port that add_port() made."""
    return [r for r in sub.reports if trap_of(r) == trap and int.from_bytes(r[2][24:32], 'big') == guid(lid)]


def add_port(gsi, lid):
    """A NodeRecord, which is a port in service; True if it was acknowledged."""
    try:
        a = config(gsi, mad.ADD, [(lid << 16, NODE.bare(lid=lid, node_guid=lid << 8,
                                                       port_guid=guid(lid), node_type=1))],
                   timeout=5)
    except sapeer.Failed:
        return False
    return a is not None and a.status == 0


def test_report_is_sent_once_by_the_leader(three, host, etcd):
    """Whichever appliance the subscription and the change reached."""
    nodes, gsi, (lead, one, two) = three
    sub = Subscriber(host, nodes)
    try:
        sub.subscribe(one)
        for n, i in enumerate((lead, one, two), 1):
            assert add_port(gsi[i], n)
            until('the Report', lambda: of_port(sub, n))
        until('etcd keeps none', lambda: kept(etcd) == 0)
        for n in (1, 2, 3):
            assert [r[0] for r in of_port(sub, n)] == [lead], sub.reports
        assert len({r[1] for r in sub.reports}) == 3
    finally:
        sub.close()


def test_next_leader_repeats_what_was_not_answered(three, host, etcd):
    nodes, gsi, (lead, one, two) = three
    sub = Subscriber(host, nodes)
    try:
        sub.subscribe(two)
        assert add_port(gsi[one], 1)
        until('the Report', lambda: of_port(sub, 1))
        until('etcd keeps none', lambda: kept(etcd) == 0)
        sub.deaf = True
        assert add_port(gsi[one], 2)
        until('the Report', lambda: of_port(sub, 2))
        nodes[lead].kill()
        first = of_port(sub, 2)[0]
        assert kept(etcd) == 1
        sub.deaf = False
        until('it comes from another one',
              lambda: any(r[0] != lead for r in of_port(sub, 2)))
        until('etcd keeps none', lambda: kept(etcd) == 0)
        reports = of_port(sub, 2)
        assert {r[1:3] for r in reports} == {first[1:3]}, reports
        assert len([r for r in reports if r[0] != lead]) == 1, reports
        assert {r[0] for r in of_port(sub, 1)} == {lead}  # it was answered: not again
    finally:
        sub.close()


def test_no_report_is_lost_while_leaders_die(three, host, etcd):
    nodes, gsi, (lead, one, two) = three
    sub = Subscriber(host, nodes)
    added, stop = [], threading.Event()

    def add():
        lid, tries = 1, 0
        while not stop.is_set():
            # one that was executed before its appliance died is there already: ask for the next
            if add_port(gsi[tries % 3], lid):
                added.append(lid)
            else:
                tries += 1
            lid += 1

    adder = threading.Thread(target=add, daemon=True)
    try:
        sub.subscribe(one)
        adder.start()
        killed = []
        for _ in range(2):
            until('changes', lambda n=len(added): len(added) > n + 20)
            i = next(i for i, p in enumerate(nodes) if p.alive() and status(p)['leads'])
            nodes[i].kill()
            killed.append(i)
            until('another leader', lambda: any(p.alive() and status(p)['leads'] for p in nodes))
            n = len(added)
            until('changes at the new one', lambda: len(added) > n + 20, 60)
            nodes[i].start()
            until('it is back', lambda: status(nodes[i])['watching'])
        stop.set()
        adder.join()
        until('all Reports', lambda: all(of_port(sub, lid) for lid in added), 60)
        until('etcd keeps none', lambda: kept(etcd) == 0)
        for lid in added:
            assert len({r[1:3] for r in of_port(sub, lid)}) == 1, lid
        # the same appliance repeats one only if its answer is late, as on a slow machine
        repeated = sum(len(of_port(sub, lid)) - len({r[0] for r in of_port(sub, lid)}) for lid in added)
        assert repeated <= len(added) // 10, repeated
        print('%d notices, %d Reports, killed %s' % (len(added), len(sub.reports), killed))
    finally:
        stop.set()
        sub.close()
