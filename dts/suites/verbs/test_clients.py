# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Programs as an operator sees them, their limits, and what is left of one that is killed."""

import errno
import json
import os
import re
import subprocess
import time

import pytest

from conn import wait_until
from net import Namespace
from polca import Polca, port
from scale import scaled
from verbs import PATIENT, Job, Programs, best_of_rounds

TEST_SECONDS = scaled(180, 3600)
PORT = 19000
LISTS = (('qp_list', 'qps'), ('cq_list', 'cqs'), ('mr_list', 'regions'), ('pd_list', 'domains'),
         ('srq_list', 'srqs'), ('client_list', 'clients'))


def left(p):
    """How many there are of each object; qp_list and mr_list have more pages than one."""
    return [len(p.rpc(method, max=1000)[key]) for method, key in LISTS]


@pytest.fixture
def appliance(sockets, built_in, kept):
    """appliance(limits of the engine, options of verbs): it, and the programs that run on it."""
    path = os.path.join(sockets, 'own-verbs')
    started = []

    def start(limits, ports=None, ns=None, **verbs):
        p = Polca(sockets, ports or built_in['ports'], workers=2, name='own', limits={**PATIENT, **limits}, ns=ns,
                  verbs={'enabled': True, 'socket': path, **verbs})
        p.__enter__()
        started.append((p, Programs(path, kept)))
        return started[-1]
    yield start
    for p, programs in started:
        programs.close()
        assert p.alive(), p.tail()
        p.__exit__(None, None, None)


def test_client_list(polca, programs):
    argv = ('-g', '0', '-p', PORT, '-n', '100000000')
    server = programs.spawn('ibv_rc_pingpong', *argv, '-d', 'polca0')
    server.wait_listening(PORT)
    client = programs.spawn('ibv_rc_pingpong', *argv, '-d', 'polca1', 'localhost')

    def rows():
        return {r['pid']: r for r in polca.rpc('client_list')['clients']}
    wait_until(lambda: len(rows()) == 2 and all(r['completed'] > 1000 for r in rows().values()), timeout=20)
    before = rows()
    for job, device in (server, 0), (client, 1):
        r = before[job.proc.pid]
        assert (r['user'], r['command'], r['port'], r['contexts']) == ('root', 'ibv_rc_pingpong', device, 1)
        assert (r['qps'], r['cqs'], r['srqs'], r['pds'], r['regions'], r['windows']) == (1, 1, 0, 1, 1, 0)
        assert (r['bytes'], r['refused']) == (4096, 0)
        assert r['worker'] in (0, 1) and r['posted'] >= r['completed'] - 1000
    wait_until(lambda: all(r['posted'] > before[pid]['posted'] for pid, r in rows().items()), timeout=20)
    table = polca.ctl('client', 'list').stdout.splitlines()
    assert table[0].split()[:5] == ['id', 'pid', 'user', 'command', 'port'] and len(table) == 3
    assert '4 KiB' in table[1] and 'ibv_rc_pingpong' in table[1]
    listed = json.loads(polca.ctl('--json', 'client', 'list').stdout)['clients']
    assert {r['pid'] for r in listed} == {server.proc.pid, client.proc.pid}
    counters = polca.rpc('stats_get')['clients']
    assert counters['posted'] >= sum(r['posted'] for r in before.values())
    metrics = polca.ctl('stats', 'metrics').stdout
    assert 'polca_clients 2\n' in metrics and 'polca_clients_queue_pairs 2\n' in metrics
    for job in (server, client):
        job.kill()
    wait_until(lambda: not rows(), timeout=20)
    # what ended programs did stays counted
    assert polca.rpc('stats_get')['clients']['posted'] >= counters['posted']


def test_two_devices_of_one_program(polca, programs):
    probe = programs.probe('death', 'polls')
    probe.wait_line('ready')
    rows = sorted(polca.rpc('client_list')['clients'], key=lambda r: r['port'])
    assert [(r['pid'], r['port'], r['contexts'], r['command']) for r in rows] == [
        (probe.proc.pid, 0, 2, 'verbs_probe'), (probe.proc.pid, 1, 2, 'verbs_probe')]


