# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""polca-ctl smp, ping and lid of one appliance against another at the other end of its cable,
and queue pairs between the two by the LIDs of their configurations."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import capture
from hca import Hca
from ibports import ib_port
from net import Namespace
from polca import CTL_PROGRAM, Polca
from polcapair import PolcaPair

A_MAC, B_MAC = '02:00:00:00:99:01', '02:00:00:00:99:02'
A_GUID, B_GUID = 0x0002c90300990001, 0x0002c90300990002
KEY = '0x1122334455667788'


class Two:
    def __init__(self, kept, sockets):
        self.kept, self.ns = kept, Namespace()
        self.ns.veth('pv0', 'pv1', mac_a=A_MAC, mac_b=B_MAC)
        # a capture does not see frames sent on its own interface
        self.captures = [(mac, capture.Capture(self.ns, far, os.path.join(kept, far + '.pcap')))
                         for mac, far in ((A_MAC, 'pv1'), (B_MAC, 'pv0'))]
        self.a, self.b = (
            Polca(sockets, [ib_port('port0', interface, lid=lid, sm_lid=1, active=True,
                                    guid='0x%016x' % guid, pkeys=[0xffff, 0x8001])], ns=self.ns,
                  name=name, sma=dict(node_description='polca ' + name, node_guid='0x%016x' % guid),
                  live=dict(rate=0))
            for name, interface, lid, guid in (('a', 'pv0', 1, A_GUID), ('b', 'pv1', 2, B_GUID)))

    def close(self):
        for p in (self.a, self.b):
            p.kill()
            if os.path.exists(p.log):
                shutil.copy(p.log, self.kept)
        for _, c in self.captures:
            c.stop()
        self.ns.close()


@pytest.fixture(scope='module')
def two(kept, sockets):
    t = Two(kept, sockets)
    try:
        t.a.start()
        t.b.start()
        yield t
        t.a.stop()
        t.b.stop()
        for mac, c in t.captures:
            assert capture.check(c.stop().path, mac)['infiniband'] >= 1
    finally:
        t.close()


def ctl(two, *args, status=0):
    r = two.a.ctl(*args, check=False)
    assert r.returncode == status, r
    return r.stdout if status == 0 else r.stderr


def shown(text):
    """The fields that a command printed."""
    return {k: v for k, v in re.findall(r'^\s+(\w+) \.+ (.*?)\s*$', text, re.M)}


# ---- smp get and set

WAYS = pytest.mark.parametrize('way', [('--dlid', 2), ('--path', '0,1')], ids=['lid', 'route'])


@WAYS
def test_node_info(two, way):
    got = shown(ctl(two, 'smp', 'get', 'NodeInfo', *way))
    assert got == {
        'base_version': '1', 'class_version': '1', 'node_type': 'ca', 'num_ports': '1',
        'sys_guid': '0x%016x' % B_GUID, 'node_guid': '0x%016x' % B_GUID,
        'port_guid': '0x%016x' % B_GUID, 'partition_cap': '64', 'device_id': '0x1',
        'revision': '0x1', 'port_num': '1', 'vendor_id': '0x1405'}


def test_own_node_info(two):
    """Route 0: this port itself."""
    assert shown(ctl(two, 'smp', 'get', 'NodeInfo', '--path', '0'))['port_guid'] == \
        '0x%016x' % A_GUID


@WAYS
@pytest.mark.parametrize('attribute, key, value', [
    ('NodeDescription', 'node_desc', 'polca b'),
    ('pkeys', 'pkeys', '0xffff,0x8001' + ',0x0000' * 30),
    ('sl2vl', 'vls', '0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7'), ('guids', 'guid0', '0x%016x' % B_GUID),
    ('PortInfo', 'base_lid', '2'), ('PortInfo', 'port_state', 'active'),
    ('PortInfo', 'gid_prefix', '0xfe80000000000000'), ('LedInfo', 'led', '0'),
    ('Notice', 'type', 'empty')])
def test_attributes(two, way, attribute, key, value):
    assert shown(ctl(two, 'smp', 'get', attribute, *way))[key] == value


@WAYS
def test_set(two, way):
    """The answer to a Set shows the new values, and so does the other end's own Get."""
    try:
        got = shown(ctl(two, 'smp', 'set', 'PortInfo', 'vl_high_limit=7', *way))
        assert got['vl_high_limit'] == '7' and got['base_lid'] == '2'
        assert got['port_state'] == 'active'
        own = shown(two.b.ctl('smp', 'get', 'PortInfo', '--path', '0').stdout)
        assert own == got
    finally:
        ctl(two, 'smp', 'set', 'PortInfo', 'vl_high_limit=0', *way)


