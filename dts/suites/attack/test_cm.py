# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Floods of REQs from forged addresses, 10,000 a second where the machine is fast enough: a legitimate
peer connects meanwhile, no service loses its places, and the flood is not amplified."""

import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

import net
from bystanders import ECHO
from cmpeer import RoceWay, STATION_IP_SECOND, Wire
from cmwire import REP, REQ, build, service_id
from conn import neighbours, wait_until
from polca import port
from sawire import Delta

RPING = 7174
HALF_OPEN_KIB = 160 << 10  # the pool's bound is 128 MB of queue pairs (lib/cm/limits.c)
RATE, COUNT, ENDLESS = 10000, 60000, 10 ** 8
LEAST_RATE = 2000  # of a flood that counts; on a loaded machine it may have to be repeated
TIMES = 5
TEST_SECONDS = 300
MAC, IP, ATTACKER = '02:00:00:00:79:01', '10.79.0.1', '10.79.0.2'
IP6, ATTACKER6 = 'fd79::1', 'fd79::2'
POOL = 8192  # half-open connections (lib/cm/cm.h)
SMALL_POOL = 1024
# Polca waits for the RTU for 65 s, whatever the REQ says (CM_PEER_MS_MAX)
SLOW = dict(local_timeout=23, max_cm_retries=15)
SOURCE = os.path.join(os.path.dirname(__file__), '..', '..', 'attack', 'req_flood.c')


@pytest.fixture(scope='module')
def flood(kept):
    """The program that sends the flood."""
    path = os.path.join(kept, 'req_flood')
    net.sh(['gcc', '-O2', '-Wall', '-Wextra', '-Werror', '-o', path, SOURCE])
    return path


@pytest.fixture(scope='module')
def wire(kept, sockets, request):
    """An appliance with a port for the legitimate peer and one for the attacker; each of its
    services has few places. A test may have a parameter: the configuration's "cm"."""
    w = Wire(kept, sockets, sa={}, cm=getattr(request, 'param', {}), services=[
        dict(kind='echo', port=ECHO, size=1024, max_connections=4),
        dict(kind='rping', port=RPING, max_connections=64)])
    try:
        w.ns.veth('pv1', 'st1', mac_a=MAC, mac_b='02:00:00:00:79:02')
        w.polca.config['ports'].append(port(
            'port1', 'net_af_packet1,iface=pv1,framecnt=4096,framesz=2048', IP + '/24',
            IP6 + '/64'))
        w.polca.start()
        yield w
        w.audit(False)
    finally:
        w.close()


def request(wire, service, local_timeout, source=ATTACKER, to=IP):
    """A REQ with 15 retries, so far apart."""
    way = RoceWay(wire.station, MAC, source, to)
    path = dict(way.path(), hop_limit=64)
    return way.frame(build(
        REQ, tid=1, local_id=1, ca_guid=1, service_id=service_id(service), qpn=77, psn=1,
        local_timeout=local_timeout, max_cm_retries=15, pkey=0xffff, mtu=3, ack_timeout=14,
        private=way.rdma(5), **path))


def transferred(wire, unit='bytes'):
    """Bytes or packets that the attacker's interface has sent and received."""
    row = json.loads(wire.ns.exec(['ip', '-s', '-j', 'link', 'show', 'st1']))[0]
    return row['stats64']['tx'][unit], row['stats64']['rx'][unit]


def on_the_way(wire):
    """Frames that the attacker's interface has sent and Polca has neither received nor lost in a full
    ring, and a number that stays the same."""
    row, = wire.polca.rpc('stats_get', port=1)['ports']
    return transferred(wire, 'packets')[0] - row['rx_packets'] - row['rx_missed']


