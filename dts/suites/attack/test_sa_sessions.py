# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Many addresses of one network fill the table of sessions, with Acks that they guess: clients of
other networks are served."""

import pytest

import mad
import sapeer
from conn import wait_until
from mad import NODE, v2
from sapeer import receive2, Script

from sawire import Delta, forge, node_bytes, NODES, SM_KEY, Wire

MAX = 128
OTHER = '10.80.0.2'  # in another /24 than the flood


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets, mad=dict(max_sessions=MAX, max_sessions_per_peer=16))
    try:
        w.start()
        yield w
        w.audit()
    finally:
        w.close()


def sessions(wire):
    return [s for s in wire.polca.rpc('sa_sessions', max=1000)['sessions']
            if s['state'] != 'LINGER']


def test_one_prefix_keeps_nobody_out(wire):
    """MAX addresses ask for a table each and acknowledge its first segment, whether they have seen
    it or not. All sessions are theirs, and none is half-open any more."""
    counted = Delta(wire.stats)
    q = v2(mad.TABLE, NODE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY)
    guess = q.but(rmpp_version=1, rmpp_type=mad.RACK, rmpp_flags=mad.ACTIVE, segment=1,
                  new_window_last=2)
    with wire.gsi() as gsi, wire.gsi(ip=OTHER) as other:
        for frame, done in ((gsi.frame(q), lambda: len(sessions(wire)) == MAX),
                            (gsi.frame(guess), lambda: all(s['segment'] for s in sessions(wire)))):
            for number in range(MAX):
                gsi.station.send(forge(frame, number, number))
            wait_until(done, timeout=30)
        assert len(sessions(wire)) == MAX and counted['sessions_reclaimed'] == 0
        data, m = receive2(other, q.but(tid=sapeer.new_tid()), Script(silence=2), timeout=30)
        assert NODE.split2(data, m.stride) == [node_bytes(lid) for lid in range(1, NODES + 1)]
        assert counted['sessions_reclaimed'] > 0 and counted['sessions_refused'] == 0
        gsi.drain()
