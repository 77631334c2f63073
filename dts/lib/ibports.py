# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Appliances on native InfiniBand ports, and their surroundings in the suites agents and fabric."""

import os
import shutil

import capture
from conn import wait_until
from ibstation import IbStation
from net import Namespace
from polca import Polca
from sawire import Delta
from umad import Bridge

MAC, PEER_MAC = '02:00:00:00:77:01', '02:00:00:00:77:02'
LID, PEER_LID = 2, 1
NODE_GUID, SYSTEM_GUID, PORT_GUID = 0x0002c90300770000, 0x0002c90300770003, 0x0002c90300770001
PREFIX = 0xfe80000000000000
DESCRIPTION = 'polca agents'
SMA = dict(node_description=DESCRIPTION, node_guid='0x%016x' % NODE_GUID,
           system_image_guid='0x%016x' % SYSTEM_GUID, vendor_id='0x000a0b', device_id='0x1234',
           revision='0xa0')
STATIC = dict(lid=LID, sm_lid=PEER_LID, active=True, guid='0x%016x' % PORT_GUID)


def ib_port(name, interface, **more):
    """A native port for the configuration; more: keys of "ib", and pkeys."""
    p = dict(name=name, device='net_af_packet%d,iface=%s,framecnt=2048' % (
        int(name[-1]), interface), encapsulation='ib')
    if 'pkeys' in more:
        p['pkeys'] = more.pop('pkeys')
    return dict(p, ib=more)


def verdicts(polca, port=0):
    row = polca.rpc('stats_get', port=port)['ports'][0]
    return dict(row['served'], **row['dropped'])


class Wire:
    """A namespace with a veth pair: pv0 belongs to the appliance, st0 to its peer."""

    def __init__(self, kept, sockets, ib=STATIC, sma=None, pkeys=None, **config):
        self.kept, self.sockets = kept, sockets
        self.ns = Namespace()
        self.ns.veth('pv0', 'st0', mac_a=MAC, mac_b=PEER_MAC)
        self.capture = capture.Capture(self.ns, 'st0', os.path.join(kept, 'wire.pcap'))
        more = dict(ib, **({'pkeys': pkeys} if pkeys else {}))
        self.polca = Polca(sockets, [ib_port('port0', 'pv0', **more)], ns=self.ns,
                           sma=dict(SMA, **(sma or {})), **config)
        self.station = self.bridge = None
        self.to_itself = 0  # packets from the appliance to its own port: not on the wire

    def by_hand(self, **kw):
        """The peer is a station."""
        self.station = IbStation(self.ns, 'st0', PEER_MAC, MAC, PEER_LID, LID, **kw)
        return self

    def by_tools(self, **options):
        """The peer is the bridge, with fabric tools behind it."""
        self.bridge = Bridge(self.ns, 'st0', self.sockets, **options).start()
        return self

    def verdicts(self):
        return Delta(lambda: verdicts(self.polca))

    def wait_own_records(self):
        """Until the SA has the appliance's port as active: it stores the port again when the link comes up, and
        must not do so after an import that replaces these records."""
        wait_until(lambda: [r for r in self.polca.rpc('sa_export')['records']
                            if r['record'] == 'PortInfoRecord' and r['port_state'] == 'active'])

    def audit(self):
        """The appliance's counters equal the capture's; tshark dissects all that it sent."""
        if self.bridge:
            self.bridge.stop()
        return capture.audit(self.polca, self.capture, MAC, to_itself=self.to_itself)

    def close(self):
        self.polca.kill()
        if self.bridge:
            self.bridge.kill()
            shutil.copy(self.bridge.log, self.kept)
        if self.station:
            self.station.close()
        self.capture.stop()
        self.ns.close()
        if os.path.exists(self.polca.log):
            shutil.copy(self.polca.log, self.kept)
