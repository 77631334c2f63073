# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Memory windows seen from the wire: bind, use, rights, bounds, local and remote invalidate."""

import pytest

from hca import ALL
from roce import NAK_ACCESS, NAK_INVALID, Op

OPEN = ALL + ['MW_BIND']


def window(c, kind='TYPE_2', off=4096, length=4096, access=('REMOTE_WRITE', 'REMOTE_READ')):
    """A window on the connection's region, bound by its QP; returns its key."""
    key = c.hca.rpc('mw_create', pd=c.hca.pd, type=kind)['key']
    c.windows = getattr(c, 'windows', []) + [key]
    return bind(c, key, kind, off, length, access)


def bind(c, key, kind='TYPE_2', off=4096, length=4096, access=('REMOTE_WRITE', 'REMOTE_READ')):
    new = (key & ~0xff) | ((key + 1) & 0xff)
    c.qp.post_send('bind_mw', wr_id=7, bind_mw=dict(
        mw_key=key, new_key=new, mr_key=c.key, addr=c.va + off, length=length,
        access=list(access)))
    wc, = c.qp.poll()
    assert (wc.wr_id, wc.status) == (7, 0), wc
    key = new if kind == 'TYPE_2' else wc.mw_key
    c.windows[-1] = key
    return key


@pytest.fixture
def opened(connect, hca):
    made = []

    def make(**kw):
        c = connect(mr_access=OPEN, **kw)
        c.windows = []
        made.append(c)
        return c
    yield make
    for c in made:
        if c.qp.live:
            c.qp.destroy()
        for row in hca.rpc('mw_list', max=1000)['windows']:
            hca.rpc('mw_destroy', key=row['key'])


@pytest.mark.parametrize('kind', ['TYPE_1', 'TYPE_2'])
def test_write_and_read_through_a_window(opened, kind):
    c = opened()
    key = window(c, kind)
    psn = c.next()
    c.peer.write_only(psn, c.va + 4096, key, b'through')
    c.peer.expect_ack(psn)
    assert c.mr.read(4096, 7) == b'through'
    psn = c.next()
    c.peer.read(psn, c.va + 8192 - 8, key, 8)
    assert c.read_answer(psn, 8) == bytes(8)


@pytest.mark.parametrize('kind', ['TYPE_1', 'TYPE_2'])
@pytest.mark.parametrize('va,length', [(4095, 2), (8191, 2), (0, 8), (8192, 1)])
def test_outside_the_window_though_inside_the_region(opened, kind, va, length):
    c = opened()
    key = window(c, kind)
    psn = c.next()
    c.peer.write_only(psn, c.va + va, key, b'x' * length)
    c.peer.expect_nak(NAK_ACCESS, psn)
    assert c.mr.read(va, length) == bytes(length)


@pytest.mark.parametrize('kind', ['TYPE_1', 'TYPE_2'])
def test_right_not_granted_by_the_window(opened, kind):
    c = opened()
    key = window(c, kind, access=['REMOTE_READ'])
    psn = c.next()
    c.peer.write_only(psn, c.va + 4096, key, b'x')
    c.peer.expect_nak(NAK_ACCESS, psn)


def test_window_of_type_2_is_its_queue_pairs_alone(opened):
    a, b = opened(), opened()
    key = window(a)
    psn = b.next()
    b.peer.write_only(psn, a.va + 4096, key, b'x')
    b.peer.expect_nak(NAK_ACCESS, psn)
    psn = a.next()
    a.peer.write_only(psn, a.va + 4096, key, b'x')
    a.peer.expect_ack(psn)


def test_window_of_type_1_is_its_domains(opened):
    a, b = opened(), opened()
    key = window(a, 'TYPE_1')
    psn = b.next()
    b.peer.write_only(psn, a.va + 4096, key, b'x')
    b.peer.expect_ack(psn)


