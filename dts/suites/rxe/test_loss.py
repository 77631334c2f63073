# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Five per cent of the packets are lost in both directions; nevertheless every byte arrives, and
every atomic is executed exactly once."""

import os

import pytest

from hca import Hca
from pattern import pattern
from rxepair import lossy, MIB, RxePair

LOSS = 5
N, SIZE = 24, 20000  # messages of twenty packets
CONVERSATIONS = int(os.environ.get('POLCA_CONVERSATIONS', 4))  # 100 take minutes


@pytest.fixture
def pair(hca, guest):
    p = RxePair(hca, guest)
    with lossy(guest, LOSS):
        yield p
        assert guest.losses() > 0, 'netem lost nothing'


def retried(p):
    c = p.q.counters()
    return c['retransmitted_pkts'] + c['duplicate_request'] + c['out_of_sequence'] + \
        c['send_seq_err'] + c['implied_nak_seq_err']


@pytest.mark.parametrize('op', ['send', 'write'])
def test_from_polca(pair, op):
    p = pair
    p.mr.write(0, pattern(31, N * SIZE))
    if op == 'send':
        p.rxe_recv(SIZE, n=N, stride=SIZE)
    for i in range(N):
        p.q.post_send(op, wr_id=i, sg=[(p.mr, i * SIZE, SIZE)],
                      **({} if op == 'send' else dict(remote_addr=p.rmr['addr'] + i * SIZE,
                                                      rkey=p.rmr['rkey'])))
    assert [(w.wr_id, w.status) for w in p.q.poll(N, timeout=55)] == [(i, 0) for i in range(N)]
    if op == 'send':
        assert [w['byte_len'] for w in p.v.poll(p.rq, N)] == [SIZE] * N
    assert p.v.same(p.rmr['mr'], 31, N * SIZE) == ''
    assert retried(p) > 0


def test_read_from_polca(pair):
    p = pair
    p.v('fill', mr=p.rmr['mr'], off=0, len=N * SIZE, seed=33)
    for i in range(N):
        p.q.post_send('read', wr_id=i, sg=[(p.mr, i * SIZE, SIZE)],
                      remote_addr=p.rmr['addr'] + i * SIZE, rkey=p.rmr['rkey'])
    assert [(w.wr_id, w.status) for w in p.q.poll(N, timeout=55)] == [(i, 0) for i in range(N)]
    assert p.mr.same(0, pattern(33, N * SIZE))
    assert retried(p) > 0


@pytest.mark.parametrize('op', ['send', 'write', 'read'])
def test_from_rxe(pair, op):
    p = pair
    data = pattern(35, N * SIZE)
    if op == 'read':
        p.mr.write(0, data)
    else:
        p.v('fill', mr=p.rmr['mr'], off=0, len=N * SIZE, seed=35)
    if op == 'send':
        for i in range(N):
            p.q.post_recv(wr_id=i, sg=[(p.mr, i * SIZE, SIZE)])
    for i in range(N):
        p.rxe_post(op, SIZE, off=i * SIZE, raddr=p.mr.va + i * SIZE, wr_id=i)
    got = p.v.poll(p.rq, N, ms=60000)
    assert [(w['wr_id'], w['status']) for w in got] == [(i, 0) for i in range(N)]
    if op == 'send':
        assert [(w.wr_id, w.byte_len) for w in p.q.poll(N)] == [(i, SIZE) for i in range(N)]
    if op == 'read':
        assert p.v.same(p.rmr['mr'], 35, N * SIZE) == ''
    else:
        assert p.mr.same(0, data)
    assert retried(p) > 0


def test_both_at_once(pair):
    p = pair
    p.v('fill', mr=p.rmr['mr'], off=0, len=N * SIZE, seed=41)
    p.mr.write(MIB, pattern(42, N * SIZE))
    for i in range(N):
        p.rxe_post('write', SIZE, off=i * SIZE, raddr=p.mr.va + i * SIZE, wr_id=i)
        p.q.post_send('write', wr_id=i, sg=[(p.mr, MIB + i * SIZE, SIZE)],
                      remote_addr=p.rmr['addr'] + MIB + i * SIZE, rkey=p.rmr['rkey'])
    assert all(w.status == 0 for w in p.q.poll(N, timeout=55))
    assert all(w['status'] == 0 for w in p.v.poll(p.rq, N, ms=60000))
    assert p.mr.same(0, pattern(41, N * SIZE))
    assert p.v.same(p.rmr['mr'], 42, N * SIZE, off=MIB) == ''


def test_atomics_happen_exactly_once(pair):
    """Fifty of each side on one word each; the originals seen are 0, 1, 2, ..."""
    p = pair
    n = 50
    for i in range(n):
        p.q.post_send('fetch_add', wr_id=i, sg=[(p.mr, 4096 + 8 * i, 8)],
                      remote_addr=p.rmr['addr'], rkey=p.rmr['rkey'], compare_add=1)
        p.rxe_post('fetch_add', 8, off=4096 + 8 * i, raddr=p.mr.va, add=1, wr_id=i)
    assert all(w.status == 0 for w in p.q.poll(n, timeout=55))
    assert all(w['status'] == 0 for w in p.v.poll(p.rq, n, ms=60000))
    order = b''.join(i.to_bytes(8, 'little') for i in range(n))
    assert p.mr.read(4096, 8 * n) == order and p.rxe_peek(4096, 8 * n) == order
    assert p.mr.read(0, 8) == p.rxe_peek(0, 8) == n.to_bytes(8, 'little')


class Conversation:
    """20 Reads among 200 Writes, all posted at once, a packet each."""

    READS, WRITES, SIZE = 20, 200, 1000
    OPS, READ_AT = READS + WRITES, WRITES * SIZE

    def __init__(self, hca, guest, verbs, seed):
        self.p = RxePair(hca, guest, verbs=verbs, qp={'max_send_wr': self.OPS})
        self.seed = seed
        self.p.mr.write(0, pattern(seed, self.READ_AT))
        self.p.v('fill', mr=self.p.rmr['mr'], off=self.READ_AT, len=self.READS * self.SIZE,
                 seed=seed + 1)

    def post(self):
        reads = range(5, self.OPS, self.OPS // self.READS)
        writes = iter(range(0, self.READ_AT, self.SIZE))
        rows = []
        for i in range(self.OPS):
            at = self.READ_AT + reads.index(i) * self.SIZE if i in reads else next(writes)
            rows.append(self.p.q.send_wr('read' if i in reads else 'write', wr_id=i,
                                         sg=[(self.p.mr, at, self.SIZE)],
                                         rkey=self.p.rmr['rkey'],
                                         remote_addr=self.p.rmr['addr'] + at))
        self.p.q.post_sends(rows)

    def ended(self):
        """'' or the status of the first failed request, and what the queue pair counted."""
        wcs = self.p.q.poll(self.OPS, timeout=300)
        for w in [w for w in wcs if w.status][:1]:
            return 'request %d: status %d, %s' % (w.wr_id, w.status, {
                k: v for k, v in self.p.q.counters().items() if v})
        return ''

    def check(self):
        p = self.p
        assert p.v.same(p.rmr['mr'], self.seed, self.READ_AT) == ''
        assert p.mr.same(self.READ_AT, pattern(self.seed + 1, self.READS * self.SIZE))


def test_conversations(polca, guest):
    """Seven retries are enough: the ACKs of duplicates after a lost answer consume none."""
    failed = []
    for first in range(0, CONVERSATIONS, 10):
        hca, verbs = Hca(polca), guest.rdma()
        some = [Conversation(hca, guest, verbs, 100 + 2 * i)
                for i in range(first, min(first + 10, CONVERSATIONS))]
        with lossy(guest, LOSS):
            for c in some:
                c.post()
            ended = [c.ended() for c in some]
        for c, why in zip(some, ended):
            if not why:
                c.check()
        failed += [why for why in ended if why]
        hca.close()
    assert failed == [], '%d of %d' % (len(failed), CONVERSATIONS)
