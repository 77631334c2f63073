# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The monitoring socket of a running polca asks its SA as a stranger, who sees no secrets, and has a share of the
places of queries: whoever watches keeps nobody at the control socket from asking."""

import contextlib
import os

import pytest

from polca import Polca
from polcapair import A, back_to_back
from rpc import Client, RpcError

KEY = '0x' + '5ec12e7' * 4 + '0123'
QUERIES, SHARE = 32, 8  # ENGINE_SA_QUERIES, and the quarter of them


@pytest.fixture(scope='module')
def watched(sockets):
    path = os.path.join(sockets, 'watch.sock')
    with Polca(sockets, back_to_back(), name='watched', control={'monitor': path},
               sa={'sm_key': 0x1234}) as p:
        p.monitor_path = path
        yield p


@pytest.fixture
def monitor(watched):
    with Client(watched.monitor_path) as c:
        yield c


def table(rpc, **params):
    """All records that a query of the own SA brings."""
    query = rpc('sa_query', **params)['query']
    try:
        while True:
            r = rpc('sa_result', query=query, max=100, timeout_ms=5000)
            if r['state'] == 'done':
                assert r['status'] == 'OK', r
                return r['records']
    finally:
        rpc('sa_cancel', query=query)


def register(watched):
    table(watched.rpc, op='set', record='service', fields={
        'service_id': '0x77', 'service_gid': '::ffff:' + A, 'service_pkey': '0xffff', 'service_lease': 600,
        'service_key': KEY, 'service_name': 'secret'})


def test_a_table_without_secrets(watched, monitor):
    assert table(monitor, record='node'), 'a stranger sees the nodes of its partition'
    register(watched)
    own, = table(watched.rpc, record='service')
    assert int(own['service_key'], 16) == int(KEY, 16)
    seen, = table(monitor, record='service')
    assert seen['service_name'] == 'secret'
    assert int(seen.get('service_key') or '0', 16) == 0, seen
    for secret in (dict(record='node', sm_key=0x1234), dict(op='delete', record='service')):
        with pytest.raises(RpcError) as e:
            monitor('sa_query', **secret)
        assert 'EPERM' in str(e.value.error), e.value.error


def test_many_monitors_leave_places_to_the_control_socket(watched):
    """A finished query keeps its place until it is cancelled, or its time has passed."""
    with contextlib.ExitStack() as stack:
        monitors = [stack.enter_context(Client(watched.monitor_path)) for _ in range(4 * SHARE)]
        asked, refused = [], 0
        for c in monitors:
            try:
                asked.append((c, c('sa_query', record='node')['query']))
            except RpcError as e:
                assert 'there are %d SA queries already' % SHARE in str(e.error), e.error
                refused += 1
        assert (len(asked), refused) == (SHARE, 3 * SHARE)
        kept = [watched.rpc('sa_query', record='node')['query'] for _ in range(QUERIES - SHARE)]
        for query in kept:
            r = watched.rpc('sa_result', query=query, timeout_ms=5000)
            assert r['state'] == 'done' and r['records'], r
            watched.rpc('sa_cancel', query=query)
        for c, query in asked:
            c('sa_cancel', query=query)
