# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Attacks on RC queue pairs: guessed keys and numbers, packets in somebody's name, lengths that
lie, repeated requests, exhaustion, changes of state under traffic. Bystanders go on."""

import random
import threading

import pytest

from bystanders import ECHO
from cmpeer import POLCA_IP, STATION_IP, Wire
from conn import PMTU, Conn, wait_until
from hca import Hca
from pattern import pattern
from roce import NAK_ACCESS, NAK_INVALID, NO_CREDITS, PSN_MASK, RNR, Op, Peer

REQUESTS = [Op.SEND_FIRST, Op.SEND_MIDDLE, Op.SEND_LAST, Op.SEND_ONLY, Op.WRITE_FIRST,
            Op.WRITE_MIDDLE, Op.WRITE_LAST, Op.WRITE_ONLY, Op.READ_REQUEST, Op.CMP_SWAP,
            Op.FETCH_ADD]
RESPONSES = [Op.READ_FIRST, Op.READ_MIDDLE, Op.READ_LAST, Op.READ_ONLY, Op.ACK, Op.ATOMIC_ACK]
NAKS = [0x60, 0x61, 0x62, 0x63, RNR]


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = Wire(kept, sockets, services=[dict(kind='echo', port=ECHO, size=1024)],
             security={'key_errors': 0}, sa={})
    try:
        w.polca.start()
        yield w
        w.audit(False)
    finally:
        w.close()


@pytest.fixture
def attacker(wire):
    """attacker(...): a queue pair whose peer does not keep the rules; see conn.Conn."""
    hca, made = Hca(wire.polca), []

    def make(**kw):
        made.append(Conn(hca, wire, **kw))
        return made[-1]
    yield make
    for c in made:
        c.close()
    hca.close()


def headers(op, c, key=None):
    """Extension headers that the opcode needs."""
    key = c.key if key is None else key
    kw = {}
    if op in (Op.WRITE_FIRST, Op.WRITE_ONLY, Op.READ_REQUEST):
        kw['reth'] = (c.va, key, 64)
    if op in (Op.CMP_SWAP, Op.FETCH_ADD):
        kw['atomic'] = (c.va, key, 1, 0)
    if op in (Op.READ_FIRST, Op.READ_LAST, Op.READ_ONLY, Op.ACK, Op.ATOMIC_ACK):
        kw['aeth'] = (NO_CREDITS, 1)
    if op == Op.ATOMIC_ACK:
        kw['original'] = 1
    return kw


# ---- numbers that nobody can guess

def test_neighbours_of_a_key_are_no_keys(bystanders, attacker):
    """Each wrong key is refused and moves no byte."""
    key = bystanders.conn.key
    with bystanders.unharmed():
        for guess in [key ^ 1 << bit for bit in range(32)] + [key + 1 & 0xffffffff, key - 1 & 0xffffffff]:
            c = attacker(length=64)
            psn = c.next()
            c.peer.write_only(psn, bystanders.conn.va, guess, b'guessed')
            c.peer.expect_nak(NAK_ACCESS, psn)


def test_numbers_follow_no_sequence(bystanders, wire):
    hca = Hca(wire.polca)
    try:
        cq = hca.cq()
        for numbers in ([hca.qp(cq=cq).qpn for _ in range(64)],
                        [hca.mr(64).key for _ in range(64)]):
            steps = [b - a for a, b in zip(numbers, numbers[1:])]
            assert len(set(steps)) >= 60, steps
    finally:
        hca.close()


def test_number_of_a_destroyed_queue_pair_is_not_given_again(wire):
    hca = Hca(wire.polca)
    try:
        cq, seen = hca.cq(), set()
        for _ in range(200):
            q = hca.qp(cq=cq)
            assert q.qpn not in seen
            seen.add(q.qpn)
            q.destroy()
    finally:
        hca.close()


# ---- packets in somebody's name

def test_forged_requests_outside_the_window(bystanders):
    """From the peer's own address to its queue pair, but the PSN is guessed: nothing is placed,
    nothing ends, and the peer goes on."""
    c, rng = bystanders.conn, random.Random(16)
    with bystanders.unharmed():
        for _ in range(1500):
            op = rng.choice(REQUESTS)
            psn = c.psn + rng.randrange(0x1000, PSN_MASK - 0x10000)
            payload = b'' if op in (Op.READ_REQUEST, Op.CMP_SWAP, Op.FETCH_ADD) else bytes(64)
            c.peer.tx(op, psn, payload, ackreq=rng.randrange(2), **headers(op, c, rng.getrandbits(32)))
        assert c.qp.state() == 'RTS'


@pytest.mark.parametrize('wrong', ['address', 'icrc', 'pkey', 'port'])
def test_forged_requests_with_the_right_psn(bystanders, wire, wrong):
    """Who knows all numbers, but sends from another address, or with another field wrong."""
    c = bystanders.conn
    with bystanders.unharmed():
        stranger = Peer(wire.station, 0x3ff0, STATION_IP, wire.polca_mac, POLCA_IP, c.qp.qpn)
        sender = stranger if wrong == 'address' else c.peer
        for op in REQUESTS:
            for psn in range(c.psn, c.psn + 4):
                payload = b'' if op in (Op.READ_REQUEST, Op.CMP_SWAP, Op.FETCH_ADD) else bytes(64)
                kw = {'icrc': dict(icrc_xor=1), 'pkey': dict(pkey=0x1234),
                      'port': dict(udp={'dport': 4792})}.get(wrong, {})
                sender.tx(op, psn, payload, ackreq=1, **headers(op, c), **kw)
        assert c.qp.state() == 'RTS'
        stranger.close()


def test_forged_answers(bystanders):
    """While a Write waits for its ACK: ACKs and NAKs of other PSNs, answers to Reads that nobody
    asked for, and CNPs. The Write completes by the peer's own ACK only."""
    c, rng = bystanders.conn, random.Random(17)
    with bystanders.unharmed():
        c.qp.post_send('write', wr_id=1, sg=[(c.mr, 0, 64)], remote_addr=0, rkey=5)
        r = c.peer.expect(Op.WRITE_ONLY, c.sq_psn)
        for _ in range(300):
            psn = r.psn + rng.randrange(1, 0x7fffff)
            op = rng.choice(RESPONSES)
            kw = headers(op, c)
            if op == Op.ACK:
                kw['aeth'] = (rng.choice(NAKS + [NO_CREDITS]), rng.getrandbits(24))
            payload = bytes(64) if op < Op.ACK else b''
            c.peer.tx(op, psn, payload, **kw)
        for _ in range(300):
            c.peer.tx(Op.CNP, 0, bytes(16))
        assert c.qp.state() == 'RTS'
        c.qp.expect_no_completion()
        c.peer.ack(r.psn, 1)
        wc, = c.qp.poll()
        assert (wc.wr_id, wc.status) == (1, 0)
        c.sq_psn += 1


