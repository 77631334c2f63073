# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Unmodified rstream and rcopy of Linux against Polca, in both roles, over rsockets.

Deviation of the peer: rcopy's server reports that it has opened a file even if it could not; the
request to write then fails."""

import binascii
import hashlib
import re

import pytest

from conn import wait_until
from lab import GUEST_IP, GUEST_IP6, POLCA_IP, POLCA_IP6
from services import connect, connections, done

TEST_SECONDS = 240
RSTREAM, RCOPY, GUEST_RSTREAM, GUEST_RCOPY = 7471, 7427, 7472, 7428


def row_of(output):
    """Name, bytes, transfers, iterations, total from the line that rstream prints at its end."""
    return re.search(r'^custom +(\S+) +(\S+) +(\S+) +(\S+) +[\d.]+s', output, re.M).groups()


# ---- rstream -s: -T v compares the returned data

@pytest.mark.parametrize('options,row', [
    ('-S 64 -C 1 -I 200', ('64', '1', '200', '25k')),  # latency
    ('-S 65536 -C 50 -I 1', ('64k', '50', '1', '6.2m')),  # bandwidth
    ('-S 1000000 -C 3 -I 2', ('976k', '3', '2', '11m')),  # more than the buffers hold
    ('-S 1 -C 1000 -I 1', ('1', '1k', '1', '1.9k')),  # more messages than credits
    ('-S 100000 -C 20 -B 4096', ('97k', '20', '1', '3.8m')),  # buffers smaller than a transfer
    ('-S 5000 -C 20 -I 2 -T b', ('4.8k', '20', '2', '390k')),  # blocking calls
    ('-S 5000 -C 20 -I 2 -T a', ('4.8k', '20', '2', '390k')),  # poll
    ('-S 5000 -C 20 -T b -T a', ('4.8k', '20', '1', '195k')),
    ('-S 5000 -C 20 -T n', ('4.8k', '20', '1', '195k')),
    ('-S 5000 -C 20 -T r', ('4.8k', '20', '1', '195k')),  # rdma_getaddrinfo
    ('-S 1000 -C 5 -i 0', ('1000', '5', '1', '9.7k')),  # nothing inline
    ('-S 1000 -C 5 -k 1', ('1000', '5', '1', '9.7k')),  # keepalive
    ('-S 1000 -C 5 -b ' + GUEST_IP, ('1000', '5', '1', '9.7k'))])
def test_rstream(listen, guest, options, row):
    s = listen('rstream', RSTREAM)
    out = guest.check('rstream -s %s -p %d -T v %s' % (POLCA_IP, RSTREAM, options), 100)
    assert row_of(out) == row and 'failed' not in out, out
    s.wait(established=1, connections=0, errors=0, violations=0)


def test_rstream_over_ipv6(listen, guest):
    s = listen('rstream', RSTREAM)
    guest.check('rstream -s %s -p %d -T v -S 1000 -C 10' % (POLCA_IP6, RSTREAM))
    s.wait(established=1, connections=0)


def test_rstream_with_small_buffers_of_ours(listen, guest):
    s = listen('rstream', RSTREAM, length=1024)
    guest.check('rstream -s %s -p %d -T v -S 10000 -C 10 -I 2' % (POLCA_IP, RSTREAM), 100)
    s.wait(established=1, connections=0, errors=0, violations=0)


def test_rstreams_at_a_time(listen, guest):
    s = listen('rstream', RSTREAM)
    jobs = [guest.spawn('rstream -s %s -p %d -T v -S 20000 -C 10 -I 5' % (POLCA_IP, RSTREAM))
            for _ in range(4)]
    assert [job.wait(100).status for job in jobs] == [0] * 4
    s.wait(established=4, connections=0, errors=0, violations=0)


def test_rstream_is_killed(listen, guest):
    s = listen('rstream', RSTREAM)
    guest.spawn('rstream -s %s -p %d -S 65536 -C 1000 -I 1000' % (POLCA_IP, RSTREAM))
    wait_until(lambda: s.show()['messages_in'] > 20, timeout=30)
    guest.check('killall -q -9 rstream')
    s.wait(connections=0)
    guest.check('rstream -s %s -p %d -T v -S 1000 -C 10' % (POLCA_IP, RSTREAM))
    s.wait(established=2, connections=0, violations=0)


# ---- rstream: Polca is the client

@pytest.mark.parametrize('address,size,depth,count,options', [
    (GUEST_IP, 64, 1, 100, ''), (GUEST_IP, 64, 1, 50, '-T a'), (GUEST_IP, 100000, 3, 3, '-T b'),
    (GUEST_IP, 1000000, 2, 2, ''), (GUEST_IP, 1000, 10, 2, '-B 4096'), (GUEST_IP6, 1000, 10, 2, '')])
def test_rstream_server(polca, serve, address, size, depth, count, options):
    """-T v: the program checks the received data, and the returned data count on."""
    job = serve('rstream -p %d -b %s -T v -S %d -C %d -I %d %s' % (
        GUEST_RSTREAM, address, size, depth, count, options))
    c = connect(polca, GUEST_RSTREAM, 'rstream', address, size=size, depth=depth, count=count,
                verify=True)
    row = done(polca, c['connection'], 100)
    assert (row['exchanges'], row['mismatches'], row['violations']) == (count, 0, 0), row
    r = job.wait()
    assert r.status == 0 and 'custom' in r.output and 'failed' not in r.output, r


def test_rstream_server_without_verify(polca, serve):
    """It sends what it received last: as many bytes, but different ones."""
    job = serve('rstream -p %d -S 1000 -C 10 -I 2' % GUEST_RSTREAM)
    c = connect(polca, GUEST_RSTREAM, 'rstream', size=1000, depth=10, count=2)
    row = done(polca, c['connection'])
    assert (row['exchanges'], row['mismatches']) == (2, 0), row
    assert job.wait().status == 0
    job = serve('rstream -p %d -S 1000 -C 10 -I 2' % GUEST_RSTREAM)
    c = connect(polca, GUEST_RSTREAM, 'rstream', size=1000, depth=10, count=2, verify=True)
    row = done(polca, c['connection'])
    assert row['exchanges'] == 2 and row['mismatches'] > 0, row
    assert job.wait().status == 0


def test_rstream_server_that_ends_early(polca, serve):
    """It has fewer iterations than Polca: Polca's part ends with the connection."""
    serve('rstream -p %d -S 1000 -C 10 -I 2' % GUEST_RSTREAM)
    c = connect(polca, GUEST_RSTREAM, 'rstream', size=1000, depth=10, count=1000)
    row = done(polca, c['connection'])
    assert row['exchanges'] == 2, row
    wait_until(lambda: not connections(polca), timeout=60)


