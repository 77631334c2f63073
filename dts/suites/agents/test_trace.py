# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The flight recorder of management sessions, with saquery as the peer: each packet of a table in
its order, compared with the capture; and recording on and off, which is for all sessions."""

import json
import os
import struct

import pytest

import ibwire
import madview
from conn import wait_until
from ibports import MAC, PEER_MAC
from roce import mac_bytes

BRIDGE = {}
FABRIC = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../config/fabric-example.ibnetdiscover')
CLASS_SA = 3
GET_TABLE, TABLE_RESP = 0x12, 0x92
SWITCH_INFO = 0x14


class Datagram:
    def __init__(self, ours, mad):
        self.ours, self.method = ours, mad[3]
        self.tid, self.attr = struct.unpack_from('>QH', mad, 8)
        self.type, self.segment = mad[25], struct.unpack_from('>I', mad, 28)[0]


def captured(wire):
    """The SA's datagrams on the wire, in their order."""
    found = []
    for f in wire.capture.frames():
        if struct.unpack_from('!H', f, 12)[0] != ibwire.ETHERTYPE:
            continue
        p = ibwire.parse(f[14:])
        if p.dqp == 1 and p.mad[1] == CLASS_SA:
            assert f[6:12] in (mac_bytes(MAC), mac_bytes(PEER_MAC))
            found.append(Datagram(f[6:12] == mac_bytes(MAC), p.mad))
    return found


@pytest.fixture(scope='module', autouse=True)
def fabric(wire):
    wire.wait_own_records()
    wire.polca.ctl('sa', 'import', FABRIC, '--replace')


@pytest.fixture
def recording(polca):
    polca.ctl('trace', 'start', 'session')
    yield
    polca.ctl('trace', 'stop', 'session')


@pytest.fixture
def ask(wire, tool):
    """ask(query): let saquery ask. Returns its TID and the datagrams of this transaction."""
    def run(*query):
        before = {d.tid for d in captured(wire)}
        tool('saquery', *query)
        asked = [d for d in captured(wire) if d.tid not in before]
        tid, = {d.tid for d in asked if d.attr == SWITCH_INFO or query[0] != 'SWIR'}
        return tid, [d for d in asked if d.tid == tid]
    return run


def trace(polca, tid):
    return json.loads(polca.ctl('--json', 'sa', 'trace', '0x%x' % tid).stdout)


def test_the_steps_of_a_table(polca, ask, recording):
    """The request, each segment and each ACK, as on the wire, then the end."""
    tid, seen = ask('SWIR')
    assert [d.method for d in seen if not d.ours][0] == GET_TABLE
    data = [d.segment for d in seen if d.ours]
    # on a slow machine, a segment goes out again before its ACK comes
    assert data == sorted(data) and set(data) == set(range(1, max(data) + 1)) and max(data) > 1
    told = trace(polca, tid)
    steps = told['steps']
    assert (steps[0]['step'], steps[-1]['step'], steps[-1]['what']) == ('opened', 'ended', 'OK')
    packets = [(s['step'], s['what'].split(',')[0], s['segment']) for s in steps if 'segment' in s]
    acks = [d for d in seen if not d.ours and d.type == madview.ACK]
    assert [p for p in packets if p[0] == 'sent'] == [
        ('sent', 'method 0x92 DATA', n) for n in data]
    assert [p for p in packets if p[1] == 'method 0x12 ACK'] == [
        ('received', 'method 0x12 ACK', d.segment) for d in acks]
    # each was sent when the ones before were: in the order of the wire, but for what crossed
    assert [s['expected_segment'] for s in steps if s['step'] == 'sent'] == sorted(
        s['expected_segment'] for s in steps if s['step'] == 'sent')
    times = [s['time_us'] for s in steps]
    assert times[0] == 0 and times == sorted(times) and told['age_us'] > 0
    assert {s['outcome'] for s in steps} <= {'REQUESTED', 'BURST', 'WAIT', 'LINGER'}
    # the same as a table for people
    text = polca.ctl('sa', 'trace', '0x%x' % tid).stdout
    assert text.index('opened') < text.index('method 0x92 DATA') < text.index('ended')


def test_the_steps_of_an_empty_table(polca, ask, recording):
    tid, seen = ask('SMIR')
    assert [d.method for d in seen if d.ours] == [TABLE_RESP]
    steps = trace(polca, tid)['steps']
    assert [s['step'] for s in steps if s['step'] != 'received'] == ['opened', 'sent', 'ended']


def test_the_64_last_steps_of_a_longer_table(polca, ask, recording):
    tid, seen = ask('PIR')
    data = [d.segment for d in seen if d.ours]
    assert len(data) > 64
    wait_until(lambda: 'ended' in [s['step'] for s in trace(polca, tid)['steps']])
    steps = trace(polca, tid)['steps']
    assert len(steps) == 64 and steps[0]['step'] != 'opened'
    sent = [s['segment'] for s in steps if s['step'] == 'sent']
    assert sent == data[-len(sent):]


def test_recording_is_for_all_sessions_and_stop_forgets(polca, ask):
    one = polca.ctl('trace', 'start', 'session', '1', check=False)
    assert one.returncode == 1 and 'recorded all or none' in one.stderr
    before, _ = ask('SWIR')
    off = polca.ctl('sa', 'trace', '0x%x' % before, check=False)
    assert off.returncode == 1 and 'trace_start' in off.stderr
    assert polca.rpc('trace_start', object='session')['switched'] == len(polca.rpc('worker_list')['workers'])
    unknown = polca.ctl('sa', 'trace', '0x%x' % before, check=False)
    assert unknown.returncode == 1 and 'no session 0x%016x' % before in unknown.stderr
    during, _ = ask('SWIR')
    assert trace(polca, during)['steps']
    polca.ctl('trace', 'stop', 'session')
    gone = polca.ctl('sa', 'trace', '0x%x' % during, check=False)
    assert gone.returncode == 1 and 'trace_start' in gone.stderr