# ---- lengths that lie

LENGTHS = {
    'the address wraps': dict(op=Op.WRITE_ONLY, va=(1 << 64) - 8, dlen=64, data=64),
    'more than two gigabytes': dict(op=Op.WRITE_FIRST, va=None, dlen=0x80000001, data=PMTU),
    'all ones': dict(op=Op.WRITE_FIRST, va=None, dlen=0xffffffff, data=PMTU),
    'a read that wraps': dict(op=Op.READ_REQUEST, va=(1 << 64) - 8, dlen=4096, data=0),
    'a read of more than there is': dict(op=Op.READ_REQUEST, va=None, dlen=0x7fffffff, data=0),
    'fewer bytes than said': dict(op=Op.WRITE_ONLY, va=None, dlen=65, data=64),
    'more bytes than said': dict(op=Op.WRITE_ONLY, va=None, dlen=63, data=64),
    'first is not a whole path MTU': dict(op=Op.WRITE_FIRST, va=None, dlen=4096, data=PMTU - 4),
    'only is more than one path MTU': dict(op=Op.WRITE_ONLY, va=None, dlen=PMTU + 4, data=PMTU + 4),
}


@pytest.mark.parametrize('name', LENGTHS)
def test_lengths_that_lie(bystanders, attacker, name):
    case = LENGTHS[name]
    c = attacker(length=4096)
    c.mr.write(0, pattern(1, 4096))
    with bystanders.unharmed():
        psn = c.next()
        va = c.va if case['va'] is None else case['va']
        c.peer.tx(case['op'], psn, bytes(case['data']), reth=(va, c.key, case['dlen']), ackreq=1)
        r = c.peer.expect(Op.ACK, psn)
        assert r.syndrome in (NAK_INVALID, NAK_ACCESS)
        assert c.mr.same(0, pattern(1, 4096))


def test_cut_at_every_byte(bystanders, attacker, wire):
    """The frame, and the packet within right IP and UDP headers: nothing is placed, and the PSN is
    still expected."""
    c = attacker(length=4096)
    c.mr.write(0, pattern(2, 4096))
    with bystanders.unharmed():
        whole = c.peer.build(Op.WRITE_ONLY, c.psn, b'\xff' * 64, reth=(c.va, c.key, 64), ackreq=1)
        for n in range(14, len(whole)):
            wire.station.send(whole[:n])
        transport = whole[14 + 20 + 8:-4]
        for n in range(12 + 16):
            c.peer.tx(Op.WRITE_ONLY, c.psn, l4=transport[:n])
        c.sync()
        assert c.mr.same(0, pattern(2, 4096))


# ---- the same again

def test_old_atomics_are_never_executed_again(bystanders, attacker):
    c = attacker(length=64, max_dest_rd_atomic=4)
    with bystanders.unharmed():
        psns = [c.next() for _ in range(8)]
        for psn in psns:
            c.peer.fetch_add(psn, c.va, c.key, 1)
            c.peer.expect(Op.ATOMIC_ACK, psn)
        for psn in psns * 20:
            c.peer.fetch_add(psn, c.va, c.key, 1)
        c.peer.fetch_add(c.next(), c.va, c.key, 0)
        wait_until(lambda: any(r.psn == psns[-1] + 1 and r.original == 8 for r in c.peer.drain()))
        assert c.mr.read(0, 8) == (8).to_bytes(8, 'little')


