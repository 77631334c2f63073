# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca as requester: its packets, and its reaction to every answer (rc-transport 4, 8; seeds
001, 002; rc-cases)."""

import time

import pytest

from conn import PMTU, wait_until
from pattern import pattern
from roce import (NAK_ACCESS, NAK_INVALID, NAK_OPERATIONAL, NAK_SEQUENCE, NO_CREDITS, Op, RNR,
                  RNR_MS)

KEY = 0xcafe01
VA = 0x7000


def post_write(c, length=8, wr_id=1, off=0, **wr):
    c.qp.post_send('write', wr_id=wr_id, sg=[(c.mr, off, length)] if length else [],
                   remote_addr=VA, rkey=KEY, **wr)


def post_read(c, length=8, wr_id=1, off=0, **wr):
    c.qp.post_send('read', wr_id=wr_id, sg=[(c.mr, off, length)], remote_addr=VA, rkey=KEY, **wr)


def good(c, wr_id=1, opcode=None):
    wc, = c.qp.poll()
    assert (wc.wr_id, wc.status) == (wr_id, 0), wc
    assert opcode is None or wc.opcode == opcode
    return wc


# ---- requests

@pytest.mark.parametrize('size', [0, 1, PMTU, PMTU + 1, 3 * PMTU, 3 * PMTU + 2])
@pytest.mark.parametrize('kind', ['send', 'send_imm', 'write', 'write_imm'])
def test_segmentation(connect, kind, size):
    c = connect()
    data = pattern(size, size)
    c.mr.write(0, data)
    wr = dict(remote_addr=VA, rkey=KEY) if 'write' in kind else {}
    if 'imm' in kind:
        wr['imm_data'] = 0x12345678
    c.qp.post_send(kind, wr_id=3, sg=[(c.mr, 0, size)] if size else [], **wr)
    n = max(1, -(-size // PMTU))
    got = c.requests(n)
    base = Op.WRITE_FIRST if 'write' in kind else Op.SEND_FIRST
    first, middle, last, last_imm, only, only_imm = range(base, base + 6)
    end = (only_imm if n == 1 else last_imm) if 'imm' in kind else only if n == 1 else last
    ops = [end] if n == 1 else [first] + [middle] * (n - 2) + [end]
    assert [r.op for r in got] == ops
    assert [r.psn for r in got] == [c.sq_psn + i for i in range(n)]
    assert b''.join(bytes(r.payload) for r in got) == data
    assert all(len(r.payload) == PMTU for r in got[:-1])
    assert got[-1].ackreq == 1
    assert {r.qpn for r in got} == {c.peer.qpn} and {r.sport for r in got} == {got[0].sport}
    if 'write' in kind:
        assert (got[0].va, got[0].rkey, got[0].dlen) == (VA, KEY, size)
    if 'imm' in kind:
        assert got[-1].imm == 0x12345678
    c.peer.expect_nothing()
    c.qp.expect_no_completion()
    c.peer.ack(got[-1].psn, 1)
    good(c, 3, 'RDMA_WRITE' if 'write' in kind else 'SEND')


def test_send_with_invalidate(connect):
    c = connect()
    c.qp.post_send('send_inv', wr_id=1, sg=[(c.mr, 0, 4)], invalidate_rkey=0xabcd01)
    r = c.peer.expect(Op.SEND_ONLY_INV, c.sq_psn, inv=0xabcd01)
    c.peer.ack(r.psn, 1)
    good(c, 1, 'SEND')


@pytest.mark.parametrize('size', [1, PMTU, 3 * PMTU + 2])
def test_read(connect, size):
    c = connect()
    data = pattern(size, size)
    post_read(c, size, off=16)
    r = c.peer.expect(Op.READ_REQUEST, c.sq_psn, va=VA, rkey=KEY, dlen=size)
    assert len(r.payload) == 0
    c.answer_read(r, data)
    assert good(c, 1, 'RDMA_READ').byte_len == size
    assert c.mr.read(16, size) == data and c.mr.read(16 + size, 8) == bytes(8)
    post_write(c)  # nPSN has gone past the responses
    c.peer.expect(Op.WRITE_ONLY, c.sq_psn + max(1, -(-size // PMTU)))


def test_atomics(connect):
    c = connect()
    c.qp.post_send('cmp_swp', wr_id=1, sg=[(c.mr, 0, 8)], remote_addr=VA, rkey=KEY,
                   compare_add=0x1111, swap=0x2222)
    r = c.peer.expect(Op.CMP_SWAP, c.sq_psn, va=VA, rkey=KEY, swap_add=0x2222, compare=0x1111)
    c.peer.tx(Op.ATOMIC_ACK, r.psn, aeth=(NO_CREDITS, 1), original=0x1122334455667788)
    good(c, 1, 'COMP_SWAP')
    assert c.mr.read(0, 8) == (0x1122334455667788).to_bytes(8, 'little')
    c.qp.post_send('fetch_add', wr_id=2, sg=[(c.mr, 8, 8)], remote_addr=VA, rkey=KEY,
                   compare_add=7)
    r = c.peer.expect(Op.FETCH_ADD, c.sq_psn + 1, swap_add=7)
    c.peer.tx(Op.ATOMIC_ACK, r.psn, aeth=(NO_CREDITS, 2), original=9)
    good(c, 2, 'FETCH_ADD')
    assert c.mr.read(8, 8) == (9).to_bytes(8, 'little')


def test_requests_are_streamed_without_waiting(connect):
    c = connect()
    for i in range(8):
        post_write(c, wr_id=i)
    got = c.requests(8)
    assert [r.psn for r in got] == [c.sq_psn + i for i in range(8)]
    c.peer.ack(got[-1].psn, 8)  # one ACK covers them all
    assert [(w.wr_id, w.status) for w in c.qp.poll(8)] == [(i, 0) for i in range(8)]


def test_psn_wraps(connect):
    c = connect(sq_psn=0xfffffe)
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 4 * PMTU)])
    assert [r.psn for r in c.requests(4)] == [0xfffffe, 0xffffff, 0, 1]
    c.peer.ack(1, 1)
    good(c)


def test_udp_source_port_follows_the_queue_pair_numbers(connect):
    """rc-transport 10."""
    c = connect()
    post_write(c)
    r = c.requests(1)[0]
    v = c.qp.qpn * c.peer.qpn
    v ^= v >> 20
    v ^= v >> 40
    fl = v & 0xfffff
    assert r.sport == 0xc000 | ((fl & 0x3fff) ^ (fl >> 14))
    c.peer.ack(r.psn, 1)


def test_traffic_class(connect):
    c = connect(traffic_class=0x6a)
    post_write(c)
    r = c.requests(1)[0]
    assert r.tclass == 0x6a
    c.peer.ack(r.psn, 1)
    good(c)


def test_unsignaled_work_completes_silently(connect):
    c = connect()
    post_write(c, wr_id=1, flags=[])
    post_write(c, wr_id=2)
    got = c.requests(2)
    c.peer.ack(got[-1].psn, 2)
    good(c, 2)
    c.qp.expect_no_completion()


def test_fence_waits_for_the_read_before_it(connect):
    c = connect()
    post_read(c, wr_id=1)
    post_write(c, wr_id=2, flags=['SIGNALED', 'FENCE'])
    r = c.peer.expect(Op.READ_REQUEST, c.sq_psn)
    c.peer.expect_nothing(quiet=0.05)
    c.answer_read(r, bytes(8))
    w = c.peer.expect(Op.WRITE_ONLY, c.sq_psn + 1)
    c.peer.ack(w.psn, 2)
    assert [w.wr_id for w in c.qp.poll(2)] == [1, 2]


def test_no_more_reads_than_max_rd_atomic(connect):
    c = connect(max_rd_atomic=2)
    for i in range(4):
        post_read(c, wr_id=i, off=8 * i)
    first = c.requests(2)
    c.peer.expect_nothing(quiet=0.05)
    c.answer_read(first[0], bytes([1]) * 8, msn=1)
    third = c.peer.expect(Op.READ_REQUEST, c.sq_psn + 2)
    c.answer_read(first[1], bytes([2]) * 8, msn=2)
    fourth = c.peer.expect(Op.READ_REQUEST, c.sq_psn + 3)
    c.answer_read(third, bytes([3]) * 8, msn=3)
    c.answer_read(fourth, bytes([4]) * 8, msn=4)
    assert [w.wr_id for w in c.qp.poll(4)] == [0, 1, 2, 3]
    assert c.mr.read(0, 32) == b''.join(bytes([i]) * 8 for i in (1, 2, 3, 4))


# ---- NAKs that move it to ERR

@pytest.mark.parametrize('code,status', [(NAK_INVALID, 9), (NAK_ACCESS, 10),
                                         (NAK_OPERATIONAL, 11)])
@pytest.mark.parametrize('op', [Op.WRITE_ONLY, Op.READ_REQUEST])
def test_fatal_nak(connect, code, status, op):
    """No retry: earlier requests complete, later ones are flushed (seed 001)."""
    c = connect()
    post_write(c, wr_id=1)
    (post_write if op == Op.WRITE_ONLY else post_read)(c, wr_id=2)
    post_write(c, wr_id=3)
    got = c.requests(3)
    c.peer.nak(code, got[1].psn, 1)
    assert [(w.wr_id, w.status) for w in c.qp.poll(3)] == [(1, 0), (2, status), (3, 5)]
    assert c.qp.state() == 'ERR'
    c.peer.expect_nothing()


# ---- retries

def test_sequence_nak_rewinds(connect):
    c = connect()
    c.mr.write(0, pattern(1, 4 * PMTU))
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 4 * PMTU)])
    got = c.requests(4)
    c.peer.nak(NAK_SEQUENCE, got[2].psn, 0)
    again = c.requests(1)[0]
    start = again.psn - c.sq_psn
    assert 0 <= start <= 2, 'resent from the failure, or from before it'
    again = [again] + c.requests(3 - start)
    assert [(r.op, r.psn, r.payload) for r in again] == [
        (r.op, r.psn, r.payload) for r in got[start:]]
    c.peer.ack(got[3].psn, 1)
    good(c)
    assert c.qp.counters()['rcvd_seq_err'] == 1


def test_sequence_nak_acks_what_is_before_it(connect):
    c = connect()
    post_write(c, wr_id=1)
    post_write(c, wr_id=2)
    got = c.requests(2)
    c.peer.nak(NAK_SEQUENCE, got[1].psn, 1)
    good(c, 1)
    r = c.peer.expect(Op.WRITE_ONLY, got[1].psn)
    c.peer.ack(r.psn, 2)
    good(c, 2)


def test_repeated_sequence_nak_makes_no_storm(connect):
    """At most one retransmission round per loss; the timing decides how many losses share a
    round."""
    c = connect()
    for i in range(4):
        post_write(c, wr_id=i)
    got = c.requests(4)
    for _ in range(3):
        c.peer.nak(NAK_SEQUENCE, got[1].psn, 1)
    again = c.requests(3)
    assert [r.psn for r in again] == [r.psn for r in got[1:]]
    c.peer.ack(got[3].psn, 4)
    assert [w.status for w in c.qp.poll(4)] == [0] * 4
    assert len(c.peer.drain()) <= 2 * 3


@pytest.mark.parametrize('retries', [0, 1, 3, 7])
def test_sequence_naks_until_the_retries_are_used_up(connect, retries):
    """retry_cnt N gives N retries, and seven means seven."""
    c = connect(retry_cnt=retries)
    post_write(c, wr_id=1)
    post_write(c, wr_id=2)
    for _ in range(retries + 1):
        got = c.requests(2)
        assert [r.psn for r in got] == [c.sq_psn, c.sq_psn + 1]
        c.peer.nak(NAK_SEQUENCE, got[0].psn, 0)
    assert [(w.wr_id, w.status) for w in c.qp.poll(2)] == [(1, 12), (2, 5)]
    assert c.qp.state() == 'ERR'
    c.peer.expect_nothing()


@pytest.mark.parametrize('retries', [0, 2])
def test_silence_until_the_retries_are_used_up(connect, retries):
    c = connect(retry_cnt=retries, timeout=14)
    t0 = time.monotonic()
    post_write(c, wr_id=1)
    post_write(c, wr_id=2)
    assert [(w.wr_id, w.status) for w in c.qp.poll(2)] == [(1, 12), (2, 5)]
    ttr = 4.096e-6 * 2**14
    assert time.monotonic() - t0 >= ttr * (retries + 1), 'Ttr is the least it waits'
    sent = [r.psn for r in c.peer.drain()]
    assert sent.count(c.sq_psn) == retries + 1
    counters = c.qp.counters()
    assert counters['local_ack_timeout_err'] == retries + 1
    assert counters['retry_exceeded_err'] == 1


def test_timeout_then_success_reloads_the_counter(connect):
    c = connect(retry_cnt=1, timeout=14)
    for i in range(3):
        post_write(c, wr_id=i)
        c.peer.expect(Op.WRITE_ONLY, c.sq_psn + i)
        again = c.peer.expect(Op.WRITE_ONLY, c.sq_psn + i)
        c.peer.ack(again.psn, i + 1)
        good(c, i)


# ---- RNR

@pytest.mark.parametrize('code', [1, 12, 20, 26])
def test_rnr_waits_the_coded_time(connect, code):
    c = connect()
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 4)])
    r = c.peer.expect(Op.SEND_ONLY, c.sq_psn)
    t0 = time.monotonic()
    c.peer.nak(RNR + code, r.psn, 0)
    again = c.peer.expect(Op.SEND_ONLY, c.sq_psn)
    assert again.when - t0 >= RNR_MS[code] / 1000
    c.peer.ack(again.psn, 1)
    good(c)
    assert c.qp.counters()['rcvd_rnr_err'] == 1


def test_rnr_code_zero_is_655_ms(connect):
    c = connect()
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 4)])
    r = c.peer.expect(Op.SEND_ONLY, c.sq_psn)
    t0 = time.monotonic()
    c.peer.nak(RNR, r.psn, 0)
    again = c.peer.expect(Op.SEND_ONLY, c.sq_psn)
    assert again.when - t0 >= 0.65536
    c.peer.ack(again.psn, 1)
    good(c)


@pytest.mark.parametrize('retries', [0, 1, 6])
def test_rnr_until_the_retries_are_used_up(connect, retries):
    c = connect(rnr_retry=retries).prime()
    for i in (1, 2):
        c.qp.post_send('send', wr_id=i, sg=[(c.mr, 0, 4)])
    c.requests(2)
    for _ in range(retries):
        c.peer.nak(RNR + 5, c.sq_psn, 0)
        c.peer.expect(Op.SEND_ONLY, c.sq_psn)
    c.peer.nak(RNR + 5, c.sq_psn, 0)
    assert [(w.wr_id, w.status) for w in c.qp.poll(2)] == [(1, 13), (2, 5)]
    assert c.qp.state() == 'ERR'


def test_rnr_retry_seven_never_ends(connect):
    c = connect(rnr_retry=7)
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 4)])
    for _ in range(20):
        r = c.peer.expect(Op.SEND_ONLY, c.sq_psn)
        c.peer.nak(RNR + 1, r.psn, 0)
    r = c.peer.expect(Op.SEND_ONLY, c.sq_psn)
    c.peer.ack(r.psn, 1)
    good(c)


def test_sequence_nak_during_the_rnr_wait_is_ignored(connect):
    """rxe sends a sequence NAK whenever packets follow the one that got an RNR NAK."""
    c = connect(retry_cnt=0).prime()
    for i in (1, 2):
        c.qp.post_send('send', wr_id=i, sg=[(c.mr, 0, 4)])
    a, b = c.requests(2)
    t0 = time.monotonic()
    c.peer.nak(RNR + 24, a.psn, 0)  # 40.96 ms
    c.peer.nak(NAK_SEQUENCE, a.psn, 0)
    again = c.peer.expect(Op.SEND_ONLY, a.psn)
    assert again.when - t0 >= RNR_MS[24] / 1000
    c.peer.ack(a.psn, 1)
    c.peer.expect(Op.SEND_ONLY, b.psn)
    c.peer.ack(b.psn, 2)
    assert [w.status for w in c.qp.poll(2)] == [0, 0]
    assert c.hca.verdicts()['stale_nak'] >= 1


def test_sequence_nak_after_the_rnr_wait_is_ignored(connect):
    """The same, but late. No packet follows the one under RNR before it is answered, so none can
    be out of sequence, and no retry is consumed."""
    c = connect(retry_cnt=0).prime()
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 3 * PMTU)])
    assert [r.psn for r in c.requests(3)] == [c.sq_psn, c.sq_psn + 1, c.sq_psn + 2]
    for _ in range(10):
        c.peer.nak(RNR + 5, c.sq_psn, 0)
        r = c.peer.expect(Op.SEND_FIRST, c.sq_psn, ackreq=1)
        c.peer.nak(NAK_SEQUENCE, c.sq_psn, 0)
    c.peer.ack(r.psn, 0)
    assert [(r.op, r.psn) for r in c.requests(2)] == [
        (Op.SEND_MIDDLE, c.sq_psn + 1), (Op.SEND_LAST, c.sq_psn + 2)]
    c.peer.ack(c.sq_psn + 2, 1)
    good(c)


# ---- answers that are late, early or wrong

def test_ghost_responses(connect):
    """An ACK for a PSN never sent, a NAK outside the window, a Read response without a Read."""
    c = connect()
    post_write(c)
    r = c.requests(1)[0]
    ghosts = [lambda: c.peer.ack(r.psn + 1, 1),
              lambda: c.peer.ack(r.psn + 0x400000, 1),
              lambda: c.peer.nak(NAK_SEQUENCE, r.psn + 5, 0),
              lambda: c.peer.nak(NAK_ACCESS, r.psn + 5, 0)]
    for send in ghosts:
        before = c.hca.verdicts()['ghost_response']
        send()
        wait_until(lambda: c.hca.verdicts()['ghost_response'] == before + 1)
    c.qp.expect_no_completion()
    c.peer.ack(r.psn, 1)
    good(c)
    assert c.qp.state() == 'RTS'


def test_read_response_that_nobody_asked_for(connect):
    c = connect()
    post_write(c)
    r = c.requests(1)[0]
    before = c.hca.verdicts()
    c.peer.tx(Op.READ_ONLY, r.psn + 3, bytes(8), aeth=(NO_CREDITS, 1))
    wait_until(lambda: c.hca.verdicts()['ghost_response'] == before['ghost_response'] + 1)
    c.peer.ack(r.psn, 1)
    good(c)


def test_duplicate_ack(connect):
    c = connect()
    post_write(c)
    r = c.requests(1)[0]
    c.peer.ack(r.psn, 1)
    good(c)
    before = c.hca.verdicts()['duplicate_response']
    c.peer.ack(r.psn, 1)
    wait_until(lambda: c.hca.verdicts()['duplicate_response'] == before + 1)
    c.qp.expect_no_completion()


def test_ack_that_jumps_over_a_read_does_not_complete_it(connect):
    """WRITE 40, READ 41, WRITE 42; ACK 42 comes, the Read's response was lost."""
    c = connect(sq_psn=40)
    post_write(c, wr_id=1)
    post_read(c, wr_id=2, off=64)
    post_write(c, wr_id=3)
    c.requests(3)
    c.peer.ack(42, 3)
    good(c, 1)
    again = c.requests(2)
    assert [(r.op, r.psn) for r in again] == [(Op.READ_REQUEST, 41), (Op.WRITE_ONLY, 42)]
    c.qp.expect_no_completion()
    c.answer_read(again[0], b'readdata', msn=3)
    c.peer.ack(42, 3)
    assert [(w.wr_id, w.status) for w in c.qp.poll(2)] == [(2, 0), (3, 0)]
    assert c.mr.read(64, 8) == b'readdata'


