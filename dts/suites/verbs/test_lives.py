# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Programs and appliances that end, and programs that may not use the socket."""

import os
import signal
import stat

import pytest

from conn import wait_until

TEST_SECONDS = 120
PORT = 18700


def test_kill_9_of_a_program_leaves_nothing(polca, programs):
    before = len(polca.rpc('qp_list')['qps'])
    for _ in range(5):
        server = programs.spawn('ibv_rc_pingpong', '-d', 'polca0', '-g', '0', '-p', PORT)
        server.wait_listening(PORT)
        assert len(polca.rpc('qp_list')['qps']) == before + 1
        server.proc.send_signal(signal.SIGKILL)
        server.proc.wait()
        wait_until(lambda: len(polca.rpc('qp_list')['qps']) == before, timeout=10)
    assert [len(polca.rpc(m)[k]) for m, k in (('mr_list', 'regions'), ('cq_list', 'cqs'))] == [0, 0]


def test_objects_of_programs_are_not_the_control_sockets(polca, programs):
    server = programs.spawn('ibv_rc_pingpong', '-d', 'polca0', '-g', '0', '-p', PORT)
    server.wait_listening(PORT)
    qpn = polca.rpc('qp_list')['qps'][-1]['qp_num']
    r = polca.ctl('qp', 'destroy', qpn, check=False)
    assert r.returncode != 0 and 'belongs to a program on the verbs socket' in r.stderr


@pytest.mark.parametrize('options', [(), ('-e',)], ids=['polls', 'sleeps'])
def test_kill_9_of_polca_ends_programs(polca, programs, options):
    """A program that polls, or sleeps on its channel, is told by an error, and the device comes back."""
    argv = ('ibv_rc_pingpong', '-g', '0', '-p', PORT, '-n', '100000000', *options)
    server = programs.spawn(*argv, '-d', 'polca0')
    server.wait_listening(PORT)
    client = programs.spawn(*argv, '-d', 'polca1', 'localhost')
    wait_until(lambda: polca.rpc('stats_get')['rc']['rx_send_requests'] > 100, timeout=20)
    polca.kill()
    for job in (server, client):
        assert job.proc.wait(20) == 1, job.output()
        assert 'poll CQ failed -1' in job.output() or 'Failed to get cq_event' in job.output(), job.output()
    polca.start()
    assert 'PORT_ACTIVE' in programs.run('ibv_devinfo')


def test_mode_of_the_socket(polca, programs):
    assert stat.S_IMODE(os.stat(programs.socket).st_mode) == 0o600


def test_a_closed_polca_is_said(programs):
    programs.socket += '-none'
    job = programs.spawn('ibv_devices')
    assert job.proc.wait(20) == 1
    assert 'is polca running, with verbs enabled?' in job.output()
