# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The other end is an unmodified program on a verbs host: perftest's servers, over TCP and with
-R, and any program with which queue pair numbers are exchanged by hand. The tests check the
counts and exit statuses of both sides."""

import re
import signal
import socket
import threading

import pytest

import pingpong
from conn import wait_until
from lab import GUEST_IP as THERE, POLCA_IP as OWN, POLCA_IP6 as OWN6
from relay import Reach
from roce import gid_of

TEST_SECONDS = 600
PORT = 18515
FORMS = ['tcp', 'cm']
PROGRAMS = ['ib_%s_%s' % (verb, test) for verb in ('send', 'write', 'read', 'atomic')
            for test in ('bw', 'lat')]
BYTES = {'bw': 65536, 'lat': 2}
LINK = ('--no-huge', '--link', 'net_af_packet0,iface=rt0', '--address', OWN + '/24')


@pytest.fixture(scope='module')
def wire(lab):
    """The guest's wire, used by the benchmark instead of the appliance."""
    lab.polca.stop()
    yield lab.ns
    lab.alive()


@pytest.fixture
def host(wire, guest):
    """The verbs host."""
    return guest


@pytest.fixture
def serve(host):
    """serve(form, command): start a perftest server; returns its job."""
    def start(form, program, args):
        show = 'rdma resource show cm_id' if form == 'cm' else '/usr/bin/ss -Hltn'
        have = len(host.check(show).splitlines())
        job = host.spawn('%s -d rxe0 -u 18 -p %d %s %s' % (
            program, PORT, '-R' if form == 'cm' else '' if '-x' in args else '-x 1', args), 200)
        wait_until(lambda: len(host.check(show).splitlines()) > have, timeout=60, step=0.1)
        return job
    yield start
    host.check('killall -q -9 %s ibv_rc_pingpong; true' % ' '.join(PROGRAMS))


@pytest.fixture
def measure(bench, wire, host):
    """measure(form, program, words): start polca-bench as its client."""
    with Reach(wire, host.host_port(PORT)) as reach:
        def start(form, program, *words):
            _, verb, mode = program.split('_')
            where = ('-R', '--perftest', THERE) if form == 'cm' else (
                '--perftest', '127.0.0.1:%d' % reach.port)
            return bench(verb, mode, *words, *LINK, *where, ns=wire)
        yield start


def rows(text):
    """The tables in a text: lists of numbers."""
    return [[float(x) for x in line.split() if x != '-'] for line in text.splitlines()
            if re.fullmatch(r'\s*\d+\s+\d+(\s+(-|-?[\d.]+))+\s*', line)]


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('program', PROGRAMS)
def test_each(serve, measure, program, form):
    job = serve(form, program, '-n 40')
    b = measure(form, program, '-n', '40')
    status, r = b.ends(), job.wait(100)
    assert status == 0, (r.status, r.output[-800:], b.text[-300:])
    assert r.status == 0 and 'rror' not in r.output, r
    size = 8 if 'atomic' in program else BYTES[program.rsplit('_', 1)[1]]
    row, = rows(b.text)
    # the server's first Write is not an answer
    assert row[:2] == [size, 39 if program == 'ib_write_lat' else 40]
    # messages per second, because MB/s of eight bytes may be printed as 0; or the largest latency
    assert row[4 if program.endswith('bw') else 3] > 0
    # the servers of read_lat and atomic_lat print no report; for one-sided tests the report is the
    # client's
    if program not in ('ib_read_lat', 'ib_atomic_lat'):
        theirs, = rows(r.output)
        assert theirs[:2] == [size, 40]
    if program in ('ib_write_bw', 'ib_read_bw', 'ib_atomic_bw'):
        assert theirs[3] == pytest.approx(row[3], abs=0.006)


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('program', ['ib_send_bw', 'ib_write_bw', 'ib_read_bw'])
def test_several_queue_pairs(serve, measure, program, form):
    job = serve(form, program, '-n 20 -q 3 -s 3000')
    b = measure(form, program, '-n', '60', '-q', '3', '-s', '3000')
    assert b.ends() == 0, b.text
    row, = rows(b.text)
    assert row[:2] == [3000, 60]
    r = job.wait(100)
    assert r.status == 0 and rows(r.output)[0][:2] == [3000, 60], r


def test_more_writes_than_a_byte_counts(serve, measure):
    """The last byte of each Write is its number, which wraps around."""
    job = serve('tcp', 'ib_write_lat', '-n 300 -s 100')
    b = measure('tcp', 'ib_write_lat', '-n', '300', '-s', '100')
    assert b.ends() == 0, b.text
    assert rows(b.text)[0][:2] == [100, 299]
    r = job.wait(100)
    assert r.status == 0 and rows(r.output)[0][:2] == [100, 300], r


