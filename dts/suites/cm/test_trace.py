# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The flight recorder of connections: the messages that a peer sends and receives, timeouts and
the end, for one connection and for all. test_linux_clients.py lets rping be the peer."""

import json

from cmwire import service_id
from conn import wait_until

ECHO = 7
LONG = 21  # a Local ACK Timeout of the peer with which TIMEWAIT lasts 8.6 s
CONFIG = dict(services=[dict(kind='echo', port=ECHO, size=1024)])


def trace(wire, number):
    return json.loads(wire.polca.ctl('--json', 'cm', 'trace', number).stdout)


def steps(wire, number):
    return [(s['step'], s['what'], s['outcome']) for s in trace(wire, number)['steps']]


def not_recorded(wire, number):
    r = wire.polca.ctl('cm', 'trace', number, check=False)
    return r.returncode == 1 and 'is not recorded' in r.stderr and 'trace_start' in r.stderr


def test_the_steps_of_one_connection(wire, peer):
    """From trace start on; the other connection is not recorded, and both work."""
    one, other = (peer.connect(ECHO, ack_timeout=LONG) for _ in range(2))
    wire.stands(one), wire.stands(other)
    assert wire.polca.rpc('trace_start', object='connection', number=one.remote_id)['switched'] == 1
    assert steps(wire, one.remote_id) == []
    for c in (one, other):
        c.echo(b'recorded or not', 0)
        c.disconnect()
    wait_until(lambda: steps(wire, one.remote_id)[2:])
    assert steps(wire, one.remote_id) == [
        ('received', 'DREQ', 'TIMEWAIT'), ('sent', 'DREP', 'DREQ_RCVD'),
        ('ended', 'disconnected', 'TIMEWAIT')]
    assert not_recorded(wire, other.remote_id)
    received = trace(wire, one.remote_id)['steps'][0]
    assert (received['local_id'], received['expected_id']) == (one.local_id, one.local_id)
    wire.polca.ctl('trace', 'stop', 'connection', one.remote_id)
    assert not_recorded(wire, one.remote_id)


def test_the_steps_of_all_connections(wire, peer):
    """From the REQ on, with a REP that is repeated because nobody answers it."""
    old = peer.connect(ECHO)
    wire.stands(old)
    assert wire.polca.rpc('trace_start', object='connection')['switched'] >= 1
    try:
        assert steps(wire, old.remote_id) == []
        c = peer.new()
        c.req(service_id(ECHO), local_timeout=14, max_cm_retries=15)
        first = c.expect_rep()
        assert c.expect_rep().mad == first.mad  # after ms(14), 64 ms
        c.rtu()
        wire.stands(c)
        c.echo(b'at last', 0)
        told = trace(wire, c.remote_id)
        rows = told['steps']
        kinds = [(s['step'], s['what'].split(',')[0]) for s in rows]
        assert kinds[:4] == [('opened', ''), ('received', 'REQ'), ('sent', 'REP'),
                             ('timeout', 'no answer in time')]
        assert kinds[4] == ('sent', 'REP') and ('received', 'RTU') == kinds[-1]
        assert rows[-1]['outcome'] == 'ESTABLISHED' and rows[2]['outcome'] == 'REP_SENT'
        assert rows[1]['local_id'] == rows[-1]['local_id'] == c.local_id
        assert (rows[1]['expected_id'], rows[-1]['expected_id']) == (0, c.local_id)
        assert {s['local_id'] for s in rows if s['step'] == 'sent'} == {c.remote_id}
        times = [s['time_us'] for s in rows]
        assert times[0] == 0 and times == sorted(times) and told['age_us'] > 0
        assert rows[3]['time_us'] - rows[2]['time_us'] >= 64000
        text = wire.polca.ctl('cm', 'trace', c.remote_id).stdout
        assert text.index('REQ') < text.index('REP') < text.index('no answer') < text.index('RTU')
        peer.drain()  # a REP may have been under way
    finally:
        wire.polca.ctl('trace', 'stop', 'connection')
    assert not_recorded(wire, c.remote_id) and not_recorded(wire, old.remote_id)
    late = peer.connect(ECHO)
    assert not_recorded(wire, late.remote_id)


def test_unknown_connections(wire):
    for words in (['cm', 'trace', 1], ['trace', 'start', 'connection', 1]):
        r = wire.polca.ctl(*words, check=False)
        assert r.returncode == 1 and 'there is no connection 0x1' in r.stderr
