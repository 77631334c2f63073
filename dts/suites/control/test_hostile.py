# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Malicious or broken clients: the control socket keeps serving the others, memory and
descriptors stay bounded (and conftest.undisturbed checks the data path after each test)."""

import json
import os
import random
import resource
import select
import socket
import stat
import subprocess
import time

import pytest

from conn import wait_until
from rpc import Client

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"rpc_list"}\n'


def open_sockets(path, n):
    """n connections; a blocking connect waits for room in the listener's queue."""
    made = []
    for _ in range(n):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.settimeout(10)
        made.append(s)
    return made


def closed(s, timeout=10):
    """True if the server closes this connection."""
    s.settimeout(timeout)
    try:
        while s.recv(1 << 20):
            pass
        return True
    except socket.timeout:
        return False
    except OSError:
        return True


def test_socket_is_the_owners_alone(polca):
    assert stat.S_IMODE(os.stat(polca.socket).st_mode) == 0o600


def test_another_user_is_not_served(polca):
    """Even if the file's mode would admit the user."""
    program = ('import os,socket,sys\n'
               'os.setgroups([]); os.setgid(65533); os.setuid(65533)\n'
               's = socket.socket(socket.AF_UNIX); s.settimeout(10)\n'
               'try:\n s.connect(sys.argv[1]); s.sendall(%r)\n print(len(s.recv(100000)))\n'
               'except OSError as e: print(0)\n' % REQUEST)
    directory = os.path.dirname(polca.socket)
    modes = [(p, stat.S_IMODE(os.stat(p).st_mode)) for p in (directory, polca.socket)]

    def try_it():
        return subprocess.run(['/usr/bin/python3', '-c', program, polca.socket],
                              stdout=subprocess.PIPE, text=True, timeout=30).stdout.strip()
    assert try_it() == '0'
    try:
        for p, mode in modes:
            os.chmod(p, mode | 0o077)
        size = int(try_it())
        assert size < 1000, 'a short refusal at most, not the list of methods'
    finally:
        for p, mode in modes:
            os.chmod(p, mode)


@pytest.mark.parametrize('megabytes', [2, 64])
def test_a_line_without_end(polca, usage, megabytes):
    before = usage()
    with Client(polca.socket) as c:
        c.sock.settimeout(20)
        sent = 0
        try:
            while sent < megabytes << 20:
                c.send_raw(b'a' * 65536)
                sent += 65536
        except OSError:
            pass  # it closed the connection, as it should
        assert closed(c.sock)
    assert usage()[0] - before[0] < 32768


def test_a_long_request_within_the_bounds_is_taken(polca, hca):
    mr = hca.mr(400000)
    mr.write(0, b'\x5a' * 256 * 1024)
    assert mr.crc(0, 256 * 1024) > 0


def test_a_huge_number_of_small_things_in_one_request(polca, traffic):
    r = polca.rpc.request('post_recv', {'qp_num': traffic.qb.qpn, 'wr': [{}] * 5000})
    assert 'error' in r
    r = polca.rpc.request('post_send', {'qp_num': traffic.qa.qpn, 'wr': [
        {'opcode': 'SEND', 'sg_list': [{'key': 1, 'length': 1}] * 1000}]})
    assert 'error' in r


def test_half_a_request(polca):
    """It delays no other client; closing in the middle is allowed."""
    s, = open_sockets(polca.socket, 1)
    s.sendall(b'{"jsonrpc":"2.0","id":1,')
    with polca.client() as c:
        c('version_get')
    s.close()
    many = open_sockets(polca.socket, 100)
    for x in many:
        x.sendall(b'{"jsonrpc"')
    with polca.client() as c:
        c('version_get')
    for x in many:
        x.close()


def test_ten_thousand_connects(polca, usage):
    before = usage()
    for _ in range(100):
        for s in open_sockets(polca.socket, 100):
            s.close()
    with polca.client() as c:
        c('version_get')
    wait_until(lambda: usage()[1] <= before[1] + 2)
    assert usage()[0] - before[0] < 32768


