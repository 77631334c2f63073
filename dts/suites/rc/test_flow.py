# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Credits, shared receive queues, ACK policy, draining, and the walk-through of seed 002 on a
wire."""

import pytest

from conn import PMTU, wait_until
from pattern import pattern
from roce import NO_CREDITS, Op, RNR


@pytest.mark.parametrize('posted,code', [(0, 0), (1, 1), (4, 4), (5, 4), (6, 5), (7, 5), (12, 7),
                                         (31, 9), (100, 13)])
def test_ack_tells_the_receives_posted(connect, posted, code):
    """The largest code of rc-transport 3's table that promises no more credits than receives are
    posted."""
    c = connect()
    c.post_buffer(0, n=posted)
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x')
    assert c.peer.expect_ack(psn).syndrome == code


def test_no_credits_without_flow_control(connect):
    c = connect(qp={'flow_control': False})
    c.post_buffer(0, n=4)
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x')
    assert c.peer.expect_ack(psn).syndrome == NO_CREDITS


def test_an_ack_for_each_request_packet(connect):
    """seed 002's base case, as a QP option."""
    c = connect(qp={'ack_coalescing': False})
    c.post_buffer(8192)
    psns = [c.next() for _ in range(5)]
    ops = [Op.SEND_FIRST] + [Op.SEND_MIDDLE] * 3 + [Op.SEND_LAST]
    for psn, op in zip(psns, ops):
        c.peer.tx(op, psn, bytes(PMTU), ackreq=1)
    for psn in psns:
        c.peer.expect_ack(psn, msn=int(psn == psns[-1]))


# ---- the walk-through of seed 002: PSNs 201..275

def test_seed_002_as_requester(connect):
    c = connect(sq_psn=201, length=1 << 20)
    c.mr.write(0, pattern(1, 64 * PMTU))

    def sends(first, n, op, wr_id, length, **wr):
        c.qp.post_send(op, wr_id=wr_id, sg=[(c.mr, 0, length)], **wr)
        got = c.requests(n)
        assert [r.psn for r in got] == list(range(first, first + n))
        return got
    sends(201, 5, 'send', 1, 5 * PMTU)
    c.peer.ack(205, 1)
    sends(206, 52, 'send', 2, 51 * PMTU + 1)
    c.peer.ack(257, 2)
    sends(258, 9, 'write', 3, 8 * PMTU + 100, remote_addr=0x10000, rkey=1)
    c.peer.ack(266, 3)
    read = sends(267, 1, 'read', 4, 5 * PMTU + 9, remote_addr=0x10000, rkey=1)[0]
    c.answer_read(read, pattern(2, 5 * PMTU + 9), msn=4)
    sends(273, 1, 'send', 5, 10)
    c.peer.ack(273, 5)
    sends(274, 1, 'cmp_swp', 6, 8, remote_addr=0x10000, rkey=1)
    c.peer.tx(Op.ATOMIC_ACK, 274, aeth=(NO_CREDITS, 6), original=0)
    assert [(w.wr_id, w.status) for w in c.qp.poll(6)] == [(i, 0) for i in range(1, 7)]
    sends(275, 1, 'write', 7, 1, remote_addr=0x10000, rkey=1)


def test_seed_002_as_responder(connect):
    c = connect(psn=201, length=1 << 20)
    c.post_buffer(128 * 1024, n=3)
    assert c.send(pattern(1, 5 * PMTU)) == list(range(201, 206))
    c.peer.expect_acked(205, msn=1)
    assert c.send(pattern(2, 51 * PMTU + 1)) == list(range(206, 258))
    c.peer.expect_acked(257, msn=2)
    assert c.write(pattern(3, 8 * PMTU + 100), off=500000) == list(range(258, 267))
    c.peer.expect_acked(266, msn=3)
    c.peer.read(c.next(6), c.va + 500000, c.key, 5 * PMTU + 9)
    assert c.read_answer(267, 5 * PMTU + 9) == pattern(3, 8 * PMTU + 100)[:5 * PMTU + 9]
    assert c.send(b'ten octets') == [273]
    c.peer.expect_acked(273, msn=5)
    c.peer.cmp_swap(c.next(), c.va + 900000, c.key, 0, 5)
    c.peer.expect(Op.ATOMIC_ACK, 274, original=0, msn=6)
    assert c.psn == 275
    assert [w.byte_len for w in c.qp.poll(3)] == [5 * PMTU, 51 * PMTU + 1, 10]
    assert c.mr.read(128 * 1024, 51 * PMTU + 1) == pattern(2, 51 * PMTU + 1)


# ---- shared receive queues

def srq(hca, **kw):
    n = hca.rpc('srq_create', pd=hca.pd, **kw)['srq']
    hca.mine['srq'].append(n)
    return n


def srq_post(hca, n, mr, length, count, first=0):
    hca.rpc('srq_post', srq=n, wr=[{'wr_id': first + i, 'sg_list': [
        {'key': mr.key, 'offset': (first + i) * length, 'length': length}]} for i in range(count)])


def test_two_queue_pairs_share_receives(connect, hca):
    n = srq(hca, max_wr=16)
    a, b = connect(qp={'srq': n}), connect(qp={'srq': n})
    mr = hca.mr(4096)
    srq_post(hca, n, mr, 64, 4)
    for i, c in enumerate((a, b, a)):
        psn = c.next()
        c.peer.send_only(psn, b'from %d' % i)
        assert c.peer.expect_ack(psn).syndrome == NO_CREDITS, 'an SRQ has no credits to give'
    got = a.qp.poll(2) + b.qp.poll(1)
    assert sorted(w.wr_id for w in got) == [0, 1, 2]
    assert [mr.read(64 * i, 6) for i in range(3)] == [b'from 0', b'from 1', b'from 2']