@pytest.mark.parametrize('lost', [0, 1, 3])
def test_read_response_lost(connect, lost):
    """The Read is repeated from the missing PSN on, VA and length advanced."""
    c = connect()
    data = pattern(9, 4 * PMTU + 100)
    post_read(c, len(data))
    r = c.requests(1)[0]
    c.answer_read(r, data, stop=lost)
    c.answer_read(r, data, start=lost + 1)
    again = c.requests(1)[0]
    assert again.op == Op.READ_REQUEST
    k = again.psn - r.psn
    assert k <= lost
    assert (again.va, again.dlen) == (VA + k * PMTU, len(data) - k * PMTU)
    c.answer_read(again, data[k * PMTU:])
    assert good(c).byte_len == len(data)
    assert c.mr.read(0, len(data)) == data
    assert c.qp.counters()['implied_nak_seq_err'] == 4 - lost  # the responses behind the lost one


def test_last_read_response_lost(connect):
    """No later packet shows the loss: the timer expires."""
    c = connect(timeout=14)
    data = pattern(9, 2 * PMTU)
    post_read(c, len(data))
    r = c.requests(1)[0]
    c.answer_read(r, data, stop=1)
    again = c.requests(1)[0]
    k = again.psn - r.psn
    assert again.op == Op.READ_REQUEST and k <= 1
    c.answer_read(again, data[k * PMTU:])
    good(c)
    assert c.mr.read(0, len(data)) == data


