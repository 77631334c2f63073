# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Datagrams that are dropped, each for exactly one reason, and classes that Polca does not
support."""

import pytest

import mad
import sapeer
from mad import Mad, NODE, v1, v2
from roce import Op

from sawire import SM_KEY

DATABASE = 10


def get(version=2, **fields):
    if version == 1:
        return v1(mad.GET, NODE.attr, tid=sapeer.new_tid(), modifier=1 << 16, sm_key=SM_KEY,
                  **fields)
    return v2(mad.GET, NODE.attr, NODE.put(lid=1), tid=sapeer.new_tid(), mask=NODE.mask('lid'),
              sm_key=SM_KEY, **fields)


def dropped(gsi, verdicts, reason, send):
    """One datagram, no answer, one reason; the next one is served."""
    send()
    a = gsi.ask(get())
    assert a.status == 0
    assert verdicts.grown() == {reason: 1, 'datagram': 1}
    gsi.expect_nothing()


@pytest.fixture(autouse=True)
def known(gsi):
    """Polca has answered the station before, so no ARP is needed."""
    assert gsi.ask(get()).status == 0


@pytest.fixture
def verdicts(known, wire):
    from sawire import Delta
    return Delta(wire.verdicts)


@pytest.mark.parametrize('qkey', [0, 0x80010001, 0x00010000, 0x11111111])
def test_wrong_q_key(gsi, verdicts, qkey):
    dropped(gsi, verdicts, 'qkey_violation', lambda: gsi.tx(get(), qkey=qkey))


@pytest.mark.parametrize('pkey', [0x1234, 0x8001, 0x0000])
def test_wrong_p_key(gsi, verdicts, pkey):
    dropped(gsi, verdicts, 'pkey_violation', lambda: gsi.tx(get(), pkey=pkey))


def test_limited_member_of_the_partition_is_served(gsi):
    gsi.tx(get(), pkey=0x7fff)
    a = gsi.rx()
    assert a.status == 0 and a.packet.bth.pkey & 0x7fff == 0x7fff


@pytest.mark.parametrize('length', [0, 4, 24, 252, 260, 512])
def test_not_256_bytes(gsi, verdicts, length):
    m = (bytes(get()) + bytes(512))[:length]
    dropped(gsi, verdicts, 'mad_length', lambda: gsi.tx(m))


@pytest.mark.parametrize('version', [0, 2, 255])
def test_base_version(gsi, verdicts, version):
    dropped(gsi, verdicts, 'mad_version', lambda: gsi.tx(get(base_version=version)))


@pytest.mark.parametrize('version', [1, 2])
def test_response_of_no_transaction(gsi, verdicts, version):
    dropped(gsi, verdicts, 'mad_unmatched', lambda: gsi.tx(get(version).but(method=mad.GET_RESP)))


def test_control_packets_of_no_session(gsi, verdicts):
    """Version 1: Ack and KeepAlive, of a table and of a Config."""
    for flags in (mad.ACK, mad.KEEPALIVE):
        for method in (mad.TABLE, mad.CONFIG):
            gsi.tx(v1(method, NODE.attr, tid=sapeer.new_tid(), segment=3, flags=flags))
    assert gsi.ask(get()).status == 0
    assert verdicts.grown() == {'mad_unmatched': 4, 'datagram': 1}


def test_resend_of_no_session(gsi, verdicts):
    """The requested session no longer exists (seed 000): 0x001C."""
    for method in (mad.TABLE, mad.CONFIG):
        q = v1(method, NODE.attr, tid=sapeer.new_tid(), segment=3, flags=mad.RESEND)
        a = gsi.ask(q)
        assert (a.tid, a.status) == (q.tid, mad.INVALID), a
    assert verdicts.grown() == {'mad_unmatched': 2}


def test_middle_of_a_config_that_never_began(gsi, verdicts):
    """Its First is requested."""
    gsi.tx(v1(mad.CONFIG, NODE.attr, tid=sapeer.new_tid(), segment=7, sm_key=SM_KEY))
    gsi.expect(flags=mad.RESEND, segment=1)


def test_damaged(gsi, verdicts):
    dropped(gsi, verdicts, 'icrc', lambda: gsi.tx(get(), icrc_xor=1))


def test_rc_opcode_on_qp1(gsi, verdicts):
    dropped(gsi, verdicts, 'qp_type', lambda: gsi.peer.tx(Op.SEND_ONLY, 1, bytes(get())))


@pytest.mark.parametrize('number', [0, 2, 77])
def test_other_queue_pairs_know_no_mads(gsi, verdicts, number):
    gsi.tx(get(), dqpn=number)
    assert gsi.ask(get()).status == 0
    grown = verdicts.grown()
    assert grown.pop('datagram') == 1 and sum(grown.values()) == 1, grown


@pytest.mark.parametrize('cls,version', [(0x03, 0), (0x03, 3), (0x03, 255), (0x09, 1), (0x0f, 1),
                                         (0x30, 1)])
def test_unknown_class_or_version_is_answered(gsi, counted, cls, version):
    """B2: 0x0004, in the received header."""
    q = get().but(mgmt_class=cls, class_version=version)
    gsi.tx(q)
    a = gsi.rx()
    assert (a.status, a.method, a.tid) == (mad.WRONG_VERSION, mad.GET_RESP, q.tid)
    assert (a.mgmt_class, a.class_version) == (cls, version)
    assert counted['bad_version'] == 1


def test_unknown_class_of_a_response_is_not_answered(gsi, verdicts):
    dropped(gsi, verdicts, 'mad_unmatched',
            lambda: gsi.tx(get().but(mgmt_class=0x0f, method=mad.GET_RESP)))


@pytest.mark.parametrize('method', [0x05, 0x07])
def test_traps_are_not_answered_with_a_loop(gsi, method):
    """Trap and TrapRepress get no answer, which could be answered in turn."""
    gsi.tx(get().but(method=method))
    m = gsi.maybe(0.2)
    assert m is None or m.status == mad.NO_METHOD


def test_answer_comes_from_qp1_to_the_queue_pair_that_asked(gsi):
    a = gsi.ask(get())
    assert a.packet.sqpn == 1 and a.packet.qpn == gsi.qpn and a.packet.src == gsi.peer.remote_ip


def test_garbage(wire, gsi):
    """Random bytes with a right Q_Key: every packet has one verdict, and Polca survives."""
    import random
    rnd = random.Random(3)
    before = wire.verdicts()
    n = 2000
    for _ in range(n):
        m = Mad(rnd.randbytes(256))
        m.raw[0:3] = bytes((1, 3, rnd.choice((1, 2))))
        m.raw[3] = rnd.choice((1, 2, 0x12, 0x13, 0x14, 0x92, 0x94, 0x81, 0x15, 6, 0x10))
        m.raw[24:28] = bytes((rnd.choice((0, 1)), rnd.randrange(6), rnd.randrange(256), 0))
        m.raw[48] = rnd.choice((0, 0x80, 0x20, 0xa0, 0x10, 4, 1))
        gsi.tx(m)
        if rnd.random() < .1:
            gsi.drain()
    gsi.ask_until_served(get)
    after = wire.verdicts()
    assert sum(after.values()) - sum(before.values()) >= n
