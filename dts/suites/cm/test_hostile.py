# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Impossible requests, malformed messages, and unknown senders with bad intent (cm 2, 3, 7):
each gets the right answer, and another connection continues.

The low-level part needs no state of Polca except one connection, which moves data during every
test."""

import random
import struct

import pytest

import cmwire
from cmpeer import DREQ, MRA, POLCA_IP, REJ, REP, REQ, RTU, STATION_IP
from cmwire import build, gid, rdma, service_id
from conn import wait_until

ECHO = 7
HALF_OPEN, HALF_OPEN_PEER = 256, 64
CONFIG = dict(cm=dict(max_half_open=HALF_OPEN, max_half_open_per_peer=HALF_OPEN_PEER),
              services=[dict(kind='echo', port=ECHO, size=1024, max_connections=1024),
                        dict(kind='echo', name='plain', service_id='0x1234567800000001', size=64)])
PLAIN = 0x1234567800000001  # a service ID without RDMA-CM's header


@pytest.fixture(scope='module')
def steady(wire):
    """A connection of another peer, established during all tests."""
    with wire.peer('10.78.0.3', guid=0x0200feed00000003) as p:
        c = p.connect(ECHO)
        c.sent = 0
        yield c


@pytest.fixture(autouse=True)
def goes_on(wire, steady):
    def move():
        for _ in range(5):
            steady.echo(b'steady %d' % steady.sent, steady.sent)
            steady.sent += 1
    move()
    yield
    move()
    assert wire.polca.alive()


# ---- requests that are rejected, by reason

V6 = gid('fd78::2')
REFUSED = {
    'no_listener': (dict(service_id=service_id(4)), cmwire.INVALID_SERVICE),
    'service_id_0': (dict(service_id=0), cmwire.INVALID_SERVICE),
    'other_port_space': (dict(service_id=service_id(ECHO, cmwire.PS_UDP)), cmwire.INVALID_SERVICE),
    'uc': (dict(transport=cmwire.UC), cmwire.INVALID_TRANSPORT),
    'rd': (dict(transport=cmwire.RD), cmwire.INVALID_TRANSPORT),
    'xrc': (dict(transport=cmwire.EXTENDED, extended=1), cmwire.INVALID_TRANSPORT),
    'qp0': (dict(qpn=0), cmwire.UNSUPPORTED),
    'qp1': (dict(qpn=1), cmwire.UNSUPPORTED),
    'multicast_qp': (dict(qpn=0xffffff), cmwire.UNSUPPORTED),
    'gid_of_somebody_else': (dict(remote_gid=gid('10.78.0.99')), cmwire.INVALID_GID),
    'no_gid': (dict(remote_gid=bytes(16)), cmwire.INVALID_GID),
    'no_gid_of_its_own': (dict(local_gid=bytes(16)), cmwire.INVALID_GID),
    'gids_of_two_families': (dict(local_gid=V6), cmwire.INVALID_GID),
    'rate_1': (dict(rate=1), cmwire.INVALID_RATE),
    'alternate_gid': (dict(alt_local_gid=gid(STATION_IP), alt_remote_gid=gid('10.78.0.99'),
                           alt_hop_limit=64), cmwire.INVALID_ALT_GID),
    'alternate_of_another_host': (dict(alt_local_gid=gid('10.78.0.5'),
                                       alt_remote_gid=gid(POLCA_IP), alt_hop_limit=64),
                                  cmwire.INVALID_ALT_GID),
    'alternate_rate': (dict(alt_local_gid=gid(STATION_IP), alt_remote_gid=gid(POLCA_IP),
                            alt_hop_limit=64, alt_rate=1), cmwire.INVALID_ALT_RATE),
    'mtu_0': (dict(mtu=0), cmwire.INVALID_MTU),
    'mtu_2048_of_1500': (dict(mtu=4), cmwire.INVALID_MTU),
    'mtu_4096': (dict(mtu=5), cmwire.INVALID_MTU),
    'mtu_6': (dict(mtu=6), cmwire.INVALID_MTU),
    'mtu_15': (dict(mtu=15), cmwire.INVALID_MTU),
    'pkey': (dict(pkey=0x1234), cmwire.CONSUMER),
    'pkey_0': (dict(pkey=0), cmwire.CONSUMER),
    'rdma_version': (dict(header=rdma(STATION_IP, POLCA_IP, 5, version=1)), cmwire.CONSUMER),
    'ip_version': (dict(header=rdma(STATION_IP, POLCA_IP, 5, ip_version=5)), cmwire.CONSUMER),
    'ip_version_0': (dict(header=bytes(92)), cmwire.CONSUMER),
}


@pytest.mark.parametrize('case', REFUSED)
def test_refused(wire, peer, counted, case):
    fields, reason = REFUSED[case]
    c = peer.new()
    wanted = fields.get('service_id', service_id(ECHO))
    c.req(wanted, **{k: v for k, v in fields.items() if k != 'service_id'})
    m = c.expect_rej(reason)
    if reason == cmwire.INVALID_MTU:  # cm 3: the ARI has an acceptable value
        assert (m.info_length, m.ari[0]) == (1, 3)
    c.open = False
    grown = counted.grown()
    assert grown['refused'] == 1 and grown['sent_rej'] == 1 and grown['received_req'] == 1
    assert sum(v for k, v in grown.items() if k.startswith('rej_sent_')) == 1
    assert all(row['peer'] == '10.78.0.3' for row in wire.connections().values())


def test_no_place_in_the_service(wire, peer):
    """REJ 3; a connection in TIMEWAIT also takes a place."""
    name = wire.polca.rpc('cm_listen', kind='echo', port=70, max_connections=1)['name']
    one = peer.connect(70)
    two = peer.new()
    two.req(service_id(70))
    two.expect_rej(cmwire.NO_RESOURCES)
    two.open = False
    one.disconnect()
    wire.gone(one)
    three = peer.connect(70)
    three.disconnect()
    wire.polca.rpc('cm_unlisten', service=name, disconnect=True)


def test_service_id_without_rdma_header(peer):
    """A service ID of no port space: all private data belong to the consumer."""
    c = peer.new()
    c.req(PLAIN, b'\xff' * 92)
    c.expect_rep()
    c.rtu()
    c.echo(b'plain', 0)


# ---- other versions, methods, attributes

@pytest.mark.parametrize('version', [0, 1, 3, 255])
def test_class_version_of_a_request(peer, version):
    """cm 3: REJ 31 in the requested version; the ARI has ours."""
    c = peer.new()
    c.req(service_id(ECHO), class_version=version)
    m = peer.rx()
    assert m.kind is REJ and (m.reason, m.remote_id, m.class_version, m.tid) == (
        cmwire.INVALID_VERSION, c.local_id, version, c.tid), m
    assert (m.info_length, m.ari[0]) == (1, cmwire.CLASS_VERSION)
    c.open = False


@pytest.mark.parametrize('kind', [REP, RTU, MRA, REJ, DREQ], ids=lambda k: k.name)
def test_class_version_of_another_message(steady, peer, counted, kind):
    """Dropped, because nothing defines its meaning."""
    peer.say(kind, tid=5, class_version=1, local_id=steady.local_id, remote_id=steady.remote_id)
    wait_until(lambda: counted['malformed'] == 1)
    assert not peer.drain()


def test_class_port_info(peer):
    peer.way.send(build(REQ, tid=9, method=cmwire.GET, attr=1))
    m = peer.rx()
    assert (m.method, m.attr, m.mad_status, m.tid) == (cmwire.GET_RESP, 1, 0, 9)
    base, version, capabilities, resp_time = struct.unpack_from('>BBHxxxB', m.mad, 24 + 0)
    assert (base, version) == (1, 2) and capabilities == 1 << 9  # reliable connections
    assert resp_time == 14  # mad.resp_time by default


@pytest.mark.parametrize('method,attr', [(0x01, 0x10), (0x02, 0x10), (0x02, 1), (0x05, 1),
                                         (0x7f, 0x15)])
def test_method_that_is_none(peer, method, attr):
    """An error status, never a connection."""
    peer.way.send(build(REQ, tid=9, method=method, attr=attr))
    m = peer.rx()
    assert m.tid == 9 and m.mad_status in (0x08, 0x0c), m


@pytest.mark.parametrize('attr', [0, 1, 2, 0x0f, 0x1b, 0xffff])
def test_attribute_that_is_none(peer, counted, attr):
    peer.way.send(build(REQ, tid=9, attr=attr))
    wait_until(lambda: counted['malformed'] == 1)
    assert not peer.drain()


def test_answers_to_nobody(peer, counted):
    """A response bit or an unknown ID: no answer, so two sides never answer each other
    endlessly."""
    for kind in cmwire.KINDS.values():
        peer.way.send(build(kind, tid=9, method=0x83))
    for kind in (RTU, MRA, REJ, cmwire.DREP, cmwire.APR):
        peer.say(kind, tid=9, local_id=1, remote_id=2)
    wait_until(lambda: counted['unmatched'] == 5)
    assert not peer.drain()


def test_lap_of_nothing(peer):
    """An alternate path for an unknown connection: APR 1."""
    peer.say(cmwire.LAP, tid=9, local_id=1, remote_id=2, qpn=3)
    m = peer.expect(cmwire.APR, remote_id=1, tid=9)
    assert m.status == 1


def test_lap_that_cannot_be(steady, peer):
    """For the established connection, but from an unknown sender: its IDs are not the
    connection's."""
    peer.say(cmwire.LAP, tid=9, local_id=steady.local_id ^ 1, remote_id=steady.remote_id,
             qpn=steady.remote_qpn)
    assert peer.expect(cmwire.APR, tid=9).status == 1


