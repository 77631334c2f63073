# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The emulated machine of the suite bare-metal (QEMU): two NUMA nodes, an IOMMU and PCI NICs.

Node 1 has two NICs, each behind its own root port: 0000:3b:00.0 is a virtio card (eth0), 0000:3c:00.0
an 82574L, which e1000e drives (eth2). Node 0 has another 82574L, 0000:51:00.0 (eth1). The image is the
soft-RoCE guest's with the files of a built Polca added (the program, its libraries, DPDK's drivers,
config/); /opt/polca is the part of the source tree that an operator needs.

Observations: the CPU is a Nehalem, the oldest for which Debian's DPDK is built, so the program runs
without the instructions of the CPU on which it was built. virtio-net only uses the IOMMU with
iommu_platform=on and disable-legacy=on. uio_pci_generic, which maps nothing, also needs iommu=pt.
"""

import glob
import os
import re
import shutil
import subprocess
import tempfile

from guest import Guest, Nic
from polca import CTL_PROGRAM, PROGRAM

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..')
LIBDIR = 'usr/lib/x86_64-linux-gnu'
VIRTIO, E1000E, NODE0 = '0000:3b:00.0', '0000:3c:00.0', '0000:51:00.0'
DRIVERS = 'bus_pci bus_vdev mempool_ring net_virtio net_e1000'.split()
MEMORY = 3072  # MiB; the host only provides pages that are touched


def _copy(src, dst):
    os.makedirs(os.path.dirname(dst), exist_ok=True)
    shutil.copy(os.path.realpath(src), dst)


def _libraries(path):
    out = subprocess.run(['ldd', path], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert 'not found' not in out, out
    return re.findall(r'=> (/\S+) \(', out)


def _drivers():
    """DPDK's drivers, in the directory where the EAL looks for them."""
    for name in DRIVERS:
        found = glob.glob('/%s/dpdk/pmds-*/librte_%s.so.*.*' % (LIBDIR, name))
        assert found, 'DPDK has no driver %s: install librte-%s' % (name, name.replace('_', '-'))
        yield max(found)


def _put(top, src):
    """Copy a library under the name by which programs load it, with its dependencies."""
    for path in [src] + _libraries(src):
        name = re.sub(r'(\.so\.\d+)\.\d+$', r'\1', os.path.basename(path))
        _copy(path, os.path.join(top, LIBDIR, name))


def overlay(top):
    """The files of the machine in addition to the soft-RoCE guest's."""
    for program in (PROGRAM, CTL_PROGRAM, '/usr/bin/setpriv'):
        _copy(program, os.path.join(top, 'usr/local/bin', os.path.basename(program)))
        for lib in _libraries(program):
            _put(top, lib)
    for driver in _drivers():
        # one file under both names, as in Debian: a bus driver loaded twice ends the process
        _put(top, driver)
        link = os.path.join(top, driver[1:])
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink('../../' + os.path.basename(driver)[:-2], link)
    os.makedirs(os.path.join(top, 'var'))
    os.symlink('/run', os.path.join(top, 'var/run'))
    shutil.copytree(os.path.join(ROOT, 'config'), os.path.join(top, 'opt/polca/config'))


class Metal(Guest):
    """taps: of the three NICs, open. shell() runs commands as an operator would type them."""

    def __init__(self, directory, taps, name='metal'):
        super().__init__(directory, Nic([], fds=taps), ip='', name=name, tcp=False, smp=4)
        self.taps = dict(zip((VIRTIO, E1000E, NODE0), taps))

    def _initrd(self, where):
        """The kernel unpacks both archives, the second over the first."""
        path = os.path.join(self.dir, self.name + '.cpio')
        with tempfile.TemporaryDirectory() as top, open(path, 'wb') as out:
            with open(super()._initrd(where), 'rb') as base:
                shutil.copyfileobj(base, out)
            overlay(top)
            subprocess.run('find . | cpio -o -H newc --quiet', shell=True, cwd=top, stdout=out,
                           check=True)
        return path

    def _kernel_words(self):
        # init_on_alloc=0: otherwise Debian's kernel clears all 2 GiB of hugepages when they are
        # reserved
        return ['intel_iommu=on', 'iommu=pt', 'init_on_alloc=0', 'polca.rxe=0',
                'polca.name=' + self.name, 'polca.modules=e1000e']

    def _serial_ports(self):
        return (('ag', self.agent_path, 'polca.agent'),)

    def _machine(self):
        half = MEMORY // 2
        a = ['-M', 'q35', '-cpu', 'Nehalem', '-smp', '4,sockets=2', '-m', '%dM' % MEMORY,
             '-device', 'intel-iommu,aw-bits=48']
        for node in (0, 1):
            a += ['-object', 'memory-backend-ram,id=m%d,size=%dM' % (node, half),
                  '-numa', 'node,nodeid=%d,memdev=m%d,cpus=%d-%d' % (
                      node, node, 2 * node, 2 * node + 1)]
        return a

    def _nics(self):
        a = ['-device', 'pxb-pcie,id=node1,bus_nr=58,bus=pcie.0,numa_node=1',
             '-device', 'pxb-pcie,id=node0,bus_nr=80,bus=pcie.0,numa_node=0']
        models = {VIRTIO: 'virtio-net-pci,disable-legacy=on,iommu_platform=on,mrg_rxbuf=on',
                  E1000E: 'e1000e', NODE0: 'e1000e'}
        for i, (address, fd) in enumerate(self.taps.items()):
            a += ['-device', 'pcie-root-port,id=slot%d,bus=node%d,chassis=%d' % (
                i, address != NODE0, i + 1),
                  '-netdev', 'tap,id=n%d,fd=%d' % (i, fd),
                  '-device', '%s,netdev=n%d,bus=slot%d,romfile=,mac=52:54:00:99:01:%02x' % (
                      models[address], i, i, i + 1)]
        return a
