# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Errors between Polca and Linux soft-RoCE: each side reports the error that the standard
defines."""

import pytest

from conn import wait_until
from rxepair import RxePair

REM_INV_REQ, REM_ACCESS, REM_OP, RNR_EXC, FLUSH = 9, 10, 11, 13, 5


# ---- rxe requests something it may not: Polca NAKs, rxe reports

def rxe_fails(p, status):
    """The completion at rxe, and both queue pairs in error."""
    r = p.v.poll(p.rq)[0]
    assert r['status'] == status, r
    wait_until(lambda: p.rxe_state() == 'err')
    wait_until(lambda: p.q.state() == 'ERR')


@pytest.mark.parametrize('op', ['write', 'read', 'fetch_add', 'cmp_swp'])
def test_wrong_rkey_from_rxe(hca, guest, op):
    p = RxePair(hca, guest)
    p.rxe_post(op, 8, rkey=p.mr.key ^ 0x100)
    rxe_fails(p, REM_ACCESS)
    assert ('QP_ACCESS_ERR', p.q.qpn) in hca.events()


def test_beyond_the_region_from_rxe(hca, guest):
    p = RxePair(hca, guest, size=8192)
    p.rxe_post('write', 16, raddr=p.mr.va + 8192 - 8)
    rxe_fails(p, REM_ACCESS)
    assert p.mr.read(8184, 8) == bytes(8)


def test_right_not_granted_from_rxe(hca, guest):
    p = RxePair(hca, guest, access=['LOCAL_WRITE', 'REMOTE_READ'])
    p.rxe_post('write', 8)
    rxe_fails(p, REM_ACCESS)


def test_too_long_send_from_rxe(hca, guest):
    """rxe: Remote Invalid Request; Polca's receive: Local Length Error."""
    p = RxePair(hca, guest)
    p.q.post_recv(wr_id=1, sg=[(p.mr, 0, 16)])
    p.q.post_recv(wr_id=2, sg=[(p.mr, 64, 16)])
    p.rxe_post('send', 17, wr_id=4)
    p.rxe_post('send', 8, wr_id=5)
    r = p.v.poll(p.rq, 2)
    assert [(w['wr_id'], w['status']) for w in r] == [(4, REM_INV_REQ), (5, FLUSH)]
    assert [(w.wr_id, w.status) for w in p.q.poll(2)] == [(1, 1), (2, FLUSH)]
    assert p.mr.read(16, 16) == bytes(16)


def test_too_long_send_of_many_packets_from_rxe(hca, guest):
    p = RxePair(hca, guest)
    p.q.post_recv(wr_id=1, sg=[(p.mr, 0, 2500)])
    p.rxe_post('send', 3000)
    rxe_fails(p, REM_INV_REQ)
    assert p.q.poll()[0].status == 1


@pytest.mark.parametrize('op', ['fetch_add', 'cmp_swp'])
def test_unaligned_atomic_from_rxe(hca, guest, op):
    p = RxePair(hca, guest)
    p.rxe_post(op, 8, raddr=p.mr.va + 4, add=1, cmp=0, swap=1)
    rxe_fails(p, REM_INV_REQ)
    assert p.mr.read(0, 16) == bytes(16)
    assert ('QP_REQ_ERR', p.q.qpn) in hca.events()


def test_earlier_requests_of_rxe_stand(hca, guest):
    p = RxePair(hca, guest)
    p.rxe_poke(0, b'good')
    p.rxe_post('write', 4, wr_id=1)
    p.rxe_post('write', 4, wr_id=2, rkey=p.mr.key ^ 0x100)
    p.rxe_post('write', 4, wr_id=3)
    r = p.v.poll(p.rq, 3)
    assert [(w['wr_id'], w['status']) for w in r] == [(1, 0), (2, REM_ACCESS), (3, FLUSH)]
    assert p.mr.read(0, 4) == b'good'


# ---- Polca requests something it may not: rxe NAKs, Polca reports

@pytest.mark.parametrize('op', ['write', 'read', 'fetch_add'])
def test_wrong_rkey_from_polca(hca, guest, op):
    p = RxePair(hca, guest)
    p.q.post_send(op, wr_id=1, sg=[(p.mr, 0, 8)], remote_addr=p.rmr['addr'],
                  rkey=p.rmr['rkey'] ^ 0x5500)
    p.q.post_send('write', wr_id=2, sg=[(p.mr, 0, 8)], remote_addr=p.rmr['addr'],
                  rkey=p.rmr['rkey'])
    assert [(w.wr_id, w.status) for w in p.q.poll(2)] == [(1, REM_ACCESS), (2, FLUSH)]
    assert p.q.state() == 'ERR'