@pytest.mark.parametrize('space', [cmwire.PS_UDP, cmwire.PS_TCP])
def test_service_id_resolution(peer, space):
    """SIDR: datagrams are not supported: status 1."""
    peer.say(cmwire.SIDR_REQ, tid=0x77, request_id=0x1234, pkey=0xffff,
             service_id=service_id(ECHO, space))
    m = peer.expect(cmwire.SIDR_REP, tid=0x77, request_id=0x1234)
    assert (m.status, m.qpn, m.service_id) == (1, 0, service_id(ECHO, space))


# ---- wrong packets

@pytest.mark.parametrize('length', [0, 1, 23, 24, 140, 255, 257, 512, 1024])
def test_datagram_of_another_length(wire, peer, length):
    """A MAD has 256 bytes."""
    c = peer.new()
    c.open = False
    whole = build(REQ, tid=c.tid, local_id=c.local_id, service_id=service_id(ECHO))
    before = wire.verdicts()['mad_length']
    peer.way.send((whole + bytes(1024))[:length])
    wait_until(lambda: wire.verdicts()['mad_length'] == before + 1)
    assert not peer.drain()


@pytest.mark.parametrize('edit,verdict', [
    (dict(deth=(0x80010001, 1)), 'qkey_violation'),
    (dict(deth=(0, 1)), 'qkey_violation'),
    (dict(pkey=0x1234), 'pkey_violation'),
    (dict(icrc_xor=1), 'icrc')])
