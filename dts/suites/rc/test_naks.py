# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca as responder: every NAK, and its effect on the queue pair (rc-transport 6, seed 001)."""

import pytest

from conn import PMTU, wait_until
from pattern import pattern
from roce import NAK_ACCESS, NAK_INVALID, NAK_OPERATIONAL, NAK_SEQUENCE, Op, RNR

FULL = bytes(PMTU)
REMOTE = ['remote_write', 'remote_read', 'remote_atomic']


def fatal(c, code, psn, event=None, recv=None):
    """A NAK that moves the QP to ERR: earlier requests are complete, ePSN does not move, all
    later packets are dropped.

    event: the affiliated asynchronous error, if no receive was used; recv: the receive's status
    otherwise.
    """
    c.peer.expect_naked(code, psn)
    wait_until(lambda: c.qp.state() == 'ERR')
    before = c.hca.verdicts()['qp_state']
    c.peer.write_only(psn, c.va, c.key, b'late')
    wait_until(lambda: c.hca.verdicts()['qp_state'] == before + 1)
    c.peer.expect_nothing()
    if event:
        assert (event, c.qp.qpn) in c.hca.events()
    if recv is not None:
        first = c.qp.poll()[0]
        assert (first.wr_id, first.status) == (0, recv)
        for wc in c.qp.poll(c.extra_receives):
            assert wc.status == 5, 'what was posted behind it is flushed'
    c.qp.expect_no_completion()


def send_prologue(c, n=1):
    """Receives wr_id 0 (64 KiB) and one more behind it."""
    c.post_buffer(4 * PMTU, wr_id=0, n=2)
    c.extra_receives = 1


# name: packets before the wrong one, then the wrong one
SEQUENCE = {
    'Send Middle without First': ([], (Op.SEND_MIDDLE, FULL)),
    'Send Last without First': ([], (Op.SEND_LAST, b'x')),
    'Write Middle without First': ([], (Op.WRITE_MIDDLE, FULL)),
    'Write Last without First': ([], (Op.WRITE_LAST, b'x')),
    'Write First inside a Write': (['wf'], (Op.WRITE_FIRST, FULL)),
    'Write Only inside a Write': (['wf'], (Op.WRITE_ONLY, b'x')),
    'Send Middle inside a Write': (['wf'], (Op.SEND_MIDDLE, FULL)),
    'Send Only inside a Write': (['wf'], (Op.SEND_ONLY, b'x')),
    'Atomic inside a Write': (['wf'], (Op.FETCH_ADD, b'')),
    'Read inside a Write': (['wf'], (Op.READ_REQUEST, b'')),
}


def request(c, op, payload, **kw):
    if op in (Op.WRITE_FIRST, Op.WRITE_ONLY, Op.WRITE_ONLY_IMM, Op.READ_REQUEST):
        kw.setdefault('reth', (c.va, c.key, 4 * PMTU if op == Op.WRITE_FIRST else
                               8 if op == Op.READ_REQUEST else len(payload)))
    if op in (Op.CMP_SWAP, Op.FETCH_ADD):
        kw.setdefault('atomic', (c.va, c.key, 1, 0))
    kw.setdefault('ackreq', 1)
    psn = c.next()
    c.peer.tx(op, psn, payload, **kw)
    return psn


@pytest.mark.parametrize('name', SEQUENCE)
def test_wrong_opcode_sequence(connect, name):
    before, (op, payload) = SEQUENCE[name]
    c = connect()
    for _ in before:
        request(c, Op.WRITE_FIRST, FULL, ackreq=0)
    psn = request(c, op, payload)
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')


@pytest.mark.parametrize('op,payload', [(Op.SEND_FIRST, FULL), (Op.SEND_ONLY, b'x'),
                                        (Op.WRITE_MIDDLE, FULL), (Op.WRITE_ONLY, b'x'),
                                        (Op.READ_REQUEST, b''), (Op.FETCH_ADD, b'')])
def test_wrong_opcode_inside_a_send(connect, op, payload):
    """The receive that the Send has begun completes in error; a request without a receive raises
    an event."""
    c = connect()
    send_prologue(c)
    request(c, Op.SEND_FIRST, FULL, ackreq=0)
    psn = request(c, op, payload)
    c.peer.expect_naked(NAK_INVALID, psn)
    wait_until(lambda: c.qp.state() == 'ERR')
    assert all(wc.status for wc in c.qp.poll(2))
    c.qp.expect_no_completion()
    event = ('QP_REQ_ERR', c.qp.qpn) in c.hca.events()
    assert event == (op not in (Op.SEND_FIRST, Op.SEND_ONLY))


