# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Notices in a fleet: whoever leads reports them, at least once, and again only after another one
has taken the lead; then with the same Notice and TID. None is lost."""

import base64
import threading

import mad
import sapeer
from fleet import ask, status, until
from mad import INFORM_INFO, NODE, v2
from sawire import SM_KEY, config

TEST_SECONDS = 180
SUBSCRIBER_QP = 0x4b001
PORT_UP = 64


class Subscriber(threading.Thread):
    """One QP with a wire to each appliance. While deaf it answers no Report."""

    def __init__(self, host, nodes):
        super().__init__(daemon=True)
        self.gsi = [host.gsi(i, SUBSCRIBER_QP) for i in range(len(nodes))]
        self.reports, self.deaf, self.stop = [], False, False  # (appliance, TID, Notice)

    def subscribe(self, i, **fields):
        values = dict(gid=0, lid_begin=0xffff, is_generic=1, subscribe=1, type=0xffff,
                      trap_number=0xffff, producer_type=0xffffff)
        q = v2(mad.SET, INFORM_INFO.attr, INFORM_INFO.put(**dict(values, **fields)),
               tid=sapeer.new_tid(), sm_key=SM_KEY)
        assert ask(self.gsi[i], q).status == 0
        self.start()

    def run(self):
        while not self.stop:
            for i, g in enumerate(self.gsi):
                m = g.maybe(0.005)
                if m is None or m.method != mad.REPORT:
                    continue
                self.reports.append((i, m.tid, bytes(m.data[:80]), self.deaf))
                if not self.deaf:
                    g.tx(m.turned())

    def close(self):
        self.stop = True
        self.join()
        for g in self.gsi:
            g.close()

    def of_port(self, lid, trap=PORT_UP):
        """Reports about the port that add_port() made."""
        return [r for r in self.reports if trap_of(r) == trap and
                int.from_bytes(r[2][24:32], 'big') == guid(lid)]


def trap_of(report):
    return int.from_bytes(report[2][4:6], 'big')


def guid(lid):
    return lid << 8 | 1


def add_port(gsi, lid):
    """A NodeRecord, which is a port in service; True if it was acknowledged."""
    try:
        a = config(gsi, mad.ADD, [(lid << 16, NODE.bare(lid=lid, node_guid=lid << 8,
                                                       port_guid=guid(lid), node_type=1))],
                   timeout=5)
    except sapeer.Failed:
        return False
    return a is not None and a.status == 0


def kept(etcd):
    """Notices in etcd."""
    r = etcd.call('/v3/kv/range', {'key': b64('/polca/e/'), 'range_end': b64('/polca/e0'),
                                   'count_only': True})
    return int(r.get('count', 0))


def b64(text):
    return base64.b64encode(text.encode()).decode()


def test_report_is_sent_once_by_the_leader(three, host, etcd):
    """Whichever appliance the subscription and the change reached."""
    nodes, gsi, (lead, one, two) = three
    sub = Subscriber(host, nodes)
    try:
        sub.subscribe(one)
        for n, i in enumerate((lead, one, two), 1):
            assert add_port(gsi[i], n)
            until('the Report', lambda: sub.of_port(n))
        until('etcd keeps none', lambda: kept(etcd) == 0)
        for n in (1, 2, 3):
            assert [r[0] for r in sub.of_port(n)] == [lead], sub.reports
        assert len({r[1] for r in sub.reports}) == 3
    finally:
        sub.close()


def test_next_leader_repeats_what_was_not_answered(three, host, etcd):
    nodes, gsi, (lead, one, two) = three
    sub = Subscriber(host, nodes)
    try:
        sub.subscribe(two)
        assert add_port(gsi[one], 1)
        until('the Report', lambda: sub.of_port(1))
        until('etcd keeps none', lambda: kept(etcd) == 0)
        sub.deaf = True
        assert add_port(gsi[one], 2)
        until('the Report', lambda: sub.of_port(2))
        nodes[lead].kill()
        first = sub.of_port(2)[0]
        assert kept(etcd) == 1
        sub.deaf = False
        until('it comes from another one',
              lambda: any(r[0] != lead for r in sub.of_port(2)))
        until('etcd keeps none', lambda: kept(etcd) == 0)
        reports = sub.of_port(2)
        assert {r[1:3] for r in reports} == {first[1:3]}, reports
        assert len([r for r in reports if r[0] != lead]) == 1, reports
        assert {r[0] for r in sub.of_port(1)} == {lead}  # it was answered: not again
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
        until('all Reports', lambda: all(sub.of_port(lid) for lid in added), 60)
        until('etcd keeps none', lambda: kept(etcd) == 0)
        for lid in added:
            assert len({r[1:3] for r in sub.of_port(lid)}) == 1, lid
        # the same appliance repeats one only if its answer is late, as on a slow machine
        repeated = sum(len(sub.of_port(lid)) - len({r[0] for r in sub.of_port(lid)}) for lid in added)
        assert repeated <= len(added) // 10, repeated
        print('%d notices, %d Reports, killed %s' % (len(added), len(sub.reports), killed))
    finally:
        stop.set()
        sub.close()
