# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Programs of two appliances, with a wire between: memif, and a veth pair through af_packet."""

import contextlib
import errno
import os
import re

import pytest

import benchmarks
import perftest_matrix
from net import Namespace
from polca import Polca, port
from rdmacm import ADDR_ERROR, PRELOAD, CmClient, pair_until_listening, until_listening
from verbs import PATIENT, Programs

TEST_SECONDS = 240
PORT = 18900
A, B = '10.78.0.1/24', '10.78.0.2/24'


@contextlib.contextmanager
def memif(sockets):
    device = 'net_memif0,role=%s,id=0,socket-abstract=no,socket=' + os.path.join(sockets, 'memif') + ',bsize=8192'
    yield None, port('port0', device % 'server', A), port('port0', device % 'client', B)


@contextlib.contextmanager
def af_packet(sockets):
    with Namespace() as ns:
        ns.veth('va0', 'va1')
        yield ns, port('port0', 'net_af_packet0,iface=va0', A), port('port0', 'net_af_packet0,iface=va1', B)


@pytest.fixture(scope='module', params=[memif, af_packet], ids=lambda f: f.__name__)
def pair(request, sockets, kept):
    """pair(command): the same program on both sides, as server and client; returns both outputs."""
    made = []

    def side(name, ns, row):
        path = os.path.join(sockets, '%s-%s-verbs' % (request.param.__name__, name))
        p = Polca(sockets, [row], ns=ns, name='%s-%s' % (request.param.__name__, name), limits=PATIENT,
                  verbs={'enabled': True, 'socket': path})
        made.append(Programs(path, kept))
        return p

    def run(*argv):
        server = made[0].spawn(argv[0], '-d', 'polca0', '-p', PORT, *argv[1:])
        server.wait_listening(PORT)
        client = made[1].spawn(argv[0], '-d', 'polca0', '-p', PORT, *argv[1:], 'localhost')
        try:
            return server.end(90), client.end(90)
        finally:
            server.kill()
            client.kill()
    with request.param(sockets) as (ns, a, b), side('a', ns, a), side('b', ns, b):
        run.programs = made
        yield run
        for programs in made:
            programs.close()


@pytest.mark.parametrize('options', [('-c',), ('-c', '-e'), ('-c', '-s', '100000', '-n', '100')], ids=' '.join)
def test_ibv_rc_pingpong(pair, options):
    for text in pair('ibv_rc_pingpong', '-g', '0', *options):
        assert re.search(r'\d+ iters in', text) and 'invalid data' not in text, text


@pytest.mark.parametrize('options', [('-c',), ('-c', '-e')], ids=' '.join)
def test_ibv_srq_pingpong(pair, options):
    for text in pair('ibv_srq_pingpong', '-g', '0', *options):
        assert re.search(r'\d+ iters in', text) and 'invalid data' not in text, text


@pytest.mark.parametrize('command', ['ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw', 'ib_send_lat',
                                     'ib_write_lat', 'ib_read_lat', 'ib_atomic_lat', 'ib_send_bw -e',
                                     'ib_send_bw --use-srq'])
def test_perftest(pair, command):
    _, text = pair(*command.split(), '-x', '0', '-F', '-n', '500')
    assert re.search(r'^ +\d+ +500 ', text, re.M), text


@pytest.mark.parametrize('command', perftest_matrix.chosen(
    'ib_read_bw -a', 'ib_read_lat -e', 'ib_send_lat -R', 'ib_read_bw -R', 'ib_write_bw -q 64', 'ib_send_lat --use-srq'))
def test_perftest_matrix(pair, command):
    words = perftest_matrix.words(command, 100)
    if ' -R' in command:
        _, text = pair_until_listening(pair.programs[0], words, (*words, '10.78.0.1'), pair.programs[1])
    else:
        _, text = pair(*words, '-x', '0')
    perftest_matrix.check(command, text, 100)


