# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""An appliance with two ports joined back to back, and a connected pair of queue pairs on it,
which must keep working whatever happens on the control socket."""

import os
import shutil

import pytest

from hca import Hca
from polca import Polca
from polcapair import A, B, back_to_back, PolcaPair

@pytest.fixture(scope='module')
def polca(kept, sockets):
    p = Polca(sockets, back_to_back(), verbs={'enabled': True},
              limits={'max_cq': 256, 'max_pd': 64, 'max_mr': 256})
    try:
        p.start()
        yield p
        p.stop()
    finally:
        p.kill()
        shutil.copy(p.log, kept)


@pytest.fixture(scope='module')
def traffic(polca):
    return PolcaPair(Hca(polca, 0), A, Hca(polca, 1), B)


@pytest.fixture(autouse=True)
def undisturbed(polca, traffic):
    """After every test: the process is alive, a new client is served, data moves, no worker
    stalls."""
    pid = polca.rpc('version_get')['pid']
    yield
    assert polca.alive(), polca.tail()
    with polca.client() as c:
        assert c('version_get')['pid'] == pid
    traffic.move('write', 3000, seed=9)
    assert not any(w['stalled'] for w in polca.rpc('worker_list')['workers'])


def memory(polca):
    """Resident kilobytes."""
    with open('/proc/%d/status' % polca.rpc('version_get')['pid']) as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS:'))


def descriptors(polca):
    return len(os.listdir('/proc/%d/fd' % polca.rpc('version_get')['pid']))


@pytest.fixture
def usage(polca):
    return lambda: (memory(polca), descriptors(polca))
