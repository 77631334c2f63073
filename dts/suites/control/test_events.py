# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""One alert names the queue pair, its peer and the reason: as a line of the log, and as an event."""

import json
import signal
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


def test_connect_waits_without_polling(polca):
    """However long its exchanges take, polca-ctl asks for the service's end once, which a signal interrupts."""
    service = polca.rpc('cm_listen', kind='rping', port=7195)['service']
    polca.rpc('log_level_set', component='polca.ctl', level='debug')
    with open(polca.log) as f:
        before = len(f.read())

    def calls(method, pid):
        with open(polca.log) as f:
            return f.read()[before:].count('ctl: %s by user root (0), process %d:' % (method, pid))

    argv = [CTL_PROGRAM, '-s', polca.socket, 'cm', 'connect', B, '7195', '--service', 'rping']
    try:
        with subprocess.Popen(argv + ['--count', '20000'], stdout=subprocess.PIPE, text=True) as p:
            said = p.communicate(timeout=120)[0]
        assert p.returncode == 0 and 'rping: 20000 of 20000 exchanges' in said
        assert (calls('service_wait', p.pid), calls('service_list', p.pid)) == (1, 0)
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            assert 'Ctrl-C disconnects' in p.stderr.readline()
            wait_until(lambda: [s for s in polca.rpc('service_list')['services']
                                if s['state'] == 'CONNECTED' and s['exchanges'] > 100])
            p.send_signal(signal.SIGINT)
            said = p.communicate(timeout=60)[0]
        assert p.returncode == 0 and ', 0 mismatches, 0 errors;' in said
        assert calls('cm_disconnect', p.pid) == 1
    finally:
        polca.rpc('log_level_set', component='polca.ctl', level='info')
        polca.rpc('cm_unlisten', service=service)
