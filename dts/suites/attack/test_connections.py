# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A peer that names a victim as its alternate path, and a stranger that forges a REQ for an
established connection: the victim hears nothing, the connection goes on."""

import socket

import pytest

import cmwire
from bystanders import ECHO
from cmpeer import POLCA_IP_SECOND, STATION_IP_SECOND, Wire
from cmwire import APR, gid, LAP, REJ, service_id
from sawire import Delta

VICTIM = STATION_IP_SECOND
INVALID_GID = 8  # status of an APR
LAPS, FORGED = 50, 20


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets, sa={}, services=[dict(kind='echo', port=ECHO, size=1024)])
    try:
        w.polca.start()
        yield w
        w.audit()
    finally:
        w.close()


class Tap:
    """Frames on the station's interface to one IPv4 address; with Tap(...) as t: ...; t.bytes()"""

    def __init__(self, wire, address):
        def opened():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            s.bind(('st0', 0))
            s.setblocking(False)
            return s
        self.address, self.socket = socket.inet_aton(address), wire.ns.call(opened)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def bytes(self):
        total = 0
        while True:
            try:
                frame = self.socket.recv(65536)
            except BlockingIOError:
                return total
            if frame[12:14] == b'\x08\x00' and frame[30:34] == self.address:
                total += len(frame)


def test_alternate_path_to_a_victim(wire, bystanders):
    """LAPs in which the victim is the peer's second address. What a Send is answered with does
    not go there either."""
    with bystanders.unharmed(), wire.peer() as peer, Tap(wire, VICTIM) as tap:
        c = peer.connect(ECHO)
        c.echo(b'before', 0)
        tap.bytes()
        for _ in range(LAPS):
            c.tid = next(peer.tids)
            c.say(LAP, qpn=c.remote_qpn, remote_timeout=18, local_lid=0xffff, remote_lid=0xffff,
                  local_gid=gid(VICTIM), remote_gid=gid(POLCA_IP_SECOND), hop_limit=64,
                  ack_timeout=15)
            c.expect(APR, tid=c.tid, status=INVALID_GID)
        for n in range(1, 10):
            c.echo(b'after', n)
        assert tap.bytes() == 0
        assert 'alternate' not in wire.polca.rpc('cm_show', connection=c.remote_id)


def test_request_in_a_peers_name(wire, bystanders):
    """A stranger sends REQ after REQ that names the established queue pair, which goes on: its
    peer answers the probes."""
    counted = Delta(wire.cm)
    with bystanders.unharmed(), wire.peer() as peer:
        old = peer.connect(ECHO)
        old.echo(b'alive', 0)
        for n in range(1, FORGED):
            forged = peer.new(qpn=old.qpn, data=old.data)
            forged.open = False
            forged.req(service_id(ECHO))
            peer.expect(REJ, reason=cmwire.STALE, remote_id=forged.local_id)
            old.echo(b'still alive', n)  # and acknowledges a probe
    assert counted['stale'] == 0 and 0 < counted['probes'] <= 3 * FORGED