@pytest.mark.parametrize('kind', ['TYPE_1', 'TYPE_2'])
def test_bind_again_ends_the_old_key(opened, kind):
    """A type 2 window must be invalidated first (o10-37.2.30); a type 1 window is simply bound
    again."""
    c = opened()
    old = window(c, kind)
    if kind == 'TYPE_2':
        c.qp.post_send('local_inv', wr_id=3, invalidate_rkey=old)
        assert c.qp.poll()[0].status == 0
    new = bind(c, old, kind, off=0)
    assert new != old
    psn = c.next()
    c.peer.write_only(psn, c.va, new, b'new')
    c.peer.expect_ack(psn)
    psn = c.next()
    c.peer.write_only(psn, c.va + 4096, old, b'old')
    c.peer.expect_nak(NAK_ACCESS, psn)


def test_bound_window_of_type_2_is_not_bound_again(opened, hca):
    c = opened()
    key = window(c)
    c.qp.post_send('bind_mw', wr_id=7, bind_mw=dict(
        mw_key=key, new_key=key ^ 1, mr_key=c.key, addr=c.va, length=64, access=['REMOTE_READ']))
    assert c.qp.poll()[0].status == 6


def test_send_with_invalidate(opened):
    """The window is invalid when the completion reports it."""
    c = opened()
    key = window(c)
    c.post_buffer(64)
    psn = c.next()
    c.peer.tx(Op.SEND_ONLY_INV, psn, b'bye', inv=key, ackreq=1)
    c.peer.expect_ack(psn)
    wc, = c.qp.poll()
    assert (wc.status, wc.byte_len, wc.inv) == (0, 3, key)
    psn = c.next()
    c.peer.write_only(psn, c.va + 4096, key, b'x')
    c.peer.expect_nak(NAK_ACCESS, psn)


@pytest.mark.parametrize('what', ['region', 'nothing', 'type 1'])
def test_send_with_invalidate_of_what_may_not_be(opened, what):
    c = opened()
    key = {'region': lambda: c.key, 'nothing': lambda: 0x12345600,
           'type 1': lambda: window(c, 'TYPE_1')}[what]()
    c.post_buffer(64)
    psn = c.next()
    c.peer.tx(Op.SEND_ONLY_INV, psn, b'bye', inv=key, ackreq=1)
    r = c.peer.expect(Op.ACK, psn)
    assert r.syndrome in (NAK_INVALID, NAK_ACCESS)
    assert c.qp.poll()[0].status != 0


def test_local_invalidate(opened):
    c = opened()
    key = window(c)
    c.qp.post_send('local_inv', wr_id=3, invalidate_rkey=key)
    assert c.qp.poll()[0].status == 0
    psn = c.next()
    c.peer.write_only(psn, c.va + 4096, key, b'x')
    c.peer.expect_nak(NAK_ACCESS, psn)


def test_invalidated_between_two_packets_of_a_write(opened):
    c = opened()
    key = window(c)
    psn = c.next()
    c.peer.tx(Op.WRITE_FIRST, psn, bytes([1]) * 1024, reth=(c.va + 4096, key, 2048), ackreq=1)
    c.peer.expect_ack(psn)
    c.qp.post_send('local_inv', wr_id=3, invalidate_rkey=key)
    assert c.qp.poll()[0].status == 0
    psn = c.next()
    c.peer.tx(Op.WRITE_LAST, psn, bytes([2]) * 1024, ackreq=1)
    c.peer.expect_nak(NAK_ACCESS, psn)
    assert c.mr.read(4096 + 1024, 1024) == bytes(1024)


def test_a_region_with_windows_on_it_is_busy(opened, hca):
    c = opened()
    window(c)
    r = hca.rpc.request('mr_deregister', {'key': c.key})
    assert r['error']['data']['errno'] == 'EBUSY'


def test_bind_that_may_not_be(opened, hca):
    """A region without MW_BIND: the bind completes in error, MW_BIND_ERR."""
    c = opened()
    closed = hca.mr(4096)
    key = hca.rpc('mw_create', pd=hca.pd, type='TYPE_2')['key']
    c.qp.post_send('bind_mw', wr_id=7, bind_mw=dict(
        mw_key=key, new_key=(key & ~0xff) | ((key + 1) & 0xff), mr_key=closed.key,
        addr=closed.va, length=64, access=['REMOTE_READ']))
    assert c.qp.poll()[0].status == 6
