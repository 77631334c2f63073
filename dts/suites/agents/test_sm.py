# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A subnet manager behind the port, as a client of the control socket, and a subnet for which
the test writes every packet: seed 004's inbound and outbound methods on the wire."""

import concurrent.futures
import struct

import pytest

from conn import wait_until
from ibports import LID, PEER_LID, PORT_GUID, STATIC
from mad import INFORM_INFO
from smp import (GET, GET_RESP, INVALID_FIELD, lid_routed, notice, REPRESS, SET, SM_INFO, TRAP)

# it is the master of its own port
CONFIG = dict(ib=dict(STATIC, sm_lid=LID, sm=dict(priority=5, state='standby')))
SA_INFORM, SA_SM_INFO, SA_REPORT, SA_REPORT_RESP = 0x0003, 0x0018, 0x06, 0x86
HANDOVER, ACKNOWLEDGE = 1, 2
STANDBY, MASTER = 2, 3


def take(polca, **kw):
    return polca.rpc('sm_take', **kw)['smps']


def trap(number=144, tid=None):
    return lid_routed(TRAP, 2, tid=tid, data=notice(
        generic=1, type=4, producer=2, number=number, issuer=PEER_LID))


def sa(method, attribute, data=b''):
    """A MAD of the SA: its data follow the RMPP and the SA header."""
    return lid_routed(method, attribute, cls=3, version=2)[:56] + data.ljust(200, b'\0')


def sm_info(station):
    """SMInfo on QP0: activity, priority and state."""
    a = station.ask(lid_routed(GET, SM_INFO)).smp
    assert a.status == 0 and a.data[:8] == struct.pack('>Q', PORT_GUID) and a.data[8:16] == bytes(8)
    return struct.unpack('>I', a.data[16:20])[0], a.data[20] >> 4, a.data[20] & 15


def test_a_trap_reaches_it(station, polca, verdict):
    """The SMP waits in the queue, an event reports it, and Polca does not answer it."""
    next_one = polca.rpc('events', since=0, max=1000)['next']
    station.tx(trap(tid=0x1122334455667788))
    event = polca.rpc('events', since=next_one, timeout_ms=10000)['events'][0]
    smp, = take(polca)
    assert take(polca) == []
    for row in (event, smp):
        assert (row['method'], row['attribute'], row['slid'], row['tid'], row['port']) == (
            'Trap', 'Notice', PEER_LID, '0x1122334455667788', 0), row
        assert row['notice']['trap_num'] == 144 and row['notice']['issuer_lid'] == str(PEER_LID), row
    assert (event['event'], event['smp']) == ('SM_SMP', smp['smp'])
    assert verdict['datagram'] == 1


def test_it_ends_the_trap(station, polca):
    """TrapRepress to the Trap's sender, with the Trap's own notice and TID."""
    station.tx(trap())
    smp, = take(polca, timeout_ms=10000)
    polca.rpc('sm_repress', smp=smp['smp'], m_key='0x77')
    p = station.rx()
    assert (p.vl, p.dlid, p.slid, p.dqp, p.sqp) == (15, PEER_LID, LID, 0, 0)
    assert (p.smp.method, p.smp.attr, p.smp.m_key, p.smp.tid) == (
        REPRESS, 2, 0x77, int(smp['tid'], 16))
    assert p.smp.data.hex() == smp['data']


def test_it_asks_others(station, polca):
    """Get and Set are sent from QP0 to QP0 on VL 15, and the answer returns to the client."""
    def answered(call, method):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = pool.submit(call)
            p = station.rx()
            assert (p.vl, p.dqp, p.sqp, p.dlid, p.smp.method) == (15, 0, 0, PEER_LID, method)
            raw = p.smp.raw
            station.tx(raw[:3] + bytes((GET_RESP,)) + raw[4:64] + bytes(range(64)) + bytes(128))
            return asked.result()
    got = answered(lambda: polca.rpc('smp_get', attribute='NodeInfo', dlid=PEER_LID), GET)
    assert got['data'] == bytes(range(64)).hex()
    got = answered(lambda: polca.rpc('smp_set', attribute='LedInfo', dlid=PEER_LID, data='80'), SET)
    assert got['status'] == 'OK'