@contextlib.contextmanager
def flooded(wire, flood, frame, count=COUNT, pool=POOL):
    """Repeat this REQ from forged addresses; yields the process once the pool is full, or once it has
    ended. A flood that has not ended after the block is stopped."""
    counted = Delta(wire.cm)
    p = wire.ns.popen([flood, 'st1', str(RATE), str(count)], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE)
    try:
        p.stdin.write(frame)
        p.stdin.close()
        wait_until(lambda: counted['received_req'] > pool + pool // 10 or p.poll() is not None, timeout=60)
        yield p
    finally:
        p.terminate()
        p.wait()
    assert p.returncode in (0, -signal.SIGTERM), p.returncode


def known(wire):
    """The next hops in the table of neighbours, and their MACs."""
    return {(n['port'], n['gid'], n['mac']) for n in neighbours(wire.polca.rpc)}


def connect_and_leave(wire, peer):
    """A legitimate connection, from REQ to DREP; the first packet or the RTU may be lost."""
    c = peer.new()
    c.req(service_id(ECHO))
    c.expect_rep()
    c.rtu()
    c.echo(b'amid the flood', 0, tries=20)
    c.disconnect()
    wire.gone(c)


def connect_meanwhile(wire, peer, flood, frame):
    """Connect again and again during one flood. Return how many of its REQs reached Polca a second,
    by the program's clock; 0 if it had ended before a peer could connect. None of its REQs is left
    on the way, where the next flood would count it."""
    none, counted, connections = on_the_way(wire), Delta(wire.cm), 0
    with flooded(wire, flood, frame) as p:
        while p.poll() is None:
            connect_and_leave(wire, peer)
            connections += 1
    sent, seconds = re.match(r'(\d+) in ([\d.]+) s', p.stdout.read().decode()).groups()
    assert int(sent) == COUNT
    wait_until(lambda: on_the_way(wire) <= none, timeout=60)
    connect_and_leave(wire, peer)  # the last frames are processed
    reached = counted['received_req'] - connections - 1
    assert reached <= COUNT
    return round(reached / float(seconds)) if connections else 0


def test_a_peer_connects_in_a_flood(wire, bystanders, flood, record_property, capsys):
    """The flood wants the REP repeated 15 times in 16 ms; then it holds what it gets for a minute,
    for the peer's own service, which has four places."""
    counted = Delta(wire.cm)
    sent, received = transferred(wire)
    with bystanders.unharmed(growth_kib=HALF_OPEN_KIB), wire.peer() as peer:
        connect_and_leave(wire, peer)
        before = known(wire)
        for service, timeout in ((RPING, 8), (ECHO, 20)):
            rates = []
            while max(rates, default=0) < LEAST_RATE:
                assert len(rates) < TIMES, 'floods of %s REQs a second, needed: %d' % (rates, LEAST_RATE)
                rates.append(connect_meanwhile(wire, peer, flood, request(wire, service, timeout)))
            record_property('reqs_per_second', rates[-1])
            with capsys.disabled():
                print('%d REQs a second ' % rates[-1], end='')
    assert known(wire) == before  # no name of the flood, and none is missing
    after_sent, after_received = transferred(wire)
    assert after_received - received <= 3 * (after_sent - sent)
    assert counted['half_open_evicted'] > 0 and counted['half_open_limit'] == 0
    assert counted['refused'] == 0


@pytest.mark.parametrize('wire', [dict(max_half_open=SMALL_POOL)], indirect=True, ids=['small'])
def test_one_prefix_keeps_nobody_out(wire, bystanders, flood):
    """The flood comes from one /64. A peer of another prefix, whose REP came before the flood and whose
    connection is the oldest, sends its RTU when the flood's connections have all given way; new peers connect
    meanwhile."""
    counted = Delta(wire.cm)
    frame = request(wire, ECHO, 20, ATTACKER6, IP6)
    with bystanders.unharmed(growth_kib=HALF_OPEN_KIB), wire.peer() as peer:
        slow = peer.new()
        slow.req(service_id(ECHO), **SLOW)
        slow.expect_rep()
        with flooded(wire, flood, frame, ENDLESS, SMALL_POOL), wire.peer(STATION_IP_SECOND) as other:
            connect_and_leave(wire, other)
            while counted['half_open_evicted'] <= SMALL_POOL:
                connect_and_leave(wire, other)
        slow.rtu()
        wire.stands(slow)
        slow.echo(b'after the flood', 0, tries=20)
        assert all(m.kind is REP for m in peer.drain())  # repeated if the flood took so long
    assert counted['refused'] == 0
