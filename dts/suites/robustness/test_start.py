# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A failing start says in its last line what is missing and what to type. A run leaves nothing
behind: no runtime directory, no hugepages."""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

import hugepages
from conn import wait_until
from hca import Hca
from polca import BUILD, Polca, PROGRAM, port
from polcapair import A, B, back_to_back, PolcaPair

BENCH = os.path.join(BUILD, 'app/polca-bench/polca-bench')
NOBODY = 65534
ABI = subprocess.run(['pkg-config', '--modversion', 'libdpdk'], stdout=subprocess.PIPE, text=True,
                     check=True).stdout.split('.')
ABI = int(ABI[0]) + (int(ABI[1]) >= 11)

NO_INTERFACE = ('there is no interface "nosuch0": ip -brief link lists those there are')
# device, why, the user's uid
DEVICES = [
    ('net_af_packet0,iface=nosuch0', NO_INTERFACE, 0),
    ('net_af_xdp0,iface=nosuch0', NO_INTERFACE, 0),
    ('net_af_packet0', 'iface=NAME is missing, such as net_af_packet0,iface=eth0', 0),
    ('net_no_such0', 'DPDK has no driver net_no_such: a typing error, or a package is missing: '
     'apt-get install librte-net-no-such%d' % ABI, 0),
    ('nosuch0', 'neither a PCI address, such as 0000:3b:00.0, nor a vdev, such as '
     'net_af_packet0,iface=eth0', 0),
    ('lo', 'that is an interface of the kernel: give net_af_packet0,iface=lo, or the PCI address of its '
     'card', 0),
    ('0000:ff:1f.7', 'there is no such PCI device: config/setup-host.sh --status lists the network '
     'cards', 0),
    ('net_memif0,role=server,socket-abstract=no,socket=/nowhere/m',
     'there is no directory /nowhere for its socket: mkdir /nowhere', 0),
    ('net_af_packet0,iface=lo', 'this user may not open packet sockets: run it as root, or with the '
     'capabilities CAP_NET_RAW and CAP_NET_ADMIN', NOBODY),
    ('net_tap0,iface=ptap0', 'this user may not make interfaces by /dev/net/tun: run it as root, or '
     'with the capability CAP_NET_ADMIN', NOBODY),
]
IDS = ['%s-%s' % (d, 'root' if uid == 0 else 'nobody') for d, _, uid in DEVICES]


def run(program, *argv, uid=0, **kw):
    kw.setdefault('env', dict(os.environ))
    return subprocess.run((program, *argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=100, user=uid, group=uid, cwd='/',
                          extra_groups=[] if uid else None, **kw)


@pytest.fixture
def place(tmp_path):
    """A directory that any user may use, with a configuration in it."""
    for d in (tmp_path, *tmp_path.parents):
        if str(d).startswith('/tmp/pytest'):
            d.chmod(0o755)
    tmp_path.chmod(0o777)

    def configuration(ports, **more):
        path = tmp_path / 'polca.json'
        path.write_text(json.dumps(dict({'ports': ports}, **more)))
        return [PROGRAM, '-c', str(path), '-s', str(tmp_path / 'polca.sock')]

    def copy(program):
        """A copy that an ordinary user can read, wherever the source tree is."""
        return shutil.copy(program, tmp_path)
    configuration.copy = copy
    configuration.path = tmp_path
    configuration.env = dict(os.environ, RUNTIME_DIRECTORY=str(tmp_path),
                             XDG_RUNTIME_DIR=str(tmp_path))
    return configuration


def test_a_database_that_cannot_be_made_names_its_key(sockets):
    """With the setting that lets a systemd service write elsewhere."""
    config = os.path.join(sockets, 'path.json')
    with open(config, 'w') as f:
        json.dump({'sa': {'path': '/sys/class/nowhere'}, 'ports': [
            {'name': 'port0', 'back_to_back': 'port1', 'addresses': ['fe80::1/64']},
            {'name': 'port1', 'back_to_back': 'port0', 'addresses': ['fe80::2/64']}]}, f)
    r = subprocess.run([PROGRAM, '-c', config, '-s', os.path.join(sockets, 'path.sock')], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=60, env=dict(os.environ, INVOCATION_ID='0123'))
    assert r.returncode == 1 and 'polca: sa.path: /sys/class/nowhere: cannot make the directory' in r.stderr, r
    assert 'ReadWritePaths= in a drop-in' in r.stderr, r


# ---- devices

@pytest.mark.parametrize('device,why,uid', DEVICES, ids=IDS)
def test_a_device_that_cannot_be_used(place, device, why, uid):
    _, *words = place([port('port0', device, '10.0.0.1/24')])
    r = run(place.copy(PROGRAM), *words, uid=uid, env=place.env)
    assert r.returncode == 1, r.stdout
    assert r.stdout.splitlines()[-1] == 'polca: port0: device %s: %s' % (device, why)
    assert not (place.path / 'polca.sock').exists()


# for polca-bench, a word without a comma is the name of a link, not a device
@pytest.mark.parametrize('device,why,uid', [d for d in DEVICES if d[0] not in ('nosuch0', 'lo')],
                         ids=[i for i in IDS if not i.startswith(('nosuch0', 'lo-'))])
def test_polca_bench_says_the_same(place, device, why, uid):
    r = run(place.copy(BENCH), 'send', '--link', device, '--connect', '10.0.0.2:7174', '--no-huge', uid=uid,
            env=place.env)
    assert r.returncode == 1, r.stdout
    assert r.stdout.splitlines()[-1].endswith('device %s: %s' % (device, why)), r.stdout


# ---- arguments of the EAL

@pytest.mark.parametrize('extra,named', [
    ('--nonsense', '--nonsense'), ('--lcores=x', 'lcore'), ('--iova-mode=wrong', 'iova-mode'),
    ('--file-prefix=a%b', 'file-prefix'), ('-m 100 --socket-mem=100', '--socket-mem')])
def test_a_bad_argument_of_the_eal_is_one_line_that_names_it(place, extra, named):
    r = run(PROGRAM, '-s', str(place.path / 'polca.sock'), '--eal', extra, env=place.env)
    assert r.returncode == 1
    line, = r.stdout.splitlines()
    assert line.startswith('polca: DPDK rejects its arguments: '), line
    assert named in line.split('. Check ')[0], line
    assert line.endswith('. Check --eal "%s" and eal.args' % extra), line


def test_a_word_that_is_no_argument_of_the_eal(place):
    r = run(PROGRAM, '--eal', 'file-prefix=x', env=place.env)
    assert r.returncode == 1
    assert r.stdout == ('polca: eal: got "file-prefix=x", allowed: an option of DPDK\'s EAL, such as '
                        '--file-prefix=NAME\n')


@pytest.mark.parametrize('extra', ['--file-prefix=another', '--file-prefix another'])
def test_an_argument_given_again_replaces_the_default(place, extra):
    """DPDK 25.11 rejects repeated arguments."""
    p = subprocess.Popen([PROGRAM, '-s', str(place.path / 'polca.sock'), '--eal', extra + ' -m 600'],
                         env=place.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: (place.path / 'polca.sock').exists() or p.poll() is not None, timeout=60)
        assert os.listdir(place.path / 'dpdk') == ['another']
    finally:
        p.terminate()
        assert p.wait(30) == 0


# ---- resources that the host lacks

@pytest.mark.parametrize('program', [[PROGRAM], [BENCH, 'send', '--no-huge']],
                         ids=['polca', 'polca-bench'])
def test_a_missing_sys_module_is_named(place, program):
    r = run('unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /sys && exec "$@"', 'sh', *program,
            env=place.env)
    assert r.returncode == 1
    assert r.stdout.splitlines()[-1] == (
        "%s: DPDK does not start: there is no /sys/module here. Give this container or sandbox the "
        "host's /sys, read-only is enough" % os.path.basename(program[0]))


def test_too_few_hugepages_are_counted(place):
    with hugepages.free(20):
        free, total = (2 * hugepages.count()[n] for n in ('Free', 'Total'))
        r = run(*place(back_to_back(), eal={'hugepages': True, 'memory_mb': 2 * free}), env=place.env)
    assert r.returncode == 1
    assert r.stdout.splitlines()[-1] == (
        'polca: DPDK does not start (Cannot allocate memory): %d MiB of hugepages are needed, %d MiB of '
        '%d MiB are free. Reserve more: config/setup-host.sh --hugepages %d' % (
            2 * free, free, total, total + free))


# a /dev in which syslog is $1; all else in it is the host's, found at $2
PRIVATE_DEV = '''log=$1; dev=$2; shift 2
mkdir -p $dev && mount --rbind /dev $dev && mount -t tmpfs none /dev &&
ln -s $dev/* /dev && ln -sfn $log /dev/log && exec "$@"'''


@contextlib.contextmanager
def syslog(path):
    """Yields the words that run a program where syslog is ours, and what reads all that came."""
    log, dev = str(path / 'log'), str(path / 'dev')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as s:
        s.bind(log)
        os.chmod(log, 0o666)

        def read():
            lines = []
            with contextlib.suppress(BlockingIOError):
                while True:
                    lines.append(s.recv(65536).decode(errors='replace'))
            return lines
        try:
            yield ['unshare', '-m', 'sh', '-c', PRIVATE_DEV, 'sh', log, dev], read
        finally:
            os.unlink(log)


def test_what_goes_to_syslog_is_seen(tmp_path):
    """Whether or not this host has a syslog, which sees nothing of it."""
    with syslog(tmp_path) as (with_syslog, told):
        assert run(*with_syslog, sys.executable, '-c', 'import syslog; syslog.syslog("a line")').returncode == 0
        line, = told()
        assert line.rstrip('\0').endswith('a line')


@pytest.mark.parametrize('form', ['journal', 'json', 'plain'])
def test_why_dpdk_has_no_memory_is_logged_once(place, form):
    """DPDK's own lines have its priorities, and neither syslog nor a second form of them has them again."""
    with hugepages.free(20), syslog(place.path) as (with_syslog, told):
        free = 2 * hugepages.count()['Free']
        argv = place(back_to_back(), eal={'hugepages': True, 'memory_mb': 2 * free})
        r = run(*with_syslog, *argv, '--log-format', form, env=place.env)
        assert [line for line in told() if 'EAL' in line or 'polca' in line] == []
    assert r.returncode == 1
    lines = r.stdout.splitlines()
    if form == 'json':
        lines = [json.loads(line) for line in lines]
        level = {'error': 3, 'warning': 4, 'notice': 5, 'info': 6}
        lines = ['<%d>%s' % (level[line['level']], line['text']) for line in lines]
    if form == 'plain':
        lines = ['<3>' + line for line in lines]
    assert all(re.match(r'<[3-6]>(EAL|polca): ', line) for line in lines), r.stdout
    texts = [line[3:].replace('FATAL: ', '') for line in lines]
    assert sorted(texts) == sorted(set(texts)), r.stdout
    # DPDK says why at the level of an error, and polca's advice is the last line
    assert any(line.startswith('<3>EAL: ') for line in lines), r.stdout
    assert lines[-1].startswith('<3>polca: DPDK does not start (Cannot allocate memory)'), r.stdout


