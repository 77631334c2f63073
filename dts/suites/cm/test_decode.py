# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A third implementation: tshark dissects whole exchanges by field name (cm 8), and the IDs in
Polca's messages are those of the peer."""

import os

import pytest

import capture
import cmwire
from cmpeer import Asking, DREQ, POLCA_IP, POLCA_MAC, RTU, STATION_IP, STATION_MAC
from cmwire import service_id

CONFIG = dict(services=[dict(kind='echo', port=7)])
FULL = ['ConnectRequest', 'ConnectReply', 'ReadyToUse', 'DisconnectRequest', 'DisconnectReply']


class Taken:
    """A capture of its own; .rows: (sent by Polca?, message) in the order of the wire."""

    def __init__(self, wire, name):
        self.c = capture.Capture(wire.ns, 'st0', os.path.join(wire.kept, name + '.pcap'))

    def fields(self, mac, *names):
        return capture.dissect(self.c.path, mac, names, 'infiniband.mad.mgmtclass == 7')

    def names(self):
        self.c.stop()
        both = [(int(n), mac == POLCA_MAC, info[4:]) for mac in (POLCA_MAC, STATION_MAC)
                for n, info in self.fields(mac, 'frame.number', '_ws.col.Info')
                if info[:4] == 'CM: ']
        return [(ours, info) for _, ours, info in sorted(both)]


@pytest.fixture
def taken(wire, request):
    t = Taken(wire, request.node.name)
    yield t
    t.c.stop()


def test_polca_is_connected_to(taken, peer):
    c = peer.connect(7)
    c.echo(b'between', 0)
    c.disconnect()
    assert taken.names() == list(zip([False, True, False, False, True], FULL))
    rep, drep = taken.fields(POLCA_MAC, 'infiniband.cm.rep',
                             'infiniband.cm.rep.remotecommid', 'infiniband.cm.rep.localqpn',
                             'infiniband.cm.rep.startpsn')
    assert [int(v, 0) for v in rep] == [c.remote_id, c.local_id, c.remote_qpn, c.remote_psn]
    assert drep == ['', '', '', '']


def test_polca_connects(taken, wire, peer):
    asking = Asking(wire.polca, 'cm_connect', dgid=STATION_IP, port=9, service='sink', count=100000)
    c, req = peer.expect_req()
    c.rep()
    c.expect(RTU)
    asking.result()
    wire.polca.rpc('cm_disconnect', connection=c.remote_id)
    c.drep(c.expect(DREQ))
    assert taken.names() == list(zip([True, False, True, True, False], FULL))
    row = taken.fields(POLCA_MAC, 'infiniband.cm.req.serviceid.prefix',
                       'infiniband.cm.req.serviceid.dport', 'infiniband.cm.req.startpsn',
                       'infiniband.cm.req.ip_cm.sip4', 'infiniband.cm.req.ip_cm.dip4')[0]
    assert int(row[1], 0) == 9 and int(row[2], 0) == req.psn, row
    assert row[-2:] == [POLCA_IP, STATION_IP], row
    c.data.drain()


def test_refused_and_resolved(taken, peer):
    c = peer.new()
    c.req(service_id(4))
    c.expect_rej(cmwire.INVALID_SERVICE)
    c.open = False
    peer.say(cmwire.SIDR_REQ, tid=1, request_id=5, service_id=service_id(7))
    peer.expect(cmwire.SIDR_REP)
    names = taken.names()
    assert names[:2] == [(False, 'ConnectRequest'), (True, 'ConnectReject')], names
    assert [ours for ours, _ in names[2:]] == [False, True], names
