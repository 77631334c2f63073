# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""One wire for each module: Polca with a database at one end, a station that sends management
datagrams at the other. After the module the wire is audited."""

import pytest

from sawire import Delta, NODES, Wire


@pytest.fixture(scope='module')
def wire(kept, sockets, request):
    """A module configures its appliance with CONFIG = dict(...)."""
    w = Wire(kept, sockets, **getattr(request.module, 'CONFIG', {}))
    try:
        w.start(getattr(request.module, 'DATABASE', NODES))
        yield w
        w.audit()
    finally:
        w.close()


@pytest.fixture
def gsi(wire):
    """A queue pair of this test; afterwards no session is left, and no unexpected packet
    arrived."""
    with wire.gsi() as g:
        yield g
    assert wire.polca.alive(), wire.polca.tail()


@pytest.fixture
def other(wire):
    """A second queue pair, which must not be affected."""
    with wire.gsi() as g:
        yield g


@pytest.fixture
def counted(wire):
    return Delta(lambda: {k: v for k, v in wire.stats().items() if isinstance(v, int)})


@pytest.fixture
def verdicts(wire):
    return Delta(wire.verdicts)
