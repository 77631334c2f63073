# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca as responder: repeated requests (rc-transport 7, rc-cases)."""

from conn import PMTU, wait_until
from pattern import pattern
from roce import Op


def dropped(c, reason, send):
    """send() sends a packet that is dropped for that reason and not answered."""
    before = c.hca.verdicts()[reason]
    send()
    wait_until(lambda: c.hca.verdicts()[reason] == before + 1)
    c.sync()


def test_duplicate_send_is_acked_but_not_executed(connect):
    c = connect()
    c.post_buffer(64, n=3)
    a, b = c.next(), c.next()
    c.peer.send_only(a, b'one')
    c.peer.send_only(b, b'two')
    c.peer.expect_acked(b)
    c.qp.poll(2)
    c.peer.send_only(a, b'ONE')
    c.peer.expect_ack(b)  # ePSN - 1
    c.qp.expect_no_completion()
    assert c.mr.read(0, 3) == b'one' and c.mr.read(128, 3) == bytes(3)


def test_duplicate_write_is_not_executed(connect):
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'right')
    c.peer.expect_ack(psn)
    c.peer.write_only(psn, c.va, c.key, b'wrong')
    c.peer.expect_ack(psn)
    assert c.mr.read(0, 5) == b'right'


def test_error_in_a_duplicate_is_not_naked(connect):
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x')
    c.peer.expect_ack(psn)
    c.peer.write_only(psn, c.va, c.key ^ 0x100, b'y')
    r = c.peer.expect(Op.ACK)
    assert r.syndrome >> 5 == 0 and r.psn == psn
    assert c.qp.state() == 'RTS'


def test_ack_of_a_duplicate_never_covers_a_newer_read(connect):
    """WRITE 30 acked, READ 31 answered (both lost), then WRITE 30 again: ACK 30, not 31."""
    c = connect(psn=30)
    c.peer.write_only(c.next(), c.va, c.key, b'x')
    c.peer.expect_ack(30)
    c.peer.read(c.next(), c.va, c.key, 1)
    c.read_answer(31, 1)
    c.peer.write_only(30, c.va, c.key, b'x')
    c.peer.expect_ack(30)
    c.sync()


def test_duplicate_read_does_not_disturb_the_opcode_sequence(connect):
    """READ 20-22, WRITE First 23, then READ 20 and WRITE 23 again, WRITE Middle 24."""
    c = connect(psn=20)
    c.mr.write(0, pattern(2, 3 * PMTU))
    c.peer.read(c.next(3), c.va, c.key, 3 * PMTU)
    c.read_answer(20, 3 * PMTU)
    data = pattern(3, 3 * PMTU)
    reth = (c.va + 8192, c.key, 3 * PMTU)
    c.peer.tx(Op.WRITE_FIRST, 23, data[:PMTU], reth=reth, ackreq=1)
    c.peer.expect_ack(23)
    c.peer.read(20, c.va, c.key, 3 * PMTU)
    assert c.read_answer(20, 3 * PMTU) == pattern(2, 3 * PMTU)
    c.peer.tx(Op.WRITE_FIRST, 23, data[:PMTU], reth=reth, ackreq=1)
    c.peer.expect_ack(23)
    c.peer.tx(Op.WRITE_MIDDLE, 24, data[PMTU:2 * PMTU], ackreq=1)
    c.peer.expect_ack(24)
    c.peer.tx(Op.WRITE_LAST, 25, data[2 * PMTU:], ackreq=1)
    c.peer.expect_ack(25, msn=2)
    assert c.mr.read(8192, 3 * PMTU) == data


def test_duplicate_read_of_a_part(connect):
    """The requester repeats from response 2 on: VA and length advanced, with the PSN of response
    2."""
    c = connect()
    data = pattern(7, 5 * PMTU + 10)
    c.mr.write(0, data)
    psn = c.next(6)
    c.peer.read(psn, c.va, c.key, len(data))
    assert c.read_answer(psn, len(data)) == data
    c.peer.read(psn + 2, c.va + 2 * PMTU, c.key, len(data) - 2 * PMTU)
    assert c.read_answer(psn + 2, len(data) - 2 * PMTU) == data[2 * PMTU:]
    c.sync()


