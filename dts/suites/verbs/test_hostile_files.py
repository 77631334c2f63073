# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Descriptors that a stranger passes can make whoever touches or closes them wait. Polca does not."""

import ctypes
import errno
import json
import mmap
import os
import signal
import socket
import struct
import threading
import time

import pytest

from conn import wait_until
from stranger import PAGE, register
from stuckfuse import FLUSH, StuckFuse

libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def stuck(tmp_path):
    """A file whose file system does not answer, as StuckFuse, with .file: open."""
    fuse = StuckFuse(os.path.join(tmp_path, 'fuse'))
    fuse.file = fuse.open()
    fuse.memory = mmap.mmap(fuse.file, PAGE)
    fuse.stuck = True
    yield fuse
    fuse.close()
    try:
        os.close(fuse.file)
    except OSError:  # ECONNABORTED
        pass


def lingering():
    """A connected socket whose close() waits: the peer reads nothing, and SO_LINGER says a minute.
    @return it, and what keeps it so"""
    listener, s = socket.socket(), socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)  # more than the peer takes
    listener.bind(('127.0.0.1', 0))
    listener.listen()
    s.connect(listener.getsockname())
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 60))
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(1 << 20))
    except BlockingIOError:
        pass
    return s, listener


def answers(polca):
    """The control thread goes on."""
    start = time.monotonic()
    with polca.client() as c:
        assert c('version_get')
    assert time.monotonic() - start < 20


def register_file(polca, pd, fd):
    """@return code and text of the error"""
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(20)
    c.connect(polca.socket)
    request = {'jsonrpc': '2.0', 'id': 1, 'method': 'mr_register', 'params': {'pd': pd, 'file': 'x'}}
    socket.send_fds(c, [json.dumps(request).encode() + b'\n'], [fd])
    error = json.loads(c.recv(65536))['error']
    c.close()
    return error['code'], error['message']


def new_domain(s):
    error, body = s.request('pd_alloc')
    assert error == 0
    return struct.unpack_from('<I', body)[0]


def test_file_of_a_file_system_that_does_not_answer(unharmed, polca, stranger, stuck):
    assert stranger().hello(fds=[stuck.file])[0] == errno.EINVAL
    s = stranger()
    assert s.hello()[0] == 0
    pd = new_domain(s)
    error, text = register(s, pd, stuck.file, 0, PAGE)
    assert error == errno.EINVAL and b'file: not in memory' in text
    answers(polca)
    for _ in range(7):
        assert register(s, pd, stuck.file, 0, PAGE)[0] == errno.EINVAL
    assert s.request('pd_alloc')[0] == 0  # the session goes on, but it must pass no more
    assert register(s, pd, stuck.file, 0, PAGE) is None
    answers(polca)
    stuck.close()


def test_descriptors_wait_unread_when_the_connection_ends(unharmed, polca, stranger):
    """The kernel closes them with the socket. They are the last of their files."""
    s = stranger()
    assert s.hello()[0] == 0
    kept = []
    polca.proc.send_signal(signal.SIGSTOP)  # it finds all of the messages
    s.sock.send(b'none')  # ends the session
    for message in (b'', b'x' * 8):
        slow, peer = lingering()
        kept.append(peer)
        socket.send_fds(s.sock, [message], [slow.fileno()])
        slow.close()
    polca.proc.send_signal(signal.SIGCONT)
    answers(polca)
    s.close()
    answers(polca)
    for peer in kept:
        peer.close()


def test_a_user_has_few_threads_that_close(unharmed, polca, stranger):
    """Connections that end with descriptors in them, also beyond the limit of clients (64)."""
    def threads():
        return len(os.listdir('/proc/%d/task' % polca.proc.pid))
    kept, base = [], threads()
    polca.proc.send_signal(signal.SIGSTOP)  # it finds the messages; a second one would end its threads' waits
    for _ in range(80):
        slow, peer = lingering()
        kept.append(peer)
        socket.send_fds(stranger().sock, [b'none'], [slow.fileno()])
        slow.close()
    polca.proc.send_signal(signal.SIGCONT)
    for s in stranger.made:  # each is told that it is over, whether it is closed yet or not
        try:
            while s.sock.recv(4096):
                pass
        except ConnectionResetError:
            pass
    assert threads() == base + 32 + 32  # for what was passed, and for connections
    answers(polca)
    for peer in kept:
        peer.close()
    wait_until(lambda: threads() == base, timeout=20)