@pytest.mark.parametrize('op', [0x15, 0x18, 0x1b, 0x1e, 0x1f])
def test_reserved_opcode(connect, op):
    c = connect()
    psn = request(c, op, b'')
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')


@pytest.mark.parametrize('op,flag', [(Op.WRITE_ONLY, 'remote_write'),
                                     (Op.READ_REQUEST, 'remote_read'),
                                     (Op.FETCH_ADD, 'remote_atomic'),
                                     (Op.CMP_SWAP, 'remote_atomic')])
def test_operation_not_enabled_on_the_qp(connect, op, flag):
    c = connect(qp_access_flags=[f for f in REMOTE if f != flag])
    psn = request(c, op, b'x' if op == Op.WRITE_ONLY else b'')
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')
    assert c.mr.read(0, 8) == bytes(8)


@pytest.mark.parametrize('op', [Op.READ_REQUEST, Op.FETCH_ADD])
def test_no_room_for_reads_and_atomics(connect, op):
    c = connect(max_dest_rd_atomic=0)
    psn = request(c, op, b'')
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')


@pytest.mark.parametrize('size,kw', [(PMTU - 4, {}), (PMTU + 4, {}), (0, {}),
                                     (PMTU - 1, dict(pad=1)), (PMTU, dict(pad=3))],
                         ids=['short', 'long', 'empty', 'padded', 'full and padded'])
@pytest.mark.parametrize('place', ['First', 'Middle'])
def test_write_packets_but_the_last_are_one_pmtu(connect, place, size, kw):
    c = connect()
    if place == 'First':
        psn = request(c, Op.WRITE_FIRST, pattern(1, size), **kw)
    else:
        request(c, Op.WRITE_FIRST, FULL, ackreq=0)
        psn = request(c, Op.WRITE_MIDDLE, pattern(1, size), **kw)
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')
    assert c.mr.read(0, 2 * PMTU) == bytes(2 * PMTU)


@pytest.mark.parametrize('size,kw', [(PMTU - 4, {}), (PMTU + 4, {}), (PMTU - 1, dict(pad=1)),
                                     (PMTU, dict(pad=1))],
                         ids=['short', 'long', 'padded', 'full and padded'])
def test_send_first_is_one_pmtu(connect, size, kw):
    c = connect()
    send_prologue(c)
    psn = request(c, Op.SEND_FIRST, pattern(1, size), **kw)
    c.peer.expect_nak(NAK_INVALID, psn)
    wait_until(lambda: c.qp.state() == 'ERR')
    assert all(wc.status for wc in c.qp.poll(2))


def test_only_longer_than_pmtu(connect):
    c = connect()
    psn = request(c, Op.WRITE_ONLY, bytes([1]) * (PMTU + 4))
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')
    assert c.mr.read(0, 2 * PMTU) == bytes(2 * PMTU)


def test_last_without_bytes(connect):
    c = connect()
    request(c, Op.WRITE_FIRST, FULL, ackreq=0, reth=(c.va, c.key, PMTU + 4))
    psn = request(c, Op.WRITE_LAST, b'')
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')


@pytest.mark.parametrize('packets', [1, 3])
def test_send_longer_than_the_receive(connect, packets):
    """NAK 0x61 to the peer, Local Length Error at the receiver (table 17-5)."""
    c = connect()
    c.qp.post_recv(wr_id=0, sg=[(c.mr, 0, (packets - 1) * PMTU + 16)])
    c.qp.post_recv(wr_id=1, sg=[(c.mr, 8192, 64)])
    c.extra_receives = 1
    psns = c.send(pattern(4, (packets - 1) * PMTU + 17))
    fatal(c, NAK_INVALID, psns[-1], recv=1)
    assert c.mr.read((packets - 1) * PMTU + 16, 16) == bytes(16)


@pytest.mark.parametrize('dlen', [2**31 + 1, 2**32 - 1])
def test_dma_length_beyond_two_gigabytes(connect, dlen):
    c = connect()
    psn = c.next()
    c.peer.read(psn, c.va, c.key, dlen)
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')
    c = connect()
    psn = request(c, Op.WRITE_FIRST, FULL, reth=(c.va, c.key, dlen))
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')


@pytest.mark.parametrize('dlen', [7, 9])
def test_write_only_of_another_length_than_said(connect, dlen):
    c = connect()
    psn = request(c, Op.WRITE_ONLY, bytes([1]) * 8, reth=(c.va, c.key, dlen))
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')
    assert c.mr.read(8, 8) == bytes(8)


@pytest.mark.parametrize('last', [7, 9])
def test_write_message_of_another_length_than_said(connect, last):
    c = connect()
    request(c, Op.WRITE_FIRST, FULL, ackreq=0, reth=(c.va, c.key, PMTU + 8))
    psn = request(c, Op.WRITE_LAST, bytes([1]) * last)
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')
    assert c.mr.read(PMTU + 8, 8) == bytes(8)


