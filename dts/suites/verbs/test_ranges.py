# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Shared memory to whose file no path and no descriptor leads. A polca with the capabilities of the drop-in verbs.conf
opens it by the addresses of the program, which is another user's and has none; another polca says what it lacks."""

import ctypes
import errno
import json
import mmap
import os
import re
import shutil
import signal
import struct
import tempfile
import threading

import hugepages
import pytest

from conn import wait_until
from polca import Polca, account
from stranger import MAGIC, PAGE, REQUESTS, Stranger, register_range
from stuckfuse import StuckFuse
from verbs import PATIENT, PROBE, Programs, copy_for_others

TEST_SECONDS = 120
CONFIG = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../config')
KINDS = ('anonymous', 'system-v', 'memfd', 'deleted')
USER = 65533
ORDINARY = ('setpriv', '--reuid=%d' % USER, '--regid=%d' % USER, '--clear-groups')
# as the unit has it: in /proc a process sees only those of other users that it may trace
NUMBERS = {'CAP_DAC_READ_SEARCH': 2, 'CAP_SYS_PTRACE': 19, 'CAP_CHECKPOINT_RESTORE': 40}
libc = ctypes.CDLL(None, use_errno=True)
INVISIBLE = 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"'


def drop_in():
    with open(os.path.join(CONFIG, 'systemd/verbs.conf')) as f:
        return re.search(r'^AmbientCapabilities=(.*)', f.read(), re.M).group(1).split()


def status(pid, thread=None):
    """/proc/PID/status, of a thread if that is given: name to value."""
    with open('/proc/%d/status' % pid if thread is None else '/proc/%d/task/%s/status' % (pid, thread)) as f:
        return dict(re.findall(r'(\w+):\s*(.*)', f.read()))


class Service(Polca):
    """Started as systemd does it: as polca's user, with these capabilities."""

    def __init__(self, directory, ports, capabilities, name, **verbs):
        super().__init__(directory, ports, workers=2, name=name, limits=PATIENT, verbs={
            'enabled': True, 'socket': os.path.join(directory, 'verbs.sock'), 'mode': '0666', **verbs})
        user = account()
        given = ','.join(['-all'] + [c.replace('CAP_', '+').lower() for c in capabilities])
        self.prefix = ['unshare', '-m', 'sh', '-c', INVISIBLE, 'sh', 'setpriv', '--reuid=%d' % user.pw_uid,
                       '--regid=%d' % user.pw_gid, '--clear-groups', '--no-new-privs', '--inh-caps=' + given,
                       '--ambient-caps=' + given, '--bounding-set=' + given]


@pytest.fixture(scope='module')
def directory():
    """Where only root can make directories, so that programs trust a service's socket; .run and .probe are there."""
    with tempfile.TemporaryDirectory(prefix='polca-dts-', dir='/run') as d:
        os.chmod(d, 0o755)
        copy_for_others(d)
        shutil.copy(PROBE, os.path.join(d, 'verbs_probe'))
        yield d


@pytest.fixture(scope='module')
def service(directory, built_in):
    where = os.path.join(directory, 'service')
    os.mkdir(where)
    with Service(where, built_in['ports'], drop_in(), name='ranges') as p:
        yield p


@pytest.fixture
def ordinary(directory, kept):
    """ordinary(polca): programs of an ordinary user."""
    made = []

    def programs(polca):
        p = Programs(os.path.join(polca.dir, 'verbs.sock'), kept, prefix=ORDINARY,
                     run=os.path.join(directory, 'app/polca-run/polca-run'))
        p.own = os.path.join(directory, 'verbs_probe')
        made.append(p)
        return p
    yield programs
    for p in made:
        p.close()


@pytest.fixture
def program(service):
    """program(): a connection of this process, which is root's, and a domain on it."""
    made = []

    def connect():
        s = Stranger(os.path.join(service.dir, 'verbs.sock'))
        made.append(s)
        assert s.hello()[0] == 0
        error, body = s.request('pd_alloc')
        assert error == 0
        s.pd, = struct.unpack_from('<I', body)
        return s
    yield connect
    for s in made:
        s.close()
    assert service.alive(), service.tail()
    wait_until(lambda: service.rpc('mr_list')['regions'] == [], timeout=10)


