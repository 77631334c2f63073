# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""One subnet for each module: NAMES are its appliances, all unconfigured; opensm is not yet
started."""

import pytest

from subnet import Subnet


@pytest.fixture(scope='module')
def subnet(kept, sockets, request):
    s = Subnet(kept, sockets, request.module.NAMES, **getattr(request.module, 'OPTIONS', {}))
    try:
        s.start()
        yield s
        s.audit()
    finally:
        s.close()


@pytest.fixture(autouse=True)
def alive(subnet):
    yield
    for p in subnet.polca.values():
        assert p.alive(), p.tail()
    assert not subnet.bridge.wrong()
