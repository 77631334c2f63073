# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A peer that guesses R_Keys: each wrong one ends its connection, and after some it gets no new
one for a while. Other addresses are not affected."""

import pytest

from bystanders import ECHO
from cmpeer import DREQ, REJ, STATION_IP, STATION_IP6, Wire
from cmwire import NO_RESOURCES, service_id
from conn import wait_until
from roce import NAK_ACCESS

MEMORY, GUESSES, PAUSE_S = 9, 3, 2


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets, sa={}, services=[
        dict(kind='memory', port=MEMORY, length=4096), dict(kind='echo', port=ECHO, size=1024)],
             security={'key_errors': GUESSES, 'key_error_pause_s': PAUSE_S})
    try:
        w.polca.start()
        yield w
        w.audit()
    finally:
        w.close()


def connect(peer):
    c = peer.new()
    c.req(service_id(MEMORY))
    c.expect_rep()
    c.rtu()
    return c


def guess(wire, peer, key):
    c = connect(peer)
    c.data.write_only(c.remote_psn, 0x1000, key, b'guess')
    c.data.expect_nak(NAK_ACCESS, c.remote_psn)
    c.drep(c.expect(DREQ))
    wire.gone(c)


def is_refused(peer):
    """True if the peer's REQ is rejected; a connection that is made is ended."""
    c = peer.new()
    c.req(service_id(MEMORY))
    m = peer.rx()
    if m.kind is REJ:
        assert m.reason == NO_RESOURCES
        return True
    c.learn(m)
    c.rtu()
    c.disconnect()
    return False


def test_guesser_is_paused(wire, bystanders):
    with wire.peer(STATION_IP) as guesser, wire.peer(STATION_IP6) as other, bystanders.unharmed():
        for key in range(GUESSES):
            guess(wire, guesser, 0x1234500 + key)
        told = '%s has used wrong keys %d times within a minute: no new connections for %d s' % (
            STATION_IP, GUESSES, PAUSE_S)
        wait_until(lambda: told in wire.polca.tail())
        assert is_refused(guesser) and wire.cm()['paused'] == 1
        assert not is_refused(other)
        wait_until(lambda: not is_refused(guesser), timeout=20, step=0.3)
        events = [e['event'] for e in wire.polca.rpc('events')['events']]
        assert events.count('PEER_PAUSED') == 1
    wire.wait_idle()