def test_responses_out_of_order_place_no_byte(connect):
    c = connect(retry_cnt=7)
    data = pattern(9, 3 * PMTU)
    post_read(c, len(data))
    r = c.requests(1)[0]
    c.answer_read(r, bytes([0xee]) * len(data), start=2)
    again = c.requests(1)[0]
    assert c.mr.read(0, len(data)) == bytes(len(data))
    c.answer_read(again, data[(again.psn - r.psn) * PMTU:])
    good(c)
    assert c.mr.read(0, len(data)) == data


def test_read_response_acks_the_write_before_it(connect):
    c = connect()
    post_write(c, wr_id=1)
    post_read(c, wr_id=2)
    w, r = c.requests(2)
    c.answer_read(r, bytes(8), msn=2)
    assert [(w.wr_id, w.status) for w in c.qp.poll(2)] == [(1, 0), (2, 0)]


@pytest.mark.parametrize('size', [4, 12])
def test_read_response_of_the_wrong_length(connect, size):
    c = connect()
    post_read(c, 8, wr_id=1)
    post_write(c, wr_id=2)
    r = c.requests(2)[0]
    c.peer.tx(Op.READ_ONLY, r.psn, bytes([1]) * size, aeth=(NO_CREDITS, 1))
    assert [(w.wr_id, w.status) for w in c.qp.poll(2)] == [(1, 7), (2, 5)]
    assert c.mr.read(8, 8) == bytes(8)


