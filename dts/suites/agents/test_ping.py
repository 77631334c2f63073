# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""ibping and ibsysstat against the appliance, and the appliance against their servers
(liveness 3)."""

import os
import re
import socket

import pytest

from conn import wait_until
from umad import ended

BRIDGE = {}
TOOLS_LID = 1


def domain():
    with open('/proc/sys/kernel/domainname') as f:
        return f.read().strip()


# the tools append a domain even if there is none
NAMES = (socket.gethostname(), socket.gethostname() + '.' + domain())


def cpus():
    """Model name and MHz of each CPU, as in /proc/cpuinfo."""
    with open('/proc/cpuinfo') as f:
        return re.findall(r'^model name\s*:\s*(.*)$', f.read(), re.M)


@pytest.fixture(params=['ibping', 'ibsysstat'])
def server(wire, request):
    """A tool's server behind the bridge, once it has registered."""
    mode = {'ibping': 'ibping', 'ibsysstat': 'sysstat_ping'}[request.param]
    log = os.path.join(wire.kept, request.param + '.out')
    proc = wire.bridge.popen([request.param, '-S'], log)
    try:
        wait_until(lambda: wire.polca.rpc('live_ping', dlid=TOOLS_LID, mode=mode,
                                          timeout_ms=100)['received'] == 1)
        yield request.param
        assert proc.poll() is None
    finally:
        ended(proc)


# ---- the tools query the appliance

def test_ibping(tool, polca):
    text = tool('ibping', '-c', '3', '-f', '2')
    assert re.search(r'^--- (.*) \(Lid 2\) ibping statistics ---$', text, re.M).group(1) in NAMES
    assert '3 packets transmitted, 3 received, 0% packet loss' in text


def test_ibping_says_who_answered(tool):
    text = tool('ibping', '-c', '1', '2')
    assert re.search(r'^Pong from (.*) \(Lid 2\): time \d+\.\d+ ms$', text, re.M).group(1) in NAMES


def test_ibping_of_another_vendor(wire):
    """The right class with another OUI: no answer (liveness 1)."""
    r = wire.bridge.run('ibping', '-c', '1', '-o', '0x32', '-t', '200', '2', check=False)
    assert '1 packets transmitted, 0 received, 100% packet loss' in r.stdout, r


def test_ibsysstat_ping(tool):
    assert tool('ibsysstat', '2').strip() == 'sysstat ping succeeded'


def test_ibsysstat_host(tool):
    assert tool('ibsysstat', '2', 'host').strip() in NAMES


def test_ibsysstat_cpu(tool):
    rows = re.findall(r'^cpu (\d+): model (.*) MHZ ([\d.]+)$', tool('ibsysstat', '2', 'cpu'), re.M)
    models = cpus()
    assert [int(n) for n, _, _ in rows] == list(range(len(models)))
    for (_, model, mhz), want in zip(rows, models):
        assert want.startswith(model) and float(mhz) > 0, (model, want)


def test_counters(polca, tool):
    before = polca.rpc('stats_get')['live']
    tool('ibping', '-c', '2', '-f', '2')
    tool('ibsysstat', '2', 'host')
    now = polca.rpc('stats_get')['live']
    assert now['ibping'] - before['ibping'] == 2 and now['sysstat'] - before['sysstat'] == 1


# ---- the appliance queries the tools

MODES = {'ibping': 'ibping', 'ibsysstat': 'sysstat_ping'}


def test_rpc_against_a_server(server, polca):
    r = polca.rpc('live_ping', dlid=TOOLS_LID, mode=MODES[server], count=3)
    assert (r['sent'], r['received']) == (3, 3)
    assert [row['sequence'] for row in r['replies']] == [1, 2, 3]
    for row in r['replies']:
        assert 'error' not in row and row['time_us'] > 0 and row['bytes'] == 216
    if server == 'ibping':
        assert {row['text'] for row in r['replies']} <= set(NAMES)


def test_rpc_asks_ibsysstat(server, polca):
    if server == 'ibping':  # not its class: no answer
        r = polca.rpc('live_ping', dlid=TOOLS_LID, mode='sysstat_host', timeout_ms=100)
        assert (r['sent'], r['received']) == (1, 0) and r['replies'][0]['error'] == 'TIMEOUT'
        return
    row, = polca.rpc('live_ping', dlid=TOOLS_LID, mode='sysstat_host')['replies']
    assert row['text'] in NAMES
    row, = polca.rpc('live_ping', dlid=TOOLS_LID, mode='sysstat_cpu', timeout_ms=5000)['replies']
    assert row['text'].count('model') >= 1, row


def test_command_against_a_server(server, polca):
    """A line for each answer, then the statistics that users of ping expect."""
    r = polca.ctl('ping', TOOLS_LID, '--mode', MODES[server], '-c', 3, '-i', 0)
    who = re.findall(r'^216 bytes from 1: seq=[123] time=[\d.]+ us(?:: (\S+))?$', r.stdout, re.M)
    assert len(who) == 3 and set(who) <= (set(NAMES) if server == 'ibping' else {''}), r
    assert '3 packets transmitted, 3 received, 0% packet loss' in r.stdout
    assert re.search(r'^rtt min/avg/max/mdev = ([\d.]+/){3}[\d.]+ us$', r.stdout, re.M), r


def test_command_that_nobody_answers(polca):
    """Exit status 1, all requests lost."""
    r = polca.ctl('ping', TOOLS_LID, '--mode', 'ibping', '-c', 2, '-i', 0, '-W', 0.1, check=False)
    assert r.returncode == 1, r
    assert '2 packets transmitted, 0 received, 100% packet loss' in r.stdout, r