def test_one_completion_of_several(serve, measure):
    job = serve('tcp', 'ib_send_bw', '-n 40 -q 2 -s 500')
    b = measure('tcp', 'ib_send_bw', '-n', '80', '-q', '2', '-s', '500', '-Q', '8', '-t', '16')
    assert b.ends() == 0, b.text
    assert rows(b.text)[0][:2] == [500, 80]
    assert job.wait(100).status == 0


def test_ipv6(serve, bench, wire, host):
    """The server uses its third GID; ours is chosen to match."""
    job = serve('tcp', 'ib_write_bw', '-x 2 -n 40')
    link = ('--no-huge', '--link', 'net_af_packet0,iface=rt0', '--address', OWN6 + '/64')
    with Reach(wire, host.host_port(PORT)) as reach:
        b = bench('write', '-n', '40', *link, '--perftest', '127.0.0.1:%d' % reach.port, ns=wire)
        assert b.ends() == 0, b.text
    assert job.wait(100).status == 0


def test_an_address_of_another_kind(serve, bench, wire, host):
    serve('tcp', 'ib_write_bw', '-x 1 -n 40')
    link = ('--no-huge', '--link', 'net_af_packet0,iface=rt0', '--address', OWN6 + '/64')
    with Reach(wire, host.host_port(PORT)) as reach:
        b = bench('write', '-n', '40', *link, '--perftest', '127.0.0.1:%d' % reach.port, ns=wire)
        assert b.ends() == 1
    assert "address family differs from ours: choose another one with -x there" in b.text


@pytest.mark.parametrize('program', ['ib_read_bw', 'ib_send_bw'])
def test_for_a_time(serve, measure, program):
    job = serve('tcp', program, '-D 2')
    b = measure('tcp', program, '-D', '2')
    assert b.ends() == 0, b.text
    assert rows(b.text)[0][1] > 5
    assert job.wait(100).status == 0


@pytest.mark.parametrize('form', FORMS)
def test_larger_messages_than_the_server_takes(serve, measure, form):
    serve(form, 'ib_send_bw', '-n 40 -s 1024')
    b = measure(form, 'ib_send_bw', '-n', '40', '-s', '4096')
    assert b.ends() == 1
    assert 'The server must be: ib_send_bw -s 4096 -n 40' in b.text


def test_a_server_that_wants_more(serve, measure):
    serve('tcp', 'ib_send_bw', '-n 80')
    b = measure('tcp', 'ib_send_bw', '-n', '40')
    assert b.ends() == 1
    assert 'The server must be: ib_send_bw -s 65536 -n 40' in b.text


def test_a_server_of_something_else(serve, measure):
    serve('tcp', 'ib_send_bw', '-n 40')
    b = measure('tcp', 'ib_read_bw', '-n', '40')
    assert b.ends() == 1
    assert 'the server offers no memory: is it ib_read_bw?' in b.text


@pytest.mark.parametrize('form', FORMS)
def test_a_server_that_is_killed(host, serve, measure, form):
    job = serve(form, 'ib_write_bw', '-n 1000000 -s 1024')
    b = measure(form, 'ib_write_bw', '-n', '1000000', '-s', '1024')
    b.says('#bytes')
    host.check('kill -9 $(pidof ib_write_bw)')
    job.wait(30)
    assert b.ends() == 1
    assert re.search('the perftest server has ended|work requests failed', b.text)


def test_ctrl_c(serve, measure):
    """The measured values are printed; the server detects that the client is gone."""
    job = serve('tcp', 'ib_write_bw', '-D 100 -s 1024')
    b = measure('tcp', 'ib_write_bw', '-D', '100', '-s', '1024', '-t', '4096')
    b.says('#bytes')
    b.signal(signal.SIGINT)
    assert b.ends() == 0
    assert rows(b.text), b.text
    job.wait(100)


@pytest.mark.parametrize('answer,why', [
    (b'5.50'.ljust(16, b'\0'), 'is too old a perftest (5.50; allowed 5.70 and newer)'),
    (b'HTTP/1.1 400 Bad', 'is no perftest\n'),
    (b'', 'the perftest server is gone'),
], ids=['old', 'http', 'closed'])
def test_another_version(wire, bench, answer, why):
    listener = wire.call(socket.create_server, ('127.0.0.1', 0))

    def once():
        s, _ = listener.accept()
        with s:
            s.recv(16)
            s.sendall(answer)
    t = threading.Thread(target=once)
    t.start()
    b = bench('write', *LINK, '--perftest', '127.0.0.1:%d' % listener.getsockname()[1], ns=wire)
    assert b.ends() == 1
    assert why in b.text, b.text
    t.join()
    listener.close()


