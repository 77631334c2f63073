#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""config/setup-host.sh on hosts that are made up: a sysfs of files, and nothing but --dry-run,
--status and what is refused. The suite bare-metal runs it in earnest.

usage: test_setup_host.py SCRIPT
"""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = None
NIC, TWIN, BRIDGE = '0000:3b:00.0', '0000:3b:00.1', '0000:3a:00.0'


class Host:
    """Two nodes; a card with two functions behind a bridge."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.sys = self.dir.name + '/sys'
        for node in (0, 1):
            at = 'devices/system/node/node%d/' % node
            self.file(at + 'cpulist', '%d-%d' % (2 * node, 2 * node + 1))
            for name in ('nr_hugepages', 'free_hugepages'):
                self.file(at + 'hugepages/hugepages-2048kB/' + name, '64')
        self.device(BRIDGE, '0x060400', 'pcieport')
        self.device(NIC, '0x020000', 'ixgbe', 'eth0')
        self.device(TWIN, '0x020000', 'ixgbe', 'eth1')
        self.file('bus/pci/drivers/vfio-pci/bind', '')
        self.file('bus/pci/drivers/uio_pci_generic/bind', '')

    def file(self, name, text):
        path = os.path.join(self.sys, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as f:
            f.write(text + '\n')

    def link(self, name, target):
        path = os.path.join(self.sys, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(os.path.join(self.sys, target), path)

    def device(self, address, cls, driver, interface=None):
        at = 'bus/pci/devices/' + address
        for name, text in (('class', cls), ('vendor', '0x8086'), ('device', '0x10fb'),
                           ('numa_node', '1')):
            self.file('%s/%s' % (at, name), text)
        self.file('bus/pci/drivers/%s/bind' % driver, '')
        self.link(at + '/driver', 'bus/pci/drivers/' + driver)
        if interface:
            self.file('%s/net/%s/address' % (at, interface), '02:00:00:00:00:01')
            self.link('%s/net/%s/device' % (at, interface), at)
            self.link('class/net/' + interface, '%s/net/%s' % (at, interface))

    def group(self, number, kind, *addresses):
        at = 'kernel/iommu_groups/%d' % number
        self.file(at + '/type', kind)
        for a in addresses:
            self.link('%s/devices/%s' % (at, a), 'bus/pci/devices/' + a)
            self.link('bus/pci/devices/%s/iommu_group' % a, at)

    def run(self, *args):
        env = dict(os.environ, POLCA_SYS=self.sys, POLCA_STATE=self.dir.name + '/state')
        r = subprocess.run(['sh', SCRIPT, *args], env=env, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        return r.returncode, r.stdout


class SetupHost(unittest.TestCase):
    def setUp(self):
        self.host = Host()
        self.addCleanup(self.host.dir.cleanup)

    def taken(self, *args):
        status, out = self.host.run('--dry-run', *args)
        self.assertEqual(status, 0, out)
        return out

    def refused(self, says, *args, status=1):
        got, out = self.host.run('--dry-run', *args)
        self.assertEqual(got, status, out)
        self.assertIn(says, out)

    def test_status(self):
        self.host.group(7, 'DMA', NIC)
        status, out = self.host.run('--status')
        self.assertEqual(status, 0, out)
        self.assertIn('node 1: 64 hugepages of 2 MiB, 64 free; CPUs 2-3', out)
        self.assertIn('IOMMU: on, 1 groups', out)
        rows = [line.split() for line in out.splitlines() if line.startswith('0000:')]
        self.assertEqual(rows, [[NIC, '1', '7', 'ixgbe', '8086:10fb', 'eth0'],
                                [TWIN, '1', '-', 'ixgbe', '8086:10fb', 'eth1']])

    def test_what_would_be_done(self):
        self.host.group(7, 'DMA', NIC)
        self.assertEqual(self.taken('--hugepages', '256', '--node', '1', '3b:00.0').splitlines()[0],
                         'would: node 1: 128 hugepages of 2 MiB (had 64)')
        out = self.taken('--hugepages', '256', 'eth0')
        self.assertIn('would: node 0: 128 hugepages of 2 MiB (had 64)', out)
        self.assertIn('would: %s: ixgbe (eth0) -> vfio-pci (NUMA node 1, IOMMU group 7)' % NIC, out)

    def test_default_never_takes_hugepages_away(self):
        for node in (0, 1):
            self.host.file('devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages'
                           % node, str(512 + 200 * node))
        self.assertNotIn('would: node', self.taken())
        self.assertIn('node 1: 712 hugepages of 2 MiB, 64 free', self.taken())
        self.host.file('devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages', '8')
        self.assertIn('node 0: 512 hugepages of 2 MiB (had 8)', self.taken())
        self.assertIn('node 1: 0 hugepages of 2 MiB (had 712)', self.taken('--hugepages', '0'))

    def test_no_iommu(self):
        self.refused('there is no IOMMU, which vfio-pci needs. Turn it on: VT-d or AMD-Vi in the '
                     "firmware's set-up, and intel_iommu=on iommu=pt (Intel) on the kernel command "
                     'line. Or: --driver uio_pci_generic', NIC)
        self.assertIn('-> uio_pci_generic', self.taken('--driver', 'uio_pci_generic', NIC))

    def test_iommu_that_translates_stops_what_uio_does(self):
        self.host.group(7, 'DMA-FQ', NIC)
        self.refused('the IOMMU would stop its DMA. Use --driver vfio-pci, or iommu=pt on the '
                     'kernel command line', '--driver', 'uio_pci_generic', NIC)
        self.host.group(7, 'identity', NIC)
        self.taken('--driver', 'uio_pci_generic', NIC)

    def test_vfio_gives_out_whole_groups(self):
        self.host.group(7, 'DMA', NIC, TWIN, BRIDGE)
        self.refused('%s: shares IOMMU group 7 with %s, which ixgbe has: vfio gives out whole '
                     'groups' % (NIC, TWIN), NIC)
        self.taken(NIC, TWIN)

    def test_interface_of_a_bridge_or_bond_is_in_use(self):
        self.host.group(7, 'DMA', NIC)
        self.host.link('bus/pci/devices/%s/net/eth0/master' % NIC, 'class/net/bond0')
        self.host.file('class/net/bond0/address', '02:00:00:00:00:01')
        self.refused('eth0 is in use: it belongs to bond0. If your own connection', NIC)
        self.host.file('bus/pci/devices/%s/net/eth0/upper_vlan7/x' % NIC, '')
        self.refused('it belongs to bond0, vlan7 is on top of it', NIC)
        self.assertIn('-> vfio-pci', self.taken('--force', NIC))

    def test_card_that_is_taken_already(self):
        self.host.group(7, 'DMA', NIC)
        self.host.link('bus/pci/devices/%s/driver' % NIC, 'bus/pci/drivers/vfio-pci')
        self.assertIn('%s: has vfio-pci already' % NIC, self.taken(NIC))

    def test_undo_without_anything_done(self):
        status, out = self.host.run('--undo', '--dry-run')
        self.assertEqual((status, out), (0, ''))
        self.assertIn('ixgbe has it, nothing to undo', self.host.run('--undo', '--dry-run', NIC)[1])

    def test_without_arguments_it_only_says_what_it_can_do(self):
        status, out = self.host.run()
        self.assertEqual(status, 2, out)
        self.assertIn('usage: setup-host.sh [--hugepages MIB]', out)
        self.assertFalse(os.path.exists(self.host.dir.name + '/state'))
        self.assertIn('64 hugepages', self.host.run('--status')[1])

    @unittest.skipIf(os.geteuid() != 0, 'only root gets as far as to write')
    def test_what_cannot_be_written_is_no_lack_of_memory(self):
        pages = 'devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages'
        self.host.link(pages, '/proc/sys/kernel/ngroups_max')  # root reads it, and cannot write it
        status, out = self.host.run('--hugepages', '256', '--node', '1')
        self.assertEqual(status, 1, out)
        self.assertIn('cannot write %s/%s: is /sys read-only' % (self.host.sys, pages), out)
        self.assertNotIn('memory is short', out)
        self.assertNotIn('128 hugepages', out)
        self.assertNotIn('mount hugetlbfs', out)  # nothing else is changed then

    def test_wrong_usage(self):
        for args in (['--hugepages', 'x'], ['--driver', 'igb_uio'], ['--nic'], ['--node']):
            self.refused("Try 'setup-host.sh --help'", *args, status=2)
        self.refused('options come before the NICs', NIC, '--force', status=2)


if __name__ == '__main__':
    SCRIPT = sys.argv.pop(1)
    unittest.main()
