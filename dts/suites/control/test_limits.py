# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Whoever runs into a limit of the configuration finds it in the log: which one, who, its value and the key."""

import os

import pytest

from conn import wait_until
from polca import Polca
from polcapair import A, B, back_to_back
from rpc import RpcError

LIMITS = dict(max_pd=16, max_cq=16, max_mr=16, max_mw=16)


@pytest.fixture(scope='module')
def small(sockets):
    with Polca(sockets, back_to_back(), name='small', limits=LIMITS, live=dict(rate=1, burst=1)) as p:
        yield p


def until_refused(polca, method, **params):
    for _ in range(100):
        try:
            polca.rpc(method, **params)
        except RpcError:
            return
    assert False, 'never refused'


@pytest.mark.parametrize('method,key', [('cq_create', 'max_cq'), ('mr_register', 'max_mr'), ('pd_create', 'max_pd')])
def test_a_table_that_is_full(small, method, key):
    params = {}
    if method == 'mr_register':
        params = dict(pd=small.rpc('pd_create')['pd'], length=4096)
    until_refused(small, method, **params)
    start = 'ctl: limit reached: %s by user root (0), process %d: ' % (method, os.getpid())
    wait_until(lambda: start in small.tail(10000))
    line, = [line for line in small.tail(10000).splitlines() if line.startswith(start)]
    assert line.endswith('in use (limits.%s)' % key) and 'all 16 ' in line, line


def test_pings_beyond_the_rate(small):
    small.ctl('ping', B, '-c', '3', '-i', '0.01', '-W', '1', check=False)
    assert A != B
    wait_until(lambda: 'requests of ping were dropped: their source sent too many (live.rate is 1, live.burst is 1)'
               in small.tail(10000), timeout=60)
