# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Debian's own programs that use librdmacm, unmodified, on one appliance: over its wire and on one port."""

import os
import re
import subprocess

import pytest

import benchmarks
import net
from conn import wait_until
from rdmacm import PRELOAD, pair_until_listening, until_listening
from verbs import Programs

TEST_SECONDS = 240
PORT0, PORT1 = '192.0.2.1', '192.0.2.2'
# the server's address, and the client's: another port, whichever is nearest, the same port
WAYS = {'wire': (PORT1, PORT0), 'one port': (PORT1, PORT1), 'other port': (PORT0, PORT1)}


@pytest.fixture(params=WAYS, ids=lambda name: name.replace(' ', '-'))
def way(request):
    return WAYS[request.param]


def test_rping(programs, left, way):
    """Sends, Reads and Writes, whose bytes -V compares."""
    for text in pair_until_listening(
            programs, ('rping', '-s', '-v', '-V', '-C', 10),
            ('rping', '-c', '-v', '-V', '-C', 10, '-a', way[0], '-I', way[1])):
        assert 'ping data: rdma-ping-9:' in text, text


def test_rping_persistent(programs, left):
    """One listener, several clients one after the other: its queue pairs are flushed, its threads end."""
    server = programs.spawn('rping', '-s', '-P', '-v')
    for _ in range(3):
        client = ('rping', '-c', '-a', PORT1, '-C', 5, '-v')
        assert 'rdma-ping-4:' in until_listening(programs, client, server)
    assert server.proc.poll() is None, server.output()
    server.kill()


def test_rnr_wait_is_that_of_linux(polca, programs, left):
    """655 ms: the few RNR retries of a program must outlast a receiver that is not scheduled for a while."""
    server = programs.spawn('rping', '-s', '-P')
    clients = [programs.spawn('rping', '-c', '-a', PORT1, '-C', 10 ** 6)]

    def connected():
        if clients[-1].proc.poll() is not None:  # nobody listened yet
            clients.append(programs.spawn('rping', '-c', '-a', PORT1, '-C', 10 ** 6))
        qps = [polca.rpc('qp_show', qp_num=qp['qp_num']) for qp in polca.rpc('qp_list')['qps']]
        return len(qps) == 2 and all(qp['qp_state'] == 'RTS' for qp in qps) and qps
    try:
        assert [qp['min_rnr_timer'] for qp in wait_until(connected)] == [0, 0]
    finally:
        for job in [*clients, server]:
            job.kill()


def test_ipv6(programs, left):
    pair_until_listening(programs, ('rping', '-s', '-a', '2001:db8::2', '-C', 3, '-V'),
                         ('rping', '-c', '-a', '2001:db8::2', '-C', 3, '-V'))


def test_loopback_address(programs, left):
    """127.0.0.1 is the first port's own address, as with the kernel's devices."""
    pair_until_listening(programs, ('rping', '-s', '-C', 3, '-V'), ('rping', '-c', '-a', '127.0.0.1', '-C', 3, '-V'))


@pytest.mark.parametrize('connections', [1, 20])
def test_ucmatose(programs, left, way, connections):
    server, client = pair_until_listening(
        programs, ('ucmatose', '-c', connections),
        ('ucmatose', '-c', connections, '-s', way[0], '-b', way[1]))
    assert 'data transfers complete' in server and 'data transfers complete' in client
    assert 'return status 0' in server and 'return status 0' in client


def test_rdma_client(programs, left):
    """librdmacm's synchronous calls, and buffers in the program's static data."""
    server, client = pair_until_listening(programs, ('rdma_server',), ('rdma_client', '-s', PORT1))
    assert 'rdma_server: end 0' in server and 'rdma_client: end 0' in client


def test_rdma_xclient(programs, left):
    """Inline data that it has not asked for: the bytes that fit into the place of an SGE."""
    server, client = pair_until_listening(
        programs, ('rdma_xserver', '-c', 'r'), ('rdma_xclient', '-s', PORT1, '-c', 'r'))
    assert 'rdma_xserver: end 0' in server and 'rdma_xclient: end 0' in client


@pytest.mark.parametrize('program', ['rstream', 'riostream'])
@pytest.mark.parametrize('tests', [(), ('b',), ('n',)], ids=lambda t: t[0] if t else 'plain')
def test_rsockets(programs, left, way, program, tests):
    """v compares the bytes."""
    options = ['-C', 100, '-S', 10000] + [word for t in ('v', *tests) for word in ('-T', t)]
    for text in pair_until_listening(programs, (program, *options), (program, '-s', way[0], *options)):
        assert re.search(r'custom +9?.?\d*k? +100 ', text), text


