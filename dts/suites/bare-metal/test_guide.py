# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The operator guide's section "On bare metal", command by command, with the result that each
must have. One setting differs: idle workers sleep, because the emulated machine shares its CPUs
with its peer."""

import re

import pytest

from conn import wait_until
from bare_metal import E1000E, VIRTIO

TEST_SECONDS = 300
CARDS = {'port0': VIRTIO, 'port1': E1000E}
MACS = {'card0': '52:54:00:99:01:01', 'card1': '52:54:00:99:01:02'}


def driver(bench, card):
    return bench.check('basename $(readlink /sys/bus/pci/devices/%s/driver)' % card).strip()


def pages(bench, node, what):
    return int(bench.check('cat /sys/devices/system/node/node%d/hugepages/hugepages-2048kB/'
                           '%s_hugepages' % (node, what)))


@pytest.fixture(scope='module', autouse=True)
def put_back(bench):
    yield
    bench.stop_polca()
    bench.run('config/setup-host.sh --undo')


def test_status_shows_nodes_iommu_and_cards(bench, guide):
    out = bench.check(guide.command('config/setup-host.sh --status'))
    assert 'node 0: 0 hugepages of 2 MiB, 0 free; CPUs 0-1\n' in out
    assert 'node 1: 0 hugepages of 2 MiB, 0 free; CPUs 2-3\n' in out
    assert re.search(r'^IOMMU: on, \d+ groups$', out, re.M), out
    assert re.search(r'^0000:3b:00\.0 +1 +\d+ +virtio-pci +1af4:1041 +eth0', out, re.M), out
    assert re.search(r'^0000:3c:00\.0 +1 +\d+ +e1000e +8086:10d3 +eth2', out, re.M), out


def test_dry_run_changes_nothing(bench, guide):
    out = bench.check(guide.command('config/setup-host.sh --dry-run'))
    assert 'would: node 1: 512 hugepages of 2 MiB (had 0)' in out
    assert 'would: 0000:3c:00.0: e1000e (eth2) -> vfio-pci (NUMA node 1, IOMMU group' in out
    assert (driver(bench, VIRTIO), driver(bench, E1000E)) == ('virtio-pci', 'e1000e')
    assert (pages(bench, 0, 'nr'), pages(bench, 1, 'nr')) == (0, 0)


def test_vfio_takes_the_cards_from_the_kernel(bench, guide):
    out = bench.check(guide.command('config/setup-host.sh --hugepages'))
    assert '0000:3b:00.0: virtio-pci (eth0) -> vfio-pci (NUMA node 1, IOMMU group' in out
    assert (driver(bench, VIRTIO), driver(bench, E1000E)) == ('vfio-pci', 'vfio-pci')
    assert (pages(bench, 0, 'nr'), pages(bench, 1, 'nr')) == (512, 512)
    assert bench.check('ls /sys/class/net').split() == ['eth1', 'lo']


def test_configuration_is_checked_without_starting(bench, guide):
    bench.check(guide.command('cp config/bare-metal.json'))
    bench.check("sed -i 's/\"poll\"/\"backoff\"/' /etc/polca.json")
    out = bench.check(guide.command('polca -c /etc/polca.json --print-config'))
    assert '"hugepages": true' in out and '"device": "0000:3c:00.0"' in out


def test_polca_starts_and_has_nothing_to_complain_of(bench, guide):
    out = bench.start_polca(guide.command('polca -c /etc/polca.json'))
    assert 'ready: 2 ports, 2 workers' in out
    assert 'engine: ' not in out and 'EAL: ' not in out, out


def test_ports_are_on_the_cards_node(bench, guide):
    assert 'net_virtio' in bench.check(guide.command('polca-ctl port list'))
    p0, p1 = bench.ask('polca-ctl port list')['ports']
    assert (p0['driver'], p1['driver']) == ('net_virtio', 'net_e1000_em')
    assert [(p['numa_node'], p['memory_node']) for p in (p0, p1)] == [(1, 1)] * 2
    assert [p['active_mtu'] for p in (p0, p1)] == [4096] * 2


def test_workers_are_on_the_cards_node(bench, guide):
    bench.check(guide.command('polca-ctl worker list'))
    workers = bench.ask('polca-ctl worker list')['workers']
    assert [w['cpu'] for w in workers] == [2, 3]
    assert [(w['numa_node'], w['memory_node']) for w in workers] == [(1, 1)] * 2
    # the kernel's view of the threads
    out = bench.check('grep -h Cpus_allowed_list /proc/$(pidof polca)/task/*/status')
    assert {'2', '3'} <= set(re.findall(r'(\S+)$', out, re.M)), out


def test_hugepages_are_used_on_the_cards_node(bench):
    """The EAL itself takes one or two pages on its main lcore's node."""
    used = [pages(bench, n, 'nr') - pages(bench, n, 'free') for n in (0, 1)]
    assert used[0] <= 2 and used[1] > 20, used


