# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Programs and appliances that end, and programs that may not use the socket."""

import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import pytest

from conn import wait_until
from polca import Polca
from verbs import PATIENT, RUN, Job, Programs, best_of_rounds, copy_for_others

TEST_SECONDS = 120
PORT = 18700
CONFIG = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../config')
LINKS = os.path.join(CONFIG, 'systemd/polca-verbs.conf')
COMPLETION = os.path.join(CONFIG, 'completion/polca-run.bash')


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
    """A program that polls, or sleeps on its channel, gets a flushed completion, and the device comes back."""
    argv = ('ibv_rc_pingpong', '-g', '0', '-p', PORT, '-n', '100000000', *options)
    server = programs.spawn(*argv, '-d', 'polca0')
    server.wait_listening(PORT)
    client = programs.spawn(*argv, '-d', 'polca1', 'localhost')
    wait_until(lambda: polca.rpc('stats_get')['rc']['rx_send_requests'] > 100, timeout=20)
    polca.kill()
    for job in (server, client):
        assert job.proc.wait(20) == 1, job.output()
        assert 'Failed status Work Request Flushed Error (5)' in job.output(), job.output()
    polca.start()
    assert 'PORT_ACTIVE' in programs.run('ibv_devinfo')


@pytest.mark.parametrize('program', ['ib_write_bw', 'ib_send_bw', 'ib_read_lat'])
def test_kill_9_of_polca_ends_perftest(polca, programs, program):
    """In duration mode, which has no end of its own before the test's."""
    argv = (program, '-x', '0', '-F', '-D', '600', '-p', PORT)
    server = programs.spawn(*argv, '-d', 'polca0')
    server.wait_listening(PORT)
    client = programs.spawn(*argv, '-d', 'polca1', 'localhost')
    wait_until(lambda: sum(n for k, n in polca.rpc('stats_get')['rc'].items() if k.startswith('rx_')) > 1000,
               timeout=30)
    polca.kill()
    assert client.proc.wait(30) != 0, client.output()
    assert server.proc.wait(30) is not None
    polca.start()


@pytest.mark.parametrize('how', ['polls', 'sleeps'])
def test_kill_9_of_polca_flushes_all(polca, programs, how, capsys):
    """Full queues are flushed, each request once and in order; the device's fatal event comes; the memory is intact,
    and private; and the device can be opened again. Flushes and event come within a second."""
    def told():
        probe = programs.probe('death', how)
        probe.wait_line('ready')
        killed = time.monotonic() * 1e3
        polca.kill()
        probe.wait_line('flushed')
        polca.start()
        probe.tell('polca is back')
        probe.end()
        return max(map(int, re.search(r'flushed (\d+) fatal (\d+)', probe.output()).groups())) - killed
    with capsys.disabled():
        best_of_rounds('flushed, with the fatal event,', told, 1000)


@pytest.mark.parametrize('how', ['polls', 'sleeps'])
def test_a_stop_of_polca_flushes_all(polca, programs, how):
    """As when it is killed."""
    probe = programs.probe('death', how)
    probe.wait_line('ready')
    polca.stop()
    probe.wait_line('flushed')
    polca.start()
    probe.tell('polca is back')
    probe.end()


@pytest.mark.parametrize('what', ['cq', 'qp', 'srq'])
def test_destroy_waits_for_acknowledged_events(polca, programs, what):
    method, key = {'cq': ('cq_list', 'cqs'), 'qp': ('qp_list', 'qps'), 'srq': ('srq_list', 'srqs')}[what]

    def count():
        return len(polca.rpc(method)[key])
    probe = programs.probe('acknowledge', what)
    probe.wait_line('destroying')
    before = {'cq': 1, 'qp': 1, 'srq': 0}[what]
    wait_until(lambda: count() == before, timeout=20)
    probe.tell('polca has destroyed it')
    probe.wait_line('destroyed')
    probe.tell('go on')
    probe.end()


