# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Two polca-bench processes, a network device each, the kernel's wire between them."""

import json
import os
import signal

import pytest

from net import Namespace


@pytest.fixture
def wire():
    with Namespace() as ns:
        ns.veth('b0', 'b1')
        yield ns


@pytest.mark.parametrize('driver', ['net_af_packet0', 'net_af_xdp0'])
@pytest.mark.parametrize('words', [('send', '-s', '64', '--check'), ('write', 'lat')], ids=' '.join)
def test_both_ends_of_a_veth_pair(bench, wire, sockets, driver, words):
    """Each resolves the other's address, and what is sent arrives."""
    where = ('--peer', os.path.join(sockets, 'devices'), '--no-huge')
    server = bench('server', '--link', driver + ',iface=b0', *where, ns=wire)
    server.says('waiting at')
    client = bench(*words, '-n', '500', '--json', '--link', driver + ',iface=b1', *where, ns=wire)
    assert client.ends() == 0, client.text
    assert server.ends() == 0, server.text
    report = json.loads(client.text[client.text.index('{'):])
    assert driver[:-1] in report['environment']['port']
    assert all(row['iterations'] >= 500 for row in report['tables'][0]['rows'])


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_memif_without_server_ends_at_once(bench, sockets, number):
    """One line says whom it waits for."""
    path = os.path.join(sockets, 'nobody')
    b = bench('send', '--no-huge', '--connect', '192.0.2.2:4791', '--link',
              'net_memif0,role=client,id=0,socket-abstract=no,socket=' + path)
    b.says('waiting for the memif server')
    b.signal(number)
    assert b.ends() == 1
    assert b.text == ('polca-bench: port0: waiting for the memif server at %s: start it, or stop this '
                      'one with Ctrl-C (gives up after 5 s)\n'
                      'polca-bench: port0: stopped while it waited for the memif server at %s\n'
                      % (path, path))