def test_packet_that_is_not_for_qp1(wire, peer, edit, verdict):
    before = wire.verdicts()[verdict]
    c = peer.new()
    c.open = False
    peer.way.send(build(REQ, tid=c.tid, local_id=c.local_id, service_id=service_id(ECHO)), **edit)
    wait_until(lambda: wire.verdicts()[verdict] == before + 1)
    assert not peer.drain()


# ---- unknown senders

def test_stranger_cannot_end_a_connection(steady, peer, counted):
    """A sender that knows all numbers, but has another address than the peer, ends nothing: its
    DREQ is answered as for an unknown connection."""
    them = dict(local_id=steady.local_id, remote_id=steady.remote_id)
    peer.say(DREQ, tid=1, qpn=steady.remote_qpn, **them)
    peer.expect(cmwire.DREP, tid=1)
    peer.say(REP, tid=2, qpn=77, ca_guid=1, **them)
    peer.expect(REJ, tid=2, reason=cmwire.INVALID_ID)
    peer.say(REJ, tid=3, reason=cmwire.CONSUMER, answers=2, **them)
    peer.say(REJ, tid=4, reason=cmwire.TIMEOUT, local_id=steady.local_id, remote_id=0,
             info_length=8, ari=steady.peer.guid.to_bytes(8, 'big'))
    peer.say(RTU, tid=5, **them)
    peer.say(MRA, tid=6, answers=1, service_timeout=31, **them)
    peer.say(cmwire.DREP, tid=7, **them)
    wait_until(lambda: counted['unmatched'] == 7)
    assert not peer.drain()


def test_wrong_numbers_of_the_peer_itself(steady, counted):
    """Of another connection of the sender, or of none: not of this one."""
    p = steady.peer
    wrong = dict(local_id=steady.local_id ^ 1, remote_id=steady.remote_id)
    p.say(DREQ, tid=1, qpn=steady.remote_qpn ^ 1, local_id=steady.local_id,
          remote_id=steady.remote_id)
    p.say(DREQ, tid=2, qpn=steady.remote_qpn, **wrong)
    p.expect(cmwire.DREP, tid=2)
    p.say(REJ, tid=3, reason=cmwire.CONSUMER, answers=2, **wrong)
    p.say(RTU, tid=4, **wrong)
    p.say(cmwire.DREP, tid=5, **wrong)
    wait_until(lambda: (counted['malformed'], counted['unmatched']) == (1, 4))
    assert not p.drain()


def test_random_messages(wire, steady, peer):
    """Valid headers with random contents from a seed, with some existing IDs and a service. At
    the end only the previous connections exist."""
    rng = random.Random(5)
    for _ in range(3000):
        kind = rng.choice(list(cmwire.KINDS.values()))
        m = bytearray(build(kind, tid=rng.getrandbits(64)))
        m[24:] = rng.randbytes(232)
        if kind is REQ:
            struct.pack_into('>Q', m, 24 + 8, rng.choice([service_id(ECHO), PLAIN, 5]))
            m[24 + 72:24 + 88] = gid(POLCA_IP)
        elif rng.random() < 0.3:
            struct.pack_into('>I', m, 24 + 4, steady.remote_id)
        peer.way.send(bytes(m))
    while peer.maybe(1.0):
        pass
    assert [r['connection'] for r in wire.connections().values()
            if r['state'] == 'ESTABLISHED'] == [steady.remote_id]
