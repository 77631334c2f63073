# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca's warnings at start when cards, CPUs and memory are on different NUMA nodes: it still
starts, and each warning says what to do. Both cards are on node 1, but in the last test."""

import json
import re

import pytest

from bare_metal import E1000E, NODE0, VIRTIO

TEST_SECONDS = 300


@pytest.fixture(autouse=True)
def put_back(bench):
    yield
    bench.stop_polca()
    bench.run('config/setup-host.sh --undo')


def configure(bench, setup, **eal):
    """Reserve hugepages and bind the cards; write the example's configuration with these keys of
    eal."""
    bench.check('config/setup-host.sh %s %s %s' % (setup, VIRTIO, E1000E))
    config = json.loads(bench.check('cat config/bare-metal.json'))
    config['eal'].update(eal)
    config['workers']['idle'] = 'backoff'
    bench.check("cat >/etc/polca.json <<'END'\n%s\nEND" % json.dumps(config))


def start(bench, setup, **eal):
    """The warnings of the appliance."""
    configure(bench, setup, **eal)
    out = bench.start_polca('polca -c /etc/polca.json')
    return sorted(re.findall(r'^engine: (.*)$', out, re.M))


def nodes(bench, what):
    return [r['memory_node'] for r in bench.ask('polca-ctl %s list' % what)[what + 's']]


def test_node_of_the_cards_has_no_hugepages(bench):
    """The virtio driver needs its rings on that node: the only case in which Polca does not
    start."""
    configure(bench, '--hugepages 512 --node 0')
    r = bench.run('polca -c /etc/polca.json')
    assert r.status == 1, r
    for port in ('port0', 'port1'):
        assert ('polca: %s is on NUMA node 1, which has no free hugepages: some drivers do not start '
                'so. Reserve some there with config/setup-host.sh --node 1 --hugepages 1024\n' % port
                ) in r.output, r
    assert ('polca: port0: device 0000:3b:00.0 cannot be opened (Cannot allocate memory): reserve more '
            'hugepages on its NUMA node: config/setup-host.sh --node NODE --hugepages MIB (--status shows its node and '
            'how many there are)\n') in r.output, r


def test_node_of_the_cards_has_too_few_hugepages(bench):
    """Enough for the drivers, but not for the packets."""
    bench.check('config/setup-host.sh --hugepages 512 --node 0')
    said = start(bench, '--hugepages 24 --node 1')
    assert [s for s in said if s.startswith('port')] == [
        'port%d is on NUMA node 1, its packet buffers are on node 0: node 1 has too few free '
        'hugepages. Reserve more with config/setup-host.sh --node 1 --hugepages MIB (--status shows '
        'how many there are), or set ports[].mbufs lower' % i for i in (0, 1)]
    assert nodes(bench, 'port') == [0, 0]
    bench.check('polca-ctl cm listen rping --port 7174')
    bench.peer.rping('rping -c -a 10.0.0.1 -p 7174 -V -S 4000 -C 3', 120)


def test_what_the_warning_says_helps(bench):
    assert start(bench, '--hugepages 512 --node 1') == []
    assert nodes(bench, 'port') == [1, 1] and nodes(bench, 'worker') == [1, 1]


def test_workers_of_another_node_than_the_cards(bench):
    """Each card has one receive queue, polled by worker 0."""
    said = start(bench, '--hugepages 512', lcores='0@3,1@0,2@2')
    assert said == [
        'port%d is on NUMA node 1, but is polled from another node, by worker 0. Give workers CPUs '
        'of node 1 (2-3) (eal.lcores), or put the card into a slot of theirs' % i for i in (0, 1)]
    workers = bench.ask('polca-ctl worker list')['workers']
    assert [(w['cpu'], w['numa_node'], w['memory_node']) for w in workers] == [(0, 0, 0), (2, 1, 1)]
    assert nodes(bench, 'port') == [1, 1]


def test_cards_without_hugepages(bench):
    """Behind an IOMMU it works as well."""
    said = start(bench, '--hugepages 0', hugepages=False)
    assert said == [
        'port%d is a network card, and eal.hugepages is false: every packet pays for it, and under '
        'uio_pci_generic nothing arrives. Reserve some with config/setup-host.sh --hugepages 1024 '
        'and set eal.hugepages' % i for i in (0, 1)]
    bench.check('polca-ctl cm listen rping --port 7174')
    for address in ('10.0.0.1', '10.0.1.1'):
        bench.peer.rping('rping -c -a %s -p 7174 -V -S 4000 -C 3' % address, 120)
    service, = bench.ask('polca-ctl cm services')['services']
    assert (service['exchanges'], service['mismatches']) == (6, 0)


def test_two_cards_on_two_nodes(bench):
    """Memory of regions and services is on the node of the port that uses it (design, rule 4)."""
    bench.check('config/setup-host.sh --hugepages 512 %s %s' % (VIRTIO, NODE0))
    config = json.loads(bench.check('cat config/bare-metal.json'))
    config['workers']['idle'] = 'backoff'
    config['ports'][1]['device'] = NODE0
    config['services'] = [{'kind': 'rping', 'port': 7174},
                          {'kind': 'rping', 'name': 'far', 'port': 7175, 'local_port': 1}]
    bench.check("cat >/etc/polca.json <<'END'\n%s\nEND" % json.dumps(config))
    bench.start_polca('polca -c /etc/polca.json')
    assert [p['numa_node'] for p in bench.ask('polca-ctl port list')['ports']] == [1, 0]
    assert nodes(bench, 'port') == [1, 0]
    assert sorted(nodes(bench, 'worker')) == [0, 1]
    bench.check('polca-ctl cm listen echo --port 7 --local-port 1')
    bench.check('polca-ctl pd create')
    bench.check('polca-ctl mr register 1 --length 1M')
    bench.check('polca-ctl mr register 1 --length 1M --local-port 1')
    bench.check('polca-ctl mr register 1 --length 1M --local-port 1 --hugepages')
    bench.check('polca-ctl mr register 1 --length 1M --local-port 1 --numa-node 1')
    regions = bench.ask('polca-ctl mr list')['regions']
    assert [r['numa_node'] for r in regions if not r['service']] == [1, 0, 0, 1], regions
    of_services = {(r['service'], r['numa_node']) for r in regions if r['service']}
    assert of_services == {('rping', 1), ('far', 0), ('echo', 0)}, regions
    assert 'NUMA' in bench.check('polca-ctl mr list').upper()
    bench.peer.rping('rping -c -a 10.0.0.1 -p 7174 -V -S 4000 -C 3', 120)
    bench.peer.rping('rping -c -a 10.0.1.1 -p 7175 -V -S 4000 -C 3', 120)
