# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Queue pairs move between the two workers of an appliance whose ports are joined back to back:
packets that worker w sends on one port arrive at worker w's queue of the other. If the two queue
pairs of a pair are on different workers, all packets are handed over, in both directions."""

import itertools
import os
import shutil

import pytest

from conn import Conn, PMTU, wait_until
from hca import Completion, Hca
from pattern import pattern
from polca import Polca
from polcapair import A, B, PolcaPair, back_to_back
from rpc import RpcError
from services import Services, connections

TEST_SECONDS = 300
KIB = 1024
PAIRS = 8


@pytest.fixture
def appliance(kept, sockets, request):
    """appliance(rehome=...): two workers; it ends with status 0, and its log is kept."""
    p = Polca(sockets, back_to_back(), workers=2, services=[])

    def start(rehome):
        p.config['workers']['rehome'] = rehome
        return p.start()
    try:
        yield start
        p.stop()
    finally:
        p.kill()
        shutil.move(p.log, os.path.join(kept, request.node.name + '.log'))


def worker_of(q):
    return q.show()['worker']


def workers(p):
    return p.rpc('worker_list')['workers']


def packets(p):
    """How many packets the workers received, and how many they handed over, when no packet is
    under way. Each packet then has one verdict, whichever worker had it."""
    def quiet():
        rows = p.rpc('stats_get')['ports']
        return rows if all(sum(r['served'].values()) + sum(r['dropped'].values()) ==
                           r['rx_packets'] for r in rows) else None
    rows = wait_until(quiet)
    return sum(r['rx_packets'] for r in rows), sum(w['handoff_out'] for w in workers(p))


def dropped(p, reason):
    return sum(r['dropped'][reason] for r in p.rpc('stats_get')['ports'])


def apart(p):
    """PAIRS pairs, the two queue pairs of each on different workers."""
    a, b = Hca(p, 0), Hca(p, 1)
    return [PolcaPair(a, A, b, B, workers=(i % 2, 1 - i % 2)) for i in range(PAIRS)]


def test_what_is_handed_over_falls_to_nothing(appliance):
    """From 100 % to 0 without a command; every byte stays right meanwhile."""
    p = appliance(rehome=True)
    pairs = apart(p)
    seen, handed = packets(p)
    for i, pair in enumerate(pairs):
        pair.move('write', 8, seed=i)  # too few packets for a move
    now, handed_now = packets(p)
    assert now - seen >= 2 * PAIRS and handed_now - handed == now - seen
    assert not any(w['rehomed_in'] for w in workers(p))

    def together():
        for i, pair in enumerate(pairs):
            pair.move('write', 256 * KIB, seed=i)
        return all(worker_of(x.qa) == worker_of(x.qb) for x in pairs)
    wait_until(together, timeout=200)
    seen, handed = packets(p)
    for i, pair in enumerate(pairs):
        for op in ('write', 'read', 'send'):
            pair.move(op, 256 * KIB, seed=100 + i)
    now, handed_now = packets(p)
    assert now - seen >= PAIRS * 3 * 256
    assert (handed_now - handed) * 100 <= now - seen  # 1 %
    rows = workers(p)
    assert sum(w['rehomed_in'] for w in rows) == sum(w['rehomed_out'] for w in rows) >= PAIRS
    assert sum(w['qps'] for w in rows) == 2 * PAIRS
    assert dropped(p, 'qpn_unknown') == 0


def posts(pair, n, first):
    """n work requests for pair.a, with wr_id counting from first: Writes, and Reads of different
    bytes."""
    def row(wr_id):
        read = wr_id % 3 == 0
        off = 512 * KIB if read else 0
        return {'wr_id': wr_id, 'opcode': 'RDMA_READ' if read else 'RDMA_WRITE',
                'send_flags': ['SIGNALED'], 'remote_addr': pair.mb.va + off, 'rkey': pair.mb.key,
                'sg_list': [{'addr': pair.ma.va + off, 'length': 20000, 'lkey': pair.ma.key}]}
    return pair.a.rpc('post_send', qp_num=pair.qa.qpn, wr=[row(first + i) for i in range(n)])


def test_to_and_fro_a_thousand_times_under_traffic(appliance):
    """Move both queue pairs alternately: no error, completions in order, every byte right,
    nothing lost."""
    p = appliance(rehome=False)
    pair = PolcaPair(Hca(p, 0), A, Hca(p, 1), B, workers=(0, 1))
    written, read = pattern(1, 20000), pattern(2, 20000)
    pair.ma.write(0, written)
    pair.mb.write(512 * KIB, read)
    moved = posted = done = 0
    while moved < 1000 or done < posted:
        if moved < 1000 and posted - done <= 8:
            posts(pair, 8, posted)
            posted += 8
        if moved < 1000:
            q, worker = (pair.qa, pair.qb)[moved % 2], 1 - moved // 2 % 2
            try:
                p.rpc('qp_rehome', qp_num=q.qpn, worker=worker)
                assert worker_of(q) == worker
                moved += 1
            except RpcError as e:  # completions must be polled first
                assert e.data['errno'] == 'EAGAIN', e
            if moved % 4:
                continue  # so that both workers' rings have some
        for row in p.rpc('cq_poll', cq=pair.qa.cq, max=64)['wc']:
            wc = Completion(row)
            assert (wc.wr_id, wc.status) == (done, 0)
            done += 1
    assert done == posted >= 8
    assert pair.mb.same(0, written) and pair.ma.same(512 * KIB, read)
    rows = workers(p)
    assert sum(w['rehomed_in'] for w in rows) == sum(w['rehomed_out'] for w in rows) >= 999
    assert sum(w['handoff_full'] for w in rows) == dropped(p, 'handoff_full')
    assert dropped(p, 'qpn_unknown') == 0
    packets(p)
    pair.all_operations()
    pair.atomics()


def refused(p, **params):
    with pytest.raises(RpcError) as e:
        p.rpc('qp_rehome', **params)
    return e.value.data['errno'], e.value.message


def test_refusals_in_words(appliance):
    p = appliance(rehome=False)
    h = Hca(p)
    q = h.qp(worker=0)
    assert refused(p, qp_num=q.qpn, worker=2) == ('EINVAL', 'worker: got 2, there are 0..1')
    for unknown in (q.qpn ^ 1, q.qpn ^ 1 << 23):  # another slot, another generation of this slot
        assert refused(p, qp_num=unknown, worker=1)[0] == 'ENOENT'
    srq = p.rpc('srq_create', pd=h.pd, worker=1)['srq']
    s = h.qp(srq=srq)
    assert refused(p, qp_num=s.qpn, worker=0) == (
        'EINVAL', 'qp: 0x%06x receives from shared receive queue %d, and lives where that does'
        % (s.qpn, srq))
    with Services(p) as services:
        services.listen('echo', 7)
        cq = h.cq()
        p.rpc('cm_connect', dgid=B, port=7, pd=h.pd, send_cq=cq)
        both = {r['side']: r['qp_num'] for r in connections(p).values()}
        for worker in (0, 1):
            if next(r for r in p.rpc('qp_list')['qps']
                    if r['qp_num'] == both['ACTIVE'])['worker'] == worker:
                p.rpc('qp_rehome', qp_num=both['ACTIVE'], worker=worker)  # it is there already
            else:
                assert refused(p, qp_num=both['ACTIVE'], worker=worker) == (
                    'EBUSY', 'qp: 0x%06x belongs to a connection, a service or a program, which has its '
                    'worker' % both['ACTIVE'])
            assert refused(p, qp_num=both['PASSIVE'], worker=worker) == (
                'EPERM', 'qp: 0x%06x belongs to service "echo"' % both['PASSIVE'])
    for _ in range(3):  # queue pairs that may move do move, also to their present worker
        p.rpc('qp_rehome', qp_num=q.qpn, worker=1)
    assert worker_of(q) == 1
    r = p.ctl('qp', 'rehome', q.qpn, '--worker', 0)
    assert r.stdout == 'ok\n' and worker_of(q) == 0


def test_each_queue_pair_is_listed_once(appliance):
    p = appliance(rehome=False)
    h = Hca(p)
    cq = h.cq(depth=4096)
    made = {h.qp(cq=cq, worker=i % 2, max_send_wr=4, max_recv_wr=4).qpn: i % 2
            for i in range(60)}
    for turn in range(4):
        for i, qpn in enumerate(made):
            if (i + turn) % 3 == 0:
                made[qpn] = 1 - made[qpn]
                p.rpc('qp_rehome', qp_num=qpn, worker=made[qpn])
        rows, cursor = [], 0
        while cursor is not None:
            page = p.rpc('qp_list', max=7, cursor=cursor)
            rows, cursor = rows + page['qps'], page['cursor']
        assert sorted((r['qp_num'], r['worker']) for r in rows) == sorted(made.items())
        assert [w['qps'] for w in workers(p)] == [list(made.values()).count(w) for w in (0, 1)]
    for qpn in made:  # moved or not
        p.rpc('qp_destroy', qp_num=qpn)
    assert p.rpc('qp_list')['qps'] == []


def test_others_destroyed_while_they_move(appliance):
    """Moved, put in error and destroyed under traffic; another pair is not affected."""
    p = appliance(rehome=False)
    a, b = Hca(p, 0), Hca(p, 1)
    steady = PolcaPair(a, A, b, B, workers=(0, 1))
    for i in range(40):
        pair = PolcaPair(a, A, b, B, workers=(i % 2, 1 - i % 2), size=KIB * KIB)
        posts(pair, 8, 0)
        p.rpc('qp_rehome', qp_num=pair.qa.qpn, worker=1 - i % 2)
        if i % 4 == 1:
            pair.qb.modify(qp_state='ERR')
        p.rpc('qp_rehome', qp_num=pair.qb.qpn, worker=i % 2)
        pair.qb.destroy()
        p.rpc('qp_rehome', qp_num=pair.qa.qpn, worker=i % 2)
        pair.qa.modify(qp_state='ERR')
        pair.qa.destroy()
        if i % 10 == 0:
            steady.move('write', 64 * KIB, seed=i)
    steady.all_operations()
    assert sorted(r['qp_num'] for r in p.rpc('qp_list')['qps']) == sorted(
        q.qpn for q in (steady.qa, steady.qb))
    wait_until(lambda: sum(w['handoff_depth'] for w in workers(p)) == 0)
    packets(p)
    a.close()
    b.close()
    assert p.rpc('mr_list')['regions'] == [] and p.rpc('cq_list')['cqs'] == []


def test_where_the_driver_puts_the_packets(bench):
    """Two queues of a real driver, which distributes packets by addresses and UDP ports: the
    queue pairs of peers with equal hashes gather on one worker, and nothing is handed over."""
    with bench('net_af_packet0,iface=pv0,qpairs=2', workers=2) as w:
        w.start()
        h = w.hca()
        conns = [Conn(h, w, length=128 * KIB, qp={'worker': i}) for i in (0, 1)]
        for c in conns:
            c.peer.sport = 0xc123

        def write(i):
            for c in conns:
                data = pattern(i, 70 * PMTU)
                c.peer.expect_acked(c.write(data)[-1])
                assert c.mr.same(0, data)

        def together(i=itertools.count()):
            write(next(i))
            return worker_of(conns[0].qp) == worker_of(conns[1].qp)
        wait_until(together, timeout=200)
        _, before = packets(w.polca)
        write(999)
        seen, handed = packets(w.polca)
        assert handed == before and seen >= 140
        assert [c['rehomed_in'] for c in workers(w.polca)].count(1) == 1
        w.polca.stop()
