# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The bridge itself, against a device for which the test writes every packet: its bytes are the
sheet's, and it detects what a device does wrong."""

import struct

import pytest

import ibwire
import madview
import rmpp
import roce
from conn import wait_until
from ibports import MAC, PEER_MAC
from ibstation import IbStation
from net import Namespace
from smp import GET_RESP, lid_routed, Smp
from umad import Bridge

LOCAL = bytes.fromhex(
    '7012375C000E17D2' '0A2024870087B1B3000DEC2A' '01710A1C015D400238F27A050000000E'
    'BB884D85FD5CFBA4728BC0690ED40000')
GLOBAL = bytes.fromhex(
    '7013375C001817D2' '6000000000320010' '00000000000001250000000000000026'
    '00000000000001170000000000000096' '0A2024870087B1B3000DEC2A'
    '01710A1C015D400238F27A050000000E' 'BB884D85FD5CFBA4728BC0690ED40000')
SMI = lid_routed(GET_RESP, 0x11, tid=1)


@pytest.mark.parametrize('packet, icrc, vcrc', [(LOCAL, '9625b75a', '45fa'),
                                                (GLOBAL, '1493ec46', '7c44')])
def test_crcs(packet, icrc, vcrc):
    """rc-transport 9, test vectors."""
    assert ibwire.icrc(packet).hex() == icrc
    assert ibwire.vcrc(packet + ibwire.icrc(packet)).hex() == vcrc
    assert ibwire.vcrc(packet[:-1]) != ibwire.vcrc(packet)  # odd lengths too


def test_smp_packet():
    """smp-sma 1: 72 words, VL 15, Q_Key 0."""
    raw = ibwire.build(SMI, 2, 1)
    assert len(raw) == 290 and raw[:28].hex() == (
        'f002000100480002' '6400ffff0000000000000000' '0000000000000000')
    p = ibwire.parse(raw + bytes(9))
    assert (p.mad, p.raw, p.vl, p.slid, p.dlid) == (SMI, raw, 15, 2, 1)


def test_udp_packet():
    p = ibwire.datagram(SMI, 0, 0, 1, 1)
    packet = ibwire.build_udp(p, '192.0.2.1', '192.0.2.2')
    assert roce.icrc(packet[:-4]) == packet[-4:]
    assert ibwire.parse_udp(packet).mad == SMI


@pytest.mark.parametrize('wrong, what', [
    (dict(icrc_xor=1), 'ICRC'), (dict(vcrc_xor=1), 'VCRC'), (dict(words=71), 'VCRC'),
    (dict(words=200), 'PktLen'), (dict(lnh=0), 'LNH'), (dict(lver=1), 'LVer'), (dict(vl=0), 'VL'),
    (dict(dqp=1, vl=15), 'VL')], ids=str)
def test_wrong_packets(wrong, what):
    with pytest.raises(ibwire.WireError, match=what):
        ibwire.parse(ibwire.build(SMI, 2, 1, **wrong))


# ---- the process

class Device:
    def __init__(self, directory):
        self.ns = Namespace()
        self.ns.veth('pv0', 'st0', mac_a=MAC, mac_b=PEER_MAC)
        self.station = IbStation(self.ns, 'pv0', MAC, PEER_MAC, 2, 1)
        self.bridge = Bridge(self.ns, 'st0', directory).start()

    def close(self):
        self.bridge.kill()
        self.station.close()
        self.ns.close()


@pytest.fixture
def device(tmp_path):
    d = Device(str(tmp_path))
    yield d
    d.close()


def test_a_right_device(device):
    device.station.tx(SMI)
    device.bridge.stop()


@pytest.mark.parametrize('wrong', [dict(icrc_xor=1), dict(vcrc_xor=1), dict(vl=3)], ids=str)
def test_a_wrong_frame_fails_the_test(device, wrong):
    device.station.tx(SMI, **wrong)
    wait_until(device.bridge.wrong)
    with pytest.raises(AssertionError, match='BAD'):
        device.bridge.stop()


def test_wrong_rmpp_fails_the_test(device, tmp_path):
    """A last segment with an impossible PayloadLength."""
    proc = device.bridge.popen(['saquery', '-t', '2000', 'NR'], str(tmp_path / 'out'))
    mad = device.station.rx().smp.raw
    answer = bytearray(rmpp.segments(mad[:3] + b'\x92' + mad[4:26] + b'\x01' + mad[27:56] +
                                     bytes(112))[0])
    struct.pack_into('>I', answer, 32, 221)
    device.station.tx(bytes(answer), qpn=1)
    abort = device.station.rx().smp.raw
    assert (abort[25], abort[27]) == (madview.ABORT, 119)
    wait_until(device.bridge.wrong)
    proc.kill()
    proc.wait()
    with pytest.raises(AssertionError, match='PayloadLength'):
        device.bridge.stop()


def test_timeout(device):
    """A tool without an answer is told so after its timeout."""
    r = device.bridge.run('smpquery', '-t', '100', 'nodeinfo', 2, check=False)
    assert r.returncode != 0 and 'timed out' in r.stderr, r
    asked = {(p.vl, p.slid, p.dlid, p.smp.attr) for p in device.station.drain()}
    assert asked == {(15, 1, 2, 0x11)}


@pytest.mark.parametrize('lose', [1, 2, 70, 150])
def test_a_lost_segment(device, tmp_path, lose):
    """A table of 168 segments, one of them lost: it is repeated, and the table is complete."""
    proc = device.bridge.popen(['saquery', '-t', '5000', 'NR'], str(tmp_path / 'out'))
    mad = device.station.rx().smp.raw
    records = b''.join(struct.pack('>HHBBBB', i + 1, 0, 1, 1, 1, 1).ljust(112, b'\0')
                       for i in range(300))
    head = bytearray(mad[:56])
    head[3], head[26], head[44:46] = 0x92, 1, b'\0\x0e'
    gone = [lose]

    def emit(m):
        n, = struct.unpack_from('>I', m, 28)
        if n in gone:
            gone.remove(n)
        else:
            device.station.tx(m, qpn=1)
    sender = rmpp.Sender(bytes(head) + records, emit)
    while not sender.done:
        p = device.station.maybe(sender.WAIT)
        if p:
            sender.take(Smp(p.mad).raw)
        else:
            sender.late()
    assert proc.wait(10) == 0
    with open(str(tmp_path / 'out')) as f:
        lids = [int(x.split('.')[-1]) for x in f if x.strip().startswith('lid.')]
    assert lids == list(range(1, 301))
    device.bridge.stop()