def test_lines_on_a_terminal_have_the_time(place):
    """Also those of DPDK; without a terminal there is none."""
    argv = place([port('port0', 'net_af_packet0,iface=nosuch0', '10.0.0.1/24')])
    ours, theirs = pty.openpty()
    try:
        r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, timeout=100, env=place.env,
                           cwd='/')
        os.close(theirs)
        text = b''
        with contextlib.suppress(OSError):  # the end of a terminal
            while True:
                text += os.read(ours, 65536)
    finally:
        os.close(ours)
    lines = text.decode().splitlines()
    assert r.returncode == 1 and lines
    assert all(re.match(r'\d\d:\d\d:\d\d\.\d{3} \S', line) for line in lines), lines
    assert not re.match(r'\d\d:', run(*argv, env=place.env).stdout.splitlines()[-1])


# ---- nothing is left behind

def runtime_directories(place):
    return os.listdir(place.path / 'dpdk') if (place.path / 'dpdk').exists() else []


def left_in_runtime_directory(place):
    """polca's directory is that of its prefix, which other processes may share: it stays, but
    empty."""
    return [f for d in runtime_directories(place) for f in os.listdir(place.path / 'dpdk' / d)]


def test_polca_leaves_nothing_in_its_runtime_directory(place):
    p = Polca(str(place.path), back_to_back())
    with p:
        assert runtime_directories(place) == [p.config['eal']['file_prefix']]
        assert left_in_runtime_directory(place)
    assert left_in_runtime_directory(place) == []