def test_duplicate_read_is_executed_again(connect):
    c = connect()
    c.mr.write(0, b'old')
    psn = c.next()
    c.peer.read(psn, c.va, c.key, 3)
    assert c.read_answer(psn, 3) == b'old'
    c.mr.write(0, b'new')
    c.peer.read(psn, c.va, c.key, 3)
    assert c.read_answer(psn, 3) == b'new'


def test_duplicate_read_with_another_key_or_range_is_dropped(connect, hca):
    c = connect()
    other = hca.mr(4096, va=c.va)  # the same addresses under another key
    psn = c.next(2)
    c.peer.read(psn, c.va, c.key, 2 * PMTU)
    c.read_answer(psn, 2 * PMTU)
    dropped(c, 'duplicate_read', lambda: c.peer.read(psn, other.va, other.key, 16))
    dropped(c, 'duplicate_read', lambda: c.peer.read(psn, c.va - 8, c.key, 16))
    dropped(c, 'duplicate_read', lambda: c.peer.read(psn, c.va, c.key, 2 * PMTU + 1))
    assert c.qp.state() == 'RTS'


def test_duplicate_read_of_a_region_that_is_gone_is_not_answered(connect, hca):
    c = connect()
    other = hca.mr(4096)
    psn = c.next()
    c.peer.read(psn, other.va, other.key, 16)
    c.read_answer(psn, 16)
    other.deregister()
    before = c.hca.verdicts()['duplicate_request']
    c.peer.read(psn, other.va, other.key, 16)
    wait_until(lambda: c.hca.verdicts()['duplicate_request'] == before + 1)
    c.sync()
    assert c.qp.state() == 'RTS'


def test_duplicate_atomic_is_replayed(connect):
    c = connect()
    psn = c.next()
    c.peer.fetch_add(psn, c.va, c.key, 5)
    c.peer.expect(Op.ATOMIC_ACK, psn, original=0)
    other = c.next()
    c.peer.fetch_add(other, c.va, c.key, 5)
    c.peer.expect(Op.ATOMIC_ACK, other, original=5)
    c.peer.fetch_add(psn, c.va, c.key, 5)
    c.peer.expect(Op.ATOMIC_ACK, psn, original=0)
    c.peer.cmp_swap(other, c.va, c.key, 10, 99)  # another operation with the PSN: the saved result
    c.peer.expect(Op.ATOMIC_ACK, other, original=5)
    assert c.mr.read(0, 8) == (10).to_bytes(8, 'little')


def test_duplicate_atomic_older_than_the_ring_is_dropped(connect):
    c = connect(max_dest_rd_atomic=2)
    psns = [c.next() for _ in range(3)]
    for i, psn in enumerate(psns):
        c.peer.fetch_add(psn, c.va, c.key, 1)
        c.peer.expect(Op.ATOMIC_ACK, psn, original=i)
    dropped(c, 'duplicate_atomic', lambda: c.peer.fetch_add(psns[0], c.va, c.key, 1))
    assert c.mr.read(0, 8) == (3).to_bytes(8, 'little')


def test_duplicate_across_the_psn_wrap(connect):
    c = connect(psn=0xffffff)
    c.peer.write_only(0xffffff, c.va, c.key, b'a')
    c.peer.expect_ack(0xffffff)
    c.peer.write_only(0, c.va, c.key, b'b')
    c.peer.expect_ack(0)
    c.peer.write_only(0xffffff, c.va, c.key, b'c')
    c.peer.expect_ack(0)
    assert c.mr.read(0, 1) == b'b'


def test_middle_of_a_message_again(connect):
    """A Send whose ACK was lost is repeated completely: one completion."""
    c = connect()
    c.post_buffer(4096)
    data = pattern(8, 3 * PMTU)
    psns = c.send(data)
    c.peer.expect_acked(psns[-1], msn=1)
    c.psn = psns[0]
    c.send(data)
    end = c.next()
    c.peer.write_only(end, 0, 0)
    while True:
        r = c.peer.expect(Op.ACK)
        if r.psn == end:
            break
        assert (r.psn, r.msn, r.syndrome >> 5) == (psns[-1], 1, 0)  # one ACK, or one per packet
    assert len(c.qp.poll(1)) == 1
    c.qp.expect_no_completion()
