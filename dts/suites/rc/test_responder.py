# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca as responder: valid requests (rc-transport 2 to 4, 6, 7; seed 002)."""

import pytest

from conn import PMTU
from pattern import pattern
from roce import Op

SIZES = [0, 1, 3, PMTU - 1, PMTU, PMTU + 1, 3 * PMTU, 3 * PMTU + 5]


@pytest.mark.parametrize('size', SIZES)
def test_send(connect, size):
    c = connect()
    data = pattern(size, size)
    c.post_buffer(4096, wr_id=77)
    psns = c.send(data)
    c.peer.expect_acked(psns[-1], msn=1)
    wc, = c.qp.poll()
    assert (wc.wr_id, wc.status, wc.opcode, wc.byte_len) == (77, 0, 'RECV', size)
    assert c.mr.read(0, size) == data
    assert c.mr.read(size, 16) == bytes(16)
    c.peer.expect_nothing()


@pytest.mark.parametrize('size', [0, 1, PMTU, 2 * PMTU + 1])
def test_send_with_immediate(connect, size):
    c = connect()
    c.post_buffer(4096)
    data = pattern(5, size)
    psns = c.message(Op.SEND_FIRST, Op.SEND_MIDDLE, Op.SEND_LAST_IMM, data, only=Op.SEND_ONLY_IMM,
                     last_kw=dict(imm=0xdeadbeef))
    c.peer.expect_acked(psns[-1], msn=1)
    wc, = c.qp.poll()
    assert (wc.status, wc.opcode, wc.byte_len, wc.imm) == (0, 'RECV', size, 0xdeadbeef)
    assert c.mr.read(0, size) == data


@pytest.mark.parametrize('size', SIZES)
def test_write(connect, size):
    c = connect()
    data = pattern(size, size)
    psns = c.write(data, off=100)
    c.peer.expect_acked(psns[-1], msn=1)
    assert c.mr.read(100, size) == data
    assert c.mr.read(0, 100) == bytes(100)
    assert c.mr.read(100 + size, 16) == bytes(16)
    c.qp.expect_no_completion()


@pytest.mark.parametrize('size', [0, 1, PMTU, 2 * PMTU + 1])
def test_write_with_immediate_takes_a_receive(connect, size):
    c = connect()
    c.post_buffer(0, wr_id=9)
    data = pattern(6, size)
    reth = (c.va, c.key, size)
    psns = c.message(Op.WRITE_FIRST, Op.WRITE_MIDDLE, Op.WRITE_LAST_IMM, data,
                     only=Op.WRITE_ONLY_IMM, first_kw=dict(reth=reth), last_kw=dict(imm=7))
    c.peer.expect_acked(psns[-1], msn=1)
    wc, = c.qp.poll()
    assert (wc.wr_id, wc.status, wc.opcode, wc.byte_len, wc.imm) == (
        9, 0, 'RECV_RDMA_WITH_IMM', size, 7)
    assert c.mr.read(0, size) == data


