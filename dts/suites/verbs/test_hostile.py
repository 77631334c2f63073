# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Strangers on the verbs socket: any bytes, any sizes, any descriptors. Nothing ends, nothing leaks,
and other programs go on."""

import errno
import os
import random
import resource
import struct

import pytest

from conn import wait_until
from polca import Polca
from stranger import PAGE, REQUESTS, Stranger, register

TEST_SECONDS = 180


@pytest.mark.parametrize('seed', range(3))
def test_any_bytes(unharmed, stranger, seed):
    rng = random.Random(seed)
    for _ in range(100):
        s = stranger()
        reply = s.ask(rng.randbytes(rng.randrange(1, 400)))
        assert reply is None or reply[0] == errno.EPROTO
        s.close()


@pytest.mark.parametrize('seed', range(6))
def test_any_requests(unharmed, stranger, seed):
    """Requests of the right sizes with any contents, mostly small numbers, which name objects."""
    rng = random.Random(seed)

    def word():
        return rng.choice((0, 0, 1, 1, 2, 3, 5, 16, 100, 4096, 0xffffffff, rng.getrandbits(32)))
    done = 0
    for _ in range(4):
        s = stranger()
        assert s.hello(port=rng.randrange(2))[0] == 0
        for _ in range(400):
            name = rng.choice([n for n in REQUESTS if n != 'hello'])
            body = b''.join(struct.pack('<I', word()) for _ in range(REQUESTS[name][1] // 4))
            reply = s.request(name, body)
            assert reply is not None and reply[0] != errno.EPROTO
            done += reply[0] == 0
        s.close()
    assert done > 100


def test_first_request_is_hello(unharmed, stranger):
    assert stranger().request('pd_alloc')[0] == errno.EPROTO
    s = stranger()
    assert s.hello()[0] == 0
    assert s.hello()[0] == errno.EPROTO
    assert s.request('pd_alloc') is None  # closed


def test_other_versions_are_told_ours(unharmed, stranger):
    error, text = stranger().hello(major=2)
    assert error == errno.EPROTONOSUPPORT and b'got version 2.0, this polca speaks 1.4' in text
    assert stranger().hello(magic=1)[0] == errno.EPROTONOSUPPORT
    assert stranger().hello(port=7)[0] == errno.EINVAL


def test_descriptors_of_the_wrong_kind(unharmed, stranger, tmp_path):
    """With HELLO only a mirror that polca has made; others are closed."""
    memfd = os.memfd_create('polca-mirror')
    file = os.open(tmp_path / 'file', os.O_RDWR | os.O_CREAT)
    null = os.open('/dev/null', os.O_RDWR)
    for fds in ([memfd], [file], [null], [0], [stranger().sock.fileno()]):
        assert stranger().hello(fds=fds)[0] == errno.EINVAL
    # more than one: the kernel delivers one, and closes the others
    assert stranger().hello(fds=[memfd, file, null])[0] == errno.EINVAL
    s = stranger()
    assert s.hello()[0] == 0
    for _ in range(20):  # nobody asked for them
        assert s.request('pd_alloc', fds=[memfd])[0] == 0
    for fd in (memfd, file, null):
        os.close(fd)


def test_files_of_strangers(unharmed, stranger):
    """Whatever comes with a registration: only files in memory, open for writing, that hold the region."""
    s = stranger()
    assert s.hello()[0] == 0
    error, body = s.request('pd_alloc')
    assert error == 0
    pd, = struct.unpack_from('<I', body)
    memory = os.memfd_create('shared')
    os.write(memory, bytes(4 * PAGE))
    read_only = os.open('/proc/self/fd/%d' % memory, os.O_RDONLY)
    assert register(s, pd, memory, 100, 3 * PAGE)[0] == 0
    assert register(s, pd, memory, 100, 4 * PAGE)[0] == errno.EINVAL
    assert register(s, pd, memory, 2 ** 64 - 10, 100)[0] == errno.EINVAL
    assert register(s, pd, memory, 100, 2 ** 64 - 10)[0] in (errno.EINVAL, errno.ENOMEM)
    assert register(s, pd, read_only, 0, PAGE)[0] == errno.EACCES
    null = os.open('/dev/null', os.O_RDWR)
    comm = os.open('/proc/self/comm', os.O_RDWR)
    for fd in (null, comm, s.sock.fileno()):
        assert register(s, pd, fd, 0, PAGE)[0] == errno.EINVAL
    os.ftruncate(memory, 2 ** 40)
    assert register(s, pd, memory, 8 * PAGE, PAGE)[0] == errno.EFAULT  # a hole: not paid for by polca
    os.ftruncate(memory, 0)
    assert register(s, pd, memory, 0, PAGE)[0] == errno.EINVAL
    for fd in (memory, read_only, null, comm):
        os.close(fd)


def test_more_clients_than_allowed(unharmed, stranger):
    """The 65th is refused, and there is room when one has gone."""
    sessions = []
    for _ in range(64):
        sessions.append(stranger())
        assert sessions[-1].hello()[0] == 0
    refused = stranger()
    error, text = refused.hello()
    assert error == errno.ENOMEM and b'all 64 clients of the socket are there already' in text
    assert refused.hello() is None  # closed
    sessions[0].close()

    def admitted():
        s = stranger()
        reply = s.hello()
        s.close()
        return reply is not None and reply[0] == 0
    wait_until(admitted, timeout=10)


def limit_line(p, what, text):
    """Wait for the line of our own process that says which limit was reached."""
    line = 'verbs: limit reached: %s by user root (0), process %d: %s' % (what, os.getpid(), text)
    wait_until(lambda: line in p.tail(10000).splitlines(), timeout=10)


def counted(p):
    """The verbs socket's counters, which the metrics have, too."""
    clients = p.rpc('stats_get')['clients']
    told = p.ctl('stats', 'metrics').stdout.splitlines()
    for name, value in clients.items():
        assert 'polca_clients_%s_total %d' % (name, value) in told
    return clients['opened'], clients['refused']


