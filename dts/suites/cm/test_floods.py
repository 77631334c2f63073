# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Floods of requests and of other messages from unknown senders: their resources are limited for
each sender and in total, and established connections keep moving data (cm 2, 6)."""

import itertools
import random
import threading

import pytest

import cmwire
from cmpeer import DREQ, MRA, REJ, REP, REQ, RTU, STATION_IP
from cmwire import build, service_id
from conn import wait_until

ECHO = 7
HALF_OPEN, HALF_OPEN_PEER = 256, 64
WHOLE = False
CONFIG = dict(cm=dict(max_half_open=HALF_OPEN, max_half_open_per_peer=HALF_OPEN_PEER),
              services=[dict(kind='echo', port=ECHO, size=1024, max_connections=1024)])


class Steady:
    """A connection that moves data during the whole flood; each message is followed by more of
    the flood."""

    def __init__(self, peer):
        self.connection, self.sent = peer.connect(ECHO, ack_timeout=18), 0

    def move(self, n, flood=None):
        for _ in range(n):
            if flood:
                flood.burst()
            self.connection.echo(b'in the flood %d' % self.sent, self.sent, tries=20)
            self.sent += 1


@pytest.fixture(scope='module')
def steady(wire):
    with wire.peer('10.78.0.3', guid=0x0200feed00000003) as p:
        yield Steady(p)


def requests(way, n, seed=1):
    """Frames of REQs with random IDs, queue pairs and GUIDs."""
    rng = random.Random(seed)
    path = dict(way.path(), hop_limit=64)
    return [way.frame(build(
        REQ, tid=rng.getrandbits(64), local_id=rng.getrandbits(32), ca_guid=rng.getrandbits(64),
        service_id=service_id(ECHO), qpn=2 + rng.getrandbits(22), psn=rng.getrandbits(24),
        local_timeout=20, max_cm_retries=15, pkey=0xffff, mtu=3, ack_timeout=14,
        private=way.rdma(5), **path)) for _ in range(n)]


class Flood:
    """Frames sent repeatedly by a thread: one burst per signal, so that their number does not
    depend on the speed of the machine."""

    BURST = 50

    def __init__(self, station, frames):
        self.station, self.frames = station, itertools.cycle(frames)
        self.told, self.over = threading.Semaphore(0), False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.over = True
        self.told.release()
        self.thread.join()

    def burst(self):
        self.told.release()

    def _run(self):
        while self.told.acquire() and not self.over:
            for frame in itertools.islice(self.frames, self.BURST):
                self.station.sock.send(frame)


def settle(wire, peers):
    """The flooders reject all they received, until no connection is half open."""
    def over():
        for p in peers:
            for m in p.drain():
                if m.kind is REP:
                    p.say(REJ, tid=m.tid, local_id=m.remote_id, remote_id=m.local_id,
                          reason=cmwire.CONSUMER, answers=cmwire.OF_REP)
        return all(r['state'] in ('ESTABLISHED', 'TIMEWAIT') for r in wire.connections().values())
    wait_until(over, timeout=60, step=0.2)


def test_flood_of_one_peer(wire, steady, peer, counted):
    """A flooder gets its share of half-open connections and no more; established connections
    move data, and another peer connects."""
    with wire.peer('10.78.0.4', guid=4) as other:
        with Flood(wire.station, requests(peer.way, 1000)) as flood:
            steady.move(50, flood)
            for _ in range(5):
                flood.burst()
                c = other.connect(ECHO, ack_timeout=18)
                flood.burst()
                c.echo(b'newcomer', 0, tries=20)
                c.disconnect()
            wait_until(lambda: counted['half_open_limit'] > 500, timeout=60)
    mine = [r for r in wire.connections().values()
            if r['peer'] == STATION_IP and r['state'] == 'REP_SENT']
    assert len(mine) == HALF_OPEN_PEER
    settle(wire, [peer])


def test_flood_of_many_peers(wire, steady, peer, counted):
    """The pool of half-open connections is full, and the oldest give way; established connections
    still move data; afterwards everything works again."""
    peers = [wire.peer('10.78.0.%d' % (100 + i)) for i in range(16)]
    frames = [f for i, p in enumerate(peers) for f in requests(p.way, 200, seed=i)]
    random.Random(7).shuffle(frames)

    with Flood(wire.station, frames) as flood:
        steady.move(100, flood)
        wait_until(lambda: counted['half_open_evicted'] > 500, timeout=60)
    rows = wire.connections().values()
    assert len([r for r in rows if r['state'] == 'REP_SENT']) == HALF_OPEN
    settle(wire, peers)
    c = peer.connect(ECHO)
    c.echo(b'afterwards', 0)
    c.disconnect()


def test_flood_of_dreqs_and_reps(wire, steady, peer, counted):
    """Each is answered by at most one message, and leaves no state."""
    rng = random.Random(11)
    frames = [peer.way.frame(build(
        rng.choice([DREQ, REP, RTU, REJ, MRA, cmwire.LAP]), tid=rng.getrandbits(64),
        local_id=rng.getrandbits(32), remote_id=rng.getrandbits(32))) for _ in range(1000)]
    held = list(wire.connections())

    with Flood(wire.station, frames) as flood:
        steady.move(50, flood)
        wait_until(lambda: counted['unmatched'] > 1000, timeout=60)
    steady.move(1)  # after the end of the flood
    assert not set(wire.connections()) - set(held)
    peer.drain()