class Mapping:
    """Pages of this process, as mmap() makes them: .address."""

    def __init__(self, pages, protection, flags, fd=-1, at=None):
        libc.mmap.restype = ctypes.c_void_p
        self.bytes = pages * PAGE
        self.address = libc.mmap(ctypes.c_void_p(at), ctypes.c_size_t(self.bytes), protection,
                                 flags | (0x10 if at is not None else 0), fd, ctypes.c_long(0))
        assert self.address != 2 ** 64 - 1

    def close(self):
        assert libc.munmap(ctypes.c_void_p(self.address), ctypes.c_size_t(self.bytes)) == 0


READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
ANONYMOUS = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS


def refused(reply, number, text):
    assert reply is not None and reply[0] == number and text in reply[1].decode(errors='replace'), reply


def file_of(uid, pages=1):
    """A memfd that belongs to this user."""
    libc.setfsuid(uid)
    fd = os.memfd_create('of-%d' % uid)
    libc.setfsuid(0)
    os.write(fd, bytes(pages * PAGE))
    return fd


@pytest.mark.parametrize('kind', KINDS)
def test_shared_in_place(service, ordinary, kind):
    programs = ordinary(service)
    programs.run(programs.own, 'shared', 'keep', kind)
    assert service.rpc('mr_list')['regions'] == []


def test_shared_huge_pages_without_a_name(service, ordinary):
    programs = ordinary(service)
    with hugepages.free(8):
        programs.run(programs.own, 'shared', 'keep', 'anonymous-huge')


def test_only_its_owner_may_write_the_file(service, ordinary):
    """The capabilities do not open a file for writing whose mode does not admit polca's user."""
    programs = ordinary(service)
    text = programs.run(programs.own, 'refused', 'deleted-own')
    assert "file: its mode does not let polca's user read and write it" in text


def test_read_only_mappings_are_refused_by_name(service, ordinary):
    programs = ordinary(service)
    for kind in KINDS:
        assert 'cannot be registered' in programs.run(programs.own, 'refused', kind, 'read-only')


@pytest.mark.parametrize('lacks', [*drop_in(), None])
def test_without_the_drop_in(directory, built_in, ordinary, lacks):
    """Or without one of its capabilities; the program's line says what to do."""
    where = os.path.join(directory, 'without-%s' % lacks)
    os.mkdir(where)
    with Service(where, built_in['ports'], [c for c in drop_in() if lacks and c != lacks], name='without') as p:
        programs = ordinary(p)
        for kind in KINDS:
            text = programs.run(programs.own, 'refused', kind)
            assert 'polca: shared memory from 0x' in text
            assert 'add the drop-in verbs.conf to polca.service, or keep a descriptor of the file open' in text
        assert status(p.proc.pid)['CapPrm'] == status(p.proc.pid)['CapEff'] == '0' * 16


def test_started_by_root_it_keeps_none_of_them(directory, built_in, ordinary):
    where = os.path.join(directory, 'root')
    os.mkdir(where)
    with Polca(where, built_in['ports'], name='root', limits=PATIENT, verbs={
            'enabled': True, 'socket': os.path.join(where, 'verbs.sock'), 'mode': '0666'}) as p:
        programs = ordinary(p)
        assert 'add the drop-in verbs.conf to polca.service' in programs.run(programs.own, 'refused', 'anonymous')
        assert status(p.proc.pid)['CapPrm'] == '0' * 16


def test_capabilities_are_effective_in_no_thread(service, ordinary):
    programs = ordinary(service)
    programs.run(programs.own, 'shared', 'keep', 'anonymous')
    wanted = sum(1 << NUMBERS[c] for c in drop_in())
    for thread in os.listdir('/proc/%d/task' % service.proc.pid):
        told = status(service.proc.pid, thread)
        first = thread == str(service.proc.pid)  # the control thread, which makes those that use them
        assert (int(told['CapPrm'], 16), int(told['CapEff'], 16)) == (wanted if first else 0, 0), told['Name']


