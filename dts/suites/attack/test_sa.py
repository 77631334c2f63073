# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Services registered from forged addresses fill the share of strangers, not the database; answers
that nobody acknowledges give way."""

import struct

import pytest

import mad
import sapeer
from conn import wait_until
from mad import NODE, SERVICE, v2
from roce import icrc
from sapeer import receive2, Script

from sawire import Delta, SM_KEY, Wire

SHARE_OF_PORT, LEASE, SILENT = 4096, 3600, 8 * 1024


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets)
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


def forge(frame, address, number, service=False):
    """The same request from one of 250 addresses; a Set for one of many services."""
    f = bytearray(frame)
    mad_at = 14 + 20 + 8 + 12 + 8
    f[14 + 15] = 3 + address % 250
    struct.pack_into('!H', f, 24, 0)
    total = sum(struct.unpack_from('!10H', f, 14))
    total = (total & 0xffff) + (total >> 16)
    struct.pack_into('!H', f, 24, 0xffff - ((total & 0xffff) + (total >> 16)))
    struct.pack_into('!Q', f, mad_at + 8, 0xf100d00000000000 + number)
    if service:
        struct.pack_into('!Q', f, mad_at + 56, 0x10000 + number)
    f[-4:] = icrc(bytes(f[14:-4]))
    return bytes(f)


def stored(counted):
    return counted['writes'] - counted['write_conflicts']


def test_strangers_fill_their_share_only(wire):
    counted = Delta(lambda: wire.polca.rpc('sa_stats')['sa'])
    with wire.gsi() as gsi:
        granted = gsi.ask(register(1))
        assert granted.status == 0 and SERVICE.get(granted.data, 'lease') == LEASE
        frame, sent = gsi.frame(register(2)), 0
        while counted['share_full'] == 0:
            assert sent < 4 * SHARE_OF_PORT
            for sent in range(sent, sent + 100):
                gsi.station.send(forge(frame, sent, sent, service=True))
            sent += 1
            # on a loaded machine some are answered "busy": the store has no room for more changes
            wait_until(lambda: counted['writes'] + counted['no_resources'] > sent, timeout=30)
        # a write is counted before it turns out that it conflicts and is done again
        wait_until(lambda: stored(counted) == SHARE_OF_PORT, timeout=30)
        refused = gsi.ask_until_served(lambda: register(3))
        assert refused.status == mad.NO_RESOURCES
        assert stored(counted) == SHARE_OF_PORT
        kept = gsi.ask_until_served(lambda: register(4, name=b'an operator'))
        assert kept.status == 0 and SERVICE.get(kept.data, 'lease') == 0xffffffff
        assert wire.polca.rpc('sa_stats')['store']['bytes'] < 16 << 20
        wait_until(lambda: 'strangers have their share' in wire.polca.tail(), timeout=30)
        gsi.drain()


def test_silent_tables_give_way(wire):
    """Eight addresses ask for 1,024 tables each and acknowledge none. Others are served."""
    counted = Delta(lambda: wire.polca.rpc('sa_stats')['sa'])
    q = v2(mad.TABLE, NODE.attr, sm_key=SM_KEY)
    with wire.gsi() as gsi:
        frame = gsi.frame(q)
        for number in range(SILENT):
            gsi.station.send(forge(frame, number % 8, number))
            if number % 100 == 99:
                wait_until(lambda: counted['get_table'] > number - 100, timeout=30)
        for _ in range(3):
            gsi.drain()
            data, m = receive2(gsi, q.but(tid=sapeer.new_tid()), Script(silence=3), timeout=30)
            assert len(NODE.split2(data, m.stride)) == 4
        assert counted['no_resources'] == 0
        gsi.drain()
