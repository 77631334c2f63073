# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""One soft-RoCE guest for all suites that need one: its NIC is a tap, Polca uses the host's side
of the tap with net_af_packet, and the guest's second NIC reaches TCP ports of this host.

net_af_packet takes no frame beyond 1518 octets, so path MTUs are at most 1024 here; the pmd
suite tests larger ones with net_vhost."""

import contextlib
import os
import shutil

import capture
from guest import Guest, Nic
from net import Namespace
from polca import BUILD, Polca, port
from relay import Relay

GUEST_MAC = '52:54:00:99:00:02'
POLCA_MAC = '02:00:00:00:99:01'
POLCA_IP, POLCA_IP6, GUEST_IP, GUEST_IP6 = '10.99.0.1', 'fd99::1', '10.99.0.2', 'fd99::2'
DATAGRAMS = 'udp[8] == 0x64 or ip6[48] == 0x64'  # filter for UD packets, that is, management


class Lab:
    def __init__(self, sockets):
        self.kept = os.path.join(BUILD, 'dts', 'guest')
        shutil.rmtree(self.kept, ignore_errors=True)
        os.makedirs(self.kept)
        self.ns = Namespace()
        fd = self.ns.tap('rt0')
        self.ns.ip('link', 'set', 'rt0', 'down')
        self.ns.ip('link', 'set', 'rt0', 'address', POLCA_MAC)
        self.ns.ip('link', 'set', 'rt0', 'up')
        # a capture does not see packets that bypass the queueing discipline
        self.polca = Polca(sockets, [port('port0', 'net_af_packet0,iface=rt0,qdisc_bypass=0',
                                          POLCA_IP + '/24', POLCA_IP6 + '/64')], ns=self.ns)
        self.guest = Guest(self.kept, Nic.tap(fd), ip=GUEST_IP + '/24', ip6=GUEST_IP6 + '/64',
                           mac=GUEST_MAC, listen=[18515])
        # the guest's sockets also need short paths
        self.guest.agent_path = os.path.join(sockets, 'agent')
        self.guest.rdma_path = os.path.join(sockets, 'rdma')

    def start(self):
        self.guest.start()
        self.polca.start()
        self.guest.wait_ready()
        return self

    def alive(self):
        """The appliance, restarted if a test has killed it."""
        if not self.polca.alive():
            self.polca.kill()
            self.polca.start()
        return self.polca

    @contextlib.contextmanager
    def captured(self, name, expression=''):
        """Capture the wire meanwhile: all frames, or those that match the filter. Polca's frames
        are checked at the end."""
        c = capture.Capture(self.ns, 'rt0', os.path.join(self.kept, name + '.pcap'), expression)
        try:
            yield c
        finally:
            c.stop()
        assert c.lost() == 0
        assert capture.check(c.path, POLCA_MAC), 'nothing of Polca\'s was captured'

    @contextlib.contextmanager
    def tcp(self, port):
        """A TCP port of the appliance's namespace, as seen from the guest: (address, port)."""
        with Relay(self.ns, port) as r:
            yield '10.0.2.2', r.port

    def close(self):
        self.guest.stop()
        self.polca.kill()
        self.ns.close()
        if os.path.exists(self.polca.log):
            shutil.copy(self.polca.log, self.kept)
