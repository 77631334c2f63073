# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""soft-RoCE restarts under a connection, without a word, and connects again with the same queue
pair number: Polca's probes find that the old connection is gone, and the new one is accepted."""

import pytest

from conn import wait_until
from lab import POLCA_IP
from services import connections, established

PORT = 7176
CLIENT = 'rping -c -a %s -p %d -V -C ' % (POLCA_IP, PORT)


def restart_rxe(guest):
    """Its queue pair numbers begin anew."""
    guest.check('killall -q -9 rping; rdma link delete rxe0 && '
                'rdma link add rxe0 type rxe netdev eth0')
    wait_until(lambda: 'ACTIVE' in guest.check('rdma link show rxe0/1'), timeout=30)


@pytest.fixture
def rxe(guest):
    guest.check('killall -q -9 rping; true')
    restart_rxe(guest)
    yield guest
    guest.loss(0, 'both')
    guest.check('killall -q -9 rping; true')


def test_restarted_peer_connects_again(polca, listen, rxe):
    s = listen('rping', PORT)
    rxe.spawn(CLIENT + '1000000')
    wait_until(lambda: s.show()['exchanges'] > 20, timeout=30)
    old, = established(polca)
    rxe.loss(100, 'both')
    restart_rxe(rxe)
    rxe.loss(0, 'both')
    assert old['connection'] in [c['connection'] for c in established(polca)]
    refused = rxe.run(CLIENT + '3')
    assert refused.status != 0, 'it does not have the same queue pair number'
    wait_until(lambda: rxe.run(CLIENT + '3').status == 0, timeout=60)
    wait_until(lambda: old['connection'] not in connections(polca), timeout=60)
    s.wait(connections=0)
