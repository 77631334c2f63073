# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Peers that keep the rules while somebody attacks the appliance.

    with bystanders.unharmed():
        ...   # the attack

A queue pair, a connection and an SA client, at an address of their own, work before and after the
attack; another connection stands all the time, and so does the queue pair. Memory that no peer may
touch stays as it is, the appliance's own memory is bounded, and it sends no more bytes than a few
for each that it gets. `bystanders.exchange()` within the block shows that they go on meanwhile.
"""

import contextlib
import json

import mad
import sapeer
from cmpeer import STATION_IP6
from conn import Conn
from hca import Hca
from mad import v2
from pattern import pattern
from sapeer import Gsi

ECHO = 7  # port of the echo service that the appliance needs
GROWTH_KIB = 16 << 10
CLASS_PORT_INFO = 1
SIZE = 512


def memory_kib(polca):
    """Resident memory of the process."""
    with open('/proc/%d/status' % polca.proc.pid) as f:
        return int(next(row.split()[1] for row in f if row.startswith('VmRSS:')))


class Bystanders:
    def __init__(self, wire):
        self.wire, self.hca, self.turn, self.standing = wire, Hca(wire.polca), 0, None
        self.conn = Conn(self.hca, wire, length=8192, ipv6=True)
        self.private = self.hca.mr(8192)
        self.content = pattern(99, 8192)
        self.private.write(0, self.content)
        self.conn.mr.write(0, self.content)
        self.gsi = Gsi(wire.station, wire.polca_mac, wire.polca_ip6, ip=STATION_IP6)

    def exchange(self):
        """All of them do their work; whatever was sent before has been processed."""
        self.turn += 1
        c, data = self.conn, pattern(self.turn, SIZE)
        c.peer.drain()  # answers to packets that somebody sent in the peer's name
        psn, = c.write(data, off=1024)
        c.peer.expect_acked(psn)
        psn = c.next()
        c.peer.read(psn, c.va + 1024, c.key, SIZE)
        assert c.read_answer(psn, SIZE) == data
        assert c.mr.same(0, self.content[:1024]) and c.mr.same(1024 + SIZE, self.content[1024 + SIZE:])
        assert self.private.same(0, self.content)
        if self.standing:
            self.standing.echo(data[:64], self.echoes)
            self.echoes += 1
        with self.wire.peer(STATION_IP6) as peer:
            connection = peer.connect(ECHO)
            connection.echo(data[:64], 0)
            connection.disconnect()
            self.wire.gone(connection)
        self.gsi.drain()
        answer = self.gsi.ask_until_served(
            lambda: v2(mad.GET, CLASS_PORT_INFO, tid=sapeer.new_tid()))
        assert answer.status == 0

    def transferred(self, interfaces):
        """Bytes to and from the appliance."""
        to = of = 0
        for row in json.loads(self.wire.ns.exec(['ip', '-s', '-j', 'link', 'show'])):
            if row['ifname'] in interfaces:
                to += row['stats64']['tx']['bytes']
                of += row['stats64']['rx']['bytes']
        return to, of

    @contextlib.contextmanager
    def connected(self):
        """One more connection, which exchange() uses as long as the block lasts."""
        with self.wire.peer(STATION_IP6) as peer:
            self.standing, self.echoes = peer.connect(ECHO), 0
            try:
                yield
            finally:
                connection, self.standing = self.standing, None
            connection.disconnect()
            self.wire.gone(connection)

    @contextlib.contextmanager
    def unharmed(self, amplified=3, growth_kib=GROWTH_KIB, interfaces=('st0',)):
        """amplified: how many bytes the appliance may send for each that it gets; growth_kib: what
        its memory may grow by; interfaces: on which it gets and sends them. On lo each byte counts
        in both directions."""
        with self.connected():
            self.exchange()
            memory, (to, of) = memory_kib(self.wire.polca), self.transferred(interfaces)
            yield
            self.exchange()
            to, of = (now - was for now, was in zip(self.transferred(interfaces), (to, of)))
            assert of <= amplified * to, '%d bytes for %d' % (of, to)
            grown = memory_kib(self.wire.polca) - memory
            assert grown < growth_kib, 'the memory has grown by %d KiB' % grown

    def log_lines(self):
        with open(self.wire.polca.log) as f:
            return sum(1 for _ in f)

    def close(self):
        self.gsi.close()
        self.conn.close()
        self.hca.close()
