# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Allow lists: for whom they do not name, services do not exist, and the SA is silent."""

import socket

import pytest

import mad
import services
from cmpeer import STATION_IP, STATION_IP6, Wire
from cmwire import INVALID_SERVICE, service_id
from conn import wait_until
from mad import v2
from sapeer import Gsi, new_tid
from sawire import Delta

NAMED, PARTITION, TCP = 7, 8, 18516
MEMBER = {'peers': [STATION_IP + '/32', '127.0.0.2']}


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets, sa={'allow': MEMBER}, services=[
        dict(kind='echo', port=NAMED, allow=MEMBER),
        dict(kind='echo', port=PARTITION, allow={'pkeys': [0x8123]}),
        dict(kind='perftest', port=TCP, tcp_port=TCP, allow=MEMBER)])
    try:
        w.polca.start()
        yield w
        w.audit()
    finally:
        w.close()


def echoes(wire, c, service):
    c.req(service_id(service))
    c.expect_rep()
    c.rtu()
    c.echo(b'a member', 0)
    c.disconnect()
    wire.gone(c)


@pytest.mark.parametrize('address,service,admitted', [
    (STATION_IP, NAMED, True), (STATION_IP6, NAMED, False), (STATION_IP, PARTITION, False)])
def test_who_may_connect(wire, address, service, admitted):
    counted = Delta(wire.cm)
    with wire.peer(address) as peer:
        c = peer.new()
        if admitted:
            echoes(wire, c, service)
        else:
            c.req(service_id(service))
            c.expect_rej(INVALID_SERVICE)
            assert counted['refused'] == 1
    assert not wire.connections()


def test_who_may_ask_the_sa(wire):
    counted = Delta(wire.verdicts)
    ask = v2(mad.GET, mad.CLASS_PORT_INFO.attr, tid=new_tid())
    with Gsi(wire.station, wire.polca_mac, wire.polca_ip) as member, \
            Gsi(wire.station, wire.polca_mac, wire.polca_ip6, ip=STATION_IP6) as stranger:
        stranger.tx(ask)
        wait_until(lambda: counted['not_allowed'] == 1)
        assert member.ask(ask).method == mad.GET_RESP
        stranger.expect_nothing()


def test_who_may_use_perftests_tcp(wire):
    def connect(source):
        s = socket.create_connection(('127.0.0.1', TCP), 10, (source, 0))
        s.settimeout(10)
        return s
    wire.ns.exec(['ip', 'link', 'set', 'lo', 'up'])
    with wire.ns.call(connect, '127.0.0.3') as stranger:
        assert stranger.recv(1) == b''
    with wire.ns.call(connect, '127.0.0.2') as member:
        member.sendall(b'x')
        member.settimeout(0.5)
        with pytest.raises(socket.timeout):
            member.recv(1)
    assert services.connections(wire.polca) == {}
