# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A memif peer shares memory with the appliance and can crash it: the configuration must say that
it is trusted, and a crash names the port."""

import contextlib
import os
import signal

import pytest

import time_limit
from conn import wait_until
from memifpeer import MemifClient
from polca import Polca, port


def memif(sockets, name):
    path = os.path.join(sockets, name)
    return path, 'net_memif0,role=server,id=0,socket-abstract=no,socket=' + path


def test_untrusted_peer_is_refused(sockets):
    _, device = memif(sockets, 'mu')
    row = dict(port('port0', device, '10.77.0.1/24'), trusted=False)
    text = Polca(sockets, [row], name='untrusted').fails()
    assert 'port0: trusted: a memif peer can crash this process' in text
    assert 'net_vhost' in text


@pytest.fixture(autouse=True)
def signals_end_the_process(monkeypatch):
    """AddressSanitizer would report them itself and exit."""
    monkeypatch.setenv('ASAN_OPTIONS', 'handle_segv=0:handle_sigbus=0')


@contextlib.contextmanager
def attacked(sockets, name):
    """An appliance with two memif ports; the peer of the second one is the attacker."""
    path, device = memif(sockets, name)
    _, other = memif(sockets, name + '-other')
    p = Polca(sockets, [
        port('other', other.replace('net_memif0', 'net_memif1').replace('id=0', 'id=1'),
             '10.78.0.1/24'),
        port('first', device, '10.77.0.1/24')], name='attacked-' + name)
    p.start()
    try:
        peer = MemifClient(path)
        wait_until(lambda: p.rpc('port_list')['ports'][1]['state'] == 'ACTIVE')
        peer.send(b'\xff' * 60)  # the ring works: a frame of no known type is counted
        wait_until(lambda: p.rpc('stats_get')['ports'][1]['rx_packets'] == 1)
        yield p, peer
        peer.close()
    finally:
        p.kill()


def only_first_is_named(p):
    assert 'polca: first: the memif peer gave a descriptor outside its memory' in p.tail()
    assert 'polca: other: the memif peer' not in p.tail()


def test_crash_by_a_peer_names_its_port(sockets):
    with attacked(sockets, 'far') as (p, peer):
        peer.offer(60, 0xF0000000)  # far behind everything: there may be memory behind the region
        assert p.proc.wait(time_limit.limit(30)) in (-signal.SIGSEGV, -signal.SIGBUS)
        only_first_is_named(p)
        p.proc = None


def test_region_taken_away_names_its_port(sockets):
    with attacked(sockets, 'cut') as (p, peer):
        peer.memory.close()
        os.ftruncate(peer.fd, 0)
        assert p.proc.wait(time_limit.limit(30)) == -signal.SIGBUS
        only_first_is_named(p)
        p.proc = None
