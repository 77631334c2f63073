# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Every operation in both directions with Linux soft-RoCE, every byte verified."""

import pytest

from rxepair import MIB, RxePair

PMTU = 1024
SIZES = [0, 1, PMTU, 5 * PMTU + 3, MIB]
OPS = ['send', 'send_imm', 'write', 'write_imm', 'read']


@pytest.fixture(scope='module')
def pair_of_module(polca, lab):
    from hca import Hca
    h = Hca(polca)
    yield RxePair(h, lab.guest, mtu=PMTU)
    h.close()


@pytest.mark.parametrize('size', SIZES)
@pytest.mark.parametrize('op', OPS)
def test_from_polca(pair_of_module, op, size):
    pair_of_module.from_polca(op, size, seed=size + 7)


@pytest.mark.parametrize('size', SIZES)
@pytest.mark.parametrize('op', OPS)
def test_from_rxe(pair_of_module, op, size):
    pair_of_module.from_rxe(op, size, seed=size + 11)


@pytest.mark.parametrize('mtu', [256, 512])
def test_smaller_path_mtu(hca, guest, mtu):
    p = RxePair(hca, guest, mtu=mtu)
    for i, op in enumerate(OPS):
        p.from_polca(op, 3 * mtu + 1, seed=i)
        p.from_rxe(op, 3 * mtu + 1, seed=100 + i)


def test_over_ipv6(hca, guest):
    p = RxePair(hca, guest, polca_ip='fd99::1', ipv6=True)
    for i, op in enumerate(OPS):
        p.from_polca(op, 3000, seed=i)
        p.from_rxe(op, 3000, seed=100 + i)


def little(v):
    return v.to_bytes(8, 'little')


def test_atomics_from_polca(hca, guest):
    p = RxePair(hca, guest)
    p.rxe_poke(64, little(40))
    addr, rkey = p.rmr['addr'] + 64, p.rmr['rkey']
    p.q.post_send('fetch_add', wr_id=1, sg=[(p.mr, 0, 8)], remote_addr=addr, rkey=rkey,
                  compare_add=2)
    p.q.post_send('cmp_swp', wr_id=2, sg=[(p.mr, 8, 8)], remote_addr=addr, rkey=rkey,
                  compare_add=42, swap=99)
    p.q.post_send('cmp_swp', wr_id=3, sg=[(p.mr, 16, 8)], remote_addr=addr, rkey=rkey,
                  compare_add=42, swap=7)
    assert [(w.wr_id, w.status) for w in p.q.poll(3)] == [(1, 0), (2, 0), (3, 0)]
    assert p.mr.read(0, 24) == little(40) + little(42) + little(99)
    assert p.rxe_peek(64, 8) == little(99)


def test_atomics_from_rxe(hca, guest):
    p = RxePair(hca, guest)
    p.mr.write(64, little(40))
    p.rxe_post('fetch_add', 8, off=0, raddr=p.mr.va + 64, add=2, wr_id=1)
    p.rxe_post('cmp_swp', 8, off=8, raddr=p.mr.va + 64, cmp=42, swap=99, wr_id=2)
    p.rxe_post('cmp_swp', 8, off=16, raddr=p.mr.va + 64, cmp=42, swap=7, wr_id=3)
    assert [(w['wr_id'], w['status']) for w in p.v.poll(p.rq, 3)] == [(1, 0), (2, 0), (3, 0)]
    assert p.rxe_peek(0, 24) == little(40) + little(42) + little(99)
    assert p.mr.read(64, 8) == little(99)


def test_send_with_invalidate_from_polca(hca, guest):
    """rxe's type 2 window is bound, used, and gone after the Send."""
    p = RxePair(hca, guest, rxe_access=15 | 16)
    w = p.v('mw')
    key = p.v('mw_bind', qp=p.rq, mw=w['mw'], mr=p.rmr['mr'], off=0, len=4096, wr_id=5)['rkey']
    assert p.v.poll(p.rq)[0]['status'] == 0
    p.mr.write(0, b'via the window')
    p.q.post_send('write', wr_id=1, sg=[(p.mr, 0, 14)], remote_addr=p.rmr['addr'], rkey=key)
    assert p.q.poll()[0].status == 0
    assert p.rxe_peek(0, 14) == b'via the window'
    p.from_polca('send_inv', 100, seed=3, inv=key)
    p.q.post_send('write', wr_id=2, sg=[(p.mr, 0, 14)], remote_addr=p.rmr['addr'], rkey=key)
    assert p.q.poll()[0].status == 10


def test_send_with_invalidate_from_rxe(hca, guest):
    """The same with Polca's window."""
    p = RxePair(hca, guest, access=['LOCAL_WRITE', 'REMOTE_WRITE', 'REMOTE_READ', 'REMOTE_ATOMIC',
                                    'MW_BIND'])
    old = hca.rpc('mw_create', pd=hca.pd, type='TYPE_2')['key']
    key = (old & ~0xff) | ((old + 1) & 0xff)
    p.q.post_send('bind_mw', wr_id=1, bind_mw=dict(
        mw_key=old, new_key=key, mr_key=p.mr.key, addr=p.mr.va, length=4096,
        access=['REMOTE_WRITE']))
    assert p.q.poll()[0].status == 0
    p.rxe_poke(0, b'via the window')
    p.rxe_post('write', 14, rkey=key)
    assert p.v.poll(p.rq)[0]['status'] == 0
    assert p.mr.read(0, 14) == b'via the window'
    p.from_rxe('send_inv', 100, seed=3, inv=key)
    p.rxe_post('write', 14, rkey=key)
    assert p.v.poll(p.rq)[0]['status'] == 10
    hca.rpc('mw_destroy', key=key)


def test_many_requests_at_once_both_ways(hca, guest):
    """Forty Writes of two packets under way on each side at the same time."""
    p = RxePair(hca, guest)
    n, size = 40, 2000
    p.v('fill', mr=p.rmr['mr'], off=0, len=n * size, seed=21)
    from pattern import pattern
    mine = pattern(22, n * size)
    p.mr.write(MIB, mine)
    p.rxe_post('write', size, n=n, stride=size, wr_id=100)
    for i in range(n):
        p.q.post_send('write', wr_id=i, sg=[(p.mr, MIB + i * size, size)],
                      remote_addr=p.rmr['addr'] + MIB + i * size, rkey=p.rmr['rkey'])
    assert [(w.wr_id, w.status) for w in p.q.poll(n)] == [(i, 0) for i in range(n)]
    assert [(w['wr_id'], w['status']) for w in p.v.poll(p.rq, n)] == [
        (100 + i, 0) for i in range(n)]
    assert p.mr.same(0, pattern(21, n * size))
    assert p.v.same(p.rmr['mr'], 22, n * size, off=MIB) == ''
