# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""For attacks on a wire of cmpeer.Wire or sawire.CmWire, whose appliance has an echo service and an SA."""

import pytest

from bystanders import Bystanders


@pytest.fixture(scope='module')
def bystanders(wire):
    """Peers that keep the rules meanwhile; `with bystanders.unharmed()` encloses an attack."""
    b = Bystanders(wire)
    yield b
    b.close()


@pytest.fixture(autouse=True)
def enclosed(request):
    """Nobody is harmed by a test of a module that has a table UNHARMED: tests, and what they may
    cause beyond the usual bounds (bystanders.unharmed)."""
    table = getattr(request.module, 'UNHARMED', None)
    if table is None:
        yield
        return
    bounds = table[request.function.__name__]  # no test is left out
    with request.getfixturevalue('bystanders').unharmed(**bounds):
        yield
