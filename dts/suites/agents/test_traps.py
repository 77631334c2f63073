# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Traps on the wire, byte for byte, repeated until they are repressed or given up; tshark
dissects the same values (smp-sma 5)."""

import struct
import time

import pytest

import capture
from conn import wait_until
from ibports import LID, MAC, PEER_LID, PORT_GUID, STATIC, SYSTEM_GUID
from smp import (directed, GET, LED_INFO, lid_routed, live, NODE_DESC, NOTICE, PORT_INFO, REPRESS,
                 SET, TRAP)

INTERVAL = 0.3
RETRIES = 3
# SubnetTimeOut may require longer intervals than the configuration: 17 is half a second
CONFIG = dict(ib=STATIC, pkeys=[0xffff, 0x8001],
              sma=dict(trap_interval_ms=int(INTERVAL * 1000), trap_retries=RETRIES, trap_rate=1000,
                       trap_burst=1000))
URGENT, SECURITY, INFO = 1, 2, 4
CAP_MASK = 0x06710a6c


@pytest.fixture(scope='module', autouse=True)
def subnet_timeout(wire):
    """A short SubnetTimeOut, so that the configuration sets the interval."""
    s = wire.station
    info = bytearray(s.ask(lid_routed(GET, PORT_INFO.attr)).smp.data)
    info[32], info[33], info[51] = info[32] & 0xf0, info[33] & 0x0f, 10
    assert s.ask(lid_routed(SET, PORT_INFO.attr, data=bytes(info))).smp.status == 0


def traps(polca):
    return polca.rpc('trap_list')['traps']


def by_id(polca, ident):
    return next(t for t in traps(polca) if t['trap'] == ident)


def repress(station, p, **kw):
    """TrapRepress as a manager sends it: the Trap's own MAD with method 7."""
    raw = p.smp.raw
    station.tx(raw[:3] + bytes((REPRESS,)) + raw[4:], **kw)


def raised(polca, number):
    return polca.rpc('trap_send', number=number)['trap']


def check_head(p, number, kind):
    """The checks that all traps share."""
    m = p.smp
    assert (p.vl, p.sl, p.slid, p.dlid, p.grh, p.qkey, p.sqp, p.dqp, p.pkey) == (
        15, 0, LID, PEER_LID, None, 0, 0, 0, 0xffff)
    assert (m.base, m.cls, m.version, m.method, m.status, m.specific) == (1, 1, 1, TRAP, 0, 0)
    assert (m.attr, m.modifier, m.m_key) == (2, 0, 0) and m.tid
    assert m.raw[32:64] == bytes(32) and m.raw[128:] == bytes(128)
    # generic, its type; producer a channel adapter; number; issuer; Toggle and Count at the first
    assert m.data[:8].hex() == '%02x000001%04x%04x' % (0x80 | kind, number, LID)
    assert m.data[8:10] == bytes(2)
    return m.data[10:]


# ---- by hand

@pytest.mark.parametrize('number, kind, details', [
    (144, INFO, '0000%04x0000%08x00000000' % (LID, CAP_MASK)),
    (145, INFO, '0000%04x0000%016x' % (LID, SYSTEM_GUID)),
    (129, URGENT, '0000%04x01' % LID), (130, URGENT, '0000%04x01' % LID),
    (131, URGENT, '0000%04x01' % LID)])
def test_trap(station, polca, number, kind, details):
    n = raised(polca, number)
    p = station.trap(number)
    assert check_head(p, number, kind) == bytes.fromhex(details).ljust(54, b'\0')
    repress(station, p)
    wait_until(lambda: by_id(polca, n)['state'] == 'REPRESSED')
    t = by_id(polca, n)
    assert (t['number'], t['sent'], t['raised'], int(t['tid'], 16)) == (number, 1, 1, p.smp.tid)


def test_command(station, polca):
    """polca-ctl trap send, list and repress."""
    r = polca.ctl('trap', 'send', '--number', 144)
    n = int(r.stdout.split()[-1])
    station.trap(144)
    text = polca.ctl('trap', 'list').stdout
    row = next(line for line in text.splitlines() if line.split()[:1] == [str(n)])
    assert row.split()[2] == '144' and 'SENT' in row, text
    polca.ctl('trap', 'repress', '--trap', n)
    assert by_id(polca, n)['state'] == 'REPRESSED'
    r = polca.ctl('trap', 'repress', '--trap', 999999, check=False)
    assert r.returncode != 0 and r.stderr, r


def test_no_such_trap(polca):
    r = polca.ctl('trap', 'send', '--number', 128, check=False)
    assert r.returncode != 0 and '128' in r.stderr, r


# ---- repeats

