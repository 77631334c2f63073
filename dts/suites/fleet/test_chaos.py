# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Three machines, each with an appliance and a member of etcd. Clients change and query while one
after the other is killed, cut off, or slow: no acknowledged change is lost or done twice, and those
who remain answer every query."""

import os
import random
import threading
import time

import pytest

import mad
import net
import sapeer
from fleet import CLIENT_IP, CLIENT_MAC, CLIENT_QP, LEASE, Fleet, answer, ask, caught_up, status, until
from fleetclient import service, services
from machines import Machines
from mad import SERVICE, v2
from polca import Polca, port
from roce import Station
from sapeer import Gsi
from sawire import SM_KEY
from scale import scaled

ROUNDS = scaled(4, 50)
TEST_SECONDS = 120 + 60 * ROUNDS
LATE = 0.05  # seconds, in each direction
CHANGES = 4  # of each client, before an event ends
MENDED_BY_A_RETRY = mad.BUSY, mad.NO_RESOURCES


class Setter(threading.Thread):
    """Services, each repeated to one appliance after the other until one says that it is stored."""

    def __init__(self, gsis, first):
        super().__init__(daemon=True)
        self.gsis, self.number, self.stop = gsis, first, False
        self.answered, self.wrong = {}, []

    def run(self):
        while not self.stop:
            self.number += 1
            q, tries, a = service(self.number), 0, None
            while not self.stop and (a is None or a.status in MENDED_BY_A_RETRY):
                a = answer(self.gsis[tries // 2 % len(self.gsis)], q, 0.5)
                tries += 1
            if a is not None and a.status == 0:
                self.answered[self.number] = time.monotonic()
            elif a is not None and a.status not in MENDED_BY_A_RETRY:
                self.wrong.append((self.number, hex(a.status)))


class Reader(threading.Thread):
    """Asks one appliance for the same record again and again; three tries for each query."""

    def __init__(self, polca, gsi):
        super().__init__(daemon=True)
        self.polca, self.gsi, self.stop = polca, gsi, False
        self.answered = self.repeated = 0
        self.lost = []

    def run(self):
        while not self.stop:
            proc = self.polca.proc
            for tries in range(3):
                q = v2(mad.GET, SERVICE.attr, SERVICE.put(service_id=1), sm_key=SM_KEY,
                       tid=sapeer.new_tid(), mask=SERVICE.mask('service_id'))
                a = answer(self.gsi, q, 2)
                if a is not None and a.status == 0:
                    self.answered += 1
                    self.repeated += tries > 0
                    break
            else:
                if proc is self.polca.proc and self.polca.alive():
                    self.lost.append(a)
            time.sleep(0.005)


class Chaos:
    def __init__(self, directory):
        self.machines, self.clients = Machines(directory), net.Namespace()
        self.etcd = self.machines.etcd
        self.fleet = Fleet(directory, None, self.etcd)
        self.stations, self.nodes, self.threads, self.gsis = [], [], [], []
        for i, m in enumerate(self.machines.all):
            name, mac = 'abc'[i], '02:00:00:00:7b:%02x' % i
            d = os.path.join(directory, name)
            os.makedirs(d)
            m.ns.veth_to('pv0', self.clients, 'st%d' % i, mac_a=mac)
            self.clients.ip('link', 'set', 'st%d' % i, 'address', CLIENT_MAC)
            self.stations.append((Station(self.clients, 'st%d' % i, CLIENT_MAC, CLIENT_IP), mac))
            polca = Polca(
                d, [port('port0', 'net_af_packet0,iface=pv0,framecnt=512', '10.80.0.1/24')],
                ns=m.ns, name=name, sa=dict(path=os.path.join(d, 'db'), map_mb=64, sm_key=SM_KEY),
                fleet=dict(endpoints=m.relay.urls(), name=name, lease_s=LEASE))
            self.fleet.nodes[name] = polca
            self.nodes.append(polca)

    def gsi(self, i, qpn):
        station, mac = self.stations[i]
        self.gsis.append(Gsi(station, mac, '10.80.0.1', qpn=qpn))
        return self.gsis[-1]

    def start(self):
        self.fleet.start('a', 'b', 'c')
        self.fleet.leader()
        self.everybody_has_all()
        with self.gsi(0, CLIENT_QP) as gsi:
            ask(gsi, service(1))
            self.gsis.remove(gsi)
        for p in self.nodes:
            until('the first record at %s' % p.name, lambda: services(p) == {1: 1})
        self.setters = [Setter([self.gsi(i, CLIENT_QP + 1 + k) for i in order], (k + 1) * 100000)
                        for k, order in enumerate(((0, 1, 2), (1, 2, 0), (2, 0, 1)))]
        self.readers = [Reader(p, self.gsi(i, CLIENT_QP + 10 + i)) for i, p in enumerate(self.nodes)]
        self.threads = self.setters + self.readers
        for t in self.threads:
            t.start()

    def stop(self):
        for t in self.threads:
            t.stop = True
        for t in self.threads:
            t.join()
        self.threads = []

    def close(self):
        self.stop()
        for g in self.gsis:
            g.close()
        self.fleet.close()
        for station, _ in self.stations:
            station.close()
        self.machines.close()
        self.clients.close()

    def everybody_has_all(self):
        for p in self.nodes:
            until('%s has all' % p.name, lambda: caught_up(p), 60)

    def changes(self):
        """Every client gets some changes acknowledged, and those who live answer queries."""
        before, asked = [len(s.answered) for s in self.setters], [r.answered for r in self.readers]
        until('changes', lambda: all(len(s.answered) >= n + CHANGES
                                     for s, n in zip(self.setters, before)), 60)
        until('answers', lambda: all(r.answered > n or not r.polca.alive()
                                     for r, n in zip(self.readers, asked)), 60)

    def leader(self, leads=True):
        """The number of the appliance that leads, or of another one."""
        leader = self.fleet.nodes[self.fleet.leader().name]
        return next(i for i, p in enumerate(self.nodes) if (p is leader) == leads)

    def etcd_leader(self, leads=True):
        leader = []
        until("etcd's leader", lambda: leader.append(self.etcd.leader()) or leader[-1] is not None)
        return next(i for i in self.etcd.alive() if (i == leader[-1]) == leads)

    # ---- events: each lasts until changes went on, and is mended

    def kill_appliance(self, i):
        self.nodes[i].kill()
        self.changes()
        self.nodes[i].start()

    def kill_etcd(self, i):
        self.etcd.kill(i)
        self.changes()
        self.etcd.launch(i)

    def isolate(self, i):
        self.machines.all[i].isolate()
        self.changes()
        self.machines.all[i].join()

    def cut_from_etcd(self, i):
        self.machines.all[i].cut_appliance()
        self.changes()
        self.machines.all[i].join()

    def be_late(self, _):
        self.machines.delay(LATE)
        self.changes()
        self.machines.delay(0)

    def round(self, number, chance):
        leads = chance.random() < 0.5
        kills = (
            ('leader killed', self.kill_appliance, self.leader, True),
            ('follower killed', self.kill_appliance, self.leader, False),
            ("etcd's leader killed", self.kill_etcd, self.etcd_leader, True),
            ("etcd's follower killed", self.kill_etcd, self.etcd_leader, False))
        whose = 'leader' if leads else 'follower'
        cuts = (
            ('machine of the %s isolated' % whose, self.isolate, self.leader, leads),
            ('%s cut from etcd' % whose, self.cut_from_etcd, self.leader, leads))
        for name, event, who, is_leader in (
                kills[number % 4], cuts[number % 2],
                ('%d ms later in both directions' % (LATE * 1000), self.be_late, self.leader, True)):
            i = who(is_leader)
            began, before = time.monotonic(), sum(len(s.answered) for s in self.setters)
            event(i)
            self.everybody_has_all()
            times = sorted(t for s in self.setters for t in list(s.answered.values()) if t > began)
            gap = max(b - a for a, b in zip([began] + times, times))
            print('%2d  %-36s %3d changes, longest gap %.1f s' % (
                number, name, sum(len(s.answered) for s in self.setters) - before, gap))


@pytest.fixture
def chaos(where):
    c = Chaos(where)
    try:
        c.start()
        yield c
    finally:
        c.close()


def test_nothing_is_lost(chaos, capsys):
    chance = random.Random(1)
    with capsys.disabled():
        print()
        for number in range(ROUNDS):
            chaos.round(number, chance)
    assert all(t.is_alive() for t in chaos.threads)
    chaos.stop()
    assert not any(s.wrong for s in chaos.setters), [s.wrong for s in chaos.setters]
    acknowledged = {n for s in chaos.setters for n in s.answered}
    chaos.everybody_has_all()
    rows = [services(p) for p in chaos.nodes]
    for p, have in zip(chaos.nodes, rows):
        assert not acknowledged - set(have), p.name
        assert set(have.values()) == {1}, have
        assert have == rows[0]
    assert [r.lost for r in chaos.readers] == [[], [], []]
    assert sum(r.repeated for r in chaos.readers) <= 0.01 * sum(r.answered for r in chaos.readers)
    with capsys.disabled():
        print('%d changes, %d queries of which %d were repeated, whole loads: %s' % (
            len(acknowledged), sum(r.answered for r in chaos.readers),
            sum(r.repeated for r in chaos.readers), [status(p)['loads'] for p in chaos.nodes]))
