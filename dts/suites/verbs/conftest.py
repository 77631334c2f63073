# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""An appliance with two ports joined back to back, whose verbs socket programs of this host use."""

import json
import os

import pytest

from conn import wait_until
from polca import Polca
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
