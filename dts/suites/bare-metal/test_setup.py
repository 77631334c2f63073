# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What the set-up script refuses, on a real kernel. (test/engine/test_setup_host.py tests the
refusals that need another machine, such as one without an IOMMU.)"""

import pytest

SCRIPT = 'config/setup-host.sh '


def refused(bench, arguments, says):
    r = bench.run(SCRIPT + arguments)
    assert r.status == 1 and says in r.output, r


@pytest.fixture
def address(bench):
    bench.check('ip addr add 10.9.9.9/24 dev eth2')
    yield
    bench.run('ip addr del 10.9.9.9/24 dev eth2')


def test_interface_in_use(bench, address):
    refused(bench, '0000:3b:00.0 0000:3c:00.0', '0000:3c:00.0: eth2 is in use: it has address '
            '10.9.9.9/24. If your own connection does not depend on it: --force')
    # all cards are checked before any is changed
    assert bench.check('ls /sys/class/net').split() == ['eth0', 'eth1', 'eth2', 'lo']
    out = bench.check(SCRIPT + '--dry-run --force eth2')
    assert 'eth2 was in use: it has address 10.9.9.9/24' in out
    assert 'would: 0000:3c:00.0: e1000e (eth2) -> vfio-pci' in out


def test_default_route(bench, address):
    bench.check('ip link set eth2 up && ip route add default via 10.9.9.1')
    refused(bench, 'eth2', 'it has address 10.9.9.9/24, it has the default route')
    bench.check('ip route del default && ip link set eth2 down')


@pytest.mark.parametrize('nic,says', [
    ('eth7', 'eth7: neither a PCI address nor an interface'),
    ('lo', 'lo: a virtual interface'),
    ('12:00.0', '12:00.0: there is no such PCI device'),
    ('0000:00:00.0', '0000:00:00.0: this PCI device is not a network card')])
def test_no_card(bench, nic, says):
    refused(bench, nic, says)


def test_more_hugepages_than_there_is_memory(bench):
    try:
        refused(bench, '--node 1 --hugepages 4096',
                'of 2048: memory is short or fragmented. Reserve them at boot: hugepagesz=2M')
    finally:
        bench.check(SCRIPT + '--undo')
    assert bench.check('cat /sys/devices/system/node/node1/hugepages/*/nr_hugepages').split() == ['0']


def test_wrong_usage(bench):
    for arguments in ('--hugepages many', '--driver igb_uio', '--node x', '--hugepages'):
        assert bench.run(SCRIPT + arguments).status == 2