@pytest.mark.parametrize('op', [Op.CMP_SWAP, Op.FETCH_ADD])
@pytest.mark.parametrize('off', [1, 4])
def test_unaligned_atomic(connect, op, off):
    c = connect()
    psn = request(c, op, b'', atomic=(c.va + off, c.key, 1, 0))
    fatal(c, NAK_INVALID, psn, event='QP_REQ_ERR')
    assert c.mr.read(0, 16) == bytes(16)


# ---- remote access errors

ACCESS = {
    'unknown key': lambda c: dict(key=c.key ^ 0x5a5a5a5a),
    'wrong low byte of the key': lambda c: dict(key=c.key ^ 1),
    'beyond the end': lambda c: dict(va=c.va + 65536 - 7),
    'behind the end': lambda c: dict(va=c.va + 65536),
    'below the start': lambda c: dict(va=c.va - 8),
    'wraps 2^64': lambda c: dict(va=2**64 - 4),
}


@pytest.mark.parametrize('op', [Op.WRITE_ONLY, Op.READ_REQUEST])
@pytest.mark.parametrize('name', ACCESS)
def test_outside_the_region(connect, name, op):
    c = connect()
    bad = ACCESS[name](c)
    reth = (bad.get('va', c.va), bad.get('key', c.key), 8)
    psn = request(c, op, bytes([1]) * 8 if op == Op.WRITE_ONLY else b'', reth=reth)
    fatal(c, NAK_ACCESS, psn, event='QP_ACCESS_ERR')
    assert c.mr.read(0, 65536) == bytes(65536)


@pytest.mark.parametrize('name', ['unknown key', 'behind the end', 'below the start'])
def test_atomic_outside_the_region(connect, name):
    c = connect()
    bad = ACCESS[name](c)
    psn = request(c, Op.FETCH_ADD, b'', atomic=(bad.get('va', c.va), bad.get('key', c.key), 1))
    fatal(c, NAK_ACCESS, psn, event='QP_ACCESS_ERR')


@pytest.mark.parametrize('op,flag', [(Op.WRITE_ONLY, 'remote_write'),
                                     (Op.READ_REQUEST, 'remote_read'),
                                     (Op.FETCH_ADD, 'remote_atomic')])
def test_right_not_granted_by_the_region(connect, op, flag):
    c = connect(mr_access=['local_write'] + [f for f in REMOTE if f != flag])
    psn = request(c, op, b'x' if op == Op.WRITE_ONLY else b'')
    fatal(c, NAK_ACCESS, psn, event='QP_ACCESS_ERR')
    assert c.mr.read(0, 8) == bytes(8)


def test_region_of_another_domain(connect, hca):
    c = connect()
    other = hca.mr(4096, pd=hca.new_pd())
    psn = c.next()
    c.peer.write_only(psn, other.va, other.key, b'x')
    fatal(c, NAK_ACCESS, psn, event='QP_ACCESS_ERR')
    assert other.read(0, 8) == bytes(8)


def test_region_deregistered(connect, hca):
    c = connect()
    other = hca.mr(4096)
    psn = c.next()
    c.peer.write_only(psn, other.va, other.key, b'x')
    c.peer.expect_ack(psn)
    other.deregister()
    psn = c.next()
    c.peer.write_only(psn, other.va, other.key, b'y')
    fatal(c, NAK_ACCESS, psn, event='QP_ACCESS_ERR')


def test_region_deregistered_between_two_packets_of_a_write(connect, hca):
    c = connect()
    other = hca.mr(4096)
    c.peer.tx(Op.WRITE_FIRST, c.next(), FULL, reth=(other.va, other.key, 2 * PMTU), ackreq=1)
    c.peer.expect_ack(c.psn - 1)
    other.deregister()
    psn = c.next()
    c.peer.tx(Op.WRITE_LAST, psn, FULL, ackreq=1)
    c.peer.expect_naked(NAK_ACCESS, psn)


def test_write_with_immediate_and_a_bad_key(connect):
    """It uses a receive, so the receive completes with Remote Access Error (table 17-5)."""
    c = connect()
    send_prologue(c)
    psn = c.next()
    c.peer.tx(Op.WRITE_ONLY_IMM, psn, b'x', reth=(c.va, c.key ^ 0x100, 1), imm=1, ackreq=1)
    fatal(c, NAK_ACCESS, psn, recv=10)


# ---- remote operational errors

