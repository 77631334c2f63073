# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Random management datagrams of every class from an address that proves nothing: no answer to an
answer, no more bytes back than three times what came, and bystanders go on."""

import json
import os
import random

import pytest

import mad
from bystanders import ECHO
from cmpeer import Wire
from sapeer import Gsi
from sawire import node_json

# SubnLID, SubnDir, SubnAdm, Perf, BM, DevMgt, ComMgt, SNMP, vendor, application (live), reserved
CLASSES = [0x01, 0x81, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x0a, 0x30, 0x10, 0x20, 0x2f, 0x00, 0xff]
METHODS = [0x01, 0x02, 0x03, 0x05, 0x06, 0x07, 0x10, 0x12, 0x13, 0x14, 0x15, 0x7f]
NODES = 500


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets, services=[dict(kind='echo', port=ECHO, size=1024)], sa={})
    try:
        w.polca.start()
        path = os.path.join(kept, 'nodes.json')
        with open(path, 'w') as f:
            json.dump({'records': [node_json(lid) for lid in range(1, NODES + 1)]}, f)
        with open(path) as f:
            w.polca.rpc('sa_import', file=f)
        yield w
        w.polca.stop()  # answers to classes that nobody knows dissect as malformed: no audit
    finally:
        w.close()


@pytest.fixture
def stranger(wire):
    with Gsi(wire.station, wire.polca_mac, wire.polca_ip) as g:
        yield g


def datagram(rng, method):
    """A header that is right in its first bytes, and random ones behind it."""
    m = bytearray(rng.randbytes(mad.MAD_LEN))
    m[0:4] = bytes((1, rng.choice(CLASSES), rng.choice((1, 1, 2, 2, 3)), method))
    m[4:8] = bytes(4)
    if rng.randrange(2):  # an attribute that exists somewhere, and what asks for most
        m[16:18] = rng.choice((1, 2, 0x10, 0x11, 0x12, 0x15, 0x20, 0x31, 0x35, 0x38)).to_bytes(2, 'big')
        m[20:56] = bytes(36)
        m[48:64] = bytes(16)
    return bytes(m)


def test_requests(bystanders, stranger):
    rng = random.Random(7)
    with bystanders.unharmed():
        for _ in range(3000):
            stranger.tx(datagram(rng, rng.choice(METHODS)))


def test_answers_are_not_answered(bystanders, stranger):
    rng = random.Random(8)
    answers = [m | mad.R for m in METHODS if m not in (0x03, 0x05, 0x07)]
    stranger.drain()
    with bystanders.unharmed():
        for _ in range(1000):
            m = bytearray(datagram(rng, rng.choice(answers)))
            m[16:18] = (0x11).to_bytes(2, 'big')
            m[24:28] = bytes(4)  # no segment of a transfer
            stranger.tx(bytes(m))
    stranger.expect_nothing()
