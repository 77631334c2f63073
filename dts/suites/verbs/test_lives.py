# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Programs and appliances that end, and programs that may not use the socket."""

import os
import re
import signal
import stat
import tempfile

import pytest

from conn import wait_until
from polca import Polca
from verbs import PATIENT, Programs, copy_for_others

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


def test_what_is_in_the_trees_place_is_replaced(sockets, built_in, tmp_path):
    """Where the tree would be, somebody has put a link to a directory: nothing is written there."""
    path = os.path.join(sockets, 'linked-verbs')
    os.symlink(tmp_path, path + '.sys')
    with Polca(sockets, built_in['ports'], workers=2, name='linked', verbs={'enabled': True, 'socket': path}):
        assert os.listdir(tmp_path) == [] and not os.path.islink(path + '.sys')
    # a file in its place is replaced
    with open(path + '.sys', 'w') as f:
        f.write('a file')
    with Polca(sockets, built_in['ports'], workers=2, name='linked', verbs={'enabled': True, 'socket': path}):
        assert os.path.isdir(path + '.sys')


def test_a_closed_polca_is_said(programs):
    programs.socket += '-none'
    job = programs.spawn('ibv_devices')
    assert job.proc.wait(20) == 1
    assert 'is polca running, with verbs enabled?' in job.output()


@pytest.fixture
def nobody(sockets, kept):
    """nobody(socket): programs run as an ordinary user, who may enter the sockets' directory."""
    os.chmod(sockets, 0o711)
    with tempfile.TemporaryDirectory(prefix='polca-dts-') as d:
        os.chmod(d, 0o755)
        run = copy_for_others(d)
        made = []

        def programs(socket):
            made.append(Programs(socket, kept, run=run, prefix=(
                'setpriv', '--reuid=65533', '--regid=65533', '--clear-groups')))
            return made[-1]
        yield programs
        for p in made:
            p.close()


def test_an_ordinary_user(sockets, built_in, nobody):
    """Without any capability, and where the mode admits it."""
    path = os.path.join(sockets, 'open-verbs')
    with Polca(sockets, built_in['ports'], workers=2, name='open', limits=PATIENT,
               verbs={'enabled': True, 'socket': path, 'mode': '0666'}):
        programs = nobody(path)
        for text in programs.pair(PORT, 'ibv_rc_pingpong', '-g', '0', '-c', '-e'):
            assert re.search(r'\d+ iters in', text) and 'invalid data' not in text, text
        for text in programs.pair(PORT, 'ib_write_bw', '-x', '0', '-F', '-n', '500'):
            assert 'BW peak' in text


def test_a_user_who_is_not_admitted(polca, sockets, nobody):
    job = nobody(os.path.join(sockets, 'verbs.sock')).spawn('ibv_devinfo')
    assert job.proc.wait(20) != 0
    assert 'cannot open polca0' in job.output() and 'Permission denied' in job.output()
