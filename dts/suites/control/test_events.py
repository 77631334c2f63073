# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""One alert names the queue pair, its peer and the reason: as a line of the log, and as an event."""

import json
import subprocess
from datetime import datetime, timezone

import pytest

from conn import wait_until
from hca import Hca
from polca import CTL_PROGRAM, Polca
from polcapair import A, B, PolcaPair, back_to_back


@pytest.fixture
def failing(polca):
    """A connected pair of queue pairs of its own; call it to let B refuse a Write of A."""
    pair = PolcaPair(Hca(polca, 0), A, Hca(polca, 1), B)

    def fail():
        pair.qa.post_send('write', wr_id=1, sg=[(pair.ma, 0, 64)], remote_addr=pair.mb.va,
                          rkey=pair.mb.key ^ 1)
        wait_until(lambda: pair.qa.state() == 'ERR' and pair.qb.state() == 'ERR')
        return pair
    yield fail
    for hca in (pair.a, pair.b):
        hca.close()


def errors_in_log(polca, qpn):
    return [line for line in polca.tail(100000).split('\n') if 'QP 0x%x on ' % qpn in line and 'is in ERR' in line]


def test_a_queue_pair_in_err_is_logged_once_with_peer_and_reason(polca, failing):
    pair = failing()
    wait_until(lambda: errors_in_log(polca, pair.qa.qpn) and errors_in_log(polca, pair.qb.qpn))
    line, = errors_in_log(polca, pair.qb.qpn)
    assert 'sent NAK 0x62 (remote access error)' in line and 'verdict nak_sent' in line
    assert 'peer %s QP 0x%x' % (A, pair.qa.qpn) in line
    line, = errors_in_log(polca, pair.qa.qpn)
    assert 'received NAK 0x62 (remote access error)' in line and 'completion REM_ACCESS_ERR' in line
    assert 'peer %s QP 0x%x' % (B, pair.qb.qpn) in line


def test_a_follower_goes_on_after_a_restart(sockets):
    services = [{'kind': 'rping', 'port': 7194}]
    with Polca(sockets, back_to_back(), name='again', services=services) as polca:
        def connection_is_followed(follower):
            polca.ctl('cm', 'connect', B, '7194', '--service', 'rping', '--count', '1')
            while 'CONNECTION_MADE' not in follower.stdout.readline():
                assert follower.poll() is None
        argv = [CTL_PROGRAM, '-s', polca.socket, 'events', '--follow']
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follower:
            try:
                connection_is_followed(follower)
                polca.stop()
                assert 'waiting until it runs again' in follower.stderr.readline()
                polca.start()
                connection_is_followed(follower)
            finally:
                follower.terminate()
            follower.wait(30)
        assert follower.returncode == 0


def test_events_can_be_followed(polca, failing):
    """A follower prints an object a line, and takes no event from other readers."""
    argv = [CTL_PROGRAM, '-s', polca.socket, '--json', 'events', '--follow']
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as follower:
        try:
            pair = failing()
            event = {}
            while event.get('event') != 'QP_ERROR' or event['qp_num'] != pair.qb.qpn:
                event = json.loads(follower.stdout.readline())
        finally:
            follower.terminate()
    assert (event['peer'], event['peer_qp'], event['port']) == (A, pair.qa.qpn, 1)
    assert (event['verdict'], event['syndrome']) == ('nak_sent', 0x62)
    when = datetime.strptime(event['time'], '%Y-%m-%dT%H:%M:%S.%fZ').replace(tzinfo=timezone.utc)
    assert abs((datetime.now(timezone.utc) - when).total_seconds()) < 60
    for reader in (polca.client(), polca.client()):
        with reader as c:
            assert event in c('events', since=event['seq'])['events']
