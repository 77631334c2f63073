# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Cards with uio_pci_generic, as on a machine without an IOMMU (here, iommu=pt passes all
accesses)."""

import os
import re

import pytest

from bare_metal import E1000E, ROOT, VIRTIO

TEST_SECONDS = 300
CAP_SYS_RAWIO, CAP_SYS_ADMIN = 17, 21


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


def capabilities_of_the_service():
    with open(os.path.join(ROOT, 'config/systemd/uio.conf')) as f:
        names = re.search(r'^CapabilityBoundingSet=(.*)', f.read(), re.M).group(1).split()
    return ','.join(['-all', *names]).replace('CAP_', '+').lower()


def test_rping_through_both_cards(bench):
    """By a root that has the service's capabilities only."""
    bench.check("sed 's/\"poll\"/\"backoff\"/' config/bare-metal.json >/etc/polca.json")
    out = bench.start_polca('/usr/local/bin/setpriv --bounding-set=%s polca -c /etc/polca.json' %
                            capabilities_of_the_service())
    bits = int(bench.check("grep CapEff /proc/$(pidof polca)/status").split()[1], 16)
    assert bits == 1 << CAP_SYS_RAWIO | 1 << CAP_SYS_ADMIN
    # the name in the drop-in's DeviceAllow
    assert re.search(r'^ *\d+ uio$', bench.check('cat /proc/devices'), re.M)
    # the other card's announcement of this address, by the test before, may have waited in the tap
    told = [line for line in out.splitlines() if line.startswith('engine: ')]
    assert all('is our address' in line for line in told), out
    bench.check('polca-ctl cm listen rping --port 7174')
    for address in ('10.0.0.1', '10.0.1.1'):
        bench.peer.rping('rping -c -a %s -p 7174 -V -S 20000 -C 5' % address, 120)
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