@pytest.mark.parametrize('size', SIZES)
def test_read(connect, size):
    c = connect()
    data = pattern(size + 1, size)
    c.mr.write(8, data)
    psn = c.next(max(1, -(-size // PMTU)))
    c.peer.read(psn, c.va + 8, c.key, size)
    assert c.read_answer(psn, size) == data
    assert c.sync().msn == 2  # the Read counted as one message


def test_read_crosses_the_psn_wrap(connect):
    c = connect(psn=0xfffffe)
    data = pattern(3, 5 * PMTU)
    c.mr.write(0, data)
    psn = c.next(5)
    c.peer.read(psn, c.va, c.key, len(data))
    assert c.read_answer(psn, len(data)) == data
    assert c.psn == 3
    c.sync()


def test_compare_and_swap(connect):
    c = connect()
    c.mr.write(8, (0x1122334455667788).to_bytes(8, 'little'))
    a, b = c.next(), c.next()
    c.peer.cmp_swap(a, c.va + 8, c.key, 0x1122334455667788, 5)
    r = c.peer.expect(Op.ATOMIC_ACK, a, original=0x1122334455667788, msn=1)
    c.peer.cmp_swap(b, c.va + 8, c.key, 6, 99)  # the comparison fails: the value stays 5
    r = c.peer.expect(Op.ATOMIC_ACK, b, original=5, msn=2)
    assert r.syndrome >> 5 == 0
    assert c.mr.read(8, 8) == (5).to_bytes(8, 'little')


def test_fetch_and_add_wraps_at_64_bits(connect):
    c = connect()
    c.mr.write(0, (2**64 - 1).to_bytes(8, 'little'))
    psn = c.next()
    c.peer.fetch_add(psn, c.va, c.key, 3)
    c.peer.expect(Op.ATOMIC_ACK, psn, original=2**64 - 1)
    assert c.mr.read(0, 8) == (2).to_bytes(8, 'little')


def test_zero_length_with_a_bad_key_is_fine(connect):
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, 0xdead0000, 0x12345678)
    c.peer.expect_ack(psn)
    psn = c.next()
    c.peer.read(psn, 0xdead0000, 0x12345678, 0)
    assert c.read_answer(psn, 0) == b''


def test_ack_covers_the_requests_before_it(connect):
    """Writes without AckReq, then one with it: whatever ACKs arrive, the last has the last PSN."""
    c = connect()
    psns = [c.next() for _ in range(8)]
    for i, psn in enumerate(psns):
        c.peer.write_only(psn, c.va + i, c.key, bytes([i]), ackreq=int(psn == psns[-1]))
    last = None
    while last is None or last.psn != psns[-1]:
        last = c.peer.expect(Op.ACK)
        assert last.psn in psns and last.syndrome >> 5 == 0
    assert last.msn == 8
    assert c.mr.read(0, 8) == bytes(range(8))


def test_read_answer_acks_the_writes_before_it(connect):
    c = connect()
    w, r = c.next(), c.next()
    c.peer.write_only(w, c.va, c.key, b'ab', ackreq=0)
    c.peer.read(r, c.va, c.key, 2)
    p = c.peer.rx()
    if p.op == Op.ACK:  # a separate ACK may also arrive
        assert p.psn == w
        p = c.peer.rx()
    assert (p.op, p.psn, p.payload, p.msn) == (Op.READ_ONLY, r, b'ab', 2)


def test_solicited_and_padding_bytes_do_not_matter(connect):
    c = connect()
    c.post_buffer(64)
    psn = c.next()
    c.peer.send_only(psn, b'abc', solicited=1)
    c.peer.expect_ack(psn)
    assert c.qp.poll()[0].byte_len == 3


def test_m_bit_either_way(connect):
    c = connect()
    for m in (0, 1):
        psn = c.next()
        c.peer.write_only(psn, c.va, c.key, b'x', migreq=m)
        c.peer.expect_ack(psn)


def test_ecn_and_ttl_are_not_the_requests_business(connect):
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x', ttl=1, ip={'tos': 0x68})
    c.peer.expect_ack(psn)


def test_udp_checksum_is_not_verified(connect):
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x', udp={'chksum': 0x1234})
    c.peer.expect_ack(psn)


@pytest.mark.parametrize('kind', ['send', 'write', 'read', 'atomic'])
def test_over_ipv6(connect, kind):
    c = connect(ipv6=True)
    psn = c.next()
    if kind == 'send':
        c.post_buffer(64)
        c.peer.send_only(psn, b'hello')
        c.peer.expect_ack(psn)
        assert c.qp.poll()[0].byte_len == 5
    elif kind == 'write':
        c.peer.write_only(psn, c.va, c.key, b'hello')
        c.peer.expect_ack(psn)
        assert c.mr.read(0, 5) == b'hello'
    elif kind == 'read':
        c.mr.write(0, b'world')
        c.peer.read(psn, c.va, c.key, 5)
        assert c.read_answer(psn, 5) == b'world'
    else:
        c.peer.fetch_add(psn, c.va, c.key, 1)
        c.peer.expect(Op.ATOMIC_ACK, psn, original=0)


def test_receive_scatters_over_its_list(connect):
    c = connect()
    c.qp.post_recv(wr_id=1, sg=[(c.mr, 0, 10), (c.mr, 100, 1500), (c.mr, 5000, 600)])
    data = pattern(9, 2 * PMTU)
    psns = c.send(data)
    c.peer.expect_acked(psns[-1])
    assert c.qp.poll()[0].byte_len == len(data)
    assert c.mr.read(0, 10) + c.mr.read(100, 1500) + c.mr.read(5000, 538) == data
    assert c.mr.read(10, 90) == bytes(90) and c.mr.read(5538, 62) == bytes(62)


def test_ce_mark_is_answered_with_a_cnp(connect):
    """rc-transport 10: ECN CE on receipt, answer CNP."""
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x', ip={'tos': 3})
    got = c.requests(2)
    assert sorted(r.op for r in got) == [Op.ACK, Op.CNP]
    cnp = next(r for r in got if r.op == Op.CNP)
    assert cnp.qpn == c.peer.qpn and cnp.bth.becn == 1 and bytes(cnp.payload) == bytes(16)