# ---- exhaustion

def test_reads_beyond_the_depth(bystanders, attacker):
    """More Reads at once than agreed end the queue pair that sent them, and no other."""
    c = attacker(length=1 << 20, max_dest_rd_atomic=2)
    with bystanders.unharmed(amplified=10 ** 4):  # a connected peer may read what it was given
        for _ in range(40):
            c.peer.read(c.next(1024), c.va, c.key, 1 << 20)
        wait_until(lambda: c.qp.state() == 'ERR')


def shared_receives(hca, mr, count):
    """A shared receive queue with as many receives."""
    n = hca.rpc('srq_create', pd=hca.pd, max_wr=2 * count)['srq']
    hca.mine['srq'].append(n)
    post_shared(hca, n, mr, count)
    return n


def post_shared(hca, n, mr, count):
    hca.rpc('srq_post', srq=n, wr=[
        {'wr_id': i, 'sg_list': [{'key': mr.key, 'offset': 64 * i, 'length': 64}]} for i in range(count)])


def test_peer_that_takes_every_shared_receive(bystanders, attacker):
    """Then it is told that none is ready, as are the queue pairs that share them; those of another
    queue go on, and so do these after the next receive is posted."""
    hca = attacker().hca
    mr = hca.mr(1024)
    emptied, other = shared_receives(hca, mr, 16), shared_receives(hca, mr, 16)
    greedy, neighbour = (attacker(qp={'srq': emptied}, min_rnr_timer=7) for _ in range(2))
    apart = attacker(qp={'srq': other})
    with bystanders.unharmed():
        for _ in range(16):
            psn = greedy.next()
            greedy.peer.send_only(psn, b'taken')
            greedy.peer.expect_ack(psn)
        for turn in range(16):
            for _ in range(20):
                greedy.peer.send_only(greedy.psn, b'more')
                greedy.peer.expect_nak(RNR + 7, greedy.psn)
            neighbour.peer.send_only(neighbour.psn, b'mine')
            neighbour.peer.expect_nak(RNR + 7, neighbour.psn)
            psn = apart.next()
            apart.peer.send_only(psn, b'apart %02d' % turn)
            apart.peer.expect_ack(psn)
        assert len(apart.qp.poll(16)) == 16
        bystanders.exchange()
        post_shared(hca, emptied, mr, 1)
        psn = neighbour.next()
        neighbour.peer.send_only(psn, b'at last')
        neighbour.peer.expect_ack(psn)
        assert len(neighbour.qp.poll(1)) == 1 and mr.read(0, 7) == b'at last'
        assert {c.qp.state() for c in (greedy, neighbour, apart)} == {'RTS'}


def test_messages_that_never_end(bystanders, attacker):
    """The First of a message on each of 100 queue pairs, and nothing more."""
    made = [attacker(length=4096) for _ in range(100)]
    with bystanders.unharmed():
        for c in made:
            c.post_buffer(4096)
            c.peer.tx(Op.SEND_FIRST, c.next(), bytes(PMTU), ackreq=1)
        for c in made:
            c.peer.expect_ack(None)


def test_bad_packets_do_not_fill_the_log(bystanders, wire):
    c, rng = bystanders.conn, random.Random(18)
    lines = bystanders.log_lines()
    with bystanders.unharmed():
        for _ in range(3000):
            frame = bytearray(c.peer.build(rng.choice(REQUESTS), rng.getrandbits(24), bytes(64),
                                           dqpn=rng.getrandbits(24)))
            for _ in range(rng.randrange(4)):
                frame[rng.randrange(12, len(frame))] = rng.getrandbits(8)
            wire.station.send(bytes(frame))
    assert bystanders.log_lines() - lines < 100


# ---- changes of state under traffic

def test_from_error_to_rts_again_and_again_under_traffic(bystanders, attacker):
    c = attacker(length=4096)
    attr = dict(dest_qp_num=c.peer.qpn, dgid='::ffff:' + STATION_IP, rq_psn=c.psn, sq_psn=c.sq_psn,
                path_mtu=PMTU)
    ending = threading.Event()

    def flood():
        psn = c.psn
        while not ending.is_set():
            for i in range(8):
                c.peer.write_only(psn + i, c.va, c.key, bytes(64))
                c.peer.read(psn + i, c.va, c.key, 2048)
            c.peer.drain()
    with bystanders.unharmed(amplified=50):  # it may read what it was given
        flooding = threading.Thread(target=flood)
        flooding.start()
        try:
            for _ in range(100):
                c.qp.modify(qp_state='ERR')
                c.qp.modify(qp_state='RESET')
                c.qp.connect(**attr)
        finally:
            ending.set()
            flooding.join()
