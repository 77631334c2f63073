# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Peers that keep the rules while somebody attacks the appliance.

    with bystanders.unharmed():
        ...   # the attack

A queue pair, a connection and an SA client, at an address of their own, work before and after the
attack; memory that no peer may touch stays as it is, and the appliance's own memory is bounded.
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


class Bystanders:
    def __init__(self, wire):
        self.wire, self.hca, self.turn = wire, Hca(wire.polca), 0
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
        with self.wire.peer(STATION_IP6) as peer:
            connection = peer.connect(ECHO)
            connection.echo(data[:64], 0)
            connection.disconnect()
            self.wire.gone(connection)
        self.gsi.drain()
        answer = self.gsi.ask_until_served(
            lambda: v2(mad.GET, CLASS_PORT_INFO, tid=sapeer.new_tid()))
        assert answer.status == 0

    def memory_kib(self):
        with open('/proc/%d/status' % self.wire.polca.proc.pid) as f:
            return int(next(row.split()[1] for row in f if row.startswith('VmRSS:')))

    def transferred(self):
        """Bytes to and from the appliance."""
        row = json.loads(self.wire.ns.exec(['ip', '-s', '-j', 'link', 'show', 'st0']))[0]
        return row['stats64']['tx']['bytes'], row['stats64']['rx']['bytes']

    @contextlib.contextmanager
    def unharmed(self, amplified=3, growth_kib=GROWTH_KIB):
        """amplified: how many bytes the appliance may send for each that it gets; growth_kib: what
        its memory may grow by."""
        self.exchange()
        memory, (to, of) = self.memory_kib(), self.transferred()
        yield
        self.exchange()
        to, of = (now - was for now, was in zip(self.transferred(), (to, of)))
        assert of <= amplified * to, '%d bytes for %d' % (of, to)
        assert self.memory_kib() - memory < growth_kib

    def log_lines(self):
        with open(self.wire.polca.log) as f:
            return sum(1 for _ in f)

    def close(self):
        self.gsi.close()
        self.conn.close()
        self.hca.close()