def test_set_of_raw_bytes(two):
    ctl(two, 'smp', 'set', 'pkeys', '--data', 'ffff80018002', '--dlid', 2)
    assert two.b.rpc('port_list')['ports'][0]['pkeys'][:3] == [0xffff, 0x8001, 0x8002]
    ctl(two, 'smp', 'set', 'pkeys', '--data', 'ffff8001', '--dlid', 2)
    assert two.b.rpc('port_list')['ports'][0]['pkeys'] == [0xffff, 0x8001]


@pytest.mark.parametrize('args, name', [
    (('get', 0x12), 'BAD_METHOD_ATTRIBUTE'), (('get', 'SMInfo'), 'BAD_METHOD_ATTRIBUTE'),
    (('get', 'PortInfo', '--modifier', 9), 'INVALID_FIELD'),
    (('set', 'PortInfo', 'base_lid=0'), 'INVALID_FIELD')], ids=str)
def test_status(two, args, name):
    """An error status of the other end: exit status 4, and its name."""
    r = two.a.ctl('smp', *args, '--dlid', 2, check=False)
    assert r.returncode == 4 and name in r.stderr, r


@pytest.mark.parametrize('where', [('--dlid', 9), ('--path', '0,1,1')], ids=['lid', 'route'])
def test_nobody_there(two, where):
    r = two.a.ctl('smp', 'get', 'NodeInfo', *where, '--timeout-ms', 50, '--retries', 1, check=False)
    assert r.returncode == 1 and 'no answer' in r.stderr, r


def test_m_key(two):
    """No answer without the key; with it, as before."""
    ctl(two, 'smp', 'set', 'PortInfo', 'm_key=' + KEY, 'm_key_protect_bits=2', '--dlid', 2)
    try:
        r = two.a.ctl('smp', 'get', 'PortInfo', '--dlid', 2, '--timeout-ms', 50, '--retries', 0,
                      check=False)
        assert r.returncode == 1 and 'no answer' in r.stderr, r
        got = shown(ctl(two, 'smp', 'get', 'PortInfo', '--dlid', 2, '--m-key', KEY))
        assert (got['m_key'], got['m_key_violations']) == (KEY, '1')
    finally:
        ctl(two, 'smp', 'set', 'PortInfo', 'm_key=0', 'm_key_protect_bits=0',
            'm_key_violations=0', '--dlid', 2, '--m-key', KEY)
    assert shown(ctl(two, 'smp', 'get', 'PortInfo', '--dlid', 2))['m_key'] == '0x0'


# ---- ping

STATISTICS = re.compile(r'^(\d+) packets transmitted, (\d+) received, (\d+)% packet loss', re.M)
RTT = re.compile(r'^rtt min/avg/max/mdev = ([\d.]+)/([\d.]+)/([\d.]+)/([\d.]+) us$', re.M)


def ping(two, *args, status=0):
    """Lines of replies, and the statistics."""
    r = two.a.ctl('ping', *args, check=False)
    assert r.returncode == status, r
    return re.findall(r'^\d+ bytes from .*$', r.stdout, re.M), \
        tuple(map(int, STATISTICS.search(r.stdout).groups())), r.stdout


@pytest.mark.parametrize('size', [0, 1, 56, 208, 209, 5000])
def test_echo(two, size):
    lines, counts, text = ping(two, 'lid:2', '-c', 3, '-i', 0, '-s', size)
    assert counts == (3, 3, 0) and len(lines) == 3
    for n, line in enumerate(lines):
        assert re.fullmatch(r'%d bytes from lid:2: seq=%d time=[\d.]+ us' % (8 + size, n + 1), line)
    low, mean, high, deviation = map(float, RTT.search(text).groups())
    times = [float(re.search(r'time=([\d.]+)', x).group(1)) for x in lines]
    assert (low, high) == (min(times), max(times)) and low <= mean <= high
    assert deviation <= high - low


