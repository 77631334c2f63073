# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""One soft-RoCE guest for the whole suite: its NIC is a tap, Polca sits on that tap's host side
with net_af_packet, and the guest's second NIC is its way to TCP ports of this host.

net_af_packet takes no frame beyond 1518 octets, so path MTUs are 1024 at most here; the larger ones
are the business of net_vhost in the pmd suite."""

import os
import shutil
import tempfile

import pytest

import capture
from guest import Guest, Nic
from net import Namespace
from polca import BUILD, Polca, port

GUEST_MAC = '52:54:00:99:00:02'
POLCA_MAC = '02:00:00:00:99:01'


class Lab:
    def __init__(self, sockets, kept):
        self.kept = kept
        self.ns = Namespace()
        fd = self.ns.tap('rt0')
        self.ns.ip('link', 'set', 'rt0', 'down')
        self.ns.ip('link', 'set', 'rt0', 'address', POLCA_MAC)
        self.ns.ip('link', 'set', 'rt0', 'up')
        self.polca = Polca(sockets, [port(
            'port0', 'net_af_packet0,iface=rt0', '10.99.0.1/24', 'fd99::1/64')], ns=self.ns)
        self.guest = Guest(kept, Nic.tap(fd), ip='10.99.0.2/24', ip6='fd99::2/64', mac=GUEST_MAC,
                           listen=[18515])
        # sockets of the guest live under a short name too
        self.guest.agent_path = os.path.join(sockets, 'agent')
        self.guest.rdma_path = os.path.join(sockets, 'rdma')


@pytest.fixture(scope='session')
def lab():
    kept = os.path.join(BUILD, 'dts', 'rxe')
    shutil.rmtree(kept, ignore_errors=True)
    os.makedirs(kept)
    with tempfile.TemporaryDirectory(prefix='polca-dts-') as sockets:
        made = Lab(sockets, kept)
        try:
            made.guest.start()
            made.polca.start()
            made.guest.wait_ready()
            yield made
            made.polca.stop()
        finally:
            made.guest.stop()
            made.polca.kill()
            made.ns.close()
            shutil.copy(made.polca.log, kept)


@pytest.fixture(scope='module')
def polca(lab, request):
    """The appliance, with a capture of what this module put on the wire."""
    c = capture.Capture(lab.ns, 'rt0', os.path.join(lab.kept, request.path.stem + '.pcap'))
    yield lab.polca
    c.stop()
    assert c.lost() == 0
    capture.check(c.path, POLCA_MAC)


@pytest.fixture
def guest(lab):
    return lab.guest
