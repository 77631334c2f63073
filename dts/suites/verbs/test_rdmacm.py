# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Debian's own programs that use librdmacm, unmodified, on one appliance: over its wire and on one port."""

import pytest

from rdmacm import pair_until_listening

TEST_SECONDS = 240
PORT0, PORT1 = '192.0.2.1', '192.0.2.2'
# the server's address, and the client's: another port, whichever is nearest, the same port
WAYS = {'wire': (PORT1, PORT0), 'one port': (PORT1, PORT1), 'other port': (PORT0, PORT1)}


@pytest.fixture(params=WAYS, ids=lambda name: name.replace(' ', '-'))
def way(request):
    return WAYS[request.param]


def test_rping(programs, left, way):
    """Sends, Reads and Writes, whose bytes -V compares."""
    server, client = pair_until_listening(
        programs, ('rping', '-s', '-v', '-V', '-C', 10), ('rping', '-c', '-v', '-V', '-C', 10, '-a', way[0], '-I', way[1]))
    for text in (server, client):
        assert 'ping data: rdma-ping-9:' in text, text