@pytest.mark.parametrize('pair', [memif], indirect=True, ids=['memif'])
@pytest.mark.parametrize('command', ['ib_read_bw -e', 'ib_atomic_bw -e', 'ib_atomic_lat -e', 'ib_read_bw -q 64',
                                     'ib_atomic_bw -q 64'])
def test_perftest_matrix_on_memif(pair, command):
    """Also in CI, and on one wire there."""
    test_perftest_matrix(pair, command)


@pytest.mark.parametrize('server,client,expected', [
    ('rping -s -v -V -C 20', 'rping -c -v -V -C 20 -a 10.78.0.1', 'ping data: rdma-ping-19:'),
    ('ucmatose -c 10', 'ucmatose -c 10 -s 10.78.0.1', 'return status 0'),
    ('rdma_server', 'rdma_client -s 10.78.0.1', ': end 0'),
    ('rdma_xserver -c r', 'rdma_xclient -c r -s 10.78.0.1', ': end 0'),
    ('rstream -T v -C 100 -S 10000', 'rstream -T v -C 100 -S 10000 -s 10.78.0.1', 'custom'),
    ('riostream -T v -C 100 -S 10000', 'riostream -T v -C 100 -S 10000 -s 10.78.0.1', 'custom'),
    ('ib_write_bw -R -F -n 500', 'ib_write_bw -R -F -n 500 10.78.0.1', 'BW peak'),
], ids=lambda text: text.split()[0])
def test_librdmacm(pair, server, client, expected):
    for text in pair_until_listening(
            pair.programs[0], server.split(), client.split(), client_programs=pair.programs[1]):
        assert expected in text, text


def test_rcopy(pair, tmp_path):
    data = os.urandom(3_000_001)
    (tmp_path / 'from').write_bytes(data)
    server = pair.programs[0].spawn('rcopy')
    until_listening(pair.programs[1], ('rcopy', tmp_path / 'from', '10.78.0.1:%s' % (tmp_path / 'to')), server)
    assert (tmp_path / 'to').read_bytes() == data
    server.kill()


def test_librspreload(pair):
    """iperf thinks that it uses TCP: its connection is an rsocket, as its kernel has no such address."""
    with Namespace() as ns:  # without any address
        both = [Programs(p.socket, p.dir, prefix=ns.prefix()) for p in pair.programs]
        try:
            for text in pair_until_listening(
                    both[0], ('iperf', '-s', '-B', '10.78.0.1', '-P', 1), ('iperf', '-c', '10.78.0.1', '-n', '5M'),
                    both[1], preload=PRELOAD):
                assert re.search(r' 5\.00 MBytes ', text), text
        finally:
            for p in both:
                p.close()


@pytest.fixture
def inside(pair):
    with benchmarks.with_addresses(pair.programs, ('10.78.0.1', '10.78.0.2')) as both:
        yield both


@pytest.mark.parametrize('server', [0, 1], ids=['server-a', 'server-b'])
def test_qperf(inside, server):
    """Server and client on this host, on either appliance."""
    address = (A, B)[server].split('/')[0]
    tests = ('rc_lat', 'rc_bi_bw', 'rc_rdma_read_bw', 'rc_rdma_write_bw', 'ver_rc_fetch_add', 'ver_rc_compare_swap')
    benchmarks.run_qperf(inside[server], inside[1 - server], address, tests)


def test_fio(inside):
    benchmarks.run_fio(*inside, '10.78.0.1', 'send')


def test_an_address_that_does_not_answer(pair):
    """The event comes after the program's time; nothing is left of a program that dies before."""
    c, dies = CmClient(pair.programs[0].socket), CmClient(pair.programs[0].socket)
    channel, other = c.channel(), dies.channel()
    id = c.create(channel)
    dies.resolve(other, dies.create(other), '10.78.0.77', timeout_ms=600000)
    c.resolve(channel, id, '10.78.0.77', timeout_ms=500)
    dies.close()
    assert not c.readable(channel)
    assert c.event(channel) == (id, ADDR_ERROR, -errno.ETIMEDOUT)
    c.close()
