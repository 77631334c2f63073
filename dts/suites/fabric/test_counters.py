# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Performance management (pma.md): perfquery and ibqueryerrors of infiniband-diags and ibdiagnet
of ibutils, unmodified from Debian, read and clear the appliance's counters, which does not
change its own statistics."""

import os
import re

import pytest

from conn import wait_until
from ibports import verdicts
from ibstation import IbStation
from smp import live
from umad import fields

NAMES = ['a']
WORDS = 72  # of a packet with a MAD, from LRH to ICRC, in units of 4 octets
TOOLS_MAC = '02:00:00:00:88:f0'


@pytest.fixture(scope='module')
def managed(subnet):
    subnet.opensm.start()
    wait_until(lambda: subnet.port('a')['state'] == 'ACTIVE')
    subnet.opensm.stop()  # its sweeps would change the counters
    return subnet


def perfquery(subnet, *args):
    r = subnet.bridge.run('perfquery', *args[:-1], subnet.lid('a'), args[-1])
    return {k: int(v, 0) for k, v in fields(r.stdout).items() if not k.startswith('#')}


def stats(subnet):
    row = subnet.polca['a'].rpc('stats_get', port=0)['ports'][0]
    return {k: row[k] for k in ('rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes')}


def damaged(subnet, n):
    """This many packets with a wrong VCRC arrive."""
    before = verdicts(subnet.polca['a'])['vcrc']
    station = IbStation(subnet.ns, 'ta', TOOLS_MAC, subnet.mac(0), 1, subnet.lid('a'))
    try:
        for _ in range(n):
            station.tx(live(1), qpn=1, vcrc_xor=4)
    finally:
        station.close()
    wait_until(lambda: verdicts(subnet.polca['a'])['vcrc'] == before + n)


def test_traffic_is_counted_in_units_of_four_octets(managed):
    """Every packet has a MAD: the tools' and the pings'. LRH to ICRC, no Ethernet, no VCRC."""
    perfquery(managed, '-x', '-R', 1)
    before = perfquery(managed, '-x', 1)
    managed.polca['a'].rpc('live_ping', dlid=1, count=10, timeout_ms=1)
    after = perfquery(managed, '-x', 1)
    sent = after['PortXmitPkts'] - before['PortXmitPkts']
    received = after['PortRcvPkts'] - before['PortRcvPkts']
    assert sent == 10 + 2 and received >= 2, (before, after)  # and two answers to perfquery
    assert after['PortXmitData'] - before['PortXmitData'] == WORDS * sent
    assert after['PortRcvData'] - before['PortRcvData'] == WORDS * received
    assert after['PortUnicastXmitPkts'] == after['PortXmitPkts']


def test_reset(managed):
    """perfquery -R and -r reset the counters; the statistics continue."""
    damaged(managed, 3)
    before = stats(managed)
    shown = perfquery(managed, '-r', 1)
    assert shown['PortRcvErrors'] >= 3 and shown['PortXmitPkts'] > 0
    now = perfquery(managed, 1)
    assert now['PortRcvErrors'] == 0 and now['PortXmitPkts'] < 5, now
    damaged(managed, 2)
    assert perfquery(managed, 1)['PortRcvErrors'] == 2
    managed.bridge.run('perfquery', '-R', managed.lid('a'), 1, '0xf000')  # data and packets only
    now = perfquery(managed, 1)
    assert now['PortRcvErrors'] == 2 and now['PortRcvPkts'] < 5
    managed.bridge.run('perfquery', '-x', '-R', managed.lid('a'), 1)
    assert perfquery(managed, '-x', 1)['PortRcvErrors'] == 0
    after = stats(managed)
    assert all(after[k] > before[k] for k in before), (before, after)


def test_all_ports(managed):
    r = managed.bridge.run('perfquery', '-a', managed.lid('a'))
    assert 'port 255 (CapMask: 0x9300)' in r.stdout and int(fields(r.stdout)['PortRcvPkts']) > 0


def test_samples_control(managed):
    got = fields(managed.bridge.run('perfquery', '-c', managed.lid('a'), 1).stdout)
    assert (got['CounterWidth'], got['CounterMask0'], got['SampleStatus']) == ('4', '0x01', '0')


def test_port_that_is_not_there(managed):
    r = managed.bridge.run('perfquery', managed.lid('a'), 2, check=False)
    assert r.returncode != 0 and 'failed: perfquery' in r.stdout, r


def errors_of(text):
    """ibqueryerrors' line of the appliance's port, or ''."""
    found = re.search(r'GUID 0x2c90300880001 port 1:(.*)', text)
    return found.group(1) if found else ''


@pytest.fixture
def manager(managed):
    """ibqueryerrors queries it for paths."""
    managed.opensm.start()
    yield managed
    managed.opensm.stop()


def test_ibqueryerrors(manager):
    perfquery(manager, '-R', 1)
    damaged(manager, 4)
    run = manager.bridge.run
    text = run('ibqueryerrors', '--data', check=False).stdout
    assert '[PortRcvErrors == 4 ' in errors_of(text), text
    run('ibqueryerrors', '-k', '-K', check=False)  # clear errors, and data
    text = run('ibqueryerrors', check=False).stdout
    assert errors_of(text) == '', text
    assert perfquery(manager, 1)['PortRcvErrors'] == 0


def ibdiagnet(subnet, *args):
    """Its output for the counters of each port: ibdiagnet.pm."""
    subnet.bridge.run('ibdiagnet', '-o', subnet.kept, *args)
    with open(os.path.join(subnet.kept, 'ibdiagnet.pm')) as f:
        ports = re.split(r'^-+\n(?=\S+/P1 lid)', f.read(), flags=re.M)
    mine, = [p for p in ports if 'guid=0x%016x' % subnet.guid('a') in p]
    return {k: int(v, 16) for k, v in re.findall(r'^(\w+) = (0x\w+)$', mine, re.M)}


def test_ibdiagnet(manager):
    perfquery(manager, '-R', 1)
    damaged(manager, 6)
    shown = ibdiagnet(manager, '-pm')
    assert shown['port_rcv_errors'] == 6 and shown['port_xmit_pkts'] > 0
    assert shown['port_xmit_data'] == WORDS * shown['port_xmit_pkts']
    ibdiagnet(manager, '-pc', '-pm')
    assert ibdiagnet(manager, '-pm')['port_rcv_errors'] == 0
