# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Two polca-bench processes, each with a network device, connected by the kernel."""

import json
import os
import signal
import subprocess

import pytest

from net import Namespace
from polca import BUILD

PROGRAM = os.path.join(BUILD, 'app/polca-bench/polca-bench')


@pytest.fixture
def wire():
    """Both ends in one namespace."""
    with Namespace() as ns:
        ns.veth('b0', 'b1')
        yield ns, ns


@pytest.fixture
def wires():
    """Each end in its own namespace, as on two hosts."""
    with Namespace() as near, Namespace() as far:
        near.veth_to('b0', far, 'b1')
        yield near, far


# not net_af_packet with both ends in one namespace: two processes may get the same fanout group
@pytest.mark.parametrize('driver,ends', [('net_af_packet0', 'wires'), ('net_af_xdp0', 'wires'),
                                         ('net_af_xdp0', 'wire')])
@pytest.mark.parametrize('words', [('send', '-s', '64', '--check'), ('write', 'lat')], ids=' '.join)
def test_both_ends_of_a_veth_pair(bench, request, sockets, driver, ends, words):
    """Each resolves the other's address, and the messages arrive."""
    near, far = request.getfixturevalue(ends)
    where = ('--peer', os.path.join(sockets, 'devices'), '--no-huge')
    server = bench('server', '--link', driver + ',iface=b0', *where, ns=near)
    server.says('waiting at')
    client = bench(*words, '-n', '500', '--json', '--link', driver + ',iface=b1', *where, ns=far)
    assert client.ends() == 0, client.text
    assert server.ends() == 0, server.text
    report = json.loads(client.text[client.text.index('{'):])
    assert driver[:-1] in report['environment']['port']
    assert all(row['iterations'] >= 500 for row in report['tables'][0]['rows'])


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_memif_without_server_ends_at_once(bench, sockets, number):
    """One line says what it waits for."""
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


# joins the fanout group of this process's ID, as another program would have done, and executes
# polca-bench
TAKE_AND_RUN = '''
import os, socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(('b0', 3))
group = (os.getpid() ^ socket.if_nametoindex('b1')) & 0xffff
s.setsockopt(263, 18, struct.pack('I', group | 0x9000 << 16))  # SOL_PACKET, PACKET_FANOUT
os.set_inheritable(s.fileno(), True)
os.execv(sys.argv[1], sys.argv[1:])
'''


def test_a_fanout_group_that_is_taken(wire):
    """net_af_packet's group is its process ID xor the interface's index, without anything
    random."""
    ns, _ = wire
    p = ns.popen(['/usr/bin/python3', '-c', TAKE_AND_RUN, PROGRAM, 'send', '--no-huge', '--link',
                  'net_af_packet0,iface=b1', '--connect', '192.0.2.2:4791'],
                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text, _ = p.communicate(timeout=60)
    assert p.returncode == 1
    assert ('polca-bench: port0: device net_af_packet0,iface=b1: another process has the packet fanout '
            'group ') in text
    assert 'start it again' in text
