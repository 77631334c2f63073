# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Without `congestion.dcqcn`, CNPs change nothing (docs/spec/congestion.md 2). With it on one of
two appliances, a marking switch between them slows that one down."""

import contextlib

from conn import PMTU, wait_until
from hca import Hca
from ecn_switch import Marker
from net import Namespace
from polca import Polca, port
from polcapair import PolcaPair
from roce import Op

A, B = '10.78.0.1', '10.78.0.2'
SIZE, NEVER = 1 << 18, 1000000000


def test_cnps_change_nothing(connect):
    c = connect()
    before = c.hca.verdicts()['cnp']
    for _ in range(5):
        c.peer.tx(Op.CNP, 0, bytes(16), becn=1)
    c.sync()
    assert c.hca.verdicts()['cnp'] == before + 5
    shown = c.qp.show()
    assert 'rate_limit' not in shown
    k = shown['counters']
    assert (k['rp_cnp_handled'], k['rp_cnp_ignored'], k['rp_rate_limited']) == (0, 0, 0)
    c.qp.post_send('write', sg=[(c.mr, 0, 2 * PMTU)], remote_addr=0x1000, rkey=1)
    got = c.requests(2)
    assert [r.tclass & 3 for r in got] == [0, 0]  # not ECN-capable: no switch may mark them
    c.peer.ack(got[-1].psn, 1)
    assert c.qp.poll()[0].status == 0


@contextlib.contextmanager
def over_a_switch(sockets, **congestion):
    """A pair from A, with this configuration, to B, without it; and the switch between them."""
    with Namespace() as ns:
        for i in '01':
            ns.veth('pv' + i, 'sw' + i)
        a, b = (Polca(sockets, [port('port0', 'net_af_packet0,iface=pv%d' % i, ip + '/24')], ns=ns,
                      name=name, **config)
                for i, ip, name, config in ((0, A, 'a', {'congestion': congestion}), (1, B, 'b', {})))
        switch = Marker(ns, 'sw0', 'sw1')
        try:
            with a, b:
                yield PolcaPair(Hca(a), A, Hca(b), B, size=SIZE), switch
        finally:
            switch.close()


def test_marked_on_the_way(sockets):
    """Slower while the switch marks, and as before after it has stopped; every CNP is counted by
    both sides, and no byte is wrong. Timers never expire: only sent bytes raise the rate,
    however slow the machine is."""
    with over_a_switch(sockets, dcqcn=True, max_rate=1000, min_rate=20, alpha_timer=NEVER,
                       increase_timer=NEVER, byte_counter=65536, rate_ai=200) as (pair, switch):
        pair.move('write', SIZE, seed=1)
        assert pair.qb.counters()['np_cnp_sent'] == 0
        switch.marking = True
        for i in range(4):  # the first may be sent completely before the first mark arrives
            pair.move('write', SIZE, seed=2 + i)
        switch.marking = False
        assert switch.marked >= 4 * SIZE // 1024
        told = pair.qb.counters()
        assert told['np_ecn_marked_roce_packets'] > 0 and told['np_cnp_sent'] > 0
        wait_until(lambda: sum(pair.qa.counters()[k] for k in (
            'rp_cnp_handled', 'rp_cnp_ignored')) == told['np_cnp_sent'])
        notified = pair.qa.counters()
        assert notified['rp_cnp_handled'] > 1 and notified['rp_rate_limited'] > 0
        rates = [pair.qa.show().get('rate_limit')]
        assert rates[0] < 1000000
        while rates[-1] is not None:
            assert len(rates) < 20 and rates == sorted(rates)
            pair.move('write', SIZE, seed=10 + len(rates))
            rates.append(pair.qa.show().get('rate_limit'))


def test_marked_on_the_way_without_dcqcn(sockets):
    """Its packets are not ECN-capable: a switch could only drop them."""
    with over_a_switch(sockets) as (pair, switch):
        switch.marking = True
        pair.move('write', SIZE, seed=4)
        assert switch.marked == 0 and switch.incapable >= SIZE // 1024
        assert pair.qb.counters()['np_cnp_sent'] == 0
        assert 'rate_limit' not in pair.qa.show()
