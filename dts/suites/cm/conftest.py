# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Two set-ups. On a wire: an appliance, and as its peer a CM for which the test writes every
message (`wire`, `peer`). With Linux: the appliance on the soft-RoCE guest's wire (`polca`,
`guest`)."""

import pytest

import lab as labs
from cmpeer import Wire
from conn import wait_until
from sawire import Delta
from services import Services


# ---- on a wire

@pytest.fixture(scope='module')
def wire(kept, sockets, request):
    """A module configures its appliance with CONFIG = dict(...), and sets WHOLE = False if it
    sends more packets than the wire can take."""
    w = Wire(kept, sockets, **getattr(request.module, 'CONFIG', {}))
    try:
        w.polca.start()
        yield w
        w.audit(getattr(request.module, 'WHOLE', True))
    finally:
        w.close()


@pytest.fixture
def peer(wire):
    """The peer; its remaining connections end with the test."""
    with wire.peer() as p:
        yield p
    assert wire.polca.alive(), wire.polca.tail()


@pytest.fixture
def counted(wire):
    """How much the communication manager's counters grew during the test."""
    return Delta(wire.cm)


# ---- with Linux

@pytest.fixture(scope='module')
def tapped(lab, request):
    """The module's capture: of datagrams, or of packets that match its CAPTURE ('': all)."""
    with lab.captured('cm_' + request.path.stem,
                      getattr(request.module, 'CAPTURE', labs.DATAGRAMS)) as c:
        yield c


@pytest.fixture
def polca(lab, tapped):
    """The appliance, running; services and connections of the previous test have been removed."""
    p = lab.alive()
    yield p
    assert p.alive(), p.tail()


@pytest.fixture
def listen(polca):
    """listen(kind, port, ...): a service of this test, removed afterwards with its connections."""
    with Services(polca) as s:
        yield s.listen


@pytest.fixture
def serve(guest):
    """serve(command): start a program that listens; returns its job."""
    def start(command, timeout=200):
        """Wait until rdma_cm has its listener."""
        have = len(guest.check('rdma resource show cm_id').splitlines())
        job = guest.spawn(command, timeout)
        wait_until(lambda: len(guest.check('rdma resource show cm_id').splitlines()) > have,
                   timeout=30, step=0.05)
        return job
    yield start
    guest.check('killall -q -9 rping ucmatose rdma_server rstream rcopy; true')
