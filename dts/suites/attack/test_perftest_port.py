# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Clients of perftest's TCP port that say nothing or nonsense, from many addresses."""

import collections
import contextlib
import os
import re
import socket
import time

import pytest

from bystanders import ECHO
from cmpeer import STATION_IP6, Wire
from conn import wait_until
from perftest_client import Client

TCP, VERSION = 18517, b'6.06' + bytes(12)
SESSIONS, FLOOD = 64, 2000
PATIENCE = 5  # seconds for an answer; a silent client is closed after 10
THREAD = 'polca-perftest'  # reads the sockets


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets, sa={}, services=[
        dict(kind='perftest', port=TCP, tcp_port=TCP), dict(kind='echo', port=ECHO, size=1024)])
    try:
        w.ns.exec(['ip', 'link', 'set', 'lo', 'up'])
        w.polca.start()
        yield w
        w.audit(False)
    finally:
        w.close()


def dial(wire, last):
    """Connect from 127.0.0.last."""
    return wire.ns.call(socket.create_connection, ('127.0.0.1', TCP), PATIENCE,
                        ('127.0.0.%d' % last, 0))


def greeted(wire, last):
    """True if the port answers a client from this address."""
    with contextlib.suppress(ConnectionError, socket.timeout), dial(wire, last) as s:
        s.sendall(VERSION)
        return s.recv(16, socket.MSG_WAITALL) == VERSION
    return False


def test_silent_clients_block_nobody(wire, bystanders):
    with bystanders.unharmed():
        silent_clients(wire)
    # nobody else was named
    assert [n['gid'] for n in wire.polca.rpc('neighbour_list')['neighbours']] == [STATION_IP6]


def silent_clients(wire):
    held, slowest = collections.deque(), 0
    for n in range(FLOOD):
        held.append(dial(wire, 2 + n % 200))
        with contextlib.suppress(ConnectionError):
            held[-1].sendall(b'GET / HTTP/1.1' if n % 3 == 0 else VERSION if n % 3 == 1 else b'6')
        if len(held) > 2 * SESSIONS:
            held.popleft().close()
        if n % 100 == 99:  # all sessions are taken
            began = time.monotonic()
            assert wire.polca.rpc('worker_list')['workers']
            slowest = max(slowest, time.monotonic() - began)
            assert greeted(wire, 250)
    assert slowest < PATIENCE
    while held:
        held.pop().close()
    wait_until(lambda: greeted(wire, 1))


def thread_status(wire, tid):
    with open('/proc/%d/task/%d/status' % (wire.polca.proc.pid, tid)) as f:
        return dict(re.findall(r'(\w+):\s*(.*)', f.read()))


def wake_ups(wire, tid):
    """How often a thread has slept, and was woken."""
    return int(thread_status(wire, tid)['voluntary_ctxt_switches'])


def test_strangers_do_not_wake_the_control_thread(wire, bystanders):
    """Another thread reads what they send. It has no capabilities, although the link needs some."""
    control = wire.polca.proc.pid
    tids = [int(t) for t in os.listdir('/proc/%d/task' % control)]
    readers = [t for t in tids if thread_status(wire, t)['Name'] == THREAD]
    assert len(readers) == 1
    assert int(thread_status(wire, control)['CapEff'], 16) != 0
    for which in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb'):
        assert int(thread_status(wire, readers[0])[which], 16) == 0
    with bystanders.unharmed():
        before = wake_ups(wire, control), wake_ups(wire, readers[0])
        for n in range(FLOOD):
            with dial(wire, 2 + n % 200) as s:
                s.sendall(b'GET / HTTP/1.1\r\n')
                with contextlib.suppress(ConnectionError):
                    assert s.recv(1) == b''
        woken = [wake_ups(wire, t) - b for t, b in zip((control, readers[0]), before)]
    # the control thread has timers, a few a second
    assert woken[0] < FLOOD / 4 and woken[1] >= FLOOD / 2, woken


@pytest.mark.parametrize('victim', ['10.78.0.99', '10.78.0.1', '224.0.0.1'])
def test_address_of_somebody_else_is_refused(wire, bystanders, victim):
    """The address of a queue pair is that of the client's TCP connection."""
    with bystanders.unharmed(amplified=1):
        for n in range(16):
            with Client(wire, TCP, n) as client:
                assert not client.name(victim)
    assert [n['gid'] for n in wire.polca.rpc('neighbour_list')['neighbours']] == [STATION_IP6]
