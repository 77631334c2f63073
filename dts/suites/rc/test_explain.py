# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The flight recorder and `qp explain`: a peer's bad packet moves a queue pair to ERR, and Polca
says which packet it was, what it expected, and which rule applies."""

import json
import re

import pytest

from conn import PMTU, wait_until
from roce import NAK_INVALID, Op


@pytest.fixture
def broken(connect):
    """Call it to let the peer send two good Writes and then a Send Middle without a First."""
    def run(before=None):
        c = connect()
        if before:
            before(c)
        for _ in range(2):
            c.sync()
        psn = c.next()
        c.peer.tx(Op.SEND_MIDDLE, psn, bytes(PMTU), ackreq=1)
        c.peer.expect_naked(NAK_INVALID, psn)
        wait_until(lambda: c.qp.state() == 'ERR')
        return c, psn
    return run


def error_event(c):
    """The event QP_ERROR of this queue pair."""
    with c.wire.polca.client() as reader:
        def found():
            events = reader('events', since=1, max=1000)['events']
            return [e for e in events if e['event'] == 'QP_ERROR' and e['qp_num'] == c.qp.qpn]
        wait_until(found)
        return found()[0]


def test_explain_without_recording(broken):
    c, psn = broken()
    why = json.loads(c.wire.polca.ctl('--json', 'qp', 'explain', c.qp.qpn).stdout)
    assert why['reason'] == 'opcode_sequence' and why['qp_state'] == 'ERR'
    assert why['received'].startswith('SEND Middle with PSN %d, %d bytes' % (psn, PMTU))
    assert why['expected'].startswith('PSN %d; an Only or a First' % psn)
    assert why['rule'].startswith('rc-transport 6, row 2') and 'T6.2' in why['rule']
    assert 'steps' not in why
    assert 'trace' not in error_event(c)
    text = c.wire.polca.ctl('qp', 'explain', c.qp.qpn).stdout
    for words in ('SEND Middle with PSN %d' % psn, 'rc-transport 6, row 2', 'check_next'):
        assert words in text


def test_recorded_steps_are_shown_and_come_with_the_event(broken):
    c, psn = broken(lambda c: c.wire.polca.ctl('trace', 'start', 'qp', c.qp.qpn))
    steps = [(s['step'], s['what'], s.get('psn'), s.get('expected_psn'), s['outcome'])
             for s in c.hca.rpc('qp_trace', qp_num=c.qp.qpn)['steps']]
    received = [s for s in steps if s[0] == 'received']
    assert [s[2] for s in received] == [psn - 2, psn - 1, psn]
    assert received[-1] == ('received', 'SEND Middle', psn, psn, 'nak_sent')
    assert ('sent', 'Acknowledge, NAK invalid request', psn, None, '0 bytes') in steps
    event = error_event(c)
    assert event['reason'] == 'opcode_sequence'
    assert [s['step'] for s in event['trace']][-2:] == ['received', 'error']
    assert event['trace'][-2]['psn'] == psn
    why = c.hca.rpc('qp_explain', qp_num=c.qp.qpn)
    assert [s['what'] for s in why['steps'] if s['step'] == 'received'][-1] == 'SEND Middle'
    table = c.wire.polca.ctl('qp', 'trace', c.qp.qpn).stdout
    assert 'SEND Middle' in table and re.search(r'\d (us|ms|s)\n', table), 'age and times have units'


def test_stop_ends_recording(connect):
    c = connect()
    polca = c.wire.polca
    polca.ctl('trace', 'start', 'qp')
    c.sync()
    assert c.hca.rpc('qp_trace', qp_num=c.qp.qpn)['steps']
    polca.ctl('trace', 'stop', 'qp')
    r = polca.ctl('qp', 'trace', c.qp.qpn, check=False)
    assert r.returncode == 1 and 'trace_start' in r.stderr
