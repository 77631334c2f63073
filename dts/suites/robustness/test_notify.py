# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What Polca tells a service manager (sd_notify(3)): ready, alive, stopping. The test is the service manager."""

import ctypes
import os
import signal
import socket
import time

import pytest

import time_limit
from conn import wait_until
from polca import Polca
from polcapair import back_to_back

WATCHDOG_MS = 400
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
libc = ctypes.CDLL(None, use_errno=True)


class ServiceManager:
    """A notification socket, and what has come in on it: one dict for each datagram."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)
        self.heard = []

    def listen(self):
        while True:
            try:
                text = self.socket.recv(4096).decode()
            except BlockingIOError:
                return self.heard
            self.heard.append(dict(line.split('=', 1) for line in text.split('\n')))

    def said(self, key):
        return [m for m in self.listen() if key in m]


@pytest.fixture
def service(request, tmp_path, monkeypatch):
    """A polca that a service manager started, and that manager. Its socket has a path, or an abstract name."""
    abstract = getattr(request, 'param', 'path') == 'abstract'
    name = '@polca-test-%d' % os.getpid() if abstract else str(tmp_path / 'notify')
    manager = ServiceManager(name.replace('@', '\0', 1))
    if not abstract:
        os.chmod(name, 0o777)  # as systemd's: polca is an ordinary user then
    monkeypatch.setenv('NOTIFY_SOCKET', name)
    monkeypatch.setenv('WATCHDOG_USEC', str(WATCHDOG_MS * 1000))
    polca = Polca(str(tmp_path), back_to_back())
    yield polca, manager
    polca.kill()
    manager.socket.close()


def worker_thread(pid):
    for tid in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/comm' % (pid, tid)) as f:
            if 'worker' in f.read():
                return int(tid)
    raise AssertionError('no worker thread')


def ptrace(request, tid):
    assert libc.ptrace(request, tid, None, None) == 0, os.strerror(ctypes.get_errno())


@pytest.mark.parametrize('service', ['path', 'abstract'], indirect=True)
def test_ready_when_the_control_socket_answers_then_stopping(service):
    polca, manager = service
    polca.start()
    wait_until(lambda: manager.said('READY'))
    assert manager.heard[0]['READY'] == '1'
    assert manager.heard[0]['STATUS'] == '2 ports, 1 worker, control socket ' + polca.socket
    polca.stop()
    assert manager.said('STOPPING') == manager.heard[-1:]
    assert len(manager.said('READY')) == 1


def test_a_configuration_that_cannot_start_is_never_ready(service):
    polca, manager = service
    polca.config['ports'][0]['device'] = 'net_af_packet0,iface=nosuch0'
    polca.fails()
    assert manager.listen() == []


def test_the_watchdog_is_fed_until_a_worker_hangs_and_again_when_it_polls(service, monkeypatch):
    polca, manager = service
    monkeypatch.delenv('POLCA_TRACE', raising=False)  # a thread has one tracer: here it is the test
    polca.start()
    wait_until(lambda: len(manager.said('WATCHDOG')) >= 3)
    tid = worker_thread(polca.proc.pid)
    ptrace(PTRACE_SEIZE, tid)
    ptrace(PTRACE_INTERRUPT, tid)  # only this thread stops; the control thread continues
    os.waitpid(tid, 0x40000000)  # __WALL
    wait_until(lambda: polca.rpc('worker_list')['workers'][0]['stalled'])
    manager.listen()
    fed = len(manager.said('WATCHDOG'))
    end = time.monotonic() + 5 * WATCHDOG_MS / 1000  # it would be fed ten times in that time
    while time.monotonic() < end:
        polca.rpc('version_get')  # the control thread is alive
        assert len(manager.said('WATCHDOG')) <= fed + 1  # one that was on its way
    ptrace(PTRACE_DETACH, tid)
    fed = len(manager.said('WATCHDOG'))
    wait_until(lambda: len(manager.said('WATCHDOG')) > fed)


def test_the_watchdog_of_another_process_is_not_fed(service, monkeypatch):
    polca, manager = service
    monkeypatch.setenv('WATCHDOG_PID', str(os.getpid()))
    polca.start()
    wait_until(lambda: manager.said('READY'))
    for _ in range(20):
        polca.rpc('version_get')
    polca.proc.send_signal(signal.SIGTERM)
    assert polca.proc.wait(time_limit.limit(30)) == 0
    polca.proc = None
    assert manager.said('STOPPING') and not manager.said('WATCHDOG')
