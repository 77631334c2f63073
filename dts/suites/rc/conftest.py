# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""One wire for each module: a veth pair with Polca on net_af_packet at one end and Scapy at the
other.

After the module the wire is audited: see audit()."""

import os
import shutil

import pytest

import capture
from conn import Conn
from net import Namespace
from polca import Polca, port
from roce import Station

POLCA_MAC, STATION_MAC = '02:00:00:00:77:01', '02:00:00:00:77:02'


class Wire:
    """polca and station on one wire, and its capture."""

    polca_mac = POLCA_MAC
    polca_ip, polca_ip6 = '10.77.0.1', 'fd77::1'
    polca_ip_second = '10.77.0.11'

    def __init__(self, kept, sockets, addresses=None, config=None, **port_keys):
        self.ns = Namespace()
        self.ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)
        self.station = Station(self.ns, 'st0', STATION_MAC, '10.77.0.2', 'fd77::2')
        self.capture = capture.Capture(self.ns, 'st0', os.path.join(kept, 'wire.pcap'))
        addresses = addresses or [self.polca_ip + '/24', self.polca_ip6 + '/64',
                                  self.polca_ip_second + '/24']
        self.polca = Polca(sockets, [port('port0', 'net_af_packet0,iface=pv0', *addresses,
                                          **dict({'promiscuous': True}, **port_keys))],
                           ns=self.ns, **(config or {}))

    def audit(self):
        """Account for everything on the wire: Polca's counters equal the capture's, every
        received packet has one verdict, and every frame that Polca sent dissects."""
        capture.audit(self.polca, self.capture, POLCA_MAC)


@pytest.fixture(scope='module')
def wire(kept, sockets, request):
    """A module configures its port with WIRE = dict(...); its key config is for the appliance."""
    w = Wire(kept, sockets, **getattr(request.module, 'WIRE', {}))
    try:
        w.polca.start()
        yield w
        w.audit()
    finally:
        w.polca.kill()
        w.capture.stop()
        w.station.close()
        w.ns.close()
        for name in os.listdir(sockets):
            if name.endswith(('.log', '.json')):
                shutil.copy(os.path.join(sockets, name), kept)


@pytest.fixture(scope='module')
def polca(wire):
    return wire.polca


@pytest.fixture
def connect(hca, wire):
    """connect(...): a Conn of this test; see conn.Conn."""
    made = []

    def make(**kw):
        c = Conn(hca, wire, **kw)
        made.append(c)
        return c
    yield make
    for c in made:
        c.close()
