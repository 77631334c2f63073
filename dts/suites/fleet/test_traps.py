# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Traps in a fleet: one that reaches the subnet manager behind any appliance's port is reported by the leader, once
to each subscriber."""

from fleet import status, until
from ibports import ib_port
from subscriber import SUBSCRIBER_QP, Subscriber, kept, trap_of

TEST_SECONDS = 120
IB, TRAP = 1, 144  # the port with a subnet manager, and its trap


def more_ports(ns, i):
    """A native port whose subnet manager is behind the port itself."""
    ns.veth('pi%d' % i, 'si%d' % i)
    lid = 0x100 + i
    p = ib_port('port1', 'pi%d' % i, lid=lid, sm_lid=lid, active=True, guid='0x%016x' % (0x0002c90300880001 + i),
                sm=dict(priority=5, state='standby'))
    return [dict(p, device='net_af_packet%d,iface=pi%d,framecnt=512' % (10 + i, i))]


def send_trap(polca):
    """A trap of the port to its own subnet manager, which ends it. Returns how often it was sent."""
    number = polca.rpc('trap_send', port=IB, number=TRAP)['trap']
    until('the manager has it', lambda: repress(polca))

    def sent():
        return next(t for t in polca.rpc('trap_list')['traps'] if t['trap'] == number)
    until('the port repeats it no more', lambda: repress(polca) or sent()['state'] == 'REPRESSED')
    return sent()['sent']


def repress(polca):
    smps = polca.rpc('sm_take', port=IB)['smps']
    for smp in smps:
        polca.rpc('sm_repress', smp=smp['smp'])
    return len(smps)


def of_trap(subscriber):
    return [r for r in subscriber.reports if trap_of(r) == TRAP]


def test_a_trap_at_any_appliance_is_reported_once_to_each_subscriber(three, host, etcd):
    nodes, gsi, (lead, one, two) = three
    subscribers = [Subscriber(host, nodes, SUBSCRIBER_QP + k) for k in range(2)]
    try:
        # a host has one subscription to the same notices, so the second one is to all of them
        for s, i, number in zip(subscribers, (lead, two), (TRAP, 0xffff)):
            s.subscribe(i, trap_number=number)
        sent = 0
        for i in (one, two, lead):
            sent += send_trap(nodes[i])
            for s in subscribers:
                until('its Reports', lambda: len(of_trap(s)) >= sent)
            until('etcd keeps none', lambda: kept(etcd) == 0)
        assert status(nodes[lead])['leads']
        for s in subscribers:
            reports = of_trap(s)
            assert len(reports) == sent, reports
            assert {r[0] for r in reports} == {lead}, reports
            # each is one of its own, with its issuer
            assert len({r[1] for r in reports}) == sent, reports
            assert {int.from_bytes(r[2][6:8], 'big') for r in reports} == {0x100, 0x101, 0x102}, reports
    finally:
        for s in subscribers:
            s.close()
