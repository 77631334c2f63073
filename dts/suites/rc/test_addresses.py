# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What an operator tries first: ARP, IPv6 neighbour discovery, ping; and how Polca resolves its
peers."""

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS,
                                ICMPv6NDOptSrcLLAddr, IPv6)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from conn import wait_until
from roce import Op, solicited_ip, solicited_mac

BROADCAST = 'ff:ff:ff:ff:ff:ff'


@pytest.fixture
def station(wire, hca):
    s = wire.station
    while not s.other.empty():
        s.other.get()
    return s


def unanswered(wire, hca, station, packet, match, reason=None):
    """This packet is not answered: it has been processed before the answer to a later ARP
    request."""
    before = hca.verdicts()
    station.send(packet)
    station.send(Ether(src=station.mac, dst=BROADCAST) /
                 ARP(op=1, hwsrc=station.mac, psrc=station.ip, pdst=wire.polca_ip))
    seen = []

    def look(p):
        seen.append(p)
        return ARP in p and p[ARP].op == 2 and p[ARP].psrc == wire.polca_ip
    assert station.wait_for(look, 10) is not None
    assert not any(match(p) for p in seen[:-1])
    if reason:
        assert hca.verdicts()[reason] == before[reason] + 1


def test_arp_is_answered_for_each_address(wire, station):
    for ip in (wire.polca_ip, wire.polca_ip_second):
        assert station.ask_mac(ip) == wire.polca_mac


def test_arp_for_another_is_not_answered(wire, hca, station):
    unanswered(wire, hca, station, Ether(src=station.mac, dst=BROADCAST) /
               ARP(op=1, hwsrc=station.mac, psrc=station.ip, pdst='10.77.0.50'),
               lambda p: ARP in p and p[ARP].psrc == '10.77.0.50')


@pytest.mark.parametrize('field', [dict(hwtype=6), dict(ptype=0x86dd), dict(hwlen=8), dict(plen=6)])
def test_strange_arp(wire, hca, station, field):
    unanswered(wire, hca, station, Ether(src=station.mac, dst=BROADCAST) /
               ARP(**dict(dict(op=1, hwsrc=station.mac, psrc=station.ip, pdst=wire.polca_ip),
                          **field)) / Raw(bytes(20)),
               lambda p: ARP in p and p[ARP].psrc == wire.polca_ip)


def test_truncated_arp(wire, hca, station):
    frame = bytes(Ether(src=station.mac, dst=BROADCAST) / ARP(op=1, pdst=wire.polca_ip))[:30]
    unanswered(wire, hca, station, frame, lambda p: False, reason='runt')


def test_neighbour_solicitation_is_answered(wire, station):
    assert station.ask_mac(wire.polca_ip6) == wire.polca_mac


def test_neighbour_advertisement_is_as_the_rfc_has_it(wire, station):
    station.send(Ether(src=station.mac, dst=solicited_mac(wire.polca_ip6)) /
                 IPv6(src=station.ip6, dst=solicited_ip(wire.polca_ip6), hlim=255) /
                 ICMPv6ND_NS(tgt=wire.polca_ip6) / ICMPv6NDOptSrcLLAddr(lladdr=station.mac))
    p = station.wait_for(lambda p: ICMPv6ND_NA in p and p[ICMPv6ND_NA].tgt == wire.polca_ip6)
    na = p[ICMPv6ND_NA]
    assert (na.R, na.S, na.O) == (0, 1, 1)
    assert p[IPv6].hlim == 255 and p[IPv6].dst == station.ip6
    good = na.cksum
    del p[ICMPv6ND_NA].cksum
    assert IPv6(bytes(p[IPv6]))[ICMPv6ND_NA].cksum == good


def test_solicitation_from_beyond_a_router_is_not_answered(wire, hca, station):
    """RFC 4861 7.1.1: the hop limit must be 255."""
    unanswered(wire, hca, station, Ether(src=station.mac, dst=solicited_mac(wire.polca_ip6)) /
               IPv6(src=station.ip6, dst=solicited_ip(wire.polca_ip6), hlim=64) /
               ICMPv6ND_NS(tgt=wire.polca_ip6) / ICMPv6NDOptSrcLLAddr(lladdr=station.mac),
               lambda p: ICMPv6ND_NA in p and p[ICMPv6ND_NA].tgt == wire.polca_ip6 and
               p[ICMPv6ND_NA].S == 1)


@pytest.mark.parametrize('size', [0, 1, 56, 1400])
def test_ping(wire, station, size):
    data = bytes(i & 255 for i in range(size))
    station.send(Ether(src=station.mac, dst=wire.polca_mac) /
                 IP(src=station.ip, dst=wire.polca_ip) / ICMP(type=8, id=77, seq=size) / Raw(data))
    p = station.wait_for(lambda p: ICMP in p and p[ICMP].type == 0 and p[ICMP].seq == size)
    assert p is not None and p[ICMP].id == 77
    assert (p[IP].src, p[IP].dst) == (wire.polca_ip, station.ip)
    assert bytes(p[ICMP].payload)[:size] == data
    sums = p[IP].chksum, p[ICMP].chksum
    del p[IP].chksum, p[ICMP].chksum
    q = IP(bytes(p[IP]))
    assert (q.chksum, q[ICMP].chksum) == sums


@pytest.mark.parametrize('size', [0, 1, 56, 1400])
def test_ping6(wire, station, size):
    data = bytes(i & 255 for i in range(size))
    station.send(Ether(src=station.mac, dst=wire.polca_mac) /
                 IPv6(src=station.ip6, dst=wire.polca_ip6) /
                 ICMPv6EchoRequest(id=77, seq=size, data=data))
    p = station.wait_for(lambda p: ICMPv6EchoReply in p and p[ICMPv6EchoReply].seq == size)
    assert p is not None and p[ICMPv6EchoReply].data == data
    good = p[ICMPv6EchoReply].cksum
    del p[ICMPv6EchoReply].cksum
    assert IPv6(bytes(p[IPv6]))[ICMPv6EchoReply].cksum == good


def test_ping_with_a_wrong_checksum(wire, hca, station):
    unanswered(wire, hca, station, Ether(src=station.mac, dst=wire.polca_mac) /
               IP(src=station.ip, dst=wire.polca_ip) / ICMP(type=8, id=5, seq=5, chksum=1),
               lambda p: ICMP in p)


def test_ping_to_another_address(wire, hca, station):
    unanswered(wire, hca, station, Ether(src=station.mac, dst=wire.polca_mac) /
               IP(src=station.ip, dst='10.77.0.66') / ICMP(type=8),
               lambda p: ICMP in p, reason='not_our_ip')


def test_ping_to_the_broadcast_address(wire, hca, station):
    unanswered(wire, hca, station, Ether(src=station.mac, dst=BROADCAST) /
               IP(src=station.ip, dst='10.77.0.255') / ICMP(type=8), lambda p: ICMP in p)


def test_a_flood_of_pings_is_answered_within_bounds(wire, hca, station):
    """Polca cannot be used to flood a third host: echo answers are rate-limited."""
    frame = bytes(Ether(src=station.mac, dst=wire.polca_mac) /
                  IP(src=station.ip, dst=wire.polca_ip) / ICMP(type=8, id=9, seq=9))
    before = hca.port_stats()
    for i in range(1, 26):
        for _ in range(200):
            station.send(frame)
        wait_until(lambda: hca.verdicts()['icmp'] - before['served']['icmp'] == 200 * i)
    after = hca.port_stats()
    assert after['dropped']['no_mbuf'] == before['dropped']['no_mbuf']
    assert after['tx_packets'] - before['tx_packets'] < 5000


# ---- how Polca resolves its peers

def test_a_peer_that_moves(wire, connect, hca):
    """A gratuitous ARP announces the new MAC. The old one is asked and says nothing: the next packet
    is sent to the new one."""
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x')
    assert c.peer.expect_ack(psn).frame[:6].hex(':') == c.station.mac
    new = '02:00:00:00:77:33'

    def announce(mac):
        c.station.send(Ether(src=mac, dst=BROADCAST) / ARP(
            op=1, hwsrc=mac, psrc=c.station.ip, pdst=c.station.ip))
        wait_until(lambda: any(n['gid'] == c.station.ip and n['mac'] == mac for n in
                               hca.rpc('neighbour_list')['neighbours']))
    try:
        c.station.mute = True
        announce(new)
        psn = c.next()
        c.peer.write_only(psn, c.va, c.key, b'y')
        assert c.peer.expect_ack(psn).frame[:6].hex(':') == new
    finally:
        announce(c.station.mac)
        c.station.mute = False


def test_an_address_claimed_by_another_host(connect, hca):
    """A stranger's gratuitous ARP for a peer that still answers: its packets go where they went."""
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x')
    assert c.peer.expect_ack(psn).frame[:6].hex(':') == c.station.mac
    before = hca.port_stats()['neighbour_kept']
    c.station.send(Ether(src='02:00:00:00:77:44', dst=BROADCAST) / ARP(
        op=1, hwsrc='02:00:00:00:77:44', psrc=c.station.ip, pdst=c.station.ip))
    wait_until(lambda: hca.port_stats()['neighbour_kept'] == before + 1)
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'y')
    assert c.peer.expect_ack(psn).frame[:6].hex(':') == c.station.mac


