# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca connects to unmodified programs of Linux over soft-RoCE."""

import pytest

from conn import wait_until
from lab import GUEST_IP, GUEST_IP6
from rpc import RpcError
from scale import scaled
from services import connect, connections, done, driver

CAPTURE = ''
TEST_SECONDS = 240


@pytest.mark.parametrize('address,size,count', [
    (GUEST_IP, 64, 20), (GUEST_IP, 4000, 20), (GUEST_IP6, 1500, 5)])
def test_rping(polca, serve, address, size, count):
    job = serve('rping -s -a %s -p 7175 -v -S %d -C %d' % (address, size, count))
    c = connect(polca, 7175, 'rping', address, size=size, count=count, verify=True)
    row = done(polca, c['connection'])
    assert (row['exchanges'], row['mismatches'], row['errors']) == (count, 0, 0), row
    r = job.wait()
    assert all('server ping data: rdma-ping-%d: ' % i in r.output for i in range(count)), r


def test_rdma_server(polca, serve):
    job = serve('rdma_server -p 7176')
    c = connect(polca, 7176, 'echo', size=16, count=1)
    row = done(polca, c['connection'])
    assert (row['messages_in'], row['messages_out'], row['bytes_in']) == (1, 1, 16), row
    r = job.wait()
    assert r.status == 0 and 'rdma_server: end 0' in r.output, r


@pytest.mark.parametrize('number', [1, 4])
def test_ucmatose(polca, serve, number):
    job = serve('ucmatose -p 7177 -c %d' % number)
    made = [connect(polca, 7177, 'ucmatose')['connection'] for _ in range(number)]
    r = job.wait()
    assert r.status == 0 and 'return status 0' in r.output, r
    for c in made:
        row = done(polca, c)
        assert (row['messages_in'], row['messages_out'], row['errors']) == (10, 10, 0), row


def test_unknown_port_is_refused(polca):
    with pytest.raises(RpcError) as e:
        connect(polca, 9999, 'rping')
    assert e.value.data['errno'] == 'ECONNREFUSED' and e.value.data['reason'] == 8
    assert 'nobody listens there' in e.value.message


def test_nobody_at_the_address(polca):
    with pytest.raises(RpcError) as e:
        polca.rpc('cm_connect', dgid='10.99.0.77', port=7175, service='rping', timeout_ms=3000)
    assert e.value.data['errno'] in ('ETIMEDOUT', 'EHOSTUNREACH')


def ended(polca, connection):
    """It is in TIMEWAIT, or TIMEWAIT is over."""
    try:
        return polca.rpc('cm_show', connection=connection)['state'] == 'TIMEWAIT'
    except RpcError as e:
        return e.data['errno'] == 'ENOENT'


def test_many_in_a_row(polca, guest, serve):
    """rping -P serves one client after the other; each is one exchange with checked data."""
    serve('rping -s -P -a %s -p 7175' % GUEST_IP)
    for _ in range(scaled(40, 200)):
        c = connect(polca, 7175, 'rping', count=1, verify=True)
        wait_until(lambda: ended(polca, c['connection']), timeout=30)
        row = driver(polca, c['connection'])
        assert (row['exchanges'], row['mismatches'], row['errors']) == (1, 0, 0), row
    wait_until(lambda: not connections(polca), timeout=30, step=0.1)
    lines = guest.check('rdma resource show qp link rxe0/1').splitlines()
    assert not [ln for ln in lines if 'comm rping' in ln and 'state RTS' in ln], lines
