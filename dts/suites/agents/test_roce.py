# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A RoCE port: fabric tools reach its QP1 over RoCEv2; it has no QP0 (smp-sma 1)."""

import itertools
import os
import re
import socket

import pytest

import ibports
from conn import wait_until
from ibstation import IbStation
from ibwire import datagram, build_udp
from polca import Polca, port
from roce import mac_bytes
from smp import GET, lid_routed, live, NODE_DESC
from umad import dumps, ended, fields

PORT_IP, TOOLS_IP = '192.0.2.2', '192.0.2.1'
HERE = os.path.dirname(os.path.realpath(__file__))
_tids = itertools.count(0xD750000000000001)
FABRIC = os.path.join(HERE, '..', '..', '..', 'config', 'fabric-example.ibnetdiscover')


class RoceWire(ibports.Wire):
    def __init__(self, kept, sockets):
        super().__init__(kept, sockets)
        self.polca = Polca(sockets, [port('port0', 'net_af_packet0,iface=pv0,framecnt=2048',
                                          PORT_IP + '/24')], ns=self.ns)


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = RoceWire(kept, sockets)
    try:
        w.polca.start()
        w.by_tools(roce=True, ip=TOOLS_IP, peer_ip=PORT_IP)
        w.polca.ctl('sa', 'import', FABRIC, '--replace', '--mtu', '4096')
        yield w
        w.audit()
    finally:
        w.close()


def test_ibping(tool):
    text = tool('ibping', '-c', '3', '-f', 2)
    assert '3 packets transmitted, 3 received, 0% packet loss' in text


@pytest.mark.parametrize('op', ['ping', 'host', 'cpu'])
def test_ibsysstat(tool, op):
    assert re.search({'ping': 'sysstat ping succeeded', 'host': r'^\S+\s*$',
                      'cpu': 'cpu 0: model'}[op], tool('ibsysstat', 2, op))


def test_their_server(wire, polca):
    proc = wire.bridge.popen(['ibping', '-S'], os.path.join(wire.kept, 'ibping.out'))
    try:
        wait_until(lambda: polca.rpc('live_ping', dgid=TOOLS_IP, mode='ibping',
                                     timeout_ms=100)['received'] == 1)
        r = polca.ctl('ping', TOOLS_IP, '--mode', 'ibping', '-c', 3, '-i', 0)
        assert '3 packets transmitted, 3 received, 0% packet loss' in r.stdout
    finally:
        ended(proc)


def test_saquery_classportinfo(tool):
    assert fields(tool('saquery', '-c'))['Class version'] == '2'


def test_saquery_nodes(tool):
    rows = dumps(tool('saquery', 'NR'))
    assert len(rows) == 224 and len({r['lid'] for _, r in rows}) == 224


def test_saquery_all_paths(tool):
    assert tool('saquery', '-t', 30000, 'PR').count('PathRecord dump:') == 224 * 224


def test_no_smp_agent(wire, verdict):
    """SMPs of tools are native packets: a RoCE port ignores that EtherType."""
    r = wire.bridge.run('smpquery', '-t', '100', 'nodeinfo', 2, check=False)
    assert r.returncode != 0 and 'timed out' in r.stderr
    assert verdict['ethertype'] >= 1


@pytest.fixture
def sender(wire):
    """Frames from the tools' host, written by the test; the bridge receives the answers."""
    def opened():
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind(('st0', 0))
        return s
    s = wire.ns.call(opened)
    yield lambda mad, qpn, **kw: s.send(
        mac_bytes(ibports.MAC) + mac_bytes(ibports.PEER_MAC) + b'\x08\x00' + build_udp(
            datagram(mad, 0, 0, qpn, kw.pop('sqp', qpn), **kw), TOOLS_IP, PORT_IP))
    s.close()


@pytest.mark.parametrize('qkey', [0, 0x80010000])
@pytest.mark.parametrize('cls', [1, 0x81])
def test_qp0_over_roce(wire, sender, verdict, qkey, cls):
    """Dropped and counted as not an SMP; nothing is answered: no packet is sent between the
    answers of two pings."""
    tids = [next(_tids) for _ in range(2)]

    def answers():
        """TIDs of the packets that the appliance sent over RoCE (it may also send ARP at any
        time)."""
        return [int.from_bytes(f[70:78], 'big') for f in wire.capture.frames()
                if f[6:14] == mac_bytes(ibports.MAC) + b'\x08\x00']
    sender(live(1, tid=tids[0]), 1)
    wait_until(lambda: verdict['datagram'] == 1)
    sender(lid_routed(GET, NODE_DESC, cls=cls), 0, qkey=qkey)
    wait_until(lambda: verdict['smp_invalid'] == 1)
    sender(live(1, tid=tids[1]), 1)
    wait_until(lambda: tids[1] in answers(), step=0.1)
    assert answers()[answers().index(tids[0]):] == tids
    assert {k: v for k, v in verdict.grown().items() if k != 'arp'} == {
        'datagram': 2, 'smp_invalid': 1}


def test_native_frames_on_a_roce_port(wire, verdict):
    s = IbStation(wire.ns, 'st0', ibports.PEER_MAC, ibports.MAC, 1, 2)
    s.tx(lid_routed(GET, NODE_DESC))
    s.tx(live(1), qpn=1)
    wait_until(lambda: verdict['ethertype'] == 2)
    assert s.maybe(0.2) is None
    s.close()