def test_limits_are_those_of_the_device(appliance):
    """ENOMEM, or for channels EMFILE, as a kernel driver says; ibv_query_device() tells the limits."""
    p, programs = appliance({}, max_clients=3, max_qp=7, max_cq=6, max_srq=3, max_pd=5, max_mr=9, max_mw=8,
                            max_channels=4, mr_mb=2)
    text = programs.run('ibv_devinfo', '-v', '-d', 'polca0')
    told = {k: int(v, 0) for k, v in re.findall(r'^\t(max_\w+):\s+(\w+)$', text, re.M)}
    wanted = {'qp': 7, 'cq': 6, 'srq': 3, 'pd': 5, 'mr': 9, 'mw': 8, 'mr_size': 2 << 20}
    assert {k: told['max_' + k] for k in wanted} == wanted
    probe = programs.probe('limits')
    probe.end()
    assert dict(re.findall(r'^(\w+): (\d+)$', probe.output(), re.M)) == {
        'contexts': '3', 'pds': '5', 'cqs': '6', 'qps': '7', 'srqs': '3', 'regions': '9', 'windows': '8',
        'channels': '4'}
    assert p.rpc('stats_get')['clients']['refused'] >= 10
    assert left(p) == [0] * len(LISTS)


# Opens a device, and makes so many completion queues, or fewer; keeps them until its input ends.
HOG = '''
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
def ask(code, body):
    s.send(struct.pack('<II', code, 0) + body)
    reply = s.recv(4096)
    return struct.unpack_from('<i', reply)[0], reply[8:].split(bytes(1))[0]
assert ask(0, struct.pack('<QIIQII', 0x61636c6f70000001, 1, 2, 0, 0, 0))[0] == 0
made = 0
while made < int(sys.argv[2]):
    error, text = ask(8, struct.pack('<QII', 0, 16, 0xffffffff))
    if error:
        print('error %d: %s' % (error, text.decode()))
        break
    made += 1
print('has %d' % made, flush=True)
sys.stdin.read()
'''


@pytest.fixture
def hog(kept):
    """hog(socket, completion queues, uid): the job, once it has them, and its output."""
    jobs = []

    def start(path, wanted, uid):
        job = Job(os.path.join(kept, 'hog-%d.log' % len(jobs)), [
            'setpriv', '--reuid=%d' % uid, '--regid=%d' % uid, '--clear-groups',
            '/usr/bin/python3', '-c', HOG, path, str(wanted)], os.environ, stdin=subprocess.PIPE)
        jobs.append(job)
        wait_until(lambda: 'has ' in job.output(), timeout=20)
        return job
    yield start
    for job in jobs:
        job.kill()


def test_limits_of_a_user(appliance, sockets, hog):
    """Two programs of an ordinary user share its limit; root and another user have their own."""
    p, programs = appliance({}, max_user_cq=5, mode='0666')
    os.chmod(sockets, 0o711)
    path, alice, bob = programs.socket, 65533, 65532
    text = 'cq: all 5 of the user are in use (verbs.max_user_cq)'
    first = hog(path, 3, alice)
    second = hog(path, 3, alice)
    assert second.output().splitlines() == ['error %d: %s' % (errno.ENOMEM, text), 'has 2']
    line = re.compile(r'verbs: limit reached: cq_create by user .*%d.*, process %d: %s' % (
        alice, second.proc.pid, re.escape(text)))
    wait_until(lambda: any(map(line.match, p.tail(10000).splitlines())), timeout=10)
    for uid in bob, 0:
        assert 'has 5' in hog(path, 5, uid).output()
    users = {u['user']: (u['clients'], u['cqs'], u['max_cqs']) for u in p.rpc('client_users')['users']}
    assert users == {'root': (1, 5, 5), str(bob): (1, 5, 5), str(alice): (2, 5, 5)}
    assert len(p.ctl('client', 'users').stdout.splitlines()) == 4
    first.kill()
    wait_until(lambda: len(p.rpc('client_list')['clients']) == 3, timeout=20)
    assert 'has 3' in hog(path, 4, alice).output()


def test_a_limit_shows_at_the_client(appliance):
    p, programs = appliance({}, max_qp=1)
    probe = programs.probe('victim', 2)
    assert probe.proc.wait(20) == 1 and 'qp: all 1 are in use (verbs.max_qp)' in probe.output()
    probe = programs.probe('victim', 1)
    probe.wait_line('ready')
    assert [r['refused'] for r in p.rpc('client_list')['clients']] == [0]
    assert p.rpc('stats_get')['clients']['refused'] == 1


