# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Debian's perftest measures the appliance: each of the eight clients, with addresses exchanged
over TCP and with -R. The test checks the client's output and exit status."""

import re
import socket

import pytest

from conn import wait_until
from lab import POLCA_IP

PORT = 18515
TEST_SECONDS = 300
STREAM_SECONDS = 120  # longest time until a stream is running
PROGRAMS = ['ib_%s_%s' % (verb, test) for verb in ('send', 'write', 'read', 'atomic')
            for test in ('bw', 'lat')]
FORMS = ['tcp', 'cm']
# one service for all programs
BYTES = {'bw': 65536, 'lat': 2}


@pytest.fixture
def perftest(listen):
    return listen('perftest', PORT, tcp_port=PORT, tcp_any_gid=True)


def many(perftest, job, messages=100):
    """Wait until the client's job has sent this many messages; if it ends before that, raise
    with its output."""
    def there():
        if perftest.show()['messages_in'] > messages:
            return True
        status = job.poll()
        assert status is None, 'it ended with %d: %s' % (status, job.output())
        return False
    try:
        wait_until(there, timeout=STREAM_SECONDS, step=0.1)
    except AssertionError as e:
        rc = perftest.polca.rpc('stats_get')['rc']
        raise AssertionError('%s\nclient: %s\nservice: %r\nqueue pairs: %r\nrc: %r' % (
            e, job.output(), perftest.show(), perftest.polca.rpc('qp_list')['qps'],
            {k: v for k, v in rc.items() if v})) from None


class Client:
    """Command lines of the guest's programs."""

    def __init__(self, lab):
        self.lab, self.guest = lab, lab.guest
        self.tcp = lab.tcp(PORT)

    def __enter__(self):
        self.address, self.port = self.tcp.__enter__()
        return self

    def __exit__(self, *exc):
        self.tcp.__exit__(*exc)

    def line(self, form, program, args):
        if form == 'cm':
            return '%s -d rxe0 -u 18 -R -p %d %s %s' % (program, PORT, args, POLCA_IP)
        return '%s -d rxe0 -u 18 -x 1 -p %d %s %s' % (program, self.port, args, self.address)

    def run(self, form, program, args, seconds=120):
        """The rows of the printed table: a list of lists of numbers."""
        r = self.guest.run(self.line(form, program, args), seconds)
        assert r.status == 0, r
        assert 'rror' not in r.output, r
        return [[float(x) for x in line.split()] for line in r.output.splitlines()
                if re.fullmatch(r'\s*\d+\s+\d+(\s+-?[\d.na]+)+\s*', line)]


@pytest.fixture
def client(lab, perftest):
    with Client(lab) as c:
        yield c


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('program', PROGRAMS)
def test_each(client, perftest, program, form):
    row, = client.run(form, program, '-n 20')
    size = 8 if 'atomic' in program else BYTES[program.rsplit('_', 1)[1]]
    assert row[:2] == [size, 20]
    # messages per second, because MB/s of eight bytes may be printed as 0; or the largest latency
    assert row[4 if program.endswith('bw') else 3] > 0
    # its connections end with it, without errors
    perftest.wait(connections=0, errors=0, violations=0)


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('program', ['ib_send_bw', 'ib_write_bw', 'ib_write_lat', 'ib_send_lat'])
def test_for_a_time(client, program, form):
    row, = client.run(form, program, '-D 2')
    assert row[1] > 5


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('program', ['ib_send_bw', 'ib_write_bw', 'ib_read_bw'])
def test_several_queue_pairs(client, perftest, program, form):
    before = perftest.show()['established']
    row, = client.run(form, program, '-n 20 -q 4 -s 4096')
    assert row[:2] == [4096, 80]
    # with -R the exchange has a connection of its own
    assert perftest.show()['established'] - before == (5 if form == 'cm' else 4)


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('program', ['ib_send_lat', 'ib_write_lat'])
@pytest.mark.parametrize('size', [1, 1024, 1025, 4096])
def test_latency_of_larger_messages(client, program, form, size):
    row, = client.run(form, program, '-n 300 -s %d' % size)
    assert row[:2] == [size, 300]


def test_write_latency_beyond_a_page(lab, listen):
    """The server is not told the size: its parameter sets it, like -s of perftest's own server."""
    listen('perftest', PORT, tcp_port=PORT, tcp_any_gid=True, size=65536)
    with Client(lab) as c:
        row, = c.run('tcp', 'ib_write_lat', '-n 20 -s 65536')
        assert row[:2] == [65536, 20]