def test_a_closed_device_leaves_others_descriptors(programs):
    """Another thread may open a file in the midst of it."""
    programs.probe('close').end()


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


def test_the_tree_is_readable_under_any_umask(sockets, built_in):
    """The unit's umask is 0027, and members of a group read the tree."""
    path, old = os.path.join(sockets, 'umask-verbs'), os.umask(0o077)
    try:
        with Polca(sockets, built_in['ports'], workers=2, name='umask', verbs={'enabled': True, 'socket': path}):
            for d, _, names in os.walk(path + '.sys'):
                assert stat.S_IMODE(os.stat(d).st_mode) == 0o755, d
                for name in names:
                    assert stat.S_IMODE(os.stat(os.path.join(d, name)).st_mode) == 0o644, name
    finally:
        os.umask(old)


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


# a /dev of its own, with the package's links in it
DEVICES = '''set -e
mount -t tmpfs none /dev
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/urandom c 1 9
systemd-tmpfiles --create "$1"
shift
exec "$@"
'''


def test_a_member_without_polca_run(sockets, built_in, kept):
    """With the links that the package makes an ordinary member of the group needs one variable, and no preload."""
    path, gid = os.path.join(sockets, 'group-verbs'), 65532
    os.chmod(sockets, 0o711)
    with tempfile.TemporaryDirectory(prefix='polca-dts-') as d, \
            Polca(sockets, built_in['ports'], workers=2, name='group', limits=PATIENT,
                  verbs={'enabled': True, 'socket': path, 'mode': '0660'}):
        os.chmod(d, 0o755)
        os.chown(path, -1, gid)
        copy_for_others(d)
        env = dict(os.environ, SYSFS_PATH=path + '.sys', RDMAV_DRIVERS=os.path.join(d, 'provider/libpolca'))
        env.pop('LD_PRELOAD', None)

        def spawn(name, *argv, groups=gid):
            return Job(os.path.join(kept, name + '.log'), [
                'unshare', '-m', 'sh', '-c', DEVICES, 'sh', LINKS, 'setpriv', '--reuid=65533', '--regid=65533',
                '--groups=%d' % groups, *map(str, argv)], env)
        jobs = [spawn('member-devices', 'ibv_devices')]
        assert 'polca0' in jobs[0].end() and 'polca1' in jobs[0].output()
        jobs.append(spawn('stranger', 'ibv_devinfo', groups=65531))
        assert jobs[1].proc.wait(20) != 0 and 'Permission denied' in jobs[1].output()
        jobs.append(spawn('member-server', 'ibv_rc_pingpong', '-d', 'polca0', '-g', '0', '-p', PORT, '-c'))
        try:
            jobs[2].wait_listening(PORT)
            jobs.append(spawn('member-client', 'ibv_rc_pingpong', '-d', 'polca1', '-g', '0', '-p', PORT, '-c',
                              'localhost'))
            for job in jobs[2:]:
                assert re.search(r'\d+ iters in', job.end()) and 'invalid data' not in job.output(), job.output()
        finally:
            for job in jobs:
                job.kill()


@pytest.mark.parametrize('line,wanted', [
    ('polca-run --so', '--socket'), ('polca-run -s /tmp/x ibv_devin', 'ibv_devinfo'),
    ('polca-run ibv_devin', 'ibv_devinfo')])
def test_completion_of_polca_run(line, wanted):
    script = '''. "$1"
COMP_WORDS=($2) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$2 COMP_POINT=${#2}
COMP_WORDS[0]=$3
_polca_run "$3" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"'''
    r = subprocess.run(['bash', '-c', script, 'bash', COMPLETION, line, RUN], stdout=subprocess.PIPE, text=True,
                       timeout=60, check=True)
    assert wanted in r.stdout.splitlines()


def test_a_user_who_is_not_admitted(polca, sockets, nobody):
    job = nobody(os.path.join(sockets, 'verbs.sock')).spawn('ibv_devinfo')
    assert job.proc.wait(20) != 0
    assert 'cannot open polca0' in job.output() and 'Permission denied' in job.output()