def test_repeated_until_repressed(station, polca):
    """The same notice under the same TID, at intervals no shorter than the configuration's."""
    n = raised(polca, 144)
    first = station.trap(144)
    then = time.monotonic()
    again = station.trap(144)
    assert time.monotonic() - then > INTERVAL * 0.8
    assert again.smp.raw == first.smp.raw and again.psn != first.psn
    repress(station, again)
    wait_until(lambda: by_id(polca, n)['state'] == 'REPRESSED')
    sent = by_id(polca, n)['sent']  # more than two if the TrapRepress took longer than an interval
    other = raised(polca, 145)  # another trap is repeated meanwhile, at the same interval
    station.trap(145)
    station.trap(145)
    repress(station, station.trap(145))
    wait_until(lambda: by_id(polca, other)['state'] == 'REPRESSED')
    station.drain()
    assert by_id(polca, n)['sent'] == sent


def test_given_up(station, polca):
    """Sent once, repeated as often as configured, then no more."""
    n = raised(polca, 145)
    sent = [station.trap(145) for _ in range(1 + RETRIES)]
    assert len({p.smp.raw for p in sent}) == 1
    wait_until(lambda: by_id(polca, n)['state'] == 'GIVEN_UP')
    assert by_id(polca, n)['sent'] == 1 + RETRIES
    station.drain()
    assert station.maybe(2 * INTERVAL) is None and not station.traps


@pytest.mark.parametrize('change', ['number', 'type'])
def test_repress_of_another_notice(station, polca, change):
    """It is not ours: the trap is repeated."""
    n = raised(polca, 144)
    p = station.trap(144)
    raw = bytearray(p.smp.raw)
    raw[3] = REPRESS
    if change == 'number':
        raw[69] = 145
    else:
        raw[64] = 0x80 | URGENT
    raw[8:16] = bytes(8)
    station.tx(bytes(raw))
    assert station.trap(144).smp.raw == p.smp.raw
    assert by_id(polca, n)['state'] == 'SENT'
    repress(station, p)
    wait_until(lambda: by_id(polca, n)['state'] == 'REPRESSED')


def test_repress_is_not_answered(station, polca):
    n = raised(polca, 144)
    repress(station, station.trap(144))
    assert station.ask(lid_routed(GET, NODE_DESC)).smp.status == 0  # and nothing before it
    wait_until(lambda: by_id(polca, n)['state'] == 'REPRESSED')


# ---- what raises them

KEY = 0x1122334455667788


@pytest.fixture
def guarded(station, polca):
    info = station.ask(lid_routed(GET, PORT_INFO.attr)).smp.data
    calm = info[8:32] + bytes((info[32] & 0xf0, info[33] & 0x0f)) + info[34:]
    assert station.ask(lid_routed(SET, PORT_INFO.attr,
                                  data=struct.pack('>Q', KEY) + calm)).smp.status == 0
    yield
    free = bytes(8) + calm[:36] + bytes(2) + calm[38:]
    assert station.ask(lid_routed(SET, PORT_INFO.attr, data=free, m_key=KEY)).smp.status == 0
    for t in traps(polca):
        if t['state'] == 'SENT':
            polca.rpc('trap_repress', trap=t['trap'])
    station.drain()


def test_bad_m_key(station, polca, verdict, guarded):
    """256: method, attribute and key of the violation; the LID is the port's own, as in qib. Its
    TrapRepress also needs the key."""
    station.tx(lid_routed(SET, PORT_INFO.attr, 1, m_key=0xbad0bad0bad0bad0))
    p = station.trap(256)
    assert check_head(p, 256, SECURITY) == bytes.fromhex(
        '0000' '%04x' '0000' '02' '00' '0015' '00000001' 'bad0bad0bad0bad0' % LID).ljust(54, b'\0')
    assert verdict['mkey_violation'] == 1
    repress(station, p)  # without the key, this is another violation
    wait_until(lambda: verdict['mkey_violation'] == 2)
    raw = bytearray(p.smp.raw)
    raw[3], raw[24:32] = REPRESS, struct.pack('>Q', KEY)
    station.tx(bytes(raw))
    wait_until(lambda: next(t for t in traps(polca) if int(t['tid'], 16) == p.smp.tid)['state'] ==
               'REPRESSED')


def test_bad_m_key_by_directed_route(station, polca, guarded):
    """DRNotice, the number of hops and the return path."""
    station.tx(directed(SET, LED_INFO, path=(1, 4, 6), back=bytes((0, 9, 8)), m_key=7),
               permissive=True)
    p = station.trap(256)
    assert check_head(p, 256, SECURITY) == bytes.fromhex(
        '0000' '%04x' 'ffff' '02' '00' '0031' '00000000' '0000000000000007' '00' '83' '00090801'
        % LID).ljust(54, b'\0')