def test_polca_that_fails_leaves_nothing_in_its_runtime_directory(place):
    run(*place([port('port0', 'net_af_packet0,iface=nosuch0', '10.0.0.1/24')]), env=place.env)
    assert left_in_runtime_directory(place) == []


def test_one_starts_while_another_with_its_prefix_ends(place):
    """Neither removes the other's runtime directory: a start during another's end failed."""
    program, _, config, *_ = place([port('port0', 'net_af_packet0,iface=nosuch0', '10.0.0.1/24')])

    def come_and_go(sock):
        for _ in range(10):
            r = run(program, '-c', config, '-s', sock, env=place.env)
            assert NO_INTERFACE in r.stdout, r.stdout

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        running = [pool.submit(come_and_go, str(place.path / ('%d.sock' % i))) for i in range(3)]
        for each in running:
            each.result()


@pytest.mark.parametrize('words,status', [
    (['-n', '1000'], 0), (['--link', 'net_no_such0', '--connect', '10.0.0.2:7174'], 1)])
def test_polca_bench_leaves_no_runtime_directory(place, words, status):
    r = run(BENCH, 'send', '--no-huge', *words, env=place.env)
    assert r.returncode == status, r.stdout
    assert runtime_directories(place) == []


def bench_under_way(place):
    p = subprocess.Popen([BENCH, 'send', '--no-huge', '-D', '100'], env=place.env,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: runtime_directories(place) == ['polca-bench-%d' % p.pid], timeout=60)
    wait_until(lambda: len(os.listdir('/proc/%d/task' % p.pid)) > 2, timeout=60)
    return p