@pytest.fixture
def one_each(sockets, built_in):
    """one_each(options): an appliance with these limits of the verbs socket, and its socket."""
    path = os.path.join(sockets, 'one-verbs')
    started = []

    def start(**limits):
        started.append(Polca(sockets, built_in['ports'], workers=2, name='one',
                             verbs={'enabled': True, 'socket': path, **limits}))
        return started[-1].__enter__(), path
    yield start
    for p in started:
        p.__exit__(None, None, None)


@pytest.mark.parametrize('key,whose', [('max_clients', 'the socket'), ('max_user_clients', 'the user')])
def test_a_client_beyond_the_limit_is_logged(one_each, key, whose):
    p, path = one_each(**{key: 1})
    first, second = Stranger(path), Stranger(path)
    assert first.hello()[0] == 0
    assert second.hello()[0] == errno.ENOMEM
    limit_line(p, 'a connection', 'all 1 clients of %s are there already (verbs.%s)' % (whose, key))
    assert counted(p) == (1, 1)
    first.close()
    second.close()


@pytest.mark.parametrize('request_name,key,body', [
    ('cq_create', 'max_cq', struct.pack('<QII', 0, 16, 0xffffffff)), ('pd_alloc', 'max_pd', b''),
    ('channel_create', 'max_channels', b'')], ids=['cq', 'pd', 'channel'])
def test_a_full_table_is_logged(one_each, request_name, key, body):
    p, path = one_each(**{key: 1})
    s = Stranger(path)
    assert s.hello()[0] == 0
    assert s.request(request_name, body, keep=True)[0] == 0
    assert s.request(request_name, body, keep=True)[0] in (errno.ENOMEM, errno.EMFILE)
    assert counted(p) == (1, 1)
    limit_line(p, request_name, '%s: all 1 are in use (verbs.%s)' % (request_name.split('_')[0], key))
    s.close()


def test_channels_take_nobodys_descriptors(unharmed, polca, stranger):
    """More pipes than a process usually may have: the control socket goes on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    for _ in range(24):
        s = stranger()
        assert s.hello()[0] == 0
        for _ in range(64):
            assert s.request('channel_create', keep=True)[0] == 0
        assert s.request('channel_create', keep=True)[0] == errno.EMFILE
    with polca.client() as c:
        assert c('version_get')
    for s in list(stranger.made):
        s.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_who_reads_no_replies_is_closed(unharmed, stranger):
    s = stranger()
    s.sock.settimeout(0.5)
    code, _ = REQUESTS['query_port']
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        for _ in range(100000):
            try:
                s.sock.send(struct.pack('<II', code, 0))
            except TimeoutError:
                pass
