# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Appliances that share the database in etcd."""

import json
import os
import time

import mad
import time_limit
from ibports import ib_port
from polca import Polca, port
from roce import Station
from sapeer import Gsi

LEASE = 2
OWN_LIDS = 0xbf00  # from here on, appliances' own ports have theirs
# of three appliances on one bridge, and of a client there
ADDRESSES, ASKER = ['10.81.0.%d' % i for i in (1, 2, 3)], '10.81.0.9'
CLIENT_MAC, CLIENT_IP, CLIENT_QP = '02:00:00:00:7a:02', '10.80.0.2', 0x4a001


def until(what, condition, timeout=30, show=lambda: ''):
    """Wait for a condition; returns its value. `show` tells more if it never holds."""
    end = time_limit.end(timeout)
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, 'never: %s %s' % (what, show())
        time.sleep(0.02)


class Fleet:
    """Appliances by name. Each has two ports in memory and a database of its own."""

    def __init__(self, directory, ns, etcd, **fleet):
        self.dir, self.ns, self.etcd, self.fleet = directory, ns, etcd, fleet
        self.nodes = {}

    def native_nodes(self, settings):
        """Appliances a, b, c with a native port each: settings(i) of the ith, whose other end is interface si<i>."""
        for i, name in enumerate('abc'):
            d = os.path.join(self.dir, name)
            os.makedirs(d)
            self.ns.veth('pi%d' % i, 'si%d' % i)
            p = ib_port('port0', 'pi%d' % i, active=True, **settings(i))
            self.nodes[name] = Polca(
                d, [dict(p, device='net_af_packet%d,iface=pi%d,framecnt=512' % (i, i))], ns=self.ns, name=name,
                sa=dict(path=os.path.join(d, 'db'), map_mb=64),
                fleet=dict(endpoints=self.etcd.urls(), name=name, lease_s=LEASE))
        return self.start('a', 'b', 'c')

    def node(self, name, **more):
        if name not in self.nodes:
            d = os.path.join(self.dir, name)
            os.makedirs(d, exist_ok=True)
            self.nodes[name] = Polca(
                d, [dict(name='port0', back_to_back='port1', addresses=['192.0.2.1/24']),
                    dict(name='port1', back_to_back='port0', addresses=['192.0.2.2/24'])],
                ns=self.ns, name=name, sa=dict(path=os.path.join(d, 'db'), map_mb=64),
                fleet=dict(endpoints=self.etcd.urls(), name=name, lease_s=LEASE,
                           **dict(self.fleet, **more)))
        return self.nodes[name]

    def start(self, *names, **more):
        return [self.node(n, **more).start() for n in names]

    def close(self):
        for p in self.nodes.values():
            p.kill()

    def alive(self):
        return [p for p in self.nodes.values() if p.alive()]

    def leader(self, timeout=30):
        """The appliance that takes changes."""
        return until('a leader', lambda: next((p for p in self.alive() if status(p)['leads']),
                                              None), timeout)


def status(polca):
    return polca.rpc('fleet_status')


def caught_up(polca):
    s = status(polca)
    return s['connected'] and s['watching'] and s['revision'] == s['latest']


def write_import(polca, *lids, text='x'):
    """A file with a NodeRecord for each LID."""
    path = os.path.join(polca.dir, 'import.json')
    with open(path, 'w') as f:
        json.dump([{'record': 'NodeRecord', 'lid': i, 'node_guid': '0x%x' % (i << 8),
                    'port_guid': '0x%x' % (i << 8 | 1), 'node_desc': text} for i in lids], f)
    return path


def put(polca, *lids, text='x', check=True):
    """Store a NodeRecord for each LID; True if it was acknowledged."""
    path = write_import(polca, *lids, text=text)
    return polca.ctl('sa', 'import', path, check=check).returncode == 0


def records(polca):
    """The database without the appliances' own ports: LID: text."""
    rows = json.loads(polca.ctl('sa', 'export', '-').stdout)['records']
    return {int(r['lid'], 0): r['node_desc'] for r in rows
            if r['record'] == 'NodeRecord' and int(r['lid'], 0) < OWN_LIDS}


def num_own_ports(polca):
    rows = json.loads(polca.ctl('sa', 'export', '-').stdout)['records']
    return sum(r['record'] == 'NodeRecord' and int(r['lid'], 0) >= OWN_LIDS for r in rows)


def staged(etcd):
    """Number of keys on the stage."""
    return etcd.count('/polca/s/')


class Host:
    """One client with a wire to each appliance; its address and QP are the same on all."""

    def __init__(self, ns):
        self.ns, self.wires, self.qpn = ns, {}, CLIENT_QP

    def wire(self, i):
        mac = '02:00:00:00:7b:%02x' % i
        self.ns.veth('pv%d' % i, 'st%d' % i, mac_a=mac, mac_b=CLIENT_MAC)
        self.wires[i] = (Station(self.ns, 'st%d' % i, CLIENT_MAC, CLIENT_IP), mac)
        return port('port0', 'net_af_packet%d,iface=pv%d,framecnt=512' % (i, i), '10.80.0.1/24')

    def gsi(self, i, qpn=CLIENT_QP):
        station, mac = self.wires[i]
        return Gsi(station, mac, '10.80.0.1', qpn=qpn)

    def close(self):
        for station, _ in self.wires.values():
            station.close()


def answer(gsi, request, timeout=1.0):
    """The answer, or None."""
    gsi.tx(request)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        a = gsi.maybe(end - time.monotonic())
        if a is not None and a.tid == request.tid and a.method != request.method and not (
                a.class_version == 1 and a.flags & mad.KEEPALIVE):
            return a
    return None


def ask(gsi, request):
    return until('an answer', lambda: answer(gsi, request))
