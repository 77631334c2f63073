# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Unmodified programs move between the two workers of an appliance while they run. Frames that worker w sends
arrive at worker w: while two programs are on different workers, all their packets are handed over."""

import re
import signal

import pytest

from conn import wait_until
from rdmacm import until_listening
from rpc import RpcError

TEST_SECONDS = 240
PORT = 18900


def clients(polca):
    return polca.rpc('client_list')['clients']


def dropped(polca):
    return sum(r['dropped'][why] for r in polca.rpc('stats_get')['ports'] for why in ('qpn_unknown', 'handoff_full'))


def move(polca, row):
    """Move a client to the other worker. False: not now, or it has ended meanwhile."""
    to = 1 - row['worker']
    try:
        polca.rpc('client_rehome', id=row['id'], worker=to)
    except RpcError as e:
        assert e.data['errno'] in ('EAGAIN', 'EBUSY', 'ENOENT'), e
        return False
    return True


def move_while(polca, job, least=5, each_turn=lambda: None):
    """Move all clients by turns until a job ends; returns how often one has moved under its traffic."""
    n = posted = turn = 0
    while job.proc.poll() is None:
        for row in clients(polca):
            if row['id'] % 2 == turn % 2 and move(polca, row):
                n += row['posted'] > 0
                after = [r for r in clients(polca) if r['id'] == row['id']]
                assert all(r['worker'] != row['worker'] and r['posted'] >= row['posted'] and
                           r['completed'] >= row['completed'] for r in after), (row, after)
                posted = max([posted] + [r['posted'] for r in after])
        each_turn()
        turn += 1
    assert n >= least, (n, posted)
    return n


def pair(polca, programs, *argv, server=('-d', 'polca0'), client=('-d', 'polca1', 'localhost'), **kw):
    """Run a program twice, and move both while it runs; returns both outputs."""
    a = programs.spawn(argv[0], '-p', PORT, *argv[1:], *server)
    a.wait_listening(PORT)
    b = programs.spawn(argv[0], '-p', PORT, *argv[1:], *client)
    move_while(polca, b, **kw)
    return a.end(), b.end()


@pytest.mark.parametrize('command', ['ibv_rc_pingpong -c -n 5000', 'ibv_rc_pingpong -c -e -n 10000',
                                     'ibv_rc_pingpong -c -e -r 1 -s 100000 -m 1024 -n 1000',
                                     'ibv_srq_pingpong -c -n 3000', 'ibv_srq_pingpong -c -e -n 10000'])
def test_pingpong_compares_its_bytes(polca, programs, left, command):
    """Polling, sleeping on a completion channel, and with a shared receive queue."""
    before, most = dropped(polca), 0

    def nothing_is_lost():
        """While both programs have their queue pairs: the first one that has received all it waited for destroys
        its own, and ibv_srq_pingpong may still send one message more from each of its queue pairs."""
        nonlocal most
        now, qps = dropped(polca), len(polca.rpc('qp_list')['qps'])
        most = max(most, qps)
        assert qps < most or now == before

    for text in pair(polca, programs, *command.split(), '-g', '0', each_turn=nothing_is_lost):
        assert re.search(r'\d+ iters in', text), text
        assert 'invalid data' not in text, text
    assert most == 2 * (16 if 'srq' in command else 1)


@pytest.mark.parametrize('command', ['ib_write_bw -q 16 -s 4096 -n 20000', 'ib_read_bw -s 65536 -n 3000',
                                     'ib_atomic_bw -n 20000', 'ib_send_bw --use-srq -q 8 -s 1000 -n 20000',
                                     'ib_send_bw -e -s 1000 -n 20000'])
def test_perftest_runs_to_its_end(polca, programs, left, command):
    _, text = pair(polca, programs, *command.split(), '-x', '0', '-F')
    assert re.search(r'^ +\d+ +\d+000 ', text, re.M), text


def test_queue_pairs_are_listed_where_their_program_is(polca, programs, left):
    server = programs.spawn('ibv_rc_pingpong', '-d', 'polca0', '-g', '0', '-p', PORT)
    server.wait_listening(PORT)
    row, = clients(polca)
    for _ in range(4):
        to = 1 - row['worker']
        polca.ctl('client', 'rehome', row['id'], '--worker', to)
        row, = clients(polca)
        assert row['worker'] == to and [q['worker'] for q in polca.rpc('qp_list')['qps']] == [to]
    server.kill()


def test_librdmacm_connects_and_disconnects_meanwhile(polca, programs, left):
    """rping -V compares the bytes. Queue pairs are made, connected, flushed and destroyed while their programs
    move."""
    server = programs.spawn('rping', '-s', '-P', '-a', '192.0.2.1')
    until_listening(programs, ('rping', '-c', '-a', '192.0.2.1', '-C', 1), server)
    moves = 0
    for _ in range(5):
        client = programs.spawn('rping', '-c', '-a', '192.0.2.1', '-C', 2000, '-S', 1000, '-V')
        moves += move_while(polca, client, least=0)
        client.end()
    assert moves >= 20 and server.proc.poll() is None, server.output()
    server.kill()


def test_kill_9_while_programs_move(polca, programs, left):
    """No object is left, the worker lives, and the next programs run."""
    for i in range(10):
        argv = ('ibv_rc_pingpong', '-g', '0', '-p', PORT, '-n', '100000000')
        server = programs.spawn(*argv, '-d', 'polca0')
        server.wait_listening(PORT)
        client = programs.spawn(*argv, '-d', 'polca1', 'localhost')
        wait_until(lambda: len([r for r in clients(polca) if r['posted'] > 1000]) == 2, timeout=20)
        for n in range(6):
            for row in clients(polca):
                move(polca, row)
            if n == i % 5:
                (server, client)[i % 2].proc.send_signal(signal.SIGKILL)
        server.kill()
        client.kill()
        wait_until(lambda: clients(polca) == [] == polca.rpc('qp_list')['qps'], timeout=10)
    for text in programs.pair(PORT, 'ibv_rc_pingpong', '-g', '0', '-c'):
        assert 'invalid data' not in text, text


def test_refusals(polca):
    for params, what in (({'id': 1 << 40, 'worker': 0}, 'there is none'), ({'id': 1 << 40, 'worker': 7}, '0..1')):
        with pytest.raises(RpcError) as e:
            polca.rpc('client_rehome', **params)
        assert what in str(e.value)