def number(job):
    job_number = []

    def found():
        job_number[:] = re.findall(r'^qpn (\d+)$', job.output(), re.M)
        return job_number
    wait_until(found, timeout=20)
    return job_number[0]


def kill_client(polca, job):
    """Kill the program; returns after how many milliseconds polca has nothing of it."""
    killed = time.monotonic()
    job.proc.kill()
    wait_until(lambda: job.proc.pid not in [r['pid'] for r in polca.rpc('client_list')['clients']], timeout=20)
    return (time.monotonic() - killed) * 1e3


def test_kill_9_of_a_program_with_1000_queue_pairs(polca, programs):
    """They are gone, and the peer of one gets no answer: IBV_WC_RETRY_EXC_ERR, and the rest flushed."""
    before = left(polca)
    victim, survivor = programs.probe('victim', 1000, 'connect'), programs.probe('survivor')
    victim.tell('peer ' + number(survivor))
    survivor.tell('peer ' + number(victim))
    victim.wait_line('ready')
    survivor.wait_line('connected')
    survivor.tell('send')
    survivor.wait_line('sent')
    kill_client(polca, victim)
    survivor.tell('it is dead')
    survivor.end()
    wait_until(lambda: left(polca) == before, timeout=20)


def test_1000_queue_pairs_are_gone_within_100_ms(polca, programs, capsys):
    """Of a program that is killed. What else runs here may spoil a round, not five."""
    def gone():
        victim = programs.probe('victim', 1000, 'pairs')
        victim.wait_line('ready')
        took = kill_client(polca, victim)
        assert left(polca) == before
        return took
    before = left(polca)
    with capsys.disabled():
        best_of_rounds('gone', gone, 100)


def memory_of(p):
    """Pages of the process that no file on a disk stands for, in KiB."""
    with open('/proc/%d/status' % p.proc.pid) as f:
        status = dict(re.findall(r'^(\w+):\s+(\d+) kB$', f.read(), re.M))
    return int(status['RssAnon']) + int(status['RssShmem'])


def test_programs_that_are_killed_leak_nothing(appliance):
    """Each uses a good part of all queue pairs that there are: if they leaked, the next programs would fail."""
    qps = 24
    p, programs = appliance({'max_qp': 64}, max_qp=qps)
    fds = '/proc/%d/fd' % p.proc.pid
    before = None
    for i in range(scaled(100, 10000)):
        probe = programs.probe('victim', qps)
        probe.wait_line('ready')
        probe.proc.kill()
        probe.proc.wait()
        os.unlink(probe.path)
        programs.jobs.remove(probe)
        probe.proc.stdin.close()
        wait_until(lambda: not p.rpc('client_list')['clients'], timeout=20)
        if i == 20:  # what is made once is there
            before = left(p), len(os.listdir(fds)), memory_of(p)
    objects, descriptors, kib = before
    assert left(p) == objects == [0] * len(LISTS)
    wait_until(lambda: len(os.listdir(fds)) == descriptors, timeout=10)
    # a page for each round would be more
    assert memory_of(p) < kib + scaled(80 * 4, 1024)


def test_programs_cannot_fill_the_neighbour_table(appliance):
    """Addresses that nobody has: so many of a user, whatever its programs name."""
    with Namespace() as ns:
        ns.veth('va0', 'va1')
        # both programs may get one worker, which has half of the queue pairs
        p, programs = appliance({'max_qp': 4096}, [port('port0', 'net_af_packet0,iface=va0', '10.79.0.1/16')], ns,
                                max_qp=600)
        jobs = [programs.probe('stranger', 600, i) for i in range(2)]
        for job in jobs:
            job.wait_line('done', timeout=60)
        named = sum(int(n) for job in jobs for n in re.findall(r'^named (\d+)$', job.output(), re.M))
        assert named == 256
        assert sum(r['refused'] for r in p.rpc('client_list')['clients']) == 1200 - named
        assert len(p.rpc('neighbour_list', max=1000)['neighbours']) <= 256 + 2
        for job in jobs:
            job.kill()
