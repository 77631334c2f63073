# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A flood of REQs from forged addresses, 10,000 a second: a legitimate peer connects meanwhile, no
service loses its places, and the flood is not amplified."""

import json
import os
import subprocess

import pytest

import net
from bystanders import ECHO
from cmpeer import RoceWay, Wire
from cmwire import REQ, build, service_id
from conn import wait_until
from polca import port
from sawire import Delta

RPING = 7174
HALF_OPEN_KIB = 160 << 10  # the pool's bound is 128 MB of queue pairs (lib/cm/limits.c)
RATE, COUNT = 10000, 60000
MAC, IP, ATTACKER = '02:00:00:00:79:01', '10.79.0.1', '10.79.0.2'
SOURCE = os.path.join(os.path.dirname(__file__), '..', '..', 'attack', 'req_flood.c')


@pytest.fixture(scope='module')
def flood(kept):
    """The program that sends the flood."""
    path = os.path.join(kept, 'req_flood')
    net.sh(['gcc', '-O2', '-Wall', '-Wextra', '-Werror', '-o', path, SOURCE])
    return path


@pytest.fixture(scope='module')
def wire(kept, sockets):
    """An appliance with a port for the legitimate peer and one for the attacker; each of its
    services has few places."""
    w = Wire(kept, sockets, sa={}, services=[
        dict(kind='echo', port=ECHO, size=1024, max_connections=4),
        dict(kind='rping', port=RPING, max_connections=64)])
    try:
        w.ns.veth('pv1', 'st1', mac_a=MAC, mac_b='02:00:00:00:79:02')
        w.polca.config['ports'].append(port(
            'port1', 'net_af_packet1,iface=pv1,framecnt=4096,framesz=2048', IP + '/24'))
        w.polca.start()
        yield w
        w.audit(False)
    finally:
        w.close()


def request(wire, service, local_timeout):
    """A REQ with 15 retries, so far apart."""
    way = RoceWay(wire.station, MAC, ATTACKER, IP)
    path = dict(way.path(), hop_limit=64)
    return way.frame(build(
        REQ, tid=1, local_id=1, ca_guid=1, service_id=service_id(service), qpn=77, psn=1,
        local_timeout=local_timeout, max_cm_retries=15, pkey=0xffff, mtu=3, ack_timeout=14,
        private=way.rdma(5), **path))


def transferred(wire):
    """Bytes that the attacker's interface has sent and received."""
    row = json.loads(wire.ns.exec(['ip', '-s', '-j', 'link', 'show', 'st1']))[0]
    return row['stats64']['tx']['bytes'], row['stats64']['rx']['bytes']


def test_a_peer_connects_in_a_flood(wire, bystanders, flood):
    """The flood wants the REP repeated 15 times in 16 ms; then it holds what it gets for a minute,
    for the peer's own service, which has four places."""
    counted = Delta(wire.cm)
    sent, received = transferred(wire)
    with bystanders.unharmed(growth_kib=HALF_OPEN_KIB), wire.peer() as peer:
        for service, timeout in ((RPING, 8), (ECHO, 20)):
            p = wire.ns.popen([flood, 'st1', str(RATE), str(COUNT)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
            p.stdin.write(request(wire, service, timeout))
            p.stdin.close()
            begun = counted['received_req']
            wait_until(lambda: counted['received_req'] > begun + 9000, timeout=60)
            connections = 0
            while p.poll() is None:
                c = peer.new()
                c.req(service_id(ECHO))
                c.expect_rep(timeout=2)
                c.rtu()
                c.echo(b'amid the flood', 0, tries=20)
                c.disconnect()
                wire.gone(c)
                connections += 1
            assert connections > 0 and p.wait() == 0, p.stdout.read()
    after_sent, after_received = transferred(wire)
    assert after_received - received <= 3 * (after_sent - sent)
    assert counted['half_open_evicted'] > 0 and counted['half_open_limit'] == 0
    assert counted['refused'] == 0