def test_regions_are_on_the_cards_node(bench, guide):
    bench.check(guide.command('polca-ctl pd create'))
    out = bench.check(guide.command('polca-ctl mr register'))
    assert re.search(r'^numa_node +1$', out, re.M) and re.search(r'^hugepages +yes$', out, re.M), out
    bench.check(guide.command('polca-ctl mr list'))
    region, = bench.ask('polca-ctl mr list')['regions']
    assert (region['numa_node'], region['hugepages'], region['length']) == (1, True, 16 << 20)
    # and on another node if requested
    out = bench.check('polca-ctl mr register 1 --length 4M --numa-node 0')
    assert re.search(r'^numa_node +0$', out, re.M), out


def test_one_binary_for_all_cpus(bench, guide):
    """The binary was built on another CPU, and runs on the oldest one that DPDK supports."""
    assert 'portable' in bench.check(guide.command('polca-ctl version get'))
    flags = set(bench.check('grep -m1 ^flags /proc/cpuinfo').split())
    assert 'sse4_2' in flags and not {'pclmulqdq', 'avx', 'avx2', 'bmi2', 'aes'} & flags


# ---- traffic

def exchanged(bench, address, size, count):
    """rping of the Linux host: it sends, Polca reads and writes; -V compares the data."""
    bench.peer.rping('rping -c -a %s -p 7174 -V -S %d -C %d' % (address, size, count), 120)


def service(bench, kind):
    s, = (s for s in bench.ask('polca-ctl cm services')['services'] if s['kind'] == kind)
    return s


def test_rping_through_the_virtio_card(bench, guide):
    bench.check(guide.command('polca-ctl cm listen rping'))
    with bench.captured('card0', MACS['card0']):
        bench.peer.rping(guide.command('rping -c'), 120)
        exchanged(bench, '2001:db8:1::1', 20000, 5)
    s = service(bench, 'rping')
    assert (s['exchanges'], s['mismatches'], s['errors'], s['established']) == (25, 0, 0, 2)


def test_rping_through_the_intel_card(bench):
    with bench.captured('card1', MACS['card1']):
        exchanged(bench, '10.0.1.1', 4000, 20)
        exchanged(bench, '10.0.1.1', 65000, 5)
    s = service(bench, 'rping')
    assert (s['exchanges'], s['mismatches'], s['errors'], s['established']) == (50, 0, 0, 4)


def test_perftest(bench, guide):
    bench.check(guide.command('polca-ctl cm listen perftest'))
    line = guide.command('ib_write_bw')
    for command in (line, line.replace('10.0.0.1', '10.0.1.1'),
                    line.replace('ib_write_bw', 'ib_read_bw')):
        out = bench.peer.check(command, 120)
        assert 'rror' not in out, out
        row = re.search(r'^ *65536 +200 +([\d.]+) ', out, re.M)
        assert row and float(row.group(1)) > 0, out
        assert re.search(r'Mtu +: 4096\[B\]', out), out


def test_polca_connects(bench, guide):
    for line in (guide.command('rping -s'), ):
        job = bench.peer.spawn(line)
    wait_until(lambda: ' 7175' in bench.peer.check('rdma resource show cm_id') or
               ':7175' in bench.peer.check('rdma resource show cm_id'), timeout=30, step=0.3)
    out = bench.check(guide.command('polca-ctl cm connect'), 90)
    assert re.search(r'20', out), out
    assert job.wait(60).status == 0, job.output()


def test_services_and_counters(bench, guide):
    bench.check(guide.command('polca-ctl cm services'))
    bench.check(guide.command('polca-ctl stats get'))
    stats = bench.ask('polca-ctl stats get')
    for row in stats['ports']:
        verdicts = sum(row['served'].values()) + sum(row['dropped'].values())
        assert row['rx_packets'] > 100 and verdicts == row['rx_packets'], row
        assert row['dropped'].get('icrc', 0) == 0 and row['tx_full'] == 0
    # the cards wrote to permitted addresses only
    assert 'fault' not in bench.check('dmesg | grep DMAR')


def test_kernel_has_its_cards_again(bench, guide):
    bench.stop_polca()
    out = bench.check(guide.command('config/setup-host.sh --undo'))
    assert '0000:3b:00.0: vfio-pci -> virtio-pci' in out
    assert '0000:3c:00.0: vfio-pci -> e1000e' in out
    assert (driver(bench, VIRTIO), driver(bench, E1000E)) == ('virtio-pci', 'e1000e')
    assert (pages(bench, 0, 'nr'), pages(bench, 1, 'nr')) == (0, 0)
    assert bench.check('ls /sys/class/net').split() == ['eth0', 'eth1', 'eth2', 'lo']


def test_every_command_of_the_section_was_run(guide):
    assert guide.left() == []