def test_mappings_that_are_not_shared_and_writable(service, program):
    s = program()
    fd = file_of(0)
    for mapping, text in ((Mapping(1, READ_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), 'it is rw-p'),
                          (Mapping(1, READ_WRITE, mmap.MAP_PRIVATE, fd), 'it is rw-p'),
                          (Mapping(1, mmap.PROT_READ, mmap.MAP_SHARED, fd), 'it is r--s')):
        refused(register_range(s, s.pd, mapping.address, PAGE), errno.EACCES, text)
        mapping.close()
        refused(register_range(s, s.pd, mapping.address, PAGE), errno.EFAULT, 'nothing is mapped')
    os.close(fd)


def test_any_addresses_and_lengths(service, program):
    s = program()
    m = Mapping(2, READ_WRITE, ANONYMOUS)
    refused(register_range(s, s.pd, m.address, 0), errno.EINVAL, 'no 0 bytes')
    refused(register_range(s, s.pd, 2 ** 64 - 1, 2), errno.EINVAL, 'no 2 bytes')
    assert register_range(s, s.pd, m.address, 2 ** 64 - 1 - m.address)[0] in (errno.EFAULT, errno.EACCES)
    refused(register_range(s, 77, m.address, PAGE), errno.EINVAL, 'pd: there is none in slot 77')
    refused(register_range(s, s.pd, m.address, PAGE), errno.EFAULT, 'are there')  # no page: not paid for by polca
    ctypes.memset(m.address, 1, 2 * PAGE)
    assert register_range(s, s.pd, m.address + 100, PAGE)[0] == 0
    assert register_range(s, s.pd, m.address, 2 * PAGE)[0] == 0
    m.close()


def test_file_of_another_user(service, program):
    """It is mapped shared and writable, but whoever is quick could exchange it for one that is not."""
    s = program()
    fd = file_of(1)
    m = Mapping(1, READ_WRITE, mmap.MAP_SHARED, fd)
    refused(register_range(s, s.pd, m.address, PAGE), errno.EACCES, 'file: belongs to user 1')
    m.close()
    os.close(fd)


def in_a_child(work):
    """What work() returns in a child of fork()."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def test_another_process_on_the_connection(service, program):
    """A child has its parent's connection, not its parent's memory; nor has the parent its child's."""
    s = program()
    m = Mapping(1, READ_WRITE, ANONYMOUS)
    ctypes.memset(m.address, 1, PAGE)

    def ask():
        number, text = register_range(s, s.pd, m.address, PAGE)
        return [number, text.decode(errors='replace')]
    number, text = in_a_child(ask)
    assert number == errno.EPERM and 'process %d has opened the device, and process ' % os.getpid() in text
    assert register_range(s, s.pd, m.address, PAGE)[0] == 0
    m.close()


def test_addresses_of_another_process(service, program):
    """They are looked for in the program that asks, whoever has memory there."""
    s = program()
    reading, writing = os.pipe()
    m = Mapping(1, READ_WRITE, ANONYMOUS)
    pid = os.fork()
    if pid == 0:
        os.read(reading, 1)  # keeps the mapping
        os._exit(0)
    m.close()
    refused(register_range(s, s.pd, m.address, PAGE), errno.EFAULT, 'nothing is mapped')
    os.write(writing, b'x')
    os.waitpid(pid, 0)


def test_request_that_does_not_wait_for_hello(service):
    """What was in the socket before could be of a process that has ended, and whose number another one has."""
    s = Stranger(os.path.join(service.dir, 'verbs.sock'))
    m = Mapping(1, READ_WRITE, ANONYMOUS)
    ctypes.memset(m.address, 1, PAGE)
    service.proc.send_signal(signal.SIGSTOP)
    s.sock.send(struct.pack('<IIQIIQII', 0, 0, MAGIC, 1, 0, 7, 0, 0))
    s.sock.send(struct.pack('<II', REQUESTS['pd_alloc'][0], 0))
    service.proc.send_signal(signal.SIGCONT)
    for _ in range(2):
        assert struct.unpack_from('<i', s.receive()[0])[0] == 0
    refused(register_range(s, 0, m.address, PAGE), errno.EPERM, 'did not wait for its answer')
    s.close()
    m.close()