def test_nobody_listens(wire, bench):
    b = bench('send', *LINK, '--perftest', '127.0.0.1:1', ns=wire)
    assert b.ends() == 1
    assert 'no process listens on 127.0.0.1:1 (Connection refused)' in b.text


@pytest.mark.parametrize('where,status,why', [
    ('::1', 1, 'no process listens on [::1]:18515 ('),
    ('[::1]:1', 1, 'no process listens on [::1]:1 ('),
    ('127.0.0.1:99999', 2, 'got "127.0.0.1:99999", allowed: HOST, HOST:PORT, [ADDRESS]:PORT, '
     'ports 1 to 65535'),
    ('/tmp/x', 2, '"/tmp/x": Name or service not known'),
], ids=['ipv6', 'ipv6-port', 'port', 'path'])
def test_where_it_listens(wire, bench, where, status, why):
    b = bench('send', *LINK, '--perftest', where, ns=wire)
    assert b.ends() == status
    assert '--perftest: ' + why in b.text, b.text


def test_nobody_listens_with_cm(host, wire, bench):
    b = bench('send', *LINK, '--perftest', THERE + ':1', '-R', ns=wire)
    assert b.ends() == 1
    assert 'invalid service ID' in b.text


# ---- a queue pair whose numbers are exchanged by hand

def ours(bench):
    """The line that polca-bench prints for the other side."""
    bench.says('length=')
    line, = [line for line in bench.text.splitlines() if line.startswith('gid=')]
    return dict(word.split('=') for word in line.split(','))


@pytest.mark.parametrize('size', [4096, 1, 9000])
def test_pingpong_told_by_hand(host, wire, bench, serve, size):
    job = host.spawn('ibv_rc_pingpong -d rxe0 -g 1 -s %d -n 50' % size)
    wait_until(lambda: ':18515' in host.check('/usr/bin/ss -Hltn'), timeout=60, step=0.1)
    b = bench('send', 'lat', '-s', str(size), '-n', '50', *LINK, '--peer', '-', ns=wire)
    us = ours(b)
    c = pingpong.Client(host.host_port(PORT))
    qpn, psn, gid = c.exchange(int(us['qpn'], 0), int(us['psn'], 0), '::ffff:' + OWN)
    b.tell('gid=%s,qpn=%d,psn=%d' % (gid, qpn, psn))
    c.done()
    assert b.ends() == 0, b.text
    assert rows(b.text)[0][:2] == [size, 50]
    r = job.wait(100)
    assert r.status == 0 and '50 iters in' in r.output, r


@pytest.mark.parametrize('words', [('write', '-s', '1000'), ('read', '-s', '5000'),
                                   ('read', 'lat'), ('atomic',), ('atomic', 'lat')], ids=' '.join)
def test_memory_told_by_hand(host, wire, bench, words):
    """The verbs program executes commands line by line; the messages use its memory."""
    v = host.rdma()
    made = v('qp', sq=16, rq=16)
    mr = v('mr', size=8192, access=15)
    psn = 0xffffe0
    b = bench(*words, '-n', '200', *LINK, '--peer',
              'gid=%s,qpn=0x%x,psn=0x%x,va=0x%x,rkey=0x%x,length=8192' % (
                  THERE, made['qpn'], psn, mr['addr'], mr['rkey']), ns=wire)
    us = ours(b)
    v('init', qp=made['qp'], access=14)
    v('rtr', qp=made['qp'], dest=int(us['qpn'], 0), psn=int(us['psn'], 0),
      gid=gid_of(OWN), mtu=1024, sgid_index=1, min_rnr=12, rd=16)
    v('rts', qp=made['qp'], psn=psn, timeout=18, rnr=7, rd=16)
    b.tell('')
    assert b.ends() == 0, b.text
    assert rows(b.text)[0][1] == 200
    if words[0] == 'write':
        assert bytes.fromhex(v('peek', mr=mr['mr'], off=0, len=64)['hex']) == bytes(
            (i * 2654435761 >> 11) & 0xFF for i in range(64))


@pytest.mark.parametrize('peer,why', [
    ('gid=10.79.0.2,qpn=0x11', '--peer: psn=... is missing'),
    ('gid=10.79.0.2,qpn=0x1000000,psn=1', '--peer: got "qpn=0x1000000", allowed'),
    ('gid=10.79.0.2,qpn=1,psn=1', '--peer: va=... is missing'),
    ('gid=10.79.0.2,qpn=1,psn=1,va=1,rkey=1,length=8', 'length=8 is less than a message'),
], ids=['psn', 'qpn', 'va', 'length'])
def test_a_peer_told_wrong(wire, bench, peer, why):
    b = bench('write', *LINK, '--peer', peer, ns=wire)
    assert b.ends() == 2
    assert why in b.text, b.text