def test_nak_in_place_of_a_read_response(connect):
    c = connect()
    data = pattern(2, 3 * PMTU)
    post_read(c, len(data))
    r = c.requests(1)[0]
    c.answer_read(r, data, stop=1)
    c.peer.nak(NAK_ACCESS, r.psn + 1, 1)
    wc, = c.qp.poll()
    assert (wc.wr_id, wc.status) == (1, 10)


def test_late_packet_of_a_previous_life(connect):
    """Answers to a QP that was destroyed are dropped and counted."""
    c = connect()
    post_write(c)
    r = c.requests(1)[0]
    c.qp.destroy()
    before = c.hca.verdicts()['qpn_unknown']
    c.peer.ack(r.psn, 1)
    wait_until(lambda: c.hca.verdicts()['qpn_unknown'] == before + 1)


# ---- end-to-end credits

def test_one_message_past_the_credits(connect):
    """rc-transport 3: with no credit left one Send may probe; Writes need none."""
    c = connect()
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 4)])
    r = c.requests(1)[0]
    c.peer.ack(r.psn, 1, syndrome=0)  # MSN 1, no credit: LSN 1, so SSN 2 may start
    good(c, 1)
    for i in (2, 3, 4):
        c.qp.post_send('send', wr_id=i, sg=[(c.mr, 0, 4)])
    probe = c.requests(1)[0]
    c.peer.expect_nothing(quiet=0.05)
    c.peer.ack(probe.psn, 2, syndrome=2)  # LSN 4: all may go
    rest = c.requests(2)
    c.peer.ack(rest[-1].psn, 4, syndrome=2)
    assert [w.wr_id for w in c.qp.poll(3)] == [2, 3, 4]


