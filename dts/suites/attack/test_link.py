# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""ARP, neighbour discovery, echo, REQs and datagrams whose source is a group, no host, or Polca itself;
false claims of a neighbour's address; floods of questions. Nobody is sent what they did not ask for,
and bystanders go on."""

import itertools

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, IPv6
from scapy.layers.inet6 import ICMPv6NDOptSrcLLAddr
from scapy.layers.l2 import ARP, Ether

import mad
import sapeer
from bystanders import CLASS_PORT_INFO, ECHO
from cmpeer import POLCA_IP, POLCA_IP6, STATION_IP, STATION_IP6, RoceWay, Wire
from cmwire import REQ, build, service_id
from mad import v2
from roce import mac_bytes, solicited_ip, solicited_mac
from sapeer import Gsi

ALL, GROUP = 'ff:ff:ff:ff:ff:ff', '01:00:5e:00:00:01'
ATTACKER, ATTACKER_IP, ATTACKER_IP6 = '02:00:00:00:78:66', '10.78.0.102', 'fd78::66'
TIMES = 200  # each packet, and often enough that answers would show in the bytes
numbers = itertools.count(0x66000000)
NOBODY = ['0.0.0.0', '127.0.0.1', '224.0.0.1', '255.255.255.255', '10.78.0.255']
NOBODY6 = ['::', '::1', 'ff02::1']


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets, services=[dict(kind='echo', port=ECHO, size=1024)], sa={})
    try:
        w.polca.start()
        yield w
        w.polca.stop()  # frames from impossible sources dissect as malformed: no audit
    finally:
        w.close()


def counters(wire):
    return wire.polca.rpc('stats_get', port=0)['ports'][0]


def dropped(wire):
    return wire.verdicts().get('source', 0)


def unanswered(wire, bystanders, frames):
    """Each frame is dropped for its source, and nothing is sent for it."""
    before = dropped(wire)
    with bystanders.unharmed(amplified=0.5):
        for _ in range(TIMES):
            for frame in frames:
                wire.station.send(frame)
    assert dropped(wire) == before + TIMES * len(frames)


def arp(hwsrc=ATTACKER, psrc=ATTACKER_IP, src=ATTACKER):
    return bytes(Ether(src=src, dst=ALL) / ARP(op=1, hwsrc=hwsrc, psrc=psrc, pdst=POLCA_IP))


def echo(wire, ip=ATTACKER_IP, src=ATTACKER):
    return bytes(Ether(src=src, dst=wire.polca_mac) / IP(src=ip, dst=POLCA_IP) / ICMP() / bytes(64))


def echo6(wire, ip=ATTACKER_IP6, src=ATTACKER):
    return bytes(Ether(src=src, dst=wire.polca_mac) / IPv6(src=ip, dst=POLCA_IP6) /
                 ICMPv6EchoRequest(data=bytes(64)))


def solicitation(ip, src=ATTACKER):
    return bytes(Ether(src=src, dst=solicited_mac(POLCA_IP6)) /
                 IPv6(src=ip, dst=solicited_ip(POLCA_IP6), hlim=255) /
                 ICMPv6ND_NS(tgt=POLCA_IP6) / ICMPv6NDOptSrcLLAddr(lladdr=src))


def datagram(wire, ip, src=ATTACKER):
    """A question to the SA that would be answered."""
    with Gsi(wire.station, wire.polca_mac, POLCA_IP6 if ':' in ip else POLCA_IP, ip=ip) as g:
        return g.frame(v2(mad.GET, CLASS_PORT_INFO, tid=sapeer.new_tid()), eth=dict(src=src))


def req(wire, ip, src=ATTACKER):
    """A REQ to the echo service that would be answered, from this address."""
    way = RoceWay(wire.station, wire.polca_mac, ip, POLCA_IP6 if ':' in ip else POLCA_IP)
    number = next(numbers)
    frame = way.frame(build(
        REQ, tid=number, local_id=number, ca_guid=1, service_id=service_id(ECHO), qpn=77, psn=1,
        local_timeout=14, pkey=0xffff, mtu=3, ack_timeout=14, private=way.rdma(5), **way.path()))
    way.close()
    return frame[:6] + mac_bytes(src) + frame[12:]


@pytest.mark.parametrize('source', [ALL, GROUP, '33:33:00:00:00:01'])
def test_group_macs(wire, bystanders, source):
    unanswered(wire, bystanders, [
        arp(src=source), arp(hwsrc=source), echo(wire, src=source), echo6(wire, src=source),
        solicitation(ATTACKER_IP6, src=source), datagram(wire, STATION_IP, src=source),
        req(wire, STATION_IP, src=source)])


@pytest.mark.parametrize('source', NOBODY)
def test_addresses_of_nobody(wire, bystanders, source):
    frames = [echo(wire, source), datagram(wire, source), req(wire, source)]
    if source != '0.0.0.0':  # an ARP probe, which is answered (RFC 5227)
        frames.append(arp(psrc=source))
    unanswered(wire, bystanders, frames)


@pytest.mark.parametrize('source', NOBODY6)
def test_ipv6_addresses_of_nobody(wire, bystanders, source):
    frames = [echo6(wire, source), datagram(wire, source), req(wire, source)]
    if source != '::':  # duplicate address detection, which is answered (RFC 4861 7.2.4)
        frames.append(solicitation(source))
    unanswered(wire, bystanders, frames)


@pytest.mark.parametrize('ours', [POLCA_IP, POLCA_IP6])
def test_our_own_address(wire, bystanders, ours):
    unanswered(wire, bystanders, [datagram(wire, ours), req(wire, ours)])
    with bystanders.unharmed(amplified=0.5):
        for _ in range(TIMES):
            wire.station.send(echo6(wire, ours) if ':' in ours else echo(wire, ours))


def test_an_echo_request_to_a_group(wire, bystanders):
    frame = bytes(Ether(src=ATTACKER, dst=wire.polca_mac) / IPv6(src=ATTACKER_IP6, dst='ff02::1') /
                  ICMPv6EchoRequest(data=bytes(64)))
    with bystanders.unharmed(amplified=0.5):
        for _ in range(TIMES):
            wire.station.send(frame)


def test_claims_of_a_neighbours_address(wire, bystanders):
    """The neighbour answers for itself, so nothing moves, and it is asked rarely."""
    before = counters(wire)
    claims = [bytes(Ether(src=ATTACKER, dst=ALL) /
                    ARP(op=1, hwsrc=ATTACKER, psrc=STATION_IP, pdst=STATION_IP)),
              bytes(Ether(src=ATTACKER, dst='33:33:00:00:00:01') /
                    IPv6(src=STATION_IP6, dst='ff02::1', hlim=255) /
                    ICMPv6ND_NA(tgt=STATION_IP6, R=0, S=0, O=1) /
                    ICMPv6NDOptDstLLAddr(lladdr=ATTACKER))]
    with wire.peer() as peer:
        wire.stands(peer.connect(ECHO))  # the IPv4 address is a neighbour, too
        with bystanders.unharmed(amplified=0.5):
            for _ in range(TIMES):
                for claim in claims:
                    wire.station.send(claim)
    after = counters(wire)
    assert after['neighbour_kept'] > before['neighbour_kept']
    assert after['neighbour_moved'] == before['neighbour_moved']


@pytest.mark.parametrize('question', [lambda wire: arp(), lambda wire: echo(wire),
                                      lambda wire: solicitation(ATTACKER_IP6)],
                         ids=['arp', 'echo', 'solicitation'])
def test_a_flood_of_questions_leaves_others_their_answers(wire, bystanders, question):
    frame = question(wire)
    with bystanders.unharmed(amplified=1):
        for _ in range(5000):
            wire.station.send(frame)
        assert wire.station.ask_mac(POLCA_IP) == wire.polca_mac
        assert wire.station.ask_mac(POLCA_IP6) == wire.polca_mac