def few_connections_wait(polca, stranger):
    def held():
        return len(os.listdir('/proc/%d/fd' % polca.proc.pid))
    kept, base = [], held()
    polca.proc.send_signal(signal.SIGSTOP)  # it finds the messages
    for _ in range(200):
        slow, peer = lingering()
        kept.append(peer)
        s = stranger().sock
        socket.send_fds(s, [b'none'], [slow.fileno()])
        s.close()
        slow.close()
    polca.proc.send_signal(signal.SIGCONT)
    answers(polca)
    wait_until(lambda: len(os.listdir('/proc/%d/task' % polca.proc.pid)) > 32 and base < held() <= base + 2 * 32 + 64,
               timeout=30)
    for peer in kept:
        peer.close()
    wait_until(lambda: held() <= base, timeout=20)


def test_a_user_has_few_connections_that_wait_to_be_closed(unharmed, polca, stranger):
    """Beyond 64, those that are being closed are hurried: others must be able to connect."""
    few_connections_wait(polca, stranger)


def test_stuck_files_keep_no_connection_open(unharmed, polca, stranger, stuck):
    """No signal interrupts close() of these: the user's connections have threads of their own."""
    for _ in range(4):
        s = stranger()
        assert s.hello()[0] == 0
        pd = new_domain(s)
        for _ in range(8):
            assert register(s, pd, stuck.file, 0, PAGE)[0] == errno.EINVAL
    wait_until(lambda: stuck.asked.count(FLUSH) == 32, timeout=20)
    few_connections_wait(polca, stranger)
    assert stuck.asked.count(FLUSH) == 32
    stuck.close()


def test_more_descriptors_than_anybody_asks_for(unharmed, polca, stranger):
    s = stranger()
    assert s.hello()[0] == 0
    memory = os.memfd_create('shared')
    slow, peer = lingering()
    socket.send_fds(s.sock, [struct.pack('<II', 2, 0)], [memory] + [slow.fileno()] * 252)
    slow.close()
    assert struct.unpack_from('<i', s.receive()[0])[0] == 0
    answers(polca)
    assert s.request('pd_alloc')[0] == 0
    peer.close()
    os.close(memory)


@pytest.mark.parametrize('which', ['shared', 'mirror', 'rings'])
def test_a_write_that_does_not_end_holds_the_file(unharmed, polca, stranger, stuck, which):
    """A write() holds the inode's lock while it waits for the page that it copies from."""
    s = stranger()
    assert s.hello(keep=True)[0] == 0
    pd = new_domain(s)
    cq = struct.pack('<QII', 0, 16, 0xffffffff)
    error, body = s.request('cq_create', cq)
    assert error == 0
    slot = body[8:12]
    memory = os.memfd_create('shared') if which == 'shared' else s.kept[{'rings': 0, 'mirror': 1}[which]]
    if which != 'rings':
        os.pwrite(memory, bytes(PAGE), 0x10000)
    source = ctypes.addressof(ctypes.c_char.from_buffer(stuck.memory))
    writer = threading.Thread(
        target=libc.pwrite, args=(memory, ctypes.c_void_p(source), ctypes.c_size_t(PAGE), ctypes.c_long(0)))
    writer.start()
    wait_until(lambda: stuck.asked, timeout=10)
    if which == 'shared':
        assert register(s, pd, memory, 0x10000, PAGE)[0] == 0
    elif which == 'mirror':
        assert s.request('mr_register', struct.pack('<QQQII', 0x10000, PAGE, 0, pd, 7))[0] == 0
    else:
        assert s.request('cq_destroy', slot)[0] == 0
        assert s.request('cq_create', cq)[0] == 0
    answers(polca)
    stuck.close()
    writer.join(20)
    if which == 'shared':
        os.close(memory)


def test_control_socket_registers_no_file_of_a_program(polca, stuck):
    """Its pages would come from the program, also when a worker touches them later."""
    with polca.client() as c:
        pd = c('pd_create')['pd']
        error, text = register_file(polca, pd, stuck.file)
        assert error < 0 and 'FUSE' in text
        answers(polca)
        c('pd_destroy', pd=pd)
    stuck.close()


def test_control_socket_waits_for_no_file(polca, stuck):
    """Which comes with a request that wants none, with one that names a file wrongly, and unread."""
    for request in ({'method': 'version_get'}, {'method': 'mr_register', 'params': {'pd': 99999, 'file': 'x'}}):
        c = socket.socket(socket.AF_UNIX)
        c.connect(polca.socket)
        socket.send_fds(c, [json.dumps({'jsonrpc': '2.0', 'id': 1, **request}).encode() + b'\n'], [stuck.file])
        assert b'"id":1' in c.recv(65536)
        c.close()
        answers(polca)
    c = socket.socket(socket.AF_UNIX)
    c.connect(polca.socket)
    socket.send_fds(c, [b'{}\n'], [stuck.file])
    c.close()
    answers(polca)
    stuck.close()