def test_mapping_is_exchanged_all_the_time(service, program):
    """Between one that may be shared, and one of a file of the same user that is mapped for reading: never is that one
    registered."""
    s = program()
    mine, kept = file_of(0), file_of(0)
    place = Mapping(1, READ_WRITE, mmap.MAP_SHARED, mine)
    ended = threading.Event()

    def exchange():
        while not ended.is_set():
            Mapping(1, mmap.PROT_READ, mmap.MAP_SHARED, kept, place.address)
            Mapping(1, READ_WRITE, mmap.MAP_SHARED, mine, place.address)
    thread = threading.Thread(target=exchange)
    thread.start()
    inode = os.stat('/proc/self/fd/%d' % kept).st_ino
    done = {}
    try:
        for _ in range(300):
            number, body = register_range(s, s.pd, place.address, PAGE)
            done[number] = done.get(number, 0) + 1
            if number != 0:
                continue
            with open('/proc/%d/maps' % service.proc.pid) as f:
                assert not [line for line in f if line.split()[4] == str(inode)]
            assert s.request('mr_deregister', body[:8])[0] == 0
    finally:
        ended.set()
        thread.join()
    print('answers by errno: %s' % done)
    assert set(done) <= {0, errno.EACCES, errno.ENOENT, errno.EFAULT}
    place.close()
    os.close(mine)
    os.close(kept)


@pytest.fixture
def stuck(tmp_path):
    """A page of a file: .address. Once .stuck is set, its file system does not answer, but .asked shows what it was
    asked. No process may be started then: it would close its copy of the descriptor first, and wait."""
    fuse = StuckFuse(os.path.join(tmp_path, 'fuse'))
    fd = fuse.open()
    m = Mapping(1, READ_WRITE, mmap.MAP_SHARED, fd)
    fuse.address = m.address
    yield fuse
    fuse.close()
    m.close()
    try:
        os.close(fd)
    except OSError:  # ECONNABORTED
        pass


def begin_range(s, address):
    """Send the request, and do not wait for the answer."""
    s.sock.send(struct.pack('<IIQQQII', REQUESTS['mr_register_range'][0], 0, address, PAGE, 0, s.pd, 7))


def test_program_that_lets_polca_wait(service, program, stuck):
    """Its file system does not say what it is. Others are served; at the deadline the connection ends."""
    s, other = program(), program()
    s.sock.settimeout(60)
    stuck.stuck = True
    begin_range(s, stuck.address)
    wait_until(lambda: stuck.asked, timeout=20)
    for _ in range(20):
        assert other.request('pd_alloc')[0] == 0
    assert service.rpc('version_get')
    reply = s.receive()[0]
    assert struct.unpack_from('<i', reply)[0] == errno.ETIMEDOUT and b'cannot be read for 10 s' in reply
    assert s.request('pd_alloc') is None  # closed


def test_threads_that_wait_count_as_clients(directory, built_in, stuck):
    """Until the file system answers, its user has so many clients less."""
    where = os.path.join(directory, 'few')
    os.mkdir(where)
    with Service(where, built_in['ports'], drop_in(), name='few', max_user_clients=1):
        s = Stranger(os.path.join(where, 'verbs.sock'))
        assert s.hello()[0] == 0
        error, body = s.request('pd_alloc')
        s.pd, = struct.unpack_from('<I', body)
        stuck.stuck = True
        begin_range(s, stuck.address)
        wait_until(lambda: stuck.asked, timeout=20)
        s.sock.settimeout(60)
        assert struct.unpack_from('<i', s.receive()[0])[0] == errno.ETIMEDOUT
        s.close()

        def hello():
            new = Stranger(os.path.join(where, 'verbs.sock'))
            reply = new.hello()
            new.close()
            return reply
        refused(hello(), errno.ENOMEM, 'all 1 clients of the user are there already')
        stuck.close()
        wait_until(lambda: hello()[0] == 0, timeout=20)


def test_nothing_is_left(service, program):
    """No descriptor and no thread, whatever was answered."""
    def left():
        return [len(os.listdir('/proc/%d/%s' % (service.proc.pid, what))) for what in ('fd', 'task')]
    wait_until(lambda: service.rpc('client_list')['clients'] == [], timeout=20)
    before = left()
    s = program()
    m = Mapping(2, READ_WRITE, ANONYMOUS)
    ctypes.memset(m.address, 1, PAGE)
    for _ in range(50):
        assert register_range(s, s.pd, m.address, PAGE)[0] == 0
        assert register_range(s, s.pd, m.address, 2 * PAGE)[0] == errno.EFAULT
    s.close()
    m.close()
    wait_until(lambda: left() == before, timeout=20)