# ---- rcopy

@pytest.fixture
def files(guest):
    """Names of files in the guest: 1, 3,000,001 and 200,000 random bytes."""
    guest.check('for n in 1 200000 3000001; do head -c $n /dev/urandom > /tmp/of$n; done')
    yield {n: '/tmp/of%d' % n for n in (1, 200000, 3000001)}
    guest.check('rm -f /tmp/of* /tmp/polca*')


def rcopy(guest, path, more=''):
    return guest.run('rcopy %s %s:/nowhere/copy %s' % (path, POLCA_IP, more), 60)


def crc32(guest, path):
    """Taken from the end of gzip's output."""
    out = guest.check("gzip -c %s | tail -c 8 | hexdump -v -e '/1 \"%%02x\"'" % path)
    return int.from_bytes(binascii.unhexlify(out.strip())[:4], 'little')


@pytest.mark.parametrize('size', [1, 200000, 3000001])
def test_rcopy(listen, guest, files, size):
    s = listen('rcopy', RCOPY)
    r = rcopy(guest, files[size])
    assert r.status == 0 and '%d bytes in' % size in r.output, r
    s.wait(established=1, exchanges=1, connections=0, errors=0, violations=0)


def test_rcopy_on_another_port(listen, guest, files):
    listen('rcopy', 7429)
    assert rcopy(guest, files[1], '-p 7429').status == 0


