# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Clients of perftest's TCP port name address after address, which nobody has, or somebody: new
peers are reached all the same, and the table of neighbours empties again."""

import itertools
import time

import pytest

from bystanders import ECHO
from cmpeer import POLCA_IP, POLCA_IP6, Wire
from conn import Conn, wait_until
from hca import Hca
from perftest_client import PATIENCE, Client
from polca import Polca, port

TCP = 18518
NOBODYS = '10.79.%d.%d'  # on Polca's subnet
SOMEBODYS = '10.80.%d.%d'  # the station's kernel answers for all of them
OURS, BITS = '10.79.0.1', 11
new_peers = ('10.78.0.%d' % n for n in itertools.count(20))  # the station is one after the other
QPS = 64  # of a session
LENGTH = 16384  # of the memory of each, instead of 4 MiB
# lib/link/neigh.h, lib/engine/engine.c
PER_STRANGER, UNRESOLVED, KEPT = 16, 1024, 1024
FLOOD_S = 12
HELD = 16  # most next hops that the test's own peers use
# the clients' questions are on lo
UNHARMED = {'test_names_that_nobody_has': dict(interfaces=('st0', 'lo')),
            'test_names_that_somebody_has': dict(interfaces=('st0', 'lo'))}


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets)
    w.polca = Polca(sockets, [port(
        'port0', 'net_af_packet0,iface=pv0,framecnt=4096,framesz=2048', POLCA_IP + '/24',
        POLCA_IP6 + '/64', '%s/%d' % (OURS, BITS))], ns=w.ns, sa={},
        services=[dict(kind='echo', port=ECHO, size=1024),
                  dict(kind='perftest', port=TCP, tcp_port=TCP, tcp_any_gid=True,
                       length=LENGTH, max_connections=2048)])
    try:
        w.ns.exec(['ip', 'link', 'set', 'lo', 'up'])
        w.ns.exec(['ip', 'route', 'add', 'local', SOMEBODYS % (0, 0) + '/16', 'dev', 'lo'])
        w.polca.start()
        yield w
        w.audit(False)
    finally:
        w.close()


def metric(wire, name):
    text = wire.polca.rpc('stats_metrics')['text']
    return int(next(row.split()[1] for row in text.splitlines() if row.startswith(name + ' ')))


def neighbours(wire):
    return metric(wire, 'polca_neighbours')


def reaches_a_new_peer(wire, bystanders):
    """A queue pair to a peer that is not in the table works, and so do the bystanders and the
    control socket."""
    hca, began = Hca(wire.polca), time.monotonic()
    assert wire.polca.rpc('worker_list')['workers']
    assert time.monotonic() - began < PATIENCE
    wire.station.ip, was = next(new_peers), wire.station.ip
    try:
        c = Conn(hca, wire)
        c.sync()
        c.close()
    finally:
        wire.station.ip = was
        hca.close()
    bystanders.exchange()


def named_one(wire, ip):
    with Client(wire, TCP, 1001) as c:
        return c.name(ip)


def test_names_that_nobody_has(wire, bystanders):
    names = (NOBODYS % (n >> 8, n & 255) for n in itertools.count(2))
    # an entry is kept for two searches at least: for 5 s
    for n in range(UNRESOLVED // PER_STRANGER):
        with Client(wire, TCP, n) as c:
            assert all([c.name(next(names)) for _ in range(PER_STRANGER)])
            if n == 0:
                assert not c.name(next(names))
    refused = metric(wire, 'polca_neighbours_refused_total')
    assert not named_one(wire, next(names))
    assert metric(wire, 'polca_neighbours_refused_total') == refused + 1
    assert neighbours(wire) <= UNRESOLVED + HELD
    reaches_a_new_peer(wire, bystanders)
    # a refusal has idle ones looked for
    wait_until(lambda: neighbours(wire) <= HELD, timeout=60, step=0.5)
    assert named_one(wire, next(names))


def test_names_that_somebody_has(wire, bystanders):
    names = (SOMEBODYS % (n >> 8, n & 255) for n in itertools.cycle(range(2, 1 << 16)))
    forgotten, named = metric(wire, 'polca_neighbours_forgotten_total'), 0
    end = time.monotonic() + FLOOD_S
    for n in itertools.count():
        if time.monotonic() > end:
            break
        with Client(wire, TCP, n % 4096) as c:
            for _ in range(QPS):
                named += c.name(next(names))
        if n % 64 == 0:
            reaches_a_new_peer(wire, bystanders)
    assert named > 2 * KEPT
    reaches_a_new_peer(wire, bystanders)
    wait_until(lambda: neighbours(wire) <= KEPT, timeout=60, step=0.5)
    assert metric(wire, 'polca_neighbours_forgotten_total') > forgotten
    reaches_a_new_peer(wire, bystanders)
