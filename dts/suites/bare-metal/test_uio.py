# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Cards with uio_pci_generic, as on a machine without an IOMMU (here, iommu=pt passes all
accesses)."""

import re

import pytest

from bare_metal import E1000E, VIRTIO

TEST_SECONDS = 300


@pytest.fixture(scope='module', autouse=True)
def put_back(bench):
    yield
    bench.stop_polca()
    bench.run('config/setup-host.sh --undo')


def test_uio_takes_the_cards_from_the_kernel(bench):
    """Bind them by the names of their interfaces."""
    out = bench.check('config/setup-host.sh --hugepages 256 --driver uio_pci_generic eth0 eth2')
    assert '0000:3b:00.0: virtio-pci (eth0) -> uio_pci_generic (NUMA node 1)' in out
    assert '0000:3c:00.0: e1000e (eth2) -> uio_pci_generic (NUMA node 1)' in out
    for card in (VIRTIO, E1000E):
        assert 'uio_pci_generic' in bench.check('readlink /sys/bus/pci/devices/%s/driver' % card)


def test_rping_through_both_cards(bench):
    bench.check("sed 's/\"poll\"/\"backoff\"/' config/bare-metal.json >/etc/polca.json")
    out = bench.start_polca('polca -c /etc/polca.json')
    # the other card's announcement of this address, by the test before, may have waited in the tap
    told = [line for line in out.splitlines() if line.startswith('engine: ')]
    assert all('is our address' in line for line in told), out
    bench.check('polca-ctl cm listen rping --port 7174')
    for address in ('10.0.0.1', '10.0.1.1'):
        out = bench.peer.check('rping -c -a %s -p 7174 -v -V -S 20000 -C 5' % address, 120)
        assert re.findall(r'rdma-ping-(\d+): ', out) == [str(i) for i in range(5)], out
    service, = bench.ask('polca-ctl cm services')['services']
    assert (service['exchanges'], service['mismatches'], service['established']) == (10, 0, 2)


def test_from_one_driver_to_the_other(bench):
    """Rebind without returning to the kernel's driver; --undo still remembers the kernel's."""
    bench.stop_polca()
    out = bench.check('config/setup-host.sh --hugepages 256 %s' % E1000E)
    assert '0000:3c:00.0: uio_pci_generic -> vfio-pci' in out
    out = bench.check('config/setup-host.sh --undo')
    assert '0000:3c:00.0: vfio-pci -> e1000e' in out
    assert '0000:3b:00.0: uio_pci_generic -> virtio-pci' in out
    assert bench.check('ls /sys/class/net').split() == ['eth0', 'eth1', 'eth2', 'lo']