def test_writes_need_no_credit(connect):
    """The Sends after Writes lose no credit either: LSN rises with each Write."""
    c = connect()
    c.qp.post_send('send', wr_id=1, sg=[(c.mr, 0, 4)])
    c.peer.ack(c.requests(1)[0].psn, 1, syndrome=0)
    good(c, 1)
    for i in range(4):
        post_write(c, wr_id=i)
    c.qp.post_send('send', wr_id=4, sg=[(c.mr, 0, 4)])
    got = c.requests(5)
    c.peer.ack(got[-1].psn, 6, syndrome=0)
    assert [w.status for w in c.qp.poll(5)] == [0] * 5


# ---- local errors

def test_local_key_that_is_gone(connect, hca):
    c = connect()
    other = hca.mr(4096)
    other.deregister()
    c.qp.post_send('write', wr_id=1, sg=[(other, 0, 8)], remote_addr=VA, rkey=KEY)
    post_write(c, wr_id=2)
    assert [(w.wr_id, w.status) for w in c.qp.poll(2)] == [(1, 4), (2, 5)]
    assert c.qp.state() == 'ERR'


def test_to_error_flushes(connect):
    c = connect()
    c.post_buffer(64, wr_id=10, n=2)
    post_write(c, wr_id=1)
    c.requests(1)
    c.qp.modify(qp_state='ERR')
    done = {(w.wr_id, w.status) for w in c.qp.poll(3)}
    assert done == {(1, 5), (10, 5), (11, 5)}
