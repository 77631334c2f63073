# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Reaction to congestion notification packets with `congestion.dcqcn` on
(docs/spec/congestion.md).

The timers never expire and the rates are low: only CNPs and sent bytes have an effect, and the
distances between packets are measurable on any machine. Tests only assert lower bounds of time."""

import time

import pytest

from conn import PMTU, wait_until
from roce import Op

MAX_RATE, BYTE_COUNTER, RATE_AI, NEVER = 1000, 65536, 200, 1000000000
WIRE = dict(config={'congestion': {
    'dcqcn': True, 'max_rate': MAX_RATE, 'min_rate': 1, 'alpha_timer': NEVER,
    'increase_timer': NEVER, 'byte_counter': BYTE_COUNTER, 'rate_ai': RATE_AI}})
ON_THE_WIRE = PMTU + 64  # section 4: what a full packet counts for
PATIENCE = 16384
ECT0 = 2


def rate(c):
    """The queue pair's rate limit in kbit/s; None: not limited."""
    shown = c.qp.show().get('rate_limit')
    row, = [q for q in c.hca.rpc('qp_list')['qps'] if q['qp_num'] == c.qp.qpn]
    assert (row.get('rate_limit') is None) == (shown is None)
    return shown


def notify(c, n=1):
    """n CNPs, each with its own effect."""
    for _ in range(n):
        before = c.qp.counters()['rp_cnp_handled']
        c.peer.tx(Op.CNP, 0, bytes(16), becn=1)
        wait_until(lambda: c.qp.counters()['rp_cnp_handled'] == before + 1)


def post_write(c, packets):
    c.qp.post_send('write', sg=[(c.mr, 0, packets * PMTU)], remote_addr=0x1000, rkey=1)


def take(c, packets, msn):
    """The packets of a Write, and its ACK."""
    got = c.requests(packets)
    assert [r.psn for r in got] == [c.sq_psn + i for i in range(packets)]
    c.sq_psn += packets
    c.peer.ack(c.sq_psn - 1, msn)
    assert c.qp.poll()[0].status == 0
    return got


@pytest.mark.parametrize('ipv6', [False, True])
def test_all_packets_are_ecn_capable(connect, ipv6):
    """Section 1: ECT(0), requests and answers."""
    c = connect(ipv6=ipv6)
    post_write(c, 2)
    assert [r.tclass & 3 for r in take(c, 2, 1)] == [ECT0, ECT0]
    assert c.sync().tclass & 3 == ECT0


def test_cnps_halve_the_rate(connect):
    """Section 2: the first CNP finds alpha 1, and so do those that follow at once."""
    c = connect()
    assert rate(c) is None
    for want in (500000, 250000, 125000, 62500):
        notify(c)
        assert rate(c) == want
    k = c.qp.counters()
    assert (k['rp_cnp_handled'], k['rp_cnp_ignored']) == (4, 0)
    other = connect()
    assert rate(other) is None  # other queue pairs are not affected


@pytest.mark.parametrize('who', ['requests', 'responses'])
def test_packets_keep_their_distance(connect, who):
    """Section 4: 200 packets at 4 Mbit/s, at most 8 at once as the byte counter expires, minus
    what a late packet may catch up. Without a rate limit they take no time."""
    packets = 200
    c = connect(length=packets * PMTU)
    notify(c, 8)
    assert rate(c) == 3906
    begin = time.monotonic()
    if who == 'requests':
        post_write(c, packets)
        take(c, packets, 1)
    else:
        psn = c.next(packets)
        c.peer.read(psn, c.va, c.key, packets * PMTU)
        c.read_answer(psn, packets * PMTU, timeout=30)
    least = (packets * ON_THE_WIRE - PATIENCE) * 8 / 8e6
    assert time.monotonic() - begin >= least
    assert c.qp.counters()['rp_rate_limited'] > 0


def test_acks_do_not_wait(connect):
    """Section 4: at 1 Mbit/s, a hundred ACKs would take 100 * 64 bytes: they are not counted."""
    c = connect()
    notify(c, 10)
    for _ in range(100):
        c.sync()
    assert c.qp.counters()['rp_rate_limited'] == 0


def test_rate_recovers_with_the_bytes_sent(connect):
    """Section 3.2: each time the byte counter expires, and only then, the rate recovers half of
    the way; 3.3: at the end it is not limited, and starts anew."""
    c = connect(length=128 * PMTU)
    notify(c, 2)
    assert rate(c) == 250000  # R_T is 500000
    before = BYTE_COUNTER // ON_THE_WIRE
    post_write(c, before)
    take(c, before, 1)
    assert rate(c) == 250000
    post_write(c, 1)
    take(c, 1, 2)
    assert rate(c) == 375000
    msn = 3
    while rate(c) is not None:
        was = rate(c)
        post_write(c, 128)
        take(c, 128, msn)
        msn += 1
        assert msn < 40 and (rate(c) is None or rate(c) > was)
    notify(c)
    assert rate(c) == 500000


def test_only_the_peer_is_heard(connect):
    """Section 2: a CNP counts if its address, ICRC and P_Key are right and the queue pair
    exists."""
    c = connect()
    before = c.hca.verdicts()
    cnp = dict(op=Op.CNP, psn=0, payload=bytes(16), becn=1)
    for frame in (c.peer.build(**cnp, ip={'src': '10.77.0.99'}), c.peer.build(**cnp, icrc_xor=1),
                  c.peer.build(**cnp, pkey=0x1234)):
        c.station.send(frame)
    c.sync()
    after = c.hca.verdicts()
    assert {k: after[k] - before[k] for k in ('address', 'icrc', 'pkey_violation', 'cnp')} == {
        'address': 1, 'icrc': 1, 'pkey_violation': 1, 'cnp': 0}
    assert rate(c) is None


def test_marked_packets_are_answered_with_cnps(connect):
    """Section 2: a marked packet is executed like any other, and the CNPs for the peer are
    counted; their rate is limited."""
    c = connect()
    for i in range(20):
        c.peer.write_only(c.next(), c.va + i, c.key, b'%c' % (65 + i), ip={'tos': 3})
    got = []
    while not got or got[-1].op != Op.ACK or got[-1].psn != c.psn - 1:
        got.append(c.peer.rx())
    k = c.qp.counters()
    cnps = sum(r.op == Op.CNP for r in got + c.peer.drain())
    assert c.mr.read(0, 20) == b'ABCDEFGHIJKLMNOPQRST'
    assert k['np_ecn_marked_roce_packets'] == 20
    assert 1 <= cnps == k['np_cnp_sent'] <= 20
    assert rate(c) is None  # the peer must slow down, not this side
