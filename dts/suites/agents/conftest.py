# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""One wire for each module: an appliance on a native InfiniBand port, and as its peer the bridge
with fabric tools behind it (for a module with BRIDGE = dict(...)), or a station for which the
test writes every frame. After the module the wire is audited."""

import pytest

from ibports import Wire


@pytest.fixture(scope='module')
def wire(kept, sockets, request):
    """A module configures its appliance with CONFIG = dict(...)."""
    w = Wire(kept, sockets, **getattr(request.module, 'CONFIG', {}))
    try:
        w.polca.start()
        bridge = getattr(request.module, 'BRIDGE', None)
        if bridge is None:
            w.by_hand()
        else:
            w.by_tools(**bridge)
        yield w
        w.audit()
    finally:
        w.close()


@pytest.fixture
def polca(wire):
    yield wire.polca
    assert wire.polca.alive(), wire.polca.tail()


@pytest.fixture
def tool(wire):
    """Run a tool; returns its output."""
    yield lambda *argv, **kw: wire.bridge.run(*argv, **kw).stdout
    assert wire.polca.alive(), wire.polca.tail()
    assert not wire.bridge.wrong()


@pytest.fixture
def station(wire):
    wire.station.drain()
    yield wire.station
    assert wire.polca.alive(), wire.polca.tail()
    left = wire.station.drain()
    assert not left, left


@pytest.fixture
def verdict(wire):
    """How much the counters of received packets grew during the test."""
    return wire.verdicts()
