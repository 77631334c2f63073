# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Unmodified programs of Linux connect to Polca over soft-RoCE.

Deviation of the peer: udaddy's -p is a port space, its port is always 7174."""

import re

import pytest

from conn import wait_until
from lab import GUEST_IP, POLCA_IP, POLCA_IP6
from scale import scaled
from services import connections

CAPTURE = ''
TEST_SECONDS = 240
RPING, ECHO, SINK, UCMATOSE, MEMORY, NOBODY = 7174, 7, 9, 7471, 4791, 9999
IN_A_ROW = scaled(40, 200)


def told(job):
    """The client was told of the end. (Whether rping itself then ends is random.)"""
    wait_until(lambda: 'client DISCONNECT EVENT' in job.output(), timeout=30, step=0.1)
    job.guest.check('killall -q -9 rping; true')


@pytest.mark.parametrize('address,size,count', [
    (POLCA_IP, 64, 20), (POLCA_IP, 32, 5), (POLCA_IP, 4000, 20), (POLCA_IP, 65000, 5),
    (POLCA_IP6, 1500, 5)])
def test_rping(listen, guest, address, size, count):
    """-V: the client compares the returned data with the data it sent."""
    s = listen('rping', RPING)
    guest.rping('rping -c -a %s -p %d -V -S %d -C %d' % (address, RPING, size, count), timeout=60)
    s.wait(established=1, exchanges=count, mismatches=0, errors=0, connections=0)


def test_the_recorded_steps_of_rping(listen, polca, guest):
    """Linux' messages in their order, from the REQ to the end."""
    s = listen('rping', RPING)
    earlier = set(connections(polca))  # those of other tests may still be there
    polca.ctl('trace', 'start', 'connection')
    try:
        job = guest.spawn('rping -c -a %s -p %d -V -S 64 -C 1000000' % (POLCA_IP, RPING), 100)
        s.wait(connections=1)
        number, = set(connections(polca)) - earlier
        guest.check('killall -q -9 rping; true')
        told = []

        def ended():
            told[:] = polca.rpc('cm_trace', connection=number)['steps']
            return told[-1]['step'] == 'ended'
        wait_until(ended)
        job.wait()
    finally:
        polca.ctl('trace', 'stop', 'connection')
    rows = [(t['step'], t['what']) for t in told]
    order = [('opened', ''), ('received', 'REQ'), ('sent', 'REP'), ('received', 'RTU'), ('received', 'DREQ'),
             ('sent', 'DREP'), ('ended', 'disconnected')]
    assert [r for r in order if r in rows] == order
    assert [rows.index(r) for r in order[:5]] == sorted(rows.index(r) for r in order[:5])
    assert [t['time_us'] for t in told] == sorted(t['time_us'] for t in told)


def test_rping_against_a_small_service(listen, guest):
    """A message that is too long for the service ends this connection and no other."""
    s = listen('rping', RPING, size=128)
    r = guest.run('rping -c -a %s -p %d -V -S 4000 -C 3' % (POLCA_IP, RPING))
    assert 'wait for RDMA_' in r.output, r  # whatever its status is
    guest.rping('rping -c -a %s -p %d -V -S 100 -C 3' % (POLCA_IP, RPING))
    s.wait(established=2, violations=1, exchanges=3, connections=0)


@pytest.mark.parametrize('arguments,connections,messages', [
    ('', 1, 10), ('-c 8', 8, 10), ('-S 9000', 1, 10)])
def test_ucmatose(listen, guest, arguments, connections, messages):
    s = listen('ucmatose', UCMATOSE, size=9000 if '9000' in arguments else 100)
    out = guest.check('ucmatose -s %s -p %d %s' % (POLCA_IP, UCMATOSE, arguments))
    assert 'data transfers complete' in out and 'return status 0' in out, out
    s.wait(established=connections, messages_out=messages * connections,
           messages_in=messages * connections, exchanges=connections, errors=0, connections=0)


@pytest.mark.parametrize('address', [POLCA_IP, POLCA_IP6])
def test_rdma_client(listen, guest, address):
    s = listen('echo', ECHO)
    assert 'rdma_client: end 0' in guest.check('rdma_client -s %s -p %d' % (address, ECHO))
    # it disconnects when it has our message, and this can overtake its ACK, as soft-RoCE completes a
    # receive first; our message then does not count as sent
    s.wait(established=1, messages_in=1, bytes_in=16, errors=0, connections=0)


