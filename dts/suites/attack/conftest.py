# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""For attacks on a wire of cmpeer.Wire, whose appliance has an echo service and an SA."""

import pytest

from bystanders import Bystanders


@pytest.fixture(scope='module')
def bystanders(wire):
    """Peers that keep the rules meanwhile; `with bystanders.unharmed()` encloses an attack."""
    b = Bystanders(wire)
    yield b
    b.close()