def test_more_clients_at_once_than_there_is_room_for(polca, usage):
    """Connections beyond the limit are told so or closed; earlier ones are still served."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    before = usage()
    made = []
    try:
        for _ in range(20):
            made += open_sockets(polca.socket, 100)
        assert polca.rpc('version_get')
    finally:
        for s in made:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: usage()[1] <= before[1] + 2)


def test_a_client_that_never_reads(polca, usage):
    """It costs limited memory, and delays no other client."""
    before = usage()
    s, = open_sockets(polca.socket, 1)
    s.setblocking(False)
    full = 0  # consecutive sends without progress
    while full < 100:
        try:
            s.send(REQUEST * 100)
            full = 0
        except BlockingIOError:
            full += 1
            time.sleep(0.01)
        except OSError:
            break
    with polca.client() as c:
        for _ in range(100):
            c('version_get')
    assert usage()[0] - before[0] < 65536
    poll = select.poll()
    poll.register(s, 0)
    assert poll.poll(60000), 'the connection is held open for ever'
    s.close()


def test_hanging_up_while_the_answer_is_awaited(polca, traffic):
    for _ in range(50):
        s, = open_sockets(polca.socket, 1)
        s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"cq_poll","params":{"cq":%d,'
                  b'"timeout_ms":60000}}\n' % traffic.qa.cq)
        s.close()


def test_a_waiting_client_holds_up_nobody(polca, hca):
    cq = hca.cq()
    s, = open_sockets(polca.socket, 1)
    t0 = time.monotonic()
    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"cq_poll","params":{"cq":%d,'
              b'"timeout_ms":3000}}\n' % cq)
    with polca.client() as c:
        for _ in range(50):
            c('version_get')
        quick = time.monotonic() - t0
    s.settimeout(30)
    assert json.loads(s.recv(10000))['result']['wc'] == []
    assert time.monotonic() - t0 >= 2.99, 'it counts in milliseconds'
    assert quick < 3, 'the others waited with it'
    s.close()


def test_random_damage(polca):
    """Requests with octets changed, cut, doubled: every line gets one line of JSON as answer."""
    rng = random.Random(20260101)
    good = [json.dumps({'jsonrpc': '2.0', 'id': 5, 'method': m, 'params': p}).encode() for m, p in (
        ('qp_create', {'pd': 1, 'send_cq': 1, 'max_send_wr': 16, 'qp_type': 'RC'}),
        ('mr_register', {'pd': 1, 'length': 4096, 'access': ['LOCAL_WRITE', 'REMOTE_READ']}),
        ('qp_connect', {'qp_num': 17, 'dest_qp_num': 5, 'dgid': '192.0.2.2', 'rq_psn': 5}),
        ('post_send', {'qp_num': 17, 'wr': [{'opcode': 'SEND', 'sg_list': [
            {'addr': 4096, 'length': 5, 'lkey': 7}]}]}),
        ('mr_write', {'key': 5, 'offset': 0, 'data': '00ff'}),
        ('cq_poll', {'cq': 1, 'max': 5}), ('stats_get', {}), ('port_list', {}))]
    with polca.client() as c:
        for i in range(3000):
            line = bytearray(rng.choice(good))
            for _ in range(rng.randint(1, 6)):
                at = rng.randrange(len(line))
                kind = rng.randrange(4)
                if kind == 0:
                    line[at] = rng.randrange(256)
                elif kind == 1:
                    del line[at:at + rng.randint(1, 10)]
                elif kind == 2:
                    line[at:at] = line[at:at + rng.randint(1, 20)]
                else:
                    line[at:at] = rng.choice([b'"', b'{', b'[', b'\\', b'0x', b'-', b'1e99'])
                line = line or bytearray(b'x')
            line = bytes(line).replace(b'\n', b' ')
            if b'"id"' not in line or not line.strip():
                continue  # may have become a notification
            c.send_raw(line + b'\n' + b'{"jsonrpc":"2.0","id":"end","method":"version_get"}\n')
            while True:
                answer = json.loads(c.recv_line(20))
                if answer['id'] == 'end':
                    break
                assert ('error' in answer) != ('result' in answer)


def test_second_instance_does_not_take_the_socket(polca, sockets):
    from polca import Polca
    second = Polca(sockets, polca.config['ports'], name='second')
    second.config['control']['socket'] = polca.socket
    second.launch()
    assert second.proc.wait(60) == 1
    assert polca.socket in second.tail() or 'socket' in second.tail()
    with polca.client() as c:
        c('version_get')