# Listens where polca would, and says how much a program sent.
PLANTED = '''import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
__import__('os').chmod(sys.argv[1], 0o666)
s.listen()
print('listens', flush=True)
while True:
    print('heard %d' % len(s.accept()[0].recv(4096)), flush=True)
'''
OTHER = 65532


@pytest.fixture
def planted(polca, programs, kept):
    """planted(directory): a user listens there, with polca's tree beside; returns the job."""
    made = []

    def plant(directory, user=OTHER):
        path = os.path.join(directory, 'verbs.sock')
        shutil.copytree(programs.socket + '.sys', path + '.sys', symlinks=True)
        for d, _, names in os.walk(path + '.sys'):
            if 'polca_socket' in names:
                with open(os.path.join(d, 'polca_socket'), 'w') as f:
                    f.write(path + '\n')
        made.append(Job(os.path.join(kept, 'planted-%d.log' % len(made)), [
            'setpriv', '--reuid=%d' % user, '--regid=%d' % user, '--clear-groups',
            '/usr/bin/python3', '-c', PLANTED, path], os.environ))
        made[-1].wait_line('listens')
        return made[-1]
    yield plant
    for job in made:
        job.kill()


def as_a_service(d, mode):
    """The directory of a service's user, below one of root's."""
    os.chmod(d, 0o755)
    os.mkdir(os.path.join(d, 'service'))
    os.chmod(os.path.join(d, 'service'), mode)
    os.chown(os.path.join(d, 'service'), OTHER, OTHER)
    return os.path.join(d, 'service')


def in_a_shared_directory(d, mode):
    os.chmod(d, mode)
    os.chown(d, OTHER, OTHER)
    return d


@pytest.mark.parametrize('where,mode,talks', [
    (in_a_shared_directory, 0o755, False), (as_a_service, 0o777, False), (as_a_service, 0o711, True)],
    ids=['shared', 'service-open-to-all', 'service'])
def test_another_users_socket(planted, nobody, where, mode, talks):
    """Nothing is told to a server that another user has put there; the user of a service is trusted."""
    with tempfile.TemporaryDirectory(prefix='polca-dts-') as d:
        d = where(d, mode)
        server = planted(d)
        job = nobody(os.path.join(d, 'verbs.sock')).spawn('ibv_devinfo', '-d', 'polca0')
        assert job.proc.wait(20) != 0
        assert ('Operation not permitted' in job.output()) != talks, job.output()
        wait_until(lambda: 'heard' in server.output(), timeout=20)
        assert ('heard 0\n' in server.output()) != talks, server.output()


@pytest.mark.parametrize('own,mode,talks', [(False, 0o755, False), (True, 0o755, False), (True, 0o700, True)],
                         ids=['of another', 'open to others', 'as polca makes it'])
def test_directory_in_tmp(planted, nobody, own, mode, talks):
    """Where a polca of this user's own has its socket, which another user could have made before."""
    uid = 10_000_000 + os.getpid()
    d = '/tmp/polca-%d' % uid
    os.mkdir(d)
    try:
        owner = uid if own else OTHER
        os.chown(d, owner, owner)
        os.chmod(d, mode)
        server = planted(d, owner)
        env = {k: v for k, v in os.environ.items() if k not in ('XDG_RUNTIME_DIR', 'POLCA_VERBS_SOCKET')}
        job = Job(server.path + '-program', [
            'setpriv', '--reuid=%d' % uid, '--regid=%d' % uid, '--clear-groups', nobody(None).prefix[-1],
            'ibv_devinfo', '-d', 'polca0'], env)
        try:
            job.proc.wait(20)
            assert (d in job.output()) == talks, job.output()
            if talks:
                wait_until(lambda: 'heard' in server.output(), timeout=20)
            assert ('heard' in server.output()) == talks, server.output()
        finally:
            job.kill()
    finally:
        shutil.rmtree(d)
