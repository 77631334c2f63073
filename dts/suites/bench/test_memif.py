# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A run of two processes: the messages arrive unchanged, and if either side ends, however that
happens, the other reports it."""

import json
import os
import re
import signal

import pytest

from conn import wait_until

SHORT = ('-n', '2000', '--no-huge')
RUNS = [
    ('send', '-s', '64', '--check'), ('send', '-s', '9000', '-b', '--check', '-q', '3'),
    ('write', '-s', '9000', '--check'), ('read', '-s', '9000', '--check'), ('atomic', '--check'),
    ('atomic', '-A', 'cmp-swap', '--check'),
    ('send', 'lat', '--check'), ('write', 'lat'), ('read', 'lat'),
    ('send', '-a', '-s', '64'), ('send', '-s', '64', '--no-icrc', '-q', '100', '-t', '4'),
]


def pair(bench, memif, *words, **how):
    server = bench('server', *memif, '--no-huge')
    server.says('waiting at')
    return server, bench(*words, *memif, **how)


@pytest.mark.parametrize('words', RUNS, ids=[' '.join(w) for w in RUNS])
def test_two_processes(bench, memif, words):
    server, client = pair(bench, memif, *words, *SHORT, '--json')
    assert client.ends() == 0, client.text
    assert server.ends() == 0, server.text
    report = json.loads(client.text)
    assert 'net_memif' in report['environment']['port']
    table, = report['tables']
    assert all(row['iterations'] >= 2000 for row in table['rows'])
    if table['name'] == 'bw':
        assert all(row['requester_ns'] > 0 and row['responder_ns'] > 0 for row in table['rows'])


def test_zero_copy_on_hugepages(bench, memif, hugepages):
    zero_copy = (memif[0], memif[1] + ',zero-copy=yes')
    server = bench('server', *memif)
    server.says('waiting at')
    client = bench('write', '-s', '4096', '--check', *SHORT[:2], *zero_copy)
    assert client.ends() == 0, client.text
    assert server.ends() == 0, server.text


def test_zero_copy_without_hugepages_says_what_to_do(bench, memif):
    server, client = pair(bench, (memif[0], memif[1] + ',zero-copy=yes'), 'send', *SHORT)
    assert client.ends() == 1
    assert 'free hugepages' in client.text and 'vm.nr_hugepages' in client.text
    assert server.ends() == 1
    assert 'the other process: ' in server.text and 'vm.nr_hugepages' in server.text


def connected(pid, path):
    """True if the server has accepted a connection on its UNIX socket."""
    with open('/proc/%d/net/unix' % pid) as f:
        rows = [row.split() for row in f.read().splitlines()[1:]]
    return any(row[5] == '03' and row[7:] == [path] for row in rows)


def test_the_server_ends_before_it_begins(bench, memif):
    server = bench('server', *memif, '--no-huge')
    server.says('waiting at')
    client = bench('send', '-q', '50000', *memif, '--no-huge', '-D', '1000')
    path = memif[1].split('=')[1] + '.bench'
    wait_until(lambda: connected(server.process.pid, path))
    server.signal(signal.SIGINT)
    server.ends()
    assert client.ends() == 1
    assert 'polca-bench: the other process' in client.text


def test_over_tcp_instead_of_a_path(bench, memif):
    server = bench('server', *memif, '--no-huge', '--peer', '127.0.0.1:17471')
    server.says('waiting at 127.0.0.1:17471')
    client = bench('send', '-s', '64', *memif, *SHORT, '--peer', '127.0.0.1:17471')
    assert client.ends() == 0, client.text
    assert server.ends() == 0, server.text


def test_nobody_there(bench, memif):
    client = bench('send', *memif)
    assert client.ends() == 1
    assert 'no process listens on' in client.text and "start 'polca-bench server' first" in client.text


def test_two_servers_at_one_place(bench, memif):
    server = bench('server', *memif)
    server.says('waiting at')
    other = bench('server', *memif)
    other.says('another program listens on')
    assert other.ends() == 1
    # the first one is not affected
    client = bench('send', '-s', '64', *memif, *SHORT)
    assert client.ends() == 0, client.text
    assert server.ends() == 0, server.text


def running(bench, memif):
    server, client = pair(bench, memif, 'send', '-s', '64', '-D', '1000', '--no-huge')
    client.says('#bytes')
    return server, client


def test_the_server_is_killed(bench, memif):
    server, client = running(bench, memif)
    server.signal(signal.SIGKILL)
    assert client.ends() == 1
    assert 'polca-bench: the other process is gone' in client.text


def test_the_client_is_killed(bench, memif):
    server, client = running(bench, memif)
    client.signal(signal.SIGKILL)
    assert server.ends() == 1
    assert 'polca-bench: the other process is gone' in server.text


def test_files_that_a_killed_server_left_are_in_nobodys_way(bench, memif):
    path = memif[1].split('=')[1]
    server, client = running(bench, memif)
    for b in (server, client):
        b.signal(signal.SIGKILL)
        b.process.wait()
    assert os.path.exists(path)
    waiting = bench('server', *memif, '--no-huge')
    waiting.says('waiting at')
    waiting.signal(signal.SIGKILL)
    waiting.process.wait()
    assert os.path.exists(path + '.bench')
    server, client = pair(bench, memif, 'send', '-s', '64', *SHORT)
    assert client.ends() == 0, client.text
    assert server.ends() == 0, server.text
    assert not os.path.exists(path) and not os.path.exists(path + '.bench')


def test_the_user_ends_the_client(bench, memif):
    server, client = pair(bench, memif, 'send', '-s', '64', '-D', '1000', '--no-huge',
                          terminal=True)
    client.says('M messages/s')  # the live line
    client.signal(signal.SIGINT)
    assert client.ends() == 0
    assert server.ends() == 0
    assert re.search(r'^ *(.*\x1b\[K)? 64 +[0-9]{3,} ', client.text, re.M), client.text


def test_the_user_ends_the_server(bench, memif):
    server, client = running(bench, memif)
    server.signal(signal.SIGINT)
    assert server.ends() == 0
    assert client.ends() == 1
    assert 'the other process is gone' in client.text