def test_srq_that_is_empty_is_not_ready(connect, hca):
    n = srq(hca, max_wr=16)
    c = connect(qp={'srq': n}, min_rnr_timer=7)
    psn = c.next()
    c.peer.send_only(psn, b'x')
    c.peer.expect_nak(RNR + 7, psn)
    srq_post(hca, n, c.mr, 64, 1)
    c.peer.send_only(psn, b'x')
    c.peer.expect_ack(psn)


def test_srq_limit_is_told_once(connect, hca):
    n = srq(hca, max_wr=16)
    c = connect(qp={'srq': n})
    srq_post(hca, n, c.mr, 64, 4)
    hca.rpc('srq_modify', srq=n, limit=3)
    hca.events()
    for _ in range(3):
        psn = c.next()
        c.peer.send_only(psn, b'x')
        c.peer.expect_ack(psn)
    assert [e for e in hca.events() if e[0] == 'SRQ_LIMIT_REACHED'] == [('SRQ_LIMIT_REACHED', n)]


# ---- draining

def test_sqd_holds_what_is_posted_and_finishes_what_is_out(connect, hca):
    c = connect()
    c.qp.post_send('write', wr_id=1, sg=[(c.mr, 0, 8)], remote_addr=0, rkey=1)
    r = c.requests(1)[0]
    c.qp.modify(qp_state='SQD', en_sqd_async_notify=True)
    c.qp.post_send('write', wr_id=2, sg=[(c.mr, 0, 8)], remote_addr=0, rkey=1)
    c.peer.expect_nothing(quiet=0.05)
    hca.events()
    c.peer.ack(r.psn, 1)
    assert c.qp.poll()[0].wr_id == 1
    wait_until(lambda: ('SQ_DRAINED', c.qp.qpn) in hca.events())
    psn = c.next()  # the responder works on
    c.peer.write_only(psn, c.va, c.key, b'x')
    c.peer.expect_ack(psn)
    c.qp.modify(qp_state='RTS')
    r = c.peer.expect(Op.WRITE_ONLY, c.sq_psn + 1)
    c.peer.ack(r.psn, 2)
    assert c.qp.poll()[0].wr_id == 2


def test_rtr_serves_requests(connect, hca):
    """RTR answers; the first request raises COMM_EST."""
    from roce import gid_of, Peer
    first = connect()  # so that the neighbour is known
    q = hca.qp()
    peer = Peer(first.station, 0x3333, first.station.ip, first.wire.polca_mac, first.wire.polca_ip,
                q.qpn)
    q.modify(qp_state='INIT', port=0, pkey_index=0, qp_access_flags=['remote_write'])
    q.modify(qp_state='RTR', ah_attr={'dgid': gid_of(first.station.ip)}, path_mtu=1024,
             dest_qp_num=peer.qpn, rq_psn=5, max_dest_rd_atomic=1, min_rnr_timer=12)
    hca.events()
    peer.write_only(5, first.va, first.key, b'rtr')
    peer.expect_ack(5)
    assert first.mr.read(0, 3) == b'rtr'
    assert ('COMM_EST', q.qpn) in hca.events()
    peer.close()


def test_inline_data(connect):
    c = connect()
    c.qp.post_send('send', wr_id=1, inline_data=b'inline!'.hex())
    r = c.peer.expect(Op.SEND_ONLY, c.sq_psn)
    assert r.payload == b'inline!'
    c.peer.ack(r.psn, 1)
    assert c.qp.poll()[0].status == 0


def test_gather(connect):
    c = connect()
    data = pattern(4, 5000)
    c.mr.write(0, data)
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 10), (c.mr, 3000, 1500), (c.mr, 100, 1)])
    got = c.requests(2)
    assert b''.join(bytes(r.payload) for r in got) == data[:10] + data[3000:4500] + data[100:101]
    c.peer.ack(got[-1].psn, 1)
    assert c.qp.poll()[0].status == 0


def test_solicited_event(connect):
    c = connect()
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 4)], flags=['SIGNALED', 'SOLICITED'])
    assert c.peer.expect(Op.SEND_ONLY, c.sq_psn).solicited == 1
    c.post_buffer(64, n=2)
    c.hca.rpc('cq_arm', cq=c.qp.cq, solicited_only=True)
    c.hca.events()
    psn = c.next()
    c.peer.send_only(psn, b'x')
    c.peer.expect_ack(psn)
    assert ('CQ_COMPLETION', c.qp.cq) not in c.hca.events()
    psn = c.next()
    c.peer.send_only(psn, b'x', solicited=1)
    c.peer.expect_ack(psn)
    wait_until(lambda: ('CQ_COMPLETION', c.qp.cq) in c.hca.events())


def test_read_across_the_psn_wrap(connect):
    c = connect(sq_psn=0xfffffe)
    data = pattern(5, 4 * PMTU)
    c.qp.post_send('read', wr_id=1, sg=[(c.mr, 0, len(data))], remote_addr=0x9000, rkey=1)
    r = c.peer.expect(Op.READ_REQUEST, 0xfffffe)
    c.answer_read(r, data, stop=2)
    c.answer_read(r, data, start=3)
    again = c.peer.expect(Op.READ_REQUEST)
    k = (again.psn - r.psn) & 0xffffff
    assert k <= 2 and again.va == 0x9000 + k * PMTU and again.dlen == (4 - k) * PMTU
    c.answer_read(again, data[k * PMTU:])
    assert c.qp.poll()[0].status == 0 and c.mr.read(0, len(data)) == data
