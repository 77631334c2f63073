# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Debian's verbs programs, unmodified: one on this host, on the appliance's verbs socket, and its peer on
soft-RoCE in the guest. Each runs in both directions.

Both sides poll, and the guest is emulated: perftest's Local ACK Timeout is 18, ibv_rc_pingpong's is fixed, and
the appliance raises what is below."""

import contextlib
import os
import re
import shutil

import pytest

import benchmarks
import perftest_matrix
from guestprograms import GuestPrograms
from lab import GUEST_IP, GUEST_IP6, POLCA_IP, POLCA_IP6
from net import Namespace
from rdmacm import PRELOAD, pair_until_listening, until_listening
from relay import Reach
from scale import scaled
from verbs import PATIENT, Programs

TEST_SECONDS = 240
PORT, CM_PORT = 18515, 18700
SERVERS = ['host', 'guest']
PERFTEST = ('-F', '-n', 20, '-u', 18)
# over TCP, perftest's requester takes what the other side's device can do for its own limit: soft-RoCE says 128
READS_AT_A_TIME = ('-o', 16)


@pytest.fixture(scope='module')
def polca(lab, request):
    """The guest's appliance, which this module starts with a verbs socket."""
    p = lab.alive()
    before = p.config
    p.stop()
    p.config = dict(before, limits=dict(before['limits'], **PATIENT),
                    verbs={'enabled': True, 'socket': os.path.join(p.dir, 'verbs.sock')})
    try:
        p.start()
        with lab.captured('rxe_' + request.path.stem):
            yield p
        p.stop()
    finally:
        p.kill()
        p.config = before
        p.start()


@pytest.fixture
def programs(polca, kept):
    """Of this host. All their objects are gone when they have ended."""
    p = Programs(polca.config['verbs']['socket'], kept)
    yield p
    p.close()
    assert polca.alive(), polca.tail()


class Side:
    def __init__(self, programs, device, gid_index, address, peer):
        self.programs, self.device, self.gid_index = programs, device, gid_index
        self.address, self.peer = address, peer

    def install(self, *paths):
        if self.device == 'rxe0':
            self.programs.install(*paths)


@pytest.fixture(params=SERVERS)
def sides(request, programs, guest):
    """The server's side, and the client's. gid_index: of its IPv4 address. peer: where this side's client
    finds the other's TCP port."""
    host = Side(programs, 'polca0', 0, {4: POLCA_IP, 6: POLCA_IP6}, ('127.0.0.1', guest.host_port(PORT)))
    other = Side(GuestPrograms(guest), 'rxe0', 1, {4: GUEST_IP, 6: GUEST_IP6}, ('10.0.2.2', PORT))
    return (host, other) if request.param == 'host' else (other, host)


def over_tcp(sides, program, gid_option, *options):
    """Both programs, which exchange their addresses over TCP. @return both outputs"""
    def words(side, port):
        return (program, '-d', side.device, gid_option, side.gid_index, '-p', port, *options)
    server, client = sides
    serving = server.programs.spawn(*words(server, PORT))
    serving.wait_listening(PORT)
    address, port = client.peer
    asking = client.programs.spawn(*words(client, port), address)
    try:
        text = asking.end(120)
        return serving.end(120), text
    finally:
        asking.kill()
        serving.kill()


@pytest.mark.parametrize('options', [('-c', '-n', 300), ('-c', '-e', '-n', 50), ('-c', '-s', 100000, '-n', 20)],
                         ids=lambda o: ' '.join(map(str, o)))
def test_ibv_rc_pingpong(sides, options):
    """-c compares the bytes, -e sleeps on a completion channel."""
    for text in over_tcp(sides, 'ibv_rc_pingpong', '-g', *options):
        assert re.search(r'\d+ iters in', text) and 'invalid data' not in text, text


@pytest.mark.parametrize('options', [('-c',), ('-c', '-e')], ids=' '.join)
def test_ibv_srq_pingpong(sides, options):
    for text in over_tcp(sides, 'ibv_srq_pingpong', '-g', *options, '-n', 100):
        assert re.search(r'\d+ iters in', text) and 'invalid data' not in text, text


@pytest.mark.parametrize('program,form', [
    (program, form) for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_lat')
    for form in ('tcp', 'cm')] + [
        (program, 'tcp') for program in ('ib_send_lat', 'ib_write_lat', 'ib_read_lat', 'ib_atomic_bw')])
def test_perftest(sides, program, form):
    if form == 'tcp':
        limit = READS_AT_A_TIME if re.search('read|atomic', program) else ()
        texts = over_tcp(sides, program, '-x', *PERFTEST, *limit)
    else:
        server, client = sides
        words = (program, '-R', '-p', CM_PORT, *PERFTEST)
        texts = pair_until_listening(server.programs, (*words, '-d', server.device),
                                     (*words, '-d', client.device, server.address[4]), client.programs)
    assert re.search(r'^ +\d+ +20 ', texts[1], re.M), texts


@pytest.mark.parametrize('command', perftest_matrix.chosen(
    'ib_send_bw -e', 'ib_write_bw -q 64', 'ib_send_lat --use-srq'))