@pytest.fixture
def region(polca):
    """A region of the caller; returns its key. It is removed after the service."""
    pd = polca.rpc('pd_create')['pd']
    key = polca.rpc('mr_register', pd=pd, length=200000, access=['LOCAL_WRITE'])['key']
    yield key
    polca.rpc('mr_deregister', key=key)
    polca.rpc('pd_destroy', pd=pd)


def test_rcopy_into_a_region(region, listen, polca, guest, files):
    s = listen('rcopy', RCOPY, mr=region)
    for n in range(3):  # the last file stays
        guest.check('head -c 200000 /dev/urandom > ' + files[200000])
        r = rcopy(guest, files[200000])
        assert r.status == 0, r
        assert polca.rpc('mr_checksum', key=region)['crc32'] == crc32(guest, files[200000])
    s.wait(exchanges=3, established=3, connections=0)


def test_rcopy_of_a_file_that_is_too_large(region, listen, polca, guest, files):
    """The program's exit status is the errno of the answer: ENOSPC."""
    s = listen('rcopy', RCOPY, mr=region)
    before = polca.rpc('mr_checksum', key=region)['crc32']
    r = rcopy(guest, files[3000001])
    assert r.status == 28 and 'bytes in' not in r.output, r
    s.wait(established=1, exchanges=0, connections=0, violations=0)
    assert polca.rpc('mr_checksum', key=region)['crc32'] == before
    assert rcopy(guest, files[200000]).status == 0


def test_rcopies_at_a_time(listen, guest, files):
    s = listen('rcopy', RCOPY)
    jobs = [guest.spawn('rcopy %s %s' % (files[3000001], POLCA_IP)) for _ in range(4)]
    assert [job.wait(100).status for job in jobs] == [0] * 4
    s.wait(established=4, exchanges=4, connections=0, violations=0)


def test_rcopy_without_a_file_says_nothing(listen, guest):
    """It connects first, and disconnects if it has no file."""
    s = listen('rcopy', RCOPY)
    assert rcopy(guest, '/nonexistent').status != 0
    s.wait(established=1, exchanges=0, connections=0, violations=0)


@pytest.fixture
def rcopy_server(serve):
    return serve('cd /tmp && exec rcopy -p %d' % GUEST_RCOPY)


@pytest.mark.parametrize('length', [1, 1000, 3000001])
def test_rcopy_server(polca, guest, rcopy_server, files, length):
    c = connect(polca, GUEST_RCOPY, 'rcopy', length=length, path='/tmp/polca-copy')
    row = done(polca, c['connection'])
    assert (row['exchanges'], row['mismatches'], row['violations']) == (1, 0, 0), row
    want = (bytes(range(256)) * (length // 256 + 1))[:length]
    assert guest.check('md5sum < /tmp/polca-copy').split()[0] == hashlib.md5(want).hexdigest()


def test_rcopy_server_gets_a_file_of_the_default_name(polca, guest, rcopy_server, files):
    for _ in range(2):
        c = connect(polca, GUEST_RCOPY, 'rcopy')
        assert done(polca, c['connection'])['exchanges'] == 1
    assert guest.check('wc -c < /tmp/polca.rcopy').strip() == str(1 << 20)


def test_rcopy_server_that_cannot_write(polca, guest, rcopy_server):
    c = connect(polca, GUEST_RCOPY, 'rcopy', length=1000, path='/no/such/directory')
    row = done(polca, c['connection'])
    assert (row['exchanges'], row['mismatches'], row['violations']) == (0, 1, 0), row