def test_traps_of_its_own_port(wire, station, polca):
    """SMPs to the port's own LID come back to it."""
    number = polca.rpc('trap_send', number=144)['trap']
    smp, = take(polca, timeout_ms=10000)
    assert (smp['slid'], smp['notice']['trap_num']) == (LID, 144)
    polca.rpc('sm_repress', smp=smp['smp'])

    def sent():
        return next(t for t in polca.rpc('trap_list')['traps'] if t['trap'] == number)
    wait_until(lambda: sent()['state'] == 'REPRESSED')
    wire.to_itself += sent()['sent'] + 1
    take(polca)


def test_what_it_is(station, polca):
    """SMInfo shows this, and its ActCount that the manager is alive."""
    acts, priority, state = sm_info(station)
    assert (priority, state) == (5, STANDBY)
    take(polca)
    assert sm_info(station)[0] > acts
    polca.rpc('sm_set', state='master', priority=7)
    assert sm_info(station)[1:] == (7, MASTER)


def test_record(station, polca):
    """SMInfoRecord of the SA: the port's LID, and the manager's latest values."""
    def record():
        a = station.ask(sa(GET, SA_SM_INFO), qpn=1)
        return a.mad[56:56 + 4 + 21]
    polca.rpc('sm_set', state='master', priority=9)
    wait_until(lambda: record()[24] == 0x90 | MASTER)
    assert record()[:12] == struct.pack('>HxxQ', LID, PORT_GUID)


def test_commands_of_another_manager(station, polca):
    """Set(SMInfo) is answered, changes the state, and is reported to the manager."""
    polca.rpc('sm_set', state='master', priority=5)
    a = station.ask(lid_routed(SET, SM_INFO, ACKNOWLEDGE)).smp
    assert (a.status, a.data[20]) == (0, 0x50 | STANDBY)
    a = station.ask(lid_routed(SET, SM_INFO, ACKNOWLEDGE)).smp
    assert a.status == INVALID_FIELD
    a = station.ask(lid_routed(SET, SM_INFO, HANDOVER)).smp
    assert (a.status, a.data[20]) == (0, 0x50 | MASTER)
    assert [(s['method'], s['attribute'], s['modifier']) for s in take(polca)] == [
        ('Set', 'SMInfo', ACKNOWLEDGE), ('Set', 'SMInfo', HANDOVER)]


def test_subscribers_are_told(station, polca):
    """A subscriber to trap 144 at the SA receives the same whole notice as the manager."""
    inform = INFORM_INFO.put(lid_begin=0xffff, is_generic=1, subscribe=1, type=0xffff,
                             trap_number=144, qpn=1, resp_time=18, producer_type=0xffffff)
    assert station.ask(sa(SET, SA_INFORM, inform), qpn=1).mad[4:6] == b'\0\0'
    station.tx(trap(145))
    sent = trap(144)
    station.tx(sent)
    p = station.rx()
    assert (p.dqp, p.mad[1], p.mad[3]) == (1, 3, SA_REPORT)
    assert p.mad[56:120] == sent[64:128]
    station.tx(p.mad[:3] + bytes((SA_REPORT_RESP,)) + p.mad[4:], qpn=1)
    wait_until(lambda: polca.rpc('sa_stats')['sa']['reports_answered'] == 1)
    assert len(take(polca)) == 2


@pytest.mark.parametrize('what', ['sm_take', 'sm_repress'])
def test_refused(polca, what):
    r = polca.ctl(*what.split('_'), *(['--port', 1] if what == 'sm_take' else [99]), check=False)
    assert r.returncode != 0 and r.stderr, r