@pytest.mark.parametrize('program', ['ib_write_lat', 'ib_send_bw'])
def test_all_sizes(client, program):
    rows = client.run('tcp', program, '-a -n 5', 270)
    assert [row[0] for row in rows] == [2 ** n for n in range(1, 24)]


@pytest.mark.parametrize('program', ['ib_write_bw', 'ib_send_lat'])
def test_ipv6(client, program):
    """The client uses its third GID: ours is chosen to match."""
    row, = client.run('tcp', program, '-n 20 -x 2')
    assert row[1] == 20


def test_writes_both_ways(client):
    """The server's own direction is missing (perftest does not request it), but the client
    completes its own."""
    row, = client.run('tcp', 'ib_write_bw', '-b -n 20')
    assert row[:2] == [65536, 20]


def test_two_at_a_time(client, guest):
    jobs = [guest.spawn(client.line(form, 'ib_write_lat', '-n 500')) for form in FORMS]
    for job in jobs:
        r = job.wait()
        assert r.status == 0 and re.search(r'^ 2 +500 ', r.output, re.M), r


@pytest.mark.parametrize('form', FORMS)
def test_killed_client(client, guest, perftest, form):
    """What the killed client left behind is removed, and the next one is served."""
    job = guest.spawn(client.line(form, 'ib_send_bw', '-D %d' % (2 * STREAM_SECONDS)),
                      2 * STREAM_SECONDS + 60)
    many(perftest, job)
    guest.check('kill -9 $(pidof ib_send_bw)')
    assert job.wait().status != 0
    perftest.wait(connections=0)
    row, = client.run(form, 'ib_send_bw', '-n 20')
    assert row[:2] == [65536, 20]


# ---- the TCP port, message by message

def knock(lab, data):
    """All data until the appliance closes."""
    with lab.ns.call(socket.create_connection, ('127.0.0.1', PORT), 10) as s:
        s.settimeout(30)
        s.sendall(data)
        got = b''
        while True:
            try:
                d = s.recv(1000)
            except ConnectionResetError:
                d = b''
            if not d:
                return got
            got += d


VERSION = b'6.06'.ljust(16, b'\0')
GREETING = VERSION + b'\0\0\x10\0' + b'\0\0\0\x40' + b'3\0'


@pytest.mark.parametrize('data,answer', [
    (b'GET / HTTP/1.1\r\n\r\n', b''),
    (b'5.50'.ljust(16, b'\0'), b''),
    (VERSION + b'\0\0\x10\0' + b'\0\0\0\x40' + b'9\0', VERSION + b'\0\0\x10\0' + b'\0\0\0\x40'),
    (GREETING + b'!' * 108, GREETING),
    # a LID, but this is not an InfiniBand port
    (GREETING + b'0001:0001:000011:5d0108:000003fd:00007f152ac5f000:' + b'20:' * 16 +
     b'00000000:\0', GREETING),
    (GREETING + b'done\0', GREETING + b'done\0'),
], ids=['http', 'old', 'mtu', 'noise', 'address', 'done'])
def test_nonsense_is_closed(lab, perftest, data, answer):
    assert knock(lab, data) == answer
    perftest.wait(connections=0)


def test_silence_is_closed(lab, perftest):
    assert knock(lab, b'6') == b''


def test_port_is_closed_with_the_service(lab, polca, perftest):
    polca.rpc('cm_unlisten', service=perftest.name, disconnect=True)
    with pytest.raises(ConnectionRefusedError):
        knock(lab, b'')


def test_port_that_is_taken(polca, perftest):
    with pytest.raises(Exception, match='tcp_port: cannot listen on 18515: Address already in use'):
        polca.rpc('cm_listen', kind='perftest', port=PORT + 1, tcp_port=PORT)
    with pytest.raises(Exception, match='tcp_port: echo does not use TCP'):
        polca.rpc('cm_listen', kind='echo', port=PORT + 2, tcp_port=PORT + 2)


def test_greeting_that_outlives_the_service(lab, polca, listen):
    """Another service has taken the place: the client is gone, and the new service keeps nothing
    of it."""
    first = listen('perftest', PORT, tcp_port=PORT, tcp_any_gid=True)
    with lab.ns.call(socket.create_connection, ('127.0.0.1', PORT), 10) as s:
        s.settimeout(30)
        s.sendall(VERSION)
        assert s.recv(16) == VERSION
        polca.rpc('cm_unlisten', service=first.name, disconnect=False)
        wait_until(lambda: first.show() is None)
        listen('echo', PORT)
        assert s.recv(1) == b''
