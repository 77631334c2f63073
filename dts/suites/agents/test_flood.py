# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""SMPs while the port is flooded with data and with QP1 datagrams (seed 004: VL15 has its own
buffers)."""

import signal

from ibports import STATIC
from smp import GET, lid_routed, live, NODE_DESC, Smp

CONFIG = dict(ib=STATIC, live=dict(rate=0))
TURNS = 24  # the kernel's receive ring, framecnt, has room for them
DATA, ECHOES = 16, 48  # of a turn
SEND_ONLY = 0x04
FIRST_QP = 0x1000  # where the answer to the first echo goes


def echoes(station, first, num):
    """Echo requests of ever new sources."""
    for i in range(first, first + num):
        station.tx(live(1), qpn=1, sqp=FIRST_QP + i)


def flood(station):
    """@return TIDs of the SMPs in it."""
    tids = []
    for turn in range(TURNS):
        for i in range(DATA):  # of queue pairs that are not there
            station.tx(bytes(256), qpn=0x4000 + i, opcode=SEND_ONLY)
        echoes(station, turn * ECHOES, ECHOES // 2)
        smp = lid_routed(GET, NODE_DESC)
        tids.append(Smp(smp).tid)
        station.tx(smp)
        echoes(station, turn * ECHOES + ECHOES // 2, ECHOES // 2)
    return tids


def test_smps_pass_a_flood(station, polca, verdict):
    """Polca sleeps while the flood arrives, so that it has all of it at one time. All SMPs are
    answered, before echoes that were asked for earlier: one worker's other answers keep their
    order."""
    polca.proc.send_signal(signal.SIGSTOP)
    smps = flood(station)
    polca.proc.send_signal(signal.SIGCONT)
    got = [station.rx() for _ in range(TURNS * (ECHOES + 1))]
    assert [p.smp.tid for p in got if p.dqp == 0] == smps
    assert [p.dqp for p in got if p.dqp] == [FIRST_QP + i for i in range(TURNS * ECHOES)]
    before = [sum(1 for p in got[:i] if p.dqp) for i, p in enumerate(got) if p.dqp == 0]
    overtaken = [turn * ECHOES + ECHOES // 2 - n for turn, n in enumerate(before)]
    assert min(overtaken) >= 0 and sum(overtaken) >= TURNS, overtaken
    assert (verdict['datagram'], verdict['vl15_dropped']) == (TURNS * (ECHOES + 1), 0)