def test_perftest_matrix(sides, command):
    words = (*perftest_matrix.words(command, 20), '-u', 18)
    if '-q 64' in command and 'atomic' not in command:
        words = (*words, '-s', 512)  # the guest loses packets when 64 queue pairs send 64 KiB each
    if ' -R' in command:
        server, client = sides
        words = (*words, '-p', CM_PORT)
        _, text = pair_until_listening(server.programs, (*words, '-d', server.device),
                                       (*words, '-d', client.device, server.address[4]), client.programs)
    else:
        limit = READS_AT_A_TIME if re.search('read|atomic', command) else ()
        _, text = over_tcp(sides, words[0], '-x', *words[1:], *limit)
    perftest_matrix.check(command, text, 20)


@pytest.mark.parametrize('size,family', [(64, 4), (4000, 4), (1500, 6)])
def test_rping(sides, size, family):
    """Sends, Reads and Writes, whose bytes -V compares."""
    server, client = sides
    words = ('-v', '-V', '-C', 10, '-S', size, '-p', CM_PORT, '-a', server.address[family])
    for text in pair_until_listening(server.programs, ('rping', '-s', *words), ('rping', '-c', *words),
                                     client.programs):
        assert 'ping data: rdma-ping-9:' in text, text


@pytest.mark.parametrize('server_words,client_words,expected', [
    ('ucmatose -c 4', 'ucmatose -c 4 -s {0}', 'return status 0'),
    ('rdma_server', 'rdma_client -s {0}', ': end 0'),
    ('rdma_xserver -c r', 'rdma_xclient -c r -s {0}', ': end 0'),
    ('rstream -T v -C 20 -S 4000', 'rstream -T v -C 20 -S 4000 -s {0}', 'custom'),
    ('riostream -T v -C 20 -S 4000', 'riostream -T v -C 20 -S 4000 -s {0}', 'custom'),
], ids=lambda text: text.split()[0])
def test_librdmacm(sides, server_words, client_words, expected):
    server, client = sides
    for side in sides:
        side.install(*(shutil.which(words.split()[0]) for words in (server_words, client_words)))
    for text in pair_until_listening(server.programs, server_words.split(),
                                     client_words.format(server.address[4]).split(), client.programs):
        assert expected in text, text


def test_rcopy(sides, guest, tmp_path):
    data = os.urandom(300_001)
    server, client = sides
    other = client if server.device == 'polca0' else server
    paths = {'polca0': str(tmp_path / 'file'), 'rxe0': '/tmp/file'}
    (tmp_path / 'file').write_bytes(data)
    other.programs.put(data, '/tmp/file')
    to = paths[server.device] + '.copy'
    serving = server.programs.spawn('rcopy')
    try:
        until_listening(client.programs, ('rcopy', paths[client.device], '%s:%s' % (server.address[4], to)), serving)
    finally:
        serving.kill()
    if server.device == 'polca0':
        assert (tmp_path / 'file.copy').read_bytes() == data
    else:
        guest.check('cmp /tmp/file /tmp/file.copy && rm /tmp/file.copy')


@contextlib.contextmanager
def within(sides, addresses=(), tcp=None):
    """Both sides, the host's program in a namespace that has these addresses. tcp: one of the guest's TCP ports,
    which the namespace reaches at the guest's address."""
    with Namespace() as ns, contextlib.ExitStack() as stack:
        for address in addresses:
            ns.ip('addr', 'add', address + '/32', 'dev', 'lo')
        if tcp is not None:
            stack.enter_context(Reach(ns, tcp, (GUEST_IP, PORT)))
        made = []
        for side in sides:
            programs = side.programs
            if side.device == 'polca0':
                programs = Programs(programs.socket, programs.dir, prefix=ns.prefix())
                stack.callback(programs.close)
            made.append(programs)
        yield made


def test_librspreload(sides):
    """iperf thinks that it uses TCP. The host's program runs in a namespace without any address."""
    server, client = sides
    for side in sides:
        side.install(shutil.which('iperf'), PRELOAD)
    with within(sides) as (serving, asking):
        for text in pair_until_listening(
                serving, ('iperf', '-s', '-B', server.address[4], '-P', 1),
                ('iperf', '-c', server.address[4], '-n', '1M'), asking, preload=PRELOAD):
            assert re.search(r' 1\.00 MBytes ', text), text


@pytest.mark.parametrize('sides', ['guest'], indirect=True)
def test_qperf(sides, guest):
    """Its exchange over TCP goes to the same address: the guest reaches no TCP port of Polca's address."""
    for side in sides:
        side.install(shutil.which('qperf'))
    with within(sides, [GUEST_IP], guest.host_port(PORT)) as (serving, asking):
        benchmarks.run_qperf(serving, asking, GUEST_IP, ('rc_lat', 'ver_rc_compare_swap'), PORT)


@pytest.mark.parametrize('sides', scaled(['host'], ['host', 'guest']), indirect=True)
@pytest.mark.parametrize('verb', scaled(['send'], ['send', 'write', 'read']))
def test_fio(sides, verb):
    """send: the server checks the checksum of each block. In the guest, it takes minutes to listen."""
    for side in sides:
        side.install(shutil.which('fio'))
    with within(sides, [POLCA_IP, GUEST_IP]) as (serving, asking):
        benchmarks.run_fio(serving, asking, sides[0].address[4], verb)