@pytest.mark.parametrize('ipv6', [False, True])
def test_first_packet_to_a_peer_that_answers_late(wire, hca, station, ipv6):
    """The address is resolved again until there is an answer; then the request is sent."""
    from roce import gid_of, Peer
    ip = 'fd77::77' if ipv6 else '10.77.0.77'
    peer = Peer(station, 0x4444, ip, wire.polca_mac, wire.polca_ip6 if ipv6 else wire.polca_ip)
    q = hca.qp()
    peer.remote_qpn = q.qpn
    q.connect(dest_qp_num=peer.qpn, dgid=gid_of(ip), rq_psn=1, sq_psn=1, path_mtu=1024)
    mr = hca.mr(64)
    q.post_send('write', wr_id=1, sg=[(mr, 0, 8)], remote_addr=0x1000, rkey=1)

    def asked(p):
        return (ICMPv6ND_NS in p and p[ICMPv6ND_NS].tgt == ip) if ipv6 else \
            (ARP in p and p[ARP].op == 1 and p[ARP].pdst == ip)
    for _ in range(3):
        assert station.wait_for(asked, 20) is not None
    peer.expect_nothing()
    old = station.ip, station.ip6
    station.ip, station.ip6 = (old[0], ip) if ipv6 else (ip, old[1])
    try:
        r = peer.expect(Op.WRITE_ONLY, 1, timeout=30)
        peer.ack(r.psn, 1)
        assert q.poll()[0].status == 0
    finally:
        station.ip, station.ip6 = old
        peer.close()