def violation(station, polca, number, mad, **kw):
    before = station.ask(lid_routed(GET, PORT_INFO.attr)).smp.data
    station.tx(mad, qpn=1, **kw)
    p = station.trap(number)
    repress(station, p)
    counter = {257: 'pkey_violations', 258: 'qkey_violations'}[number]

    def count(data):
        return PORT_INFO.get(data, counter)
    wait_until(lambda: count(station.ask(lid_routed(GET, PORT_INFO.attr)).smp.data) ==
               count(before) + 1)
    wait_until(lambda: next(t for t in traps(polca) if int(t['tid'], 16) == p.smp.tid)
               ['state'] == 'REPRESSED')
    return p


def test_bad_p_key(station, polca):
    """257: both LIDs, the key, the service level, both queue pairs; no GIDs without a GRH."""
    p = violation(station, polca, 257, live(1), pkey=0x1235, sl=3, sqp=0x654321)
    assert check_head(p, 257, SECURITY) == bytes.fromhex(
        '0000' '%04x%04x' '00001235' '30' '654321' '00' '000001' % (PEER_LID, LID)).ljust(54, b'\0')


def test_bad_p_key_with_gids(station, polca):
    sgid = bytes.fromhex('fe800000000000000002c90300770002')
    dgid = bytes.fromhex('fe80000000000000%016x' % PORT_GUID)
    p = violation(station, polca, 257, live(1), pkey=0x1236, gids=(sgid, dgid))
    assert check_head(p, 257, SECURITY) == bytes.fromhex(
        '0000' '%04x%04x' '00001236' '00' '000001' '00' '000001' % (PEER_LID, LID)) + \
        sgid + dgid + bytes(54 - 18 - 32)


def test_bad_q_key(station, polca):
    p = violation(station, polca, 258, live(1), qkey=0x12345678, sqp=0x99)
    assert check_head(p, 258, SECURITY) == bytes.fromhex(
        '0000' '%04x%04x' '12345678' '00' '000099' '00' '000001' % (PEER_LID, LID)).ljust(54, b'\0')


def test_no_storm(station, polca):
    """A flood with one cause: each packet counts as a violation, but few traps are sent."""
    def counter():
        return PORT_INFO.get(station.ask(lid_routed(GET, PORT_INFO.attr)).smp.data,
                             'pkey_violations')
    newest, before = max(t['trap'] for t in traps(polca)), counter()
    for _ in range(200):
        station.tx(live(1), qpn=1, pkey=0x4321)
    wait_until(lambda: counter() == before + 200)
    mine = [t for t in traps(polca) if t['trap'] > newest]
    assert mine and {t['number'] for t in mine} == {257}
    assert sum(t['sent'] for t in mine) <= 20 < sum(t['raised'] for t in mine), mine
    for t in mine:
        if t['state'] == 'SENT':
            polca.rpc('trap_repress', trap=t['trap'])
    station.drain()


# ---- tshark's dissection

FIELDS = ['infiniband.notice.trapnumberdeviceid', 'infiniband.notice.issuerlid',
          'infiniband.notice.type', 'infiniband.notice.isgeneric',
          'infiniband.notice.producertypevendorid', 'infiniband.mad.method',
          'infiniband.mad.transactionid']


def test_dissection(wire):
    """All traps of this module."""
    def sent():
        return capture.dissect(wire.capture.path, MAC, FIELDS, 'infiniband.mad.method == 5')
    wait_until(lambda: 258 in [int(row[0], 0) for row in sent()], step=0.3)  # the last
    rows, numbers = sent(), set()
    for number, issuer, kind, generic, producer, method, tid in rows:
        numbers.add(int(number, 0))
        assert int(issuer, 0) == LID and int(producer, 0) == 1 and int(tid, 0), rows
        assert int(generic, 0) == 1 and int(method, 0) == TRAP
        assert int(kind, 0) == {144: INFO, 145: INFO, 256: SECURITY, 257: SECURITY,
                                258: SECURITY}.get(int(number, 0), URGENT)
    assert numbers == {129, 130, 131, 144, 145, 256, 257, 258}
    assert NOTICE.len == 64


def test_details_in_the_dissection(wire):
    """tshark's dissection of trap 257."""
    rows = capture.dissect(wire.capture.path, MAC, [
        'infiniband.trap.lidaddr1', 'infiniband.trap.lidaddr2', 'infiniband.trap.key'],
        'infiniband.notice.trapnumberdeviceid == 257')
    assert ['0x%04x' % PEER_LID, '0x%04x' % LID, '0x00001235'] in rows or \
        [str(PEER_LID), str(LID), str(0x1235)] in rows, rows[:5]