def test_rcopy(programs, left, tmp_path):
    data = os.urandom(3_000_001)
    (tmp_path / 'from').write_bytes(data)
    server = programs.spawn('rcopy')
    text = until_listening(programs, ('rcopy', tmp_path / 'from', '%s:%s' % (PORT1, tmp_path / 'to')), server)
    assert '3000001 bytes in' in text, text
    assert (tmp_path / 'to').read_bytes() == data
    server.kill()


@pytest.mark.parametrize('program', ['ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw', 'ib_send_lat',
                                     'ib_write_lat', 'ib_read_lat', 'ib_atomic_lat'])
def test_perftest(programs, left, program):
    options = ('-R', '-F', '-n', '100', '-p', 18650)
    _, client = pair_until_listening(programs, (program, *options), (program, *options, PORT1))
    assert re.search(r'^ +\d+ +100 ', client, re.M), client


def test_librspreload(programs, left):
    """iperf thinks that it uses TCP: its connection is an rsocket, as the host's kernel has no such address."""
    with net.Namespace() as ns:  # without any address
        inside = Programs(programs.socket, programs.dir, prefix=ns.prefix())
        try:
            for text in pair_until_listening(
                    inside, ('iperf', '-s', '-B', PORT1, '-P', 1), ('iperf', '-c', PORT1, '-n', '20M'),
                    preload=PRELOAD):
                assert re.search(r' 20\.0 MBytes ', text), text
        finally:
            inside.close()


@pytest.fixture
def inside(programs):
    with benchmarks.with_addresses([programs], (PORT0, PORT1)) as p:
        yield p * 2


def test_qperf(inside, left):
    benchmarks.run_qperf(*inside, PORT1)


@pytest.mark.parametrize('verb', ['send', 'write', 'read'])
def test_fio(inside, left, verb):
    benchmarks.run_fio(*inside, PORT1, verb)


def test_fio_looks_at_the_bytes(inside, left):
    benchmarks.refuse_fio(*inside, PORT1)


LATER = """
import ctypes
verbs = ctypes.CDLL('libibverbs.so.1')
verbs.ibv_get_device_list.restype = ctypes.c_void_p
assert verbs.ibv_get_device_list(None)
cm = ctypes.CDLL('librdmacm.so.1', use_errno=True)
cm.rdma_create_event_channel.restype = ctypes.c_void_p
assert cm.rdma_create_event_channel(), ctypes.get_errno()
"""


def test_librdmacm_that_is_loaded_later(programs, left):
    """As a plugin of MPI or UCX loads it, when the program has looked for devices already."""
    programs.run('/usr/bin/python3', '-c', LATER)


# Channels and an ID of a polca that is gone beside those of the new one, which numbers them from 0 again.
RESTART = """
import ctypes, errno, sys
cm = ctypes.CDLL('librdmacm.so.1', use_errno=True)
for call in 'rdma_create_event_channel', 'rdma_destroy_event_channel':
    getattr(cm, call).restype = ctypes.c_void_p
def channel():
    made = ctypes.c_void_p(cm.rdma_create_event_channel())
    assert made, ctypes.get_errno()
    return made
def make_id(on):
    made = ctypes.c_void_p()
    return made, cm.rdma_create_id(on, ctypes.byref(made), None, 0x106)
def refused(result):
    assert result == -1 and ctypes.get_errno() in (errno.EIO, errno.ENODEV), (result, ctypes.get_errno())
def bind(on):
    address = (ctypes.c_uint8 * 16)(2)
    return cm.rdma_bind_addr(on, address)
first, second = channel(), channel()
old, result = make_id(first)
assert result == 0
print('ready', flush=True)
assert input() == 'polca is back'
if sys.argv[1] == 'command':
    refused(make_id(second)[1])
new = channel()
ids = [make_id(new) for _ in range(4)]
assert all(result == 0 for _, result in ids), ids
refused(bind(old))
refused(cm.rdma_destroy_id(old))
refused(make_id(second)[1])
refused(cm.rdma_migrate_id(old, new))
cm.rdma_destroy_event_channel(first)
cm.rdma_destroy_event_channel(second)
assert make_id(new)[1] == 0, ctypes.get_errno()
for own, _ in ids:
    assert bind(own) == 0, ctypes.get_errno()
    assert cm.rdma_destroy_id(own) == 0, ctypes.get_errno()
"""


@pytest.mark.parametrize('first', ['command', 'channel'])
def test_old_channels_name_no_new_ones(polca, programs, left, first):
    """After a restart of polca: whatever the program does first, what is old ends nothing of the new."""
    job = programs.spawn('/usr/bin/python3', '-c', RESTART, first, stdin=subprocess.PIPE)
    job.wait_line('ready')
    polca.kill()
    polca.start()
    job.tell('polca is back')
    job.end()
