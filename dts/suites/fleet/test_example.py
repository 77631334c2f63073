# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""config/fleet-example.sh, as its page shows it."""

import json
import os
import subprocess

import pytest

import guide
from fleet import until

SCRIPT = 'config/fleet-example.sh'
SET_NINE = SCRIPT + ' ctl 1 sa set service service_id=9 service_gid=::1 service_name=nine'


def run(command, check=True):
    """One command of the page; its output."""
    r = subprocess.run(command.split(), cwd=guide.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       stdin=subprocess.DEVNULL, text=True, timeout=100)
    assert not check or r.returncode == 0, (command, r.stdout)
    return r.stdout if check else (r.returncode, r.stdout)


def left():
    """What the example has on this host."""
    return [n for n in os.listdir('/run/netns') if n.startswith('polca-fleet-')] + [
        d for d in ('/run/polca-fleet',) if os.path.exists(d)]


def stored_ports():
    rows = json.loads(run(SCRIPT + ' ctl 1 sa export -'))['records']
    return sum(r['record'] == 'NodeRecord' for r in rows)


@pytest.fixture
def example():
    run(SCRIPT + ' stop')
    try:
        yield
    finally:
        run(SCRIPT + ' stop')


def test_page(example):
    commands = guide.Section('Try it', 'docs/fleet.md', twice=True).commands()
    start, set_seven, table, kill, status, again, isolate, query, join, stop = commands
    out = run(start)
    assert 'leads           yes' in out, out
    until('all of etcd are seen', lambda: run(status).count('http://10.91.0.') == 3)
    until('the ports of all three are stored', lambda: stored_ports() == 6)
    run(set_seven)
    assert 'seven' in run(table)
    run(kill)
    until('another one leads', lambda: 'leads           yes' in run(status))
    assert 'seven' in run(table)
    run(again)
    until('all are there', lambda: run(status).count('\n  polca') == 3)
    run(isolate)
    until('the second has noticed', lambda: 'connected       no' in run(SCRIPT + ' ctl 2 fleet status'))
    assert 'seven' in run(query)
    assert run(SCRIPT + ' ctl 2 sa set service service_id=8 service_name=eight', check=False)[0] != 0
    run(join)
    until('it is back', lambda: 'connected       yes' in run(SCRIPT + ' ctl 2 fleet status'))
    run(SCRIPT + ' kill etcd3')
    until('changes go on', lambda: run(SET_NINE, check=False)[0] == 0)  # etcd may have lost its leader
    run(stop)
    assert left() == []


@pytest.mark.parametrize('arguments, text', [
    ('frob', "no command 'frob'"), ('ctl', "'ctl' wants a machine"), ('ctl 9', "got machine '9'"),
    ('kill', "'kill' wants a machine"), ('kill etcd', "got machine ''"), ('isolate 0', "got machine '0'"),
    ('stop now', "'stop' takes nothing more, got 'now'")])
def test_wrong_arguments(arguments, text):
    status, out = run('%s %s' % (SCRIPT, arguments), check=False)
    assert status == 2 and text in out, out


def test_commands_before_the_start(example):
    for arguments in ('status', 'kill 1', 'ctl 1 fleet status', 'join 2'):
        status, out = run('%s %s' % (SCRIPT, arguments), check=False)
        assert status == 1 and 'starts' in out, out