def test_timestamps(two):
    lines, counts, _ = ping(two, 2, '-c', 2, '-i', 0, '--mode', 'timestamp')
    assert counts == (2, 2, 0)
    for line in lines:
        o, r, t, residence = map(int, re.search(
            r'originate=(\d+) receive=(\d+) transmit=(\d+) residence_ms=(\d+)$', line).groups())
        assert max(o, r, t) < 86400000 and residence == (t - r) % 86400000 < 1000
        assert min((r - o) % 86400000, (o - r) % 86400000) < 1000


def test_lid_and_guid(two):
    (line,), counts, _ = ping(two, 2, '-c', 1, '--mode', 'lidguid')
    assert counts == (1, 1, 0) and line.endswith(' us lid=2 guid=0x%016x' % B_GUID)


@pytest.mark.parametrize('mode, says', [('ibping', True), ('sysstat_ping', False),
                                        ('sysstat_host', True), ('sysstat_cpu', True)])
def test_other_modes(two, mode, says):
    (line,), counts, _ = ping(two, 2, '-c', 1, '--mode', mode)
    assert counts == (1, 1, 0) and bool(re.search(r' us: \S', line)) == says, line


def test_flood(two):
    lines, counts, text = ping(two, 2, '-c', 500, '-f')
    assert counts == (500, 500, 0) and lines == [] and RTT.search(text)


def test_quiet(two):
    lines, counts, text = ping(two, 2, '-c', 5, '-i', 0, '-q')
    assert counts == (5, 5, 0) and lines == [] and RTT.search(text)


def test_interval(two):
    then = time.monotonic()
    ping(two, 2, '-c', 3, '-i', 0.2)
    assert time.monotonic() - then >= 0.4


def test_deadline(two):
    """It ends by itself, without --count."""
    _, (sent, received, loss), _ = ping(two, 2, '-w', 0.5, '-i', 0.1)
    assert 1 <= sent <= 6 and sent == received


@pytest.mark.parametrize('more', [(), ('-f',)], ids=['each', 'flood'])
def test_no_answer(two, more):
    """All requests are lost: exit status 1, no times."""
    lines, counts, text = ping(two, 9, '-c', 2, '-i', 0, '-W', 0.05, *more, status=1)
    assert lines == [] and counts == (2, 0, 100) and not RTT.search(text)


def test_interrupted(two):
    """As with ping: the statistics are printed, and the exit status says whether any request was
    answered."""
    p = subprocess.Popen([CTL_PROGRAM, '-s', two.a.socket, 'ping', '2', '-i', '0.05'],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while 'seq=2' not in p.stdout.readline():  # the ping is running
        assert p.poll() is None
    p.send_signal(signal.SIGINT)
    text, _ = p.communicate(timeout=10)
    assert p.returncode == 0, text
    sent, received, _ = map(int, STATISTICS.search(text).groups())
    assert sent >= received >= 1 and sent - received <= 1


@pytest.mark.parametrize('args', [('nonsense',), (70000,), (), (2, '-c', 0), (2, '-i', -1)],
                         ids=str)
def test_bad_arguments(two, args):
    r = two.a.ctl('ping', *args, check=False)
    assert r.returncode == 2 and r.stderr.startswith('polca-ctl: '), r


# ---- LIDs

def test_lid_routes(two):
    """A LID is learned from received packets; a fixed route overrides it, and may be removed."""
    ping(two, 2, '-c', 1)

    def route():
        rows = [x.split() for x in ctl(two, 'lid', 'list').splitlines()[1:]]
        return {int(r[0]): (r[1], r[2]) for r in rows}.get(2)
    assert route() == (B_MAC, 'LEARNED')
    ctl(two, 'lid', 'set', '--lid', 2, '--mac', '02:00:00:00:99:77')
    assert route() == ('02:00:00:00:99:77', 'FIXED')
    ping(two, 2, '-c', 1, '-W', 0.1, status=1)
    ctl(two, 'lid', 'set', '--lid', 2, '--forget')
    assert route() is None
    ping(two, 2, '-c', 1)  # broadcast, and learned again
    assert route() == (B_MAC, 'LEARNED')


# ---- queue pairs

@pytest.mark.parametrize('mtu', [256, 1024])
def test_traffic(two, mtu):
    """All operations by LIDs without GIDs."""
    a, b = Hca(two.a), Hca(two.b)
    try:
        pair = PolcaPair(a, 1, b, 2, mtu=mtu)
        pair.all_operations(sizes=(0, 1, 255, 1024, 70000))
        pair.atomics()
    finally:
        a.close()
        b.close()