def test_polca_bench_leaves_no_runtime_directory_after_ctrl_c(place):
    p = bench_under_way(place)
    p.send_signal(signal.SIGINT)
    p.wait(60)
    assert runtime_directories(place) == []


def test_the_next_polca_bench_removes_the_directory_of_a_killed_one(place):
    p = bench_under_way(place)
    p.kill()
    p.wait(60)
    assert runtime_directories(place) == ['polca-bench-%d' % p.pid]
    (place.path / 'dpdk' / ('polca-bench-%d' % os.getpid())).mkdir()  # of a running process
    assert run(BENCH, 'send', '--no-huge', '-n', '1000', env=place.env).returncode == 0
    assert runtime_directories(place) == ['polca-bench-%d' % os.getpid()]


# ---- hugepages that secondary processes can share

@pytest.fixture
def hugetlbfs(tmp_path):
    where = tmp_path / 'huge'
    where.mkdir()
    subprocess.run(['mount', '-t', 'hugetlbfs', 'none', where], check=True)
    try:
        with hugepages.free(600):
            yield where
    finally:
        subprocess.run(['umount', where], check=True)


SHARED = {'hugepages': True, 'multi_process': True, 'memory_mb': 400}


def test_multi_process_gives_its_hugepages_back(place, hugetlbfs):
    before = hugepages.count()['Free']
    p = Polca(str(place.path), back_to_back(), eal=SHARED)
    with p:
        assert hugepages.count()['Free'] <= before - 200
        assert len(os.listdir(hugetlbfs)) >= 200
    assert os.listdir(hugetlbfs) == []
    assert hugepages.count()['Free'] == before
    assert left_in_runtime_directory(place) == []


@pytest.mark.parametrize('args', [[], ['--file-pre=another']], ids=['', 'abbreviated'])
def test_multi_process_leaves_the_hugepages_of_others(place, hugetlbfs, args):
    """Hugepages locked by another process stay, as with the EAL; only those of the current
    prefix are removed."""
    p = Polca(str(place.path), back_to_back(), eal=dict(SHARED, args=args))
    prefix = 'another' if args else p.config['eal']['file_prefix']
    held, free = ('%smap_%d' % (prefix, n) for n in (90001, 90002))
    with p:
        assert len([f for f in os.listdir(hugetlbfs) if f.startswith(prefix + 'map_')]) >= 200
        (hugetlbfs / free).touch()
        with open(hugetlbfs / held, 'w') as f:
            fcntl.flock(f, fcntl.LOCK_SH)
            p.stop()
            assert os.listdir(hugetlbfs) == [held]
    os.unlink(hugetlbfs / held)


@pytest.mark.parametrize('again', [SHARED, dict(SHARED, multi_process=False)],
                         ids=['multi_process', 'in memory'])
def test_multi_process_starts_again_after_it_was_killed(place, hugetlbfs, again):
    before = hugepages.count()['Free']
    p = Polca(str(place.path), back_to_back(), eal=dict(SHARED, memory_mb=800))
    try:
        p.start()
        p.kill()
        wait_until(lambda: hugepages.count()['Free'] <= before - 400)
        p.config['eal'].update(again, memory_mb=800)
        p.start()
        PolcaPair(Hca(p, 0), A, Hca(p, 1), B).all_operations(sizes=(100,))
        p.stop()
    finally:
        p.kill()
    assert os.listdir(hugetlbfs) == []
    assert hugepages.count()['Free'] == before


def test_dpdk_dumpcap_captures(place, hugetlbfs):
    p = Polca(str(place.path), back_to_back(), eal=SHARED)
    file = place.path / 'frames.pcapng'
    with p:
        d = subprocess.Popen(['dpdk-dumpcap', '--file-prefix', p.config['eal']['file_prefix'], '-i', '0',
                              '-c', '20', '-w', str(file)], env=place.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            while d.poll() is None:
                PolcaPair(Hca(p, 0), A, Hca(p, 1), B).all_operations(sizes=(100,))
            assert d.returncode == 0, d.stdout.read()
        finally:
            d.kill()
            d.wait()
            d.stdout.close()
    frames = subprocess.run(['tshark', '-r', file, '-Y', 'infiniband'], stdout=subprocess.PIPE,
                            text=True, check=True).stdout.splitlines()
    assert len(frames) >= 20, frames