def test_rdma_xclient(listen, guest):
    """It sends one message and expects none. Its default is RC; soft-RoCE does not support XRC."""
    s = listen('sink', SINK)
    assert 'rdma_xclient: end 0' in guest.check('rdma_xclient -s %s -p %d' % (POLCA_IP, SINK))
    s.wait(established=1, messages_in=1, bytes_in=16, connections=0)
    r = guest.run('rdma_xclient -c x -s %s -p %d' % (POLCA_IP, SINK))
    assert r.status != 0 and 'rdma_create_ep: Operation not supported' in r.output, r


@pytest.mark.parametrize('program,says', [
    ('rping -c -a {0} -p {1} -C 1', 'RDMA_CM_EVENT_REJECTED, error 8'),
    ('rdma_client -s {0} -p {1}', 'rdma_connect: Connection refused'),
    ('ucmatose -s {0} -p {1}', 'RDMA_CM_EVENT_REJECTED, error: 8'),
    # it polls until it is connected: the error is that of rconnect(), or rpoll() has failed and
    # perror() prints whatever an earlier call left in errno
    ('rstream -s {0} -p {1}', 'Connection refused|rpoll: '),
    ('rcopy /etc/hosts {0}:/tmp/copy -p {1}', 'Connection refused')])
def test_unknown_port_is_refused(polca, guest, program, says):
    before = polca.rpc('stats_get')['cm']
    r = guest.run(program.format(POLCA_IP, NOBODY))
    assert r.status != 0 and re.search(says, r.output), r
    after = polca.rpc('stats_get')['cm']
    assert after['refused'] - before['refused'] == 1
    assert after['rej_sent_invalid_service_id'] - before.get('rej_sent_invalid_service_id', 0) == 1


def test_service_without_room_refuses(listen, guest):
    """REJ no resources, which the program prints as error 3."""
    s = listen('rping', RPING, max_connections=1)
    job = guest.spawn('rping -c -a %s -p %d -V -C 1000000' % (POLCA_IP, RPING))
    s.wait(connections=1, established=1)
    r = guest.run('rping -c -a %s -p %d -V -C 1' % (POLCA_IP, RPING))
    assert r.status != 0 and 'RDMA_CM_EVENT_REJECTED, error 3' in r.output, r
    assert s.show()['refused'] == 1 and job.poll() is None
    s.polca.rpc('cm_unlisten', service=s.name, disconnect=True)
    told(job)


def test_udaddy_is_told_that_no_datagrams_are_served(polca, guest):
    """Polca has no UD queue pairs for users (design.md): SIDR is answered "unsupported" (cm 3)."""
    before = polca.rpc('stats_get')['cm']
    r = guest.run('udaddy -s %s' % POLCA_IP)
    assert r.status != 0 and 'RDMA_CM_EVENT_UNREACHABLE, error: 1' in r.output, r
    after = polca.rpc('stats_get')['cm']
    assert (after['received_sidr_req'] - before['received_sidr_req'],
            after['sent_sidr_rep'] - before['sent_sidr_rep']) == (1, 1)


def test_many_in_a_row(listen, guest):
    """Connect, one message in each direction, disconnect; the earlier QPs are in TIMEWAIT
    meanwhile."""
    s = listen('echo', ECHO)
    jobs = [guest.spawn('i=0; while [ $i -lt %d ]; do rdma_client -s %s -p %d >/dev/null || '
                        'exit 1; i=$((i + 1)); done' % (IN_A_ROW // 2, POLCA_IP, ECHO),
                        timeout=200)
            for _ in range(2)]
    for job in jobs:
        assert job.wait(200).status == 0
    # the program does not wait until its last ACK has been sent
    s.wait(established=IN_A_ROW, messages_in=IN_A_ROW, refused=0, connections=0)


def test_what_the_list_says(listen, polca, guest):
    s = listen('rping', RPING)
    job = guest.spawn('rping -c -a %s -p %d -V -C 1000000' % (POLCA_IP, RPING))
    s.wait(connections=1, established=1)
    row, = (c for c in connections(polca).values() if c['state'] == 'ESTABLISHED')
    assert (row['side'], row['service'], row['peer'], row['port_space'], row['port']) == (
        'PASSIVE', s.name, GUEST_IP, 'TCP', RPING)
    lines = guest.check('rdma resource show qp link rxe0/1').splitlines()
    theirs, = (ln for ln in lines if 'comm rping' in ln)
    assert ' lqpn %d rqpn %d ' % (row['remote_qpn'], row['qp_num']) in theirs, theirs
    polca.rpc('cm_disconnect', connection=row['connection'])
    told(job)
    s.wait(connections=0)
