# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Failing wires: links down, garbage, kernels that answer for Polca, objects destroyed under
traffic."""

import random

from conn import Conn, PMTU, wait_until
from pattern import pattern
from roce import NO_CREDITS, Op


def quiet_burst(w, h, frames, batch=100):
    """Send the frames so that none is lost on the way; when this returns, all have a verdict."""
    def seen():
        return h.port_stats()['rx_packets']
    start, sent = seen(), 0
    for f in frames:
        w.station.send(f)
        sent += 1
        if sent % batch == 0:
            wait_until(lambda: seen() >= start + sent)
    wait_until(lambda: seen() >= start + sent)
    row = h.port_stats()
    assert sum(row['served'].values()) + sum(row['dropped'].values()) == row['rx_packets']


def works(c):
    psns = c.write(pattern(77, 3 * PMTU), off=4096)
    c.peer.expect_acked(psns[-1])
    assert c.mr.read(4096, 3 * PMTU) == pattern(77, 3 * PMTU)


def test_link_down_and_up(bench):
    """Events report it, and retries carry the traffic over it."""
    with bench('net_tap0,iface=pt0', ('pt0', 'pt0')) as w:
        w.start()
        h = w.hca()
        c = Conn(h, w, timeout=18)
        works(c)
        h.events()
        w.ns.ip('link', 'set', 'pt0', 'down')
        wait_until(lambda: ('PORT_ERR', 0) in h.events())
        assert h.rpc('port_list')['ports'][0]['state'] == 'DOWN'
        c.qp.post_send('write', wr_id=1, sg=[(c.mr, 0, 8)], remote_addr=0, rkey=1)
        w.ns.ip('link', 'set', 'pt0', 'up')
        wait_until(lambda: ('PORT_ACTIVE', 0) in h.events())
        assert h.rpc('port_list')['ports'][0]['state'] == 'ACTIVE'
        r = c.peer.expect(Op.WRITE_ONLY, c.sq_psn, timeout=20)
        c.peer.ack(r.psn, 1)
        assert c.qp.poll()[0].status == 0
        works(c)
        w.polca.stop()


def test_carrier_lost_and_found_on_af_packet(bench):
    with bench() as w:
        w.start()
        c = Conn(w.hca(), w, timeout=18)
        works(c)
        w.ns.ip('link', 'set', 'st0', 'down')
        c.qp.post_send('write', wr_id=1, sg=[(c.mr, 0, 8)], remote_addr=0, rkey=1)
        w.ns.ip('link', 'set', 'st0', 'up')
        r = c.peer.expect(Op.WRITE_ONLY, c.sq_psn, timeout=20)
        c.peer.ack(r.psn, 1)
        assert c.qp.poll()[0].status == 0
        c.peer.drain()  # repeated packets that were under way
        works(c)
        w.polca.stop()


def test_garbage(bench):
    """Random octets, and good packets with some of their octets changed, cut or repeated."""
    # a tap delivers everything; between veth and AF_PACKET the kernel drops some packets
    with bench('net_tap0,iface=pt0', ('pt0', 'pt0')) as w:
        w.start()
        h = w.hca()
        c = Conn(h, w)
        works(c)
        guard = h.mr(65536)
        rng = random.Random(4791)

        def junk():
            for _ in range(1500):
                yield rng.randbytes(rng.randint(14, 1514))
            for i in range(4000):
                op = rng.randrange(256)
                kw = {}
                if rng.random() < .5:
                    kw['reth'] = (guard.va + rng.randrange(-70000, 70000), guard.key ^ 0x40,
                                  rng.choice([0, 1, 8, 65536, 2**31, 2**32 - 1]))
                if rng.random() < .2:
                    kw['aeth'] = (rng.randrange(256), rng.randrange(1 << 24))
                f = bytearray(c.peer.build(
                    op, rng.choice([c.psn, c.psn - 1, c.psn + 1, rng.randrange(1 << 24)]),
                    rng.randbytes(rng.choice([0, 1, 4, 100, 1024])), pad=rng.randrange(4),
                    dqpn=rng.choice([0, 1, 2, 0xffffff, c.qp.qpn ^ 0x800000]), **kw))
                for _ in range(rng.randrange(3)):
                    f[rng.randrange(12, len(f))] = rng.randrange(256)
                if rng.random() < .2:
                    del f[rng.randrange(14, len(f)):]
                yield bytes(f)
        quiet_burst(w, h, junk())
        c.peer.drain()
        works(c)
        assert guard.read(0, 65536) == bytes(65536)
        w.polca.stop()


def test_damaged_copies_of_our_own_connections_packets(bench):
    """Aimed at the live QP, each with a wrong ICRC: none has any effect."""
    with bench() as w:
        w.start()
        h = w.hca()
        c = Conn(h, w)
        works(c)
        c.mr.write(0, bytes(4096))
        rng = random.Random(1)

        def damaged():
            for i in range(2000):
                op = rng.choice([Op.WRITE_ONLY, Op.SEND_ONLY, Op.READ_REQUEST, Op.FETCH_ADD,
                                 Op.ACK])
                kw = {Op.WRITE_ONLY: dict(reth=(c.va, c.key, 8)),
                      Op.READ_REQUEST: dict(reth=(c.va, c.key, 8)),
                      Op.FETCH_ADD: dict(atomic=(c.va, c.key, 1)),
                      Op.ACK: dict(aeth=(NO_CREDITS, 1))}.get(op, {})
                data = b'\xee' * 8 if op in (Op.WRITE_ONLY, Op.SEND_ONLY) else b''
                yield c.peer.build(op, c.psn, data, icrc_xor=1 << rng.randrange(32), **kw)
        before = h.verdicts()['icrc']
        quiet_burst(w, h, damaged())
        assert h.verdicts()['icrc'] - before == 2000
        c.peer.expect_nothing()
        assert c.mr.read(0, 4096) == bytes(4096)
        works(c)
        w.polca.stop()


def test_destroyed_under_traffic(bench):
    """Connections begin and end while their packets keep arriving; the others are not affected."""
    with bench(workers=2) as w:
        w.start()
        h = w.hca()
        steady = Conn(h, w)
        rng = random.Random(2)
        for i in range(60):
            c = Conn(h, w)
            c.peer.tx(Op.WRITE_FIRST, c.psn, bytes(PMTU), reth=(c.va, c.key, 2 * PMTU))
            c.peer.read(c.psn + 2, c.va, c.key, 40000)
            c.qp.post_send('write', wr_id=i, sg=[(c.mr, 0, 20000)], remote_addr=0, rkey=1)
            c.qp.post_send('read', wr_id=i, sg=[(c.mr, 0, 20000)], remote_addr=0, rkey=1)
            if rng.random() < .3:
                c.qp.modify(qp_state='ERR')
            if rng.random() < .5:
                c.mr.deregister()
            c.qp.destroy()
            c.peer.tx(Op.WRITE_LAST, c.psn + 1, bytes(PMTU), ackreq=1)
            c.peer.ack(c.sq_psn, 1)
            c.close()
            if i % 10 == 0:
                works(steady)
        works(steady)
        h.close()
        assert h.rpc('qp_list')['qps'] == [] and h.rpc('mr_list')['regions'] == []
        w.polca.stop()


def test_a_thousand_queue_pairs(bench):
    with bench() as w:
        w.start()
        h = w.hca()
        cq = h.cq(depth=4096)
        made = [h.qp(cq=cq, max_send_wr=4, max_recv_wr=4) for _ in range(1000)]
        assert len({q.qpn for q in made}) == 1000
        c = Conn(h, w)
        works(c)
        cursor, n = None, 0
        while True:
            page = h.rpc('qp_list', max=300, **({} if cursor is None else {'cursor': cursor}))
            n += len(page['qps'])
            cursor = page['cursor']
            if cursor is None:
                break
        assert n == 1001
        w.polca.stop()


def test_the_kernel_holds_our_address(bench):
    """It answers port 4791 with ICMP port unreachable: Polca detects this and warns."""
    with bench() as w:
        w.start()
        h = w.hca()
        c = Conn(h, w)
        w.ns.ip('addr', 'add', '10.77.0.1/24', 'dev', 'pv0')
        psn = c.next()
        c.peer.write_only(psn, c.va, c.key, b'x')
        c.peer.expect_ack(psn)
        wait_until(lambda: h.port_stats()['port_unreachable'] > 0)
        wait_until(lambda: 'unreachable' in w.polca.tail() or 'kernel' in w.polca.tail())
        w.polca.stop()


def test_completion_queue_overrun(bench):
    """CQ error event, the QPs in ERR, nothing overwritten; others are not affected."""
    with bench() as w:
        w.start()
        h = w.hca()
        other = Conn(h, w)
        c = Conn(h, w, qp={'cq': h.cq(depth=2)})
        c.post_buffer(16, n=8)
        h.events()
        for _ in range(8):
            c.peer.send_only(c.next(), b'abc')
        wait_until(lambda: c.qp.state() == 'ERR')
        assert any(e[0] == 'CQ_ERR' for e in h.events())
        works(other)
        w.polca.stop()


def test_a_read_of_much_does_not_starve_the_others(bench):
    """Answers are divided: a Write's ACK is sent while a long Read is being answered."""
    with bench() as w:
        w.start()
        h = w.hca()
        big = Conn(h, w, length=4 << 20)
        small = Conn(h, w)
        n = (4 << 20) // PMTU
        big.peer.read(big.next(n), big.va, big.key, 4 << 20)
        psn = small.next()
        small.peer.write_only(psn, small.va, small.key, b'x')
        small.peer.expect_ack(psn)
        first = big.peer.expect(Op.READ_FIRST)
        got = len(first.payload)
        while got < 4 << 20:
            got += len(big.peer.rx().payload)
        assert got == 4 << 20
        w.polca.stop()
