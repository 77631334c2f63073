# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Services and groups stored from forged addresses fill the share of strangers, not the database; answers
that nobody acknowledges give way. Bystanders go on."""

import functools
import ipaddress
import struct

import pytest

import mad
import sapeer
from cmpeer import STATION_IP
from conn import wait_until
from mad import MCMEMBER, NODE, SERVICE, v2
from sapeer import receive2, Script

from sawire import CmWire, Delta, forge, join, ready, SM_KEY

SHARE_OF_PORT, LEASE, SILENT = 4096, 3600, 8 * 1024
UNHARMED = {'test_strangers_fill_their_share_only': {},
            'test_strangers_leave_multicast_lids': {},
            'test_silent_tables_give_way': {}}


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = CmWire(kept, sockets)
    try:
        w.start(4)
        yield w
        w.audit()
    finally:
        w.close()


def register(number, **fields):
    values = dict(service_id=number, lease=0xffffffff, **fields)
    return v2(mad.SET, SERVICE.attr, SERVICE.put(**values), tid=sapeer.new_tid(),
              mask=SERVICE.mask(*values), **({'sm_key': SM_KEY} if fields else {}))


class Filling:
    """Strangers store records until their share is full; writes that were granted."""

    def __init__(self, wire):
        self.counted = Delta(wire.sa_stats)

    def granted(self):
        return self.counted['writes'] - self.counted['write_conflicts']

    def fill(self, gsi, frame, edit):
        """edit(number, frame, at): makes the number-th record of this Set another one."""
        counted, sent = self.counted, 0
        while counted['share_full'] == 0:
            assert sent < 4 * SHARE_OF_PORT
            for sent in range(sent, sent + 100):
                gsi.station.send(forge(frame, sent, sent, functools.partial(edit, sent)))
            sent += 1
            # on a loaded machine some are answered "busy": the store has no room for more changes
            wait_until(lambda: counted['writes'] + counted['no_resources'] > sent, timeout=30)
        # a write is counted before its conflict
        wait_until(lambda: self.granted() == SHARE_OF_PORT, timeout=30)


def test_strangers_fill_their_share_only(wire, bystanders):
    filling = Filling(wire)

    def another_service(number, frame, at):
        struct.pack_into('!Q', frame, at, 0x10000 + number)

    with wire.gsi() as gsi:
        first = gsi.ask(register(1))
        assert first.status == 0 and SERVICE.get(first.data, 'lease') == LEASE
        filling.fill(gsi, gsi.frame(register(2)), another_service)
        refused = gsi.ask_until_served(lambda: register(3))
        assert refused.status == mad.NO_RESOURCES
        assert filling.granted() == SHARE_OF_PORT
        bystanders.exchange()
        kept = gsi.ask_until_served(lambda: register(4, name=b'an operator'))
        assert kept.status == 0 and SERVICE.get(kept.data, 'lease') == 0xffffffff
        assert wire.polca.rpc('sa_stats')['store']['bytes'] < 16 << 20
        wait_until(lambda: 'strangers have their share' in wire.polca.tail(), timeout=30)
        gsi.drain()


def test_strangers_leave_multicast_lids(wire, bystanders):
    """They create groups from 200 addresses, each for itself, until their share is full: a known port
    creates another one."""
    filling = Filling(wire)
    own = 0xffff << 32 | int(ipaddress.ip_address(STATION_IP))
    values = dict(mgid=0, port_gid=own, qkey=1, pkey=0xffff, join_state=1)
    create = v2(mad.SET, MCMEMBER.attr, MCMEMBER.put(**values), tid=sapeer.new_tid(),
                mask=MCMEMBER.mask(*values, 'sl', 'flow_label', 'tclass'))

    def own_group(number, frame, at):
        frame[at + 28:at + 32] = frame[14 + 12:14 + 16]  # PortGID: the forged source address

    with wire.gsi() as gsi:
        assert gsi.ask(create).status == 0
        filling.fill(gsi, gsi.frame(create), own_group)
        gsi.drain()
        bystanders.exchange()
        ready(wire)
        joined = join(gsi)
        assert joined.status == 0 and MCMEMBER.get(joined.data, 'mlid') >= 0xc000
        gsi.drain()


def test_silent_tables_give_way(wire, bystanders):
    """Eight addresses ask for 1,024 tables each and acknowledge none. Others are served."""
    counted = Delta(wire.sa_stats)
    q = v2(mad.TABLE, NODE.attr, sm_key=SM_KEY)
    with wire.gsi() as gsi:
        frame = gsi.frame(q)
        for number in range(SILENT):
            gsi.station.send(forge(frame, number % 8, number))
            if number % 100 == 99:
                wait_until(lambda: counted['get_table'] > number - 100, timeout=30)
        bystanders.exchange()
        for _ in range(3):
            gsi.drain()
            data, m = receive2(gsi, q.but(tid=sapeer.new_tid()), Script(silence=3), timeout=30)
            assert len(NODE.split2(data, m.stride)) == 4
        assert counted['no_resources'] == 0
        gsi.drain()
