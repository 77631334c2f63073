# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""One side dies in mid-transfer, soft-RoCE or Polca; afterwards everything works as before.

Deviations of the peer: with a retry count of 7, which most programs set, soft-RoCE repeats
packets without end, so a program there does not learn that Polca died until something else tells
it. When a program dies, Linux sends the DREQ for it."""

import pytest

from conn import wait_until
from lab import GUEST_IP, POLCA_IP
from services import Services, connections, driver, established

CAPTURE = ''
PORT = 7174
CLIENT = 'rping -c -a %s -p %d -V -C 1000000' % (POLCA_IP, PORT)


def rping_works(guest):
    guest.rping('rping -c -a %s -p %d -V -C 3' % (POLCA_IP, PORT))


def rc_qps(guest):
    """The queue pairs of rping; a verbs session of another suite may have left some of its own."""
    return [ln for ln in guest.check('rdma resource show qp link rxe0/1').splitlines()
            if 'type RC' in ln and 'comm rping' in ln]


@pytest.fixture
def kill_all(guest):
    yield lambda: guest.check('killall -q -9 rping; true')
    guest.check('killall -q -9 rping; true')


def under_way(service):
    """Wait until exchanges are running."""
    wait_until(lambda: service.show()['exchanges'] > 20, timeout=30)


def test_client_is_killed(polca, listen, guest, kill_all):
    s = listen('rping', PORT)
    guest.spawn(CLIENT)
    under_way(s)
    assert len(established(polca)) == 1
    kill_all()
    wait_until(lambda: not established(polca), timeout=30)
    s.wait(connections=0)
    assert not rc_qps(guest)
    rping_works(guest)


def test_many_clients_are_killed(polca, listen, guest, kill_all):
    s = listen('rping', PORT)
    for _ in range(6):
        guest.spawn(CLIENT)
    wait_until(lambda: len(established(polca)) == 6, timeout=60)
    kill_all()
    s.wait(connections=0, established=6)
    rping_works(guest)


def test_server_is_killed(polca, guest, kill_all):
    guest.spawn('rping -s -a %s -p 7175' % GUEST_IP)
    wait_until(lambda: 'rping' in guest.check('rdma resource show cm_id'), timeout=30)
    c = polca.rpc('cm_connect', dgid=GUEST_IP, port=7175, service='rping', count=1000000)

    def row():
        return driver(polca, c['connection'])
    wait_until(lambda: row()['exchanges'] > 20, timeout=30)
    kill_all()
    wait_until(lambda: row()['state'] == 'ENDED' and not connections(polca), timeout=60)
    assert row()['exchanges'] < 1000000 and not rc_qps(guest)


def test_polca_is_killed_and_comes_back(lab, polca, guest, kill_all):
    """The new process accepts nothing of the old connection: its packets find no queue pair, and
    its DREQ is answered (cm 6: no context)."""
    s = Services(polca).listen('rping', PORT)
    guest.spawn(CLIENT)
    under_way(s)
    lab.polca.kill()
    assert lab.alive() is polca
    with Services(polca) as again:
        s = again.listen('rping', PORT)
        rping_works(guest)  # while the old one still repeats packets, or waits
        assert len(rc_qps(guest)) == 1
        kill_all()
        wait_until(lambda: not rc_qps(guest), timeout=60, step=0.1)
        cm = polca.rpc('stats_get')['cm']
        assert (cm['unmatched'], cm['connections']) == (1, 1) and cm['sent_drep'] >= 1
        rping_works(guest)
        s.wait(established=2, exchanges=6, mismatches=0, connections=0)


def test_polca_ends_in_good_order(lab, polca, guest, kill_all):
    """SIGTERM with a connection under traffic: it ends with status 0; a new process serves
    again."""
    s = Services(polca).listen('rping', PORT)
    guest.spawn(CLIENT)
    under_way(s)
    lab.polca.stop()
    assert lab.alive() is polca
    with Services(polca) as again:
        again.listen('rping', PORT)
        rping_works(guest)