def test_unaligned_atomic_from_polca(hca, guest):
    p = RxePair(hca, guest)
    p.q.post_send('fetch_add', wr_id=1, sg=[(p.mr, 0, 8)], remote_addr=p.rmr['addr'] + 4,
                  rkey=p.rmr['rkey'], compare_add=1)
    assert p.q.poll()[0].status == REM_INV_REQ


def test_too_long_send_from_polca(hca, guest):
    """rxe answers a Send that does not fit with NAK 0x63, and Polca reports that."""
    p = RxePair(hca, guest)
    p.rxe_recv(16)
    p.q.post_send('send', wr_id=1, sg=[(p.mr, 0, 64)])
    assert p.q.poll()[0].status == REM_OP


def test_queue_pair_of_rxe_is_gone(hca, guest):
    p = RxePair(hca, guest, timeout=14)
    p.v('qp_destroy', qp=p.rq)
    p.q.post_send('write', wr_id=1, sg=[(p.mr, 0, 8)], remote_addr=p.rmr['addr'],
                  rkey=p.rmr['rkey'])
    assert p.q.poll(timeout=30)[0].status == 12


# ---- receiver not ready, both sides

def test_rnr_at_polca_until_a_receive_is_posted(hca, guest):
    p = RxePair(hca, guest, min_rnr_timer=20)  # 10.24 ms
    p.rxe_poke(0, b'patience')
    p.rxe_post('send', 8, wr_id=1)
    wait_until(lambda: p.q.counters()['send_rnr_err'] >= 2)
    p.q.post_recv(wr_id=9, sg=[(p.mr, 0, 64)])
    assert p.v.poll(p.rq)[0]['status'] == 0
    wc, = p.q.poll()
    assert (wc.wr_id, wc.status, wc.byte_len) == (9, 0, 8)
    assert p.mr.read(0, 8) == b'patience'


def test_rnr_at_polca_with_more_behind_it(hca, guest):
    p = RxePair(hca, guest, min_rnr_timer=20)
    p.v('fill', mr=p.rmr['mr'], off=0, len=8 * 3000, seed=4)
    p.rxe_post('send', 3000, n=8, stride=3000)
    wait_until(lambda: p.q.counters()['send_rnr_err'] >= 1)
    for i in range(8):
        p.q.post_recv(wr_id=i, sg=[(p.mr, i * 3000, 3000)])
    assert [w['status'] for w in p.v.poll(p.rq, 8)] == [0] * 8
    assert [(w.wr_id, w.byte_len) for w in p.q.poll(8)] == [(i, 3000) for i in range(8)]
    from pattern import pattern
    assert p.mr.read(0, 24000) == pattern(4, 24000)


def test_rnr_at_polca_until_rxe_gives_up(hca, guest):
    p = RxePair(hca, guest, rxe_rnr=2, min_rnr_timer=5)
    p.rxe_post('send', 8, wr_id=1)
    assert p.v.poll(p.rq)[0]['status'] == RNR_EXC
    assert p.q.state() == 'RTS'


def test_rnr_at_rxe_until_a_receive_is_posted(hca, guest):
    p = RxePair(hca, guest, min_rnr_timer=20)
    p.mr.write(0, b'patience')
    p.q.post_send('send', wr_id=1, sg=[(p.mr, 0, 8)])
    wait_until(lambda: p.q.counters()['rcvd_rnr_err'] >= 2)
    p.rxe_recv(64, wr_id=3)
    assert p.q.poll()[0].status == 0
    r = p.v.poll(p.rq)[0]
    assert (r['wr_id'], r['status'], r['byte_len']) == (3, 0, 8)
    assert p.rxe_peek(0, 8) == b'patience'


def test_rnr_at_rxe_with_more_behind_it(hca, guest):
    """rxe sends sequence NAKs during the wait: they consume no retry."""
    p = RxePair(hca, guest, min_rnr_timer=20)
    p.from_polca('write', 8, seed=1)  # credits are known to be unlimited from here on
    from pattern import pattern
    p.mr.write(0, pattern(6, 8 * 3000))
    for i in range(8):
        p.q.post_send('send', wr_id=i, sg=[(p.mr, i * 3000, 3000)])
    wait_until(lambda: p.q.counters()['rcvd_rnr_err'] >= 1)
    p.rxe_recv(3000, n=8, stride=3000)
    assert [(w.wr_id, w.status) for w in p.q.poll(8)] == [(i, 0) for i in range(8)]
    assert [w['byte_len'] for w in p.v.poll(p.rq, 8)] == [3000] * 8
    assert p.v.same(p.rmr['mr'], 6, 24000) == ''


def test_rnr_at_rxe_until_polca_gives_up(hca, guest):
    p = RxePair(hca, guest, polca_rnr=2, min_rnr_timer=5)
    p.q.post_send('send', wr_id=1, sg=[(p.mr, 0, 8)])
    assert p.q.poll()[0].status == RNR_EXC
    assert p.q.counters()['rcvd_rnr_err'] == 3