def test_receive_into_a_region_that_is_gone(connect, hca):
    """A malformed receive is the responder's own fault: NAK 0x63, QP operation error."""
    c = connect()
    other = hca.mr(4096)
    c.qp.post_recv(wr_id=0, sg=[(other, 0, 64)])
    c.post_buffer(64, wr_id=1)
    c.extra_receives = 1
    other.deregister()
    psn = c.next()
    c.peer.send_only(psn, b'x')
    fatal(c, NAK_OPERATIONAL, psn, recv=2)


def test_operational_error_flushes_the_send_queue_too(connect, hca):
    c = connect()
    other = hca.mr(4096)
    c.qp.post_recv(wr_id=0, sg=[(other, 0, 64)])
    other.deregister()
    c.qp.post_send('write', wr_id=50, sg=[(c.mr, 0, 8)], remote_addr=0x1000, rkey=1)
    c.peer.expect(Op.WRITE_ONLY, c.sq_psn)  # which stays unanswered
    psn = c.next()
    c.peer.send_only(psn, b'x')
    c.peer.expect_nak(NAK_OPERATIONAL, psn)
    assert {(wc.wr_id, wc.status) for wc in c.qp.poll(2)} == {(0, 2), (50, 5)}


# ---- NAKs that may be retried

def test_one_sequence_nak_until_epsn(connect):
    """seed 001: after a sequence NAK only ePSN is answered, duplicates excepted."""
    c = connect()
    done = c.next()
    c.peer.write_only(done, c.va, c.key, b'1')
    c.peer.expect_ack(done, msn=1)
    missing, later = c.next(), [c.next() for _ in range(3)]
    before = c.hca.verdicts()['out_of_sequence']
    for psn in later:
        c.peer.write_only(psn, c.va + 8, c.key, b'x')
    c.peer.expect_nak(NAK_SEQUENCE, missing, msn=1)
    c.peer.write_only(done, c.va, c.key, b'2')  # a duplicate is served in the meantime
    c.peer.expect_ack(done)
    assert c.hca.verdicts()['out_of_sequence'] - before == 2
    c.peer.write_only(missing, c.va, c.key, b'3')
    c.peer.expect_ack(missing, msn=2)
    assert c.mr.read(0, 1) == b'3' and c.mr.read(8, 1) == b'\0'
    for i, psn in enumerate(later):
        c.peer.write_only(psn, c.va + 8, c.key, b'x')
        c.peer.expect_ack(psn, msn=3 + i)
    assert c.qp.state() == 'RTS'


def test_sequence_nak_comes_behind_the_answers_before_it(connect):
    c = connect()
    c.mr.write(0, pattern(1, 2 * PMTU))
    psn = c.next(2)
    c.peer.read(psn, c.va, c.key, 2 * PMTU)
    hole, late = c.next(), c.next()
    c.peer.write_only(late, c.va, c.key, b'x')
    assert c.read_answer(psn, 2 * PMTU) == pattern(1, 2 * PMTU)
    c.peer.expect_nak(NAK_SEQUENCE, hole)


@pytest.mark.parametrize('code', [1, 12, 0, 31])
def test_rnr_nak_carries_the_qps_timer(connect, code):
    c = connect(min_rnr_timer=code)
    psn = c.next()
    c.peer.send_only(psn, b'early')
    c.peer.expect_nak(RNR + code, psn, msn=0)
    later = c.next()
    before = c.hca.verdicts()['rnr_wait']
    c.peer.send_only(later, b'later')  # no 0x60 until psn is seen again
    wait_until(lambda: c.hca.verdicts()['rnr_wait'] == before + 1)
    c.post_buffer(64, n=2)
    c.peer.send_only(psn, b'early')
    c.peer.expect_ack(psn, msn=1)
    c.peer.send_only(later, b'later')
    c.peer.expect_ack(later, msn=2)
    assert c.mr.read(0, 5) == b'early' and c.mr.read(64, 5) == b'later'


@pytest.mark.parametrize('op', [Op.SEND_ONLY_IMM, Op.WRITE_ONLY_IMM, Op.SEND_FIRST])
def test_rnr_for_everything_that_takes_a_receive(connect, op):
    c = connect(min_rnr_timer=5)
    kw = {'imm': 3} if op != Op.SEND_FIRST else {}
    if op == Op.WRITE_ONLY_IMM:
        kw['reth'] = (c.va, c.key, PMTU)
    psn = c.next()
    c.peer.tx(op, psn, FULL, ackreq=1, **kw)
    c.peer.expect_nak(RNR + 5, psn)
    wait_until(lambda: ('RQ_EMPTY', c.qp.qpn) in c.hca.events())
    assert c.qp.state() == 'RTS'


def test_a_write_needs_no_receive(connect):
    c = connect()
    psn = c.next()
    c.peer.write_only(psn, c.va, c.key, b'x')
    c.peer.expect_ack(psn)
