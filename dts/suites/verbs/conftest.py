# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""An appliance with two ports joined back to back, whose verbs socket programs of this host use."""

import json
import os

import pytest

from conn import wait_until
from polca import Polca
from stranger import Stranger
from verbs import PATIENT, Programs

HERE = os.path.dirname(os.path.realpath(__file__))


@pytest.fixture(scope='module')
def built_in():
    with open(os.path.join(HERE, '../../../config/default.json')) as f:
        return json.load(f)


@pytest.fixture(scope='module')
def polca(sockets, built_in):
    with Polca(sockets, built_in['ports'], workers=2, limits=PATIENT, verbs=built_in['verbs']) as p:
        yield p


@pytest.fixture
def programs(polca, sockets, kept):
    p = Programs(os.path.join(sockets, 'verbs.sock'), kept)
    yield p
    p.close()
    assert polca.alive(), polca.tail()


@pytest.fixture
def left(polca):
    """All objects of the programs are gone when they have ended."""
    def count():
        return [len(polca.rpc(method)[key]) for method, key in (
            ('pd_list', 'domains'), ('cq_list', 'cqs'), ('mr_list', 'regions'), ('qp_list', 'qps'))]
    before = count()
    yield
    wait_until(lambda: count() == before, timeout=10)


@pytest.fixture
def stranger(polca, programs):
    """stranger(): a new connection."""
    made = []

    def connect():
        made.append(Stranger(programs.socket))
        return made[-1]
    connect.made = made
    yield connect
    for s in made:
        s.close()


@pytest.fixture
def unharmed(polca, programs):
    """After the test: no descriptor and no object is left, and a program runs."""
    fds = '/proc/%d/fd' % polca.proc.pid

    def left():
        return [len(os.listdir(fds))] + [len(polca.rpc(m)[k]) for m, k in (
            ('pd_list', 'domains'), ('cq_list', 'cqs'), ('mr_list', 'regions'), ('qp_list', 'qps'))]
    programs.run('ibv_devinfo')  # the worker's pipe is there
    wait_until(lambda: left()[1:] == [0, 0, 0, 0], timeout=10)
    before = left()
    yield
    wait_until(lambda: left() == before, timeout=10)
    programs.pair(18800, 'ibv_rc_pingpong', '-g', '0', '-c', '-n', '50')
