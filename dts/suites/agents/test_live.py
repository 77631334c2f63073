# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Class 0x34 and its neighbours, packet by packet: every byte of the answers; echoes of many
packets in both directions; sources that send too many requests (liveness 1 to 4)."""

import datetime
import json
import signal
import struct
import subprocess
import threading

import pytest

import madview
import net
import rmpp
from conn import wait_until
from ibports import LID, PEER_LID, PORT_GUID, STATIC
from polca import CTL_PROGRAM
from smp import (BAD_ATTRIBUTE, BAD_METHOD, BAD_VERSION, GET, INVALID_FIELD, live, SEND, SET, Smp,
                 vendor)

CONFIG = dict(ib=STATIC, live=dict(rate=100, burst=1500, max_echo=100000))
TID = 0xfedcba9876543210


def text(mad, at, length):
    return mad[at:at + length].hex()


def still_there(station):
    """Receive the answer; nothing else arrives before it."""
    p = station.ask(live(5), qpn=1)
    assert p.smp.raw[40] == 6


def dropped(station, verdict, why, *mads):
    for m in mads:
        station.tx(m, qpn=1)
    still_there(station)
    assert verdict.grown() == {why: len(mads), 'datagram': 1}, verdict.grown()


# ---- echo

def test_vector(station):
    """liveness 4, byte for byte, TID and all."""
    data = bytes(range(208))
    p = station.ask(bytes.fromhex('01340101' '00000000' '0000000000000006' '00000000' '00000000'
                                  '000000000000000000000000' '00' '001405' '01000000' '12340001') +
                    data, qpn=1)
    assert p.smp.raw == bytes.fromhex(
        '01340181' '00000000' '0000000000000006' '00000000' '00000000'
        '000000000000000000000000' '00' '001405' '02000000' '12340001') + data
    assert (p.slid, p.dlid, p.dqp, p.sqp, p.vl, p.qkey, p.pkey) == (
        LID, PEER_LID, 1, 1, 0, 0x80010000, 0xffff)


def test_all_of_the_tid_comes_back(station):
    p = station.ask(live(1, tid=TID), qpn=1)
    assert p.smp.tid == TID


def test_send_is_answered_with_send(station):
    station.tx(live(1, 7, 8, b'abc', method=SEND), qpn=1)
    p = station.rx()
    assert p.smp.method == SEND and text(p.smp.raw, 40, 11) == '0200000000070008616263'


def test_attribute_and_modifier_come_back(station):
    p = station.ask(live(1, attr=0x77, modifier=0x12345678), qpn=1)
    assert (p.smp.attr, p.smp.modifier, p.smp.status) == (0x77, 0x12345678, 0)


def test_answer_goes_to_the_source_queue_pair(station):
    p = station.ask(live(1), qpn=1, sqp=0x123456)
    assert (p.dqp, p.sqp) == (0x123456, 1)


@pytest.mark.parametrize('sl', [0, 5])
def test_service_level_comes_back(station, sl):
    assert station.ask(live(1), qpn=1, sl=sl).sl == sl


def test_with_a_global_header(station):
    """GID-routed requests are answered the same way, GIDs swapped (liveness 1)."""
    sgid = bytes.fromhex('fe800000000000000002c90300770002')
    dgid = bytes.fromhex('fe80000000000000%016x' % PORT_GUID)
    p = station.ask(live(1), qpn=1, gids=(sgid, dgid))
    assert p.grh is not None and p.grh[8:24] == dgid and p.grh[24:40] == sgid


# ---- timestamp, LID and GUID

def stamp():
    now = datetime.datetime.now(datetime.timezone.utc)
    return ((now.hour * 60 + now.minute) * 60 + now.second) * 1000 + now.microsecond // 1000


def test_timestamp(station):
    """Originate is copied; Receive and Transmit are milliseconds since midnight UT, right within
    a second; identifier and sequence are copied."""
    sent = stamp()
    p = station.ask(live(3, 0xabcd, 0x1234, struct.pack('>I', 0x01020304)), qpn=1)
    assert text(p.smp.raw, 40, 12) == '04000000abcd123401020304'
    receive, transmit = struct.unpack_from('>II', p.smp.raw, 52)
    assert receive < 86400000 and transmit < 86400000  # the high bit would say: not standard
    assert 0 <= (transmit - receive) % 86400000 < 1000
    assert min((receive - sent) % 86400000, (sent - receive) % 86400000) <= 1000
    assert p.smp.raw[60:] == bytes(196)


def test_lid_and_guid(station):
    p = station.ask(live(5, 1, 2), qpn=1)
    assert text(p.smp.raw, 40, 18) == '0600000000010002' '%04x%016x' % (LID, PORT_GUID)
    assert p.smp.raw[58:] == bytes(198)


# ---- requests answered with a status, and requests not answered

@pytest.mark.parametrize('mad, status', [
    (live(1, version=2), BAD_VERSION), (live(1, version=0), BAD_VERSION),
    (live(1, method=SET), BAD_METHOD), (live(1, method=0x12), BAD_METHOD),
    (live(0), BAD_ATTRIBUTE), (live(7), BAD_ATTRIBUTE), (live(255), BAD_ATTRIBUTE)], ids=str)
def test_status(station, mad, status):
    assert station.ask(mad, qpn=1).smp.status == status


@pytest.mark.parametrize('kind', [2, 4, 6])
def test_responses_are_not_answered(station, verdict, kind):
    """No loops of answers: responses without a request, Get or GetResp, are dropped."""
    dropped(station, verdict, 'mad_unmatched', live(kind), live(kind, method=0x81),
            live(kind, method=SEND))


def test_another_vendor(station, verdict, polca):
    before = polca.rpc('stats_get')['live']['other_oui']
    dropped(station, verdict, 'mad_unmatched', live(1, oui=0x0002c9), vendor(0x32, oui=0),
            vendor(0x33, attr=0x10, oui=0xffffff))
    assert polca.rpc('stats_get')['live']['other_oui'] == before + 3


def test_classportinfo(station):
    p = station.ask(live(0, attr=1), qpn=1)
    assert p.smp.status == 0 and text(p.smp.raw, 40, 4) == '01010000'


def test_no_such_class(station):
    p = station.ask(vendor(0x35), qpn=1)
    assert p.smp.status == BAD_VERSION


@pytest.mark.parametrize('wrong, why', [
    (dict(qkey=0x80010001), 'qkey_violation'), (dict(qkey=0), 'qkey_violation'),
    (dict(pkey=0x1234), 'pkey_violation'), (dict(dlid=LID + 1), 'not_our_lid'),
    (dict(icrc_xor=4), 'icrc'), (dict(vcrc_xor=4), 'vcrc'), (dict(vl=15), 'smp_invalid'),
    (dict(dqp=0), 'smp_invalid')], ids=str)
def test_dropped(station, verdict, wrong, why):
    wrong = dict(wrong)
    if 'dqp' in wrong:
        wrong.update(vl=15, qkey=0)
    station.tx(live(1), **dict(dict(qpn=1), **wrong))
    still_there(station)
    assert verdict.grown() == {why: 1, 'datagram': 1}


@pytest.mark.parametrize('octets', [0, 40, 252, 260])
def test_length(station, verdict, octets):
    station.tx((live(1) + bytes(8))[:octets], qpn=1)
    still_there(station)
    grown = verdict.grown()
    assert grown.pop('datagram') == 1 and sum(grown.values()) == 1, grown
    assert set(grown) == {'mad_length'}, grown


# ---- ibping and ibsysstat

def test_ibping(station):
    """liveness 4: the answer equals the request except for the R bit and the name."""
    p = station.ask(bytes.fromhex('01320101' '00000000' '0000000000000005').ljust(36, b'\0') +
                    bytes.fromhex('00001405') + bytes(216), qpn=1)
    assert text(p.smp.raw, 0, 40) == '01320181' '00000000' '0000000000000005'.ljust(72, '0') + \
        '00001405'
    name, _, rest = p.smp.raw[40:].partition(b'\0')
    assert name and rest == bytes(len(rest))


@pytest.mark.parametrize('attr', [0x10, 0x11])
def test_ibsysstat(station, attr):
    p = station.ask(vendor(0x33, attr=attr), qpn=1)
    assert (p.smp.method, p.smp.status, p.smp.attr) == (0x81, 0, attr)
    assert (p.smp.raw[40] != 0) == (attr == 0x11)


def test_ibsysstat_of_no_such_attribute(station):
    assert station.ask(vendor(0x33, attr=0x13), qpn=1).smp.status == BAD_ATTRIBUTE


# ---- echoes of many packets

def request(size, **kw):
    """An echo request as a user of RMPP passes it."""
    data = bytes(i * 7 + i // 256 & 0xff for i in range(size))
    head = bytearray(live(1, 0x55, 0x66, **kw)[:48])
    head[24:28] = bytes((1, 0, 1, 0))
    return bytes(head), data


def echo(station, head, data, lose=()):
    """Both transfers of an echo, as its requester; returns the answer's whole MAD, also if it is
    one packet without RMPP. lose: our packets that are only sent when they are repeated."""
    lose = list(lose)

    def emit(m):
        n, = struct.unpack_from('>I', m, 28)
        if n in lose and m[25] == madview.DATA:
            lose.remove(n)
        else:
            station.tx(m, qpn=1)
    sender, receiver = rmpp.Sender(head + data, emit), rmpp.Receiver()
    while receiver.result is None:
        p = station.maybe(sender.WAIT)
        if p is None:
            assert not sender.done, 'no answer'
            sender.late()
            assert not sender.done, 'no acknowledgement'
        elif not p.smp.raw[26] & madview.ACTIVE:
            return p.smp.raw
        elif p.smp.method == 0x81 and p.smp.raw[25] == madview.DATA:
            answer = receiver.take(p.smp.raw)
            assert not receiver.error, receiver.error
            if answer:
                station.tx(answer, qpn=1)
        else:
            assert p.smp.raw[25] == madview.ACK, p.smp
            sender.take(p.smp.raw)
    late = station.maybe(0.1)
    while late is not None:  # repeated packets
        assert late.smp.tid == Smp(head).tid and late.smp.raw[25] in (madview.ACK, madview.DATA)
        late = station.maybe(0.1)
    return receiver.result


@pytest.mark.parametrize('size', [0, 1, 208, 209, 424, 425, 5000, 99000])
def test_echo_by_rmpp(station, size):
    head, data = request(size)
    got = echo(station, head, data)
    assert got[:24] == head[:3] + b'\x81' + head[4:24] and got[36:40] == head[36:40]
    assert got[40:48].hex() == '0200000000550066' and got[48:] == data


@pytest.mark.parametrize('lose', [(2,), (3, 3), (24,), (1,)])
def test_echo_by_rmpp_with_loss(station, lose):
    head, data = request(5000)
    assert echo(station, head, data, lose)[48:] == data


def test_echo_too_long(station):
    """More than max_echo: a status, and no echo (liveness 2)."""
    head, data = request(110000)
    got = echo(station, head, data)
    assert (Smp(got).status, got[48:]) == (INVALID_FIELD, bytes(208))
    still_there(station)


def test_no_reflection(station):
    """A requester that opens no window gets one packet for its last one, and no more; at most,
    unacknowledged packets are repeated."""
    head, data = request(50000)
    packets = rmpp.segments(head + data)
    sender = rmpp.Sender(head + data, lambda m: station.tx(m, qpn=1))
    first = []
    while not sender.done:
        p = station.rx()
        if p.smp.raw[25] == madview.ACK:
            sender.take(p.smp.raw)
        else:
            first.append(p)
    p = station.maybe(1)
    while p is not None:
        first.append(p)
        p = station.maybe(0.3)
    data_of = [x for x in first if x.smp.raw[25] == madview.DATA]
    assert {struct.unpack_from('>I', x.smp.raw, 28)[0] for x in data_of} == {1}
    assert len(data_of) <= 8 < len(packets)
    # the requester has gone: stop the transfer
    station.tx(rmpp.control(data_of[0].smp.raw, madview.STOP, status=1), qpn=1)
    still_there(station)


# ---- the appliance asks

class Server(threading.Thread):
    """Answers this many echoes of the appliance, also those of many packets."""

    def __init__(self, station, count=1, change=lambda mad: mad):
        super().__init__(daemon=True)
        self.station, self.count, self.change, self.seen = station, count, change, []
        self.start()

    def run(self):
        receiver, sender = rmpp.Receiver(), None
        while self.count:
            p = self.station.maybe(5)
            if p is None:
                return
            raw = p.smp.raw
            if not raw[26] & madview.ACTIVE:
                self.seen.append(raw)
                self.count -= 1
                self.station.tx(self.change(self.turned(raw)), qpn=1)
            elif raw[25] != madview.DATA:
                if sender:
                    sender.take(raw)
                    self.count -= sender.done
            else:
                answer = receiver.take(raw)
                if answer:
                    self.station.tx(answer, qpn=1)
                if receiver.result and not sender:
                    self.seen.append(receiver.result)
                    sender = rmpp.Sender(self.turned(receiver.result),
                                         lambda m: self.station.tx(m, qpn=1))

    @staticmethod
    def turned(mad):
        return mad[:3] + bytes((mad[3] | 0x80,)) + mad[4:40] + bytes((mad[40] + 1,)) + mad[41:]


@pytest.mark.parametrize('size', [0, 56, 208, 209, 5000, 90000])
def test_we_ask_for_an_echo(station, polca, size):
    server = Server(station)
    r = polca.rpc('live_ping', dlid=PEER_LID, size=size, pattern='c0ffee', identifier=0x4321,
                  sequence=9, timeout_ms=8000)
    server.join()
    assert (r['sent'], r['received']) == (1, 1), r
    assert r['replies'][0]['bytes'] == 8 + size
    mad, = server.seen
    data = (b'\xc0\xff\xee' * (size // 3 + 1))[:size]
    assert mad[:4] == bytes((1, 0x34, 1, GET)) and mad[36:40].hex() == '00001405'
    assert mad[40:48].hex() == '0100000043210009' and mad[48:48 + size] == data
    assert mad[48 + size:] == bytes(max(0, 208 - size)) or size > 208


@pytest.mark.parametrize('wrong', [
    lambda m: m[:48] + bytes((m[48] ^ 1,)) + m[49:],  # data
    lambda m: m[:44] + b'\x99\x99' + m[46:],  # identifier
    lambda m: m[:46] + b'\x99\x99' + m[48:],  # sequence
    lambda m: m[:40] + b'\x04' + m[41:],  # type
    lambda m: m[:4] + b'\x00\x08' + m[6:]], ids=['data', 'identifier', 'sequence', 'type',
                                                 'status'])
def test_a_wrong_answer(station, polca, wrong):
    """It does not count as a reply, and the error says so."""
    server = Server(station, change=wrong)
    r = polca.rpc('live_ping', dlid=PEER_LID, identifier=1, timeout_ms=300)
    server.join()
    assert (r['sent'], r['received']) == (1, 0) and 'error' in r['replies'][0], r


# ---- live watch

def stamped(mad):
    """An answer with time stamps: the request spent 250 ms here."""
    return Server.turned(mad)[:52] + struct.pack('>II', 86399900, 150) + mad[60:]


class Watch:
    """polca-ctl live watch of the station, which answers while it is told to."""

    def __init__(self, wire, *args):
        self.station, self.events = wire.station, []
        self.proc = subprocess.Popen(
            [CTL_PROGRAM, '-s', wire.polca.socket, '--json', 'live', 'watch',
             'lid:%d' % PEER_LID, '-i', '0.02', '-W', '0.3', *args], text=True,
            stdout=subprocess.PIPE, preexec_fn=net.die_with_parent)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.proc.stdout:
            self.events.append(json.loads(line))

    def until(self, answers, state):
        def seen():
            p = self.station.maybe(0.02)
            if p is not None and answers:
                self.station.tx(stamped(p.smp.raw), qpn=1)
            return self.events and self.events[-1].get('state') == state
        wait_until(seen, step=0)

    def end(self):
        self.proc.send_signal(signal.SIGINT)
        status = self.proc.wait(30)
        self.reader.join()
        self.station.drain()
        return status, self.events[-1]


def test_watch(wire, station):
    """Up, suspect, down after enough missed requests, up again; statistics at the end."""
    watch = Watch(wire, '--misses', '4')
    try:
        for answers, state in ((True, 'up'), (False, 'down'), (True, 'up')):
            watch.until(answers, state)
        status, report = watch.end()
    finally:
        watch.proc.kill()
    changes = [(e['was'], e['state'], e['missed']) for e in watch.events[:-1]]
    assert changes[0] == ('new', 'up', 0)
    assert changes[-3:] == [('up', 'suspect', 1), ('suspect', 'down', 4), ('down', 'up', 0)]
    row, = report['endports']
    assert (status, row['state'], row['residence_max_ms']) == (0, 'up', 250)
    assert row['received'] >= 2 and row['sent'] >= row['received'] + 4
    assert 0 < row['rtt_min_us'] <= row['rtt_p50_us'] <= row['rtt_p99_us'] <= row['rtt_max_us']


# ---- too many

def test_rate_limit(station, verdict, polca):
    """Beyond its burst a source is served at its rate; other sources are not delayed."""
    before = polca.rpc('stats_get')['live']['rate_limited']
    got = 0
    for _ in range(25):  # at most as many at once as the device's queue holds
        for _ in range(100):
            station.tx(live(1), qpn=1)
        while station.maybe(0.05):
            got += 1
    limited = polca.rpc('stats_get')['live']['rate_limited'] - before
    assert limited == verdict['rate_limited'] and got + limited == 2500
    assert 100 <= got < 2400, (got, limited)
    p = station.ask(live(1), qpn=1, slid=PEER_LID + 7)
    assert p.dlid == PEER_LID + 7
    wait_until(lambda: station.tx(live(1), qpn=1) or station.maybe(0.2))
    station.drain()
