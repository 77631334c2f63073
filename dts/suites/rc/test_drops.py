# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Packets that are dropped silently: each increments exactly one counter, and has no other
effect (rc-transport 5)."""

import socket
import struct

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from conn import wait_until
from roce import BTH, gid_of, Op


def dropped(c, reason, frame, n=1):
    """These bytes increment this counter and no other, are not answered, and do not change the
    QP."""
    before = c.hca.verdicts()
    c.station.send(frame)
    wait_until(lambda: c.hca.verdicts()[reason] == before[reason] + n)
    after = c.hca.verdicts()
    changed = {k: after[k] - before[k] for k in after if after[k] != before[k]}
    assert changed == {reason: n}
    c.peer.expect_nothing()
    c.sync()


def write(c, **kw):
    """A Write that is valid except for kw. Its PSN is not consumed."""
    kw.setdefault('reth', (c.va, c.key, 4))
    return c.peer.build(kw.pop('op', Op.WRITE_ONLY), c.psn, kw.pop('payload', b'evil'), ackreq=1,
                        **kw)


# ---- the transport packet

@pytest.mark.parametrize('l4', [b'', bytes(11), bytes(12)[:-4]], ids=['empty', '11', '8'])
def test_shorter_than_a_transport_header(connect, l4):
    c = connect()
    dropped(c, 'length', write(c, l4=l4))


@pytest.mark.parametrize('cut', [4, 8, 16])
def test_shorter_than_its_extension_headers(connect, cut):
    c = connect()
    dropped(c, 'length', write(c, payload=b'', cut=cut))


def test_padding_longer_than_the_payload(connect):
    c = connect()
    bth = bytes(BTH(opcode=Op.SEND_ONLY, padcount=3, dqpn=c.qp.qpn, psn=c.psn, ackreq=1,
                    icrc=0))[:12]
    dropped(c, 'length', write(c, l4=bth))


@pytest.mark.parametrize('op', [0x66, 0x7f, 0xa0, 0xc4, 0xff])
def test_unknown_opcode_of_another_class(connect, op):
    c = connect()
    dropped(c, 'opcode', write(c, op=op))


@pytest.mark.parametrize('version', [1, 15])
def test_transport_version(connect, version):
    c = connect()
    dropped(c, 'tver', write(c, version=version))


@pytest.mark.parametrize('bit', [1, 1 << 31])
def test_icrc(connect, bit):
    c = connect()
    dropped(c, 'icrc', write(c, icrc_xor=bit))
    assert c.mr.read(0, 4) == bytes(4)


def test_damaged_payload_moves_no_byte(connect):
    c = connect()
    frame = bytearray(write(c))
    frame[-6] ^= 0x40
    dropped(c, 'icrc', bytes(frame))
    assert c.mr.read(0, 4) == bytes(4)


def test_damaged_packet_counts_no_pkey_violation(connect):
    c = connect()
    dropped(c, 'icrc', write(c, pkey=0x1234, icrc_xor=1))


# ---- before the queue pair

def test_no_such_queue_pair(connect):
    c = connect()
    dropped(c, 'qpn_unknown', write(c, dqpn=c.qp.qpn ^ 0x400000))


def test_queue_pair_destroyed(connect, hca):
    c, keeper = connect(), connect()
    frame = write(c)
    c.qp.destroy()
    dropped(keeper, 'qpn_unknown', frame)


@pytest.mark.parametrize('op', [0x24, 0x2a])
def test_opcode_of_an_unreliable_connection(connect, op):
    c = connect()
    dropped(c, 'qp_type', write(c, op=op))


def test_datagram_to_a_connected_queue_pair(connect):
    c = connect()
    dropped(c, 'qp_type', write(c, op=Op.UD_SEND_ONLY, reth=None,
                                payload=struct.pack('!II', 0x11111111, 5) + b'evil'))


def test_queue_pair_in_init(connect, hca):
    c = connect()
    other = hca.qp()
    other.modify(qp_state='INIT', port=0, pkey_index=0, qp_access_flags=['remote_write'])
    dropped(c, 'qp_state', write(c, dqpn=other.qpn))


def test_response_to_a_queue_pair_in_rtr(connect, hca):
    c = connect()
    other = hca.qp()
    other.modify(qp_state='INIT', port=0, pkey_index=0, qp_access_flags=['remote_write'])
    other.modify(qp_state='RTR', ah_attr={'dgid': gid_of(c.station.ip)}, path_mtu=1024,
                 dest_qp_num=c.peer.qpn, rq_psn=5, max_dest_rd_atomic=1, min_rnr_timer=12)
    dropped(c, 'qp_state', c.peer.build(Op.ACK, 5, aeth=(31, 1), dqpn=other.qpn))


def test_from_another_address(connect):
    c = connect()
    dropped(c, 'address', write(c, ip={'src': '10.77.0.200'}))
    assert c.mr.read(0, 4) == bytes(4)


def test_to_another_of_polcas_addresses(connect, wire):
    c = connect()
    dropped(c, 'address', write(c, ip={'dst': wire.polca_ip_second}))


@pytest.mark.parametrize('pkey', [0x8001, 0x7ffe, 0])
def test_pkey(connect, pkey):
    c = connect()
    dropped(c, 'pkey_violation', write(c, pkey=pkey))


def test_limited_member_talks_to_a_full_one(connect):
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x', pkey=0x7fff)
    c.peer.expect_ack(psn)


# ---- before the transport header

def test_frame_for_another_mac(connect):
    c = connect()
    dropped(c, 'not_our_mac', write(c, eth={'dst': '02:00:00:00:77:99'}))


def test_packet_for_another_address(connect):
    c = connect()
    dropped(c, 'not_our_ip', write(c, ip={'dst': '10.77.0.99'}))


def test_vlan_that_is_not_ours(connect):
    c = connect()
    dropped(c, 'not_our_vlan', write(c, vlan=5))


def test_ethertype(connect):
    c = connect()
    dropped(c, 'ethertype', bytes(Ether(src=c.station.mac, dst=c.peer.mac, type=0x88b5)) +
            bytes(60))


def test_ip_header_shorter_than_it_may_be(connect):
    c = connect()
    dropped(c, 'ip_header', write(c, ip={'ihl': 4}))


def test_ip_version(connect):
    c = connect()
    dropped(c, 'ip_header', write(c, ip={'version': 5}))


def test_ip_longer_than_its_frame(connect):
    c = connect()
    dropped(c, 'ip_header', write(c, ip={'len': 1400}))


def test_ip_checksum(connect):
    c = connect()
    dropped(c, 'ip_checksum', write(c, ip={'chksum': 0x1234}))


def test_ip_protocol(connect):
    c = connect()
    dropped(c, 'ip_protocol', write(c, ip={'proto': socket.IPPROTO_TCP}))


def test_udp_port(connect):
    c = connect()
    dropped(c, 'udp_port', bytes(Ether(src=c.station.mac, dst=c.peer.mac) /
                                 IP(src=c.station.ip, dst=c.peer.remote_ip) /
                                 UDP(sport=4791, dport=4792) / bytes(64)))


@pytest.mark.parametrize('length', [7, 1400])
def test_udp_length(connect, length):
    c = connect()
    dropped(c, 'udp_length', write(c, udp={'len': length}))


def test_ethernet_padding_is_not_the_packets(connect):
    """A short frame is padded to 60 octets on a real wire; the IP length says where it ends."""
    c = connect()
    psn = c.next()
    c.station.send(c.peer.build(Op.WRITE_ONLY, psn, reth=(0, 0, 0), ackreq=1) + bytes(20))
    c.peer.expect_ack(psn)


def test_cnp_is_counted(connect):
    c = connect()
    dropped(c, 'cnp', c.peer.build(Op.CNP, 0, bytes(16), becn=1))


def test_acknowledge_with_a_payload(connect):
    c = connect()
    c.qp.post_send('write', sg=[(c.mr, 0, 8)], remote_addr=0x1000, rkey=1)
    r = c.peer.expect(Op.WRITE_ONLY, c.sq_psn)
    dropped(c, 'ack_payload', c.peer.build(Op.ACK, r.psn, aeth=(0x1f, 1), payload=bytes(4)))
    dropped(c, 'ack_payload', c.peer.build(Op.ACK, r.psn, aeth=(0x62, 1), payload=bytes(4)))
    c.peer.ack(r.psn, 1)
    assert c.qp.poll()[0].status == 0


def test_syndrome_that_is_reserved(connect):
    c = connect()
    c.qp.post_send('write', sg=[(c.mr, 0, 8)], remote_addr=0x1000, rkey=1)
    r = c.peer.expect(Op.WRITE_ONLY, c.sq_psn)
    dropped(c, 'syndrome', c.peer.build(Op.ACK, r.psn, aeth=(0x40, 1)))
    c.peer.ack(r.psn, 1)
    assert c.qp.poll()[0].status == 0
