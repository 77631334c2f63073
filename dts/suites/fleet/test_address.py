# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""An address that the leader has: clients with this one address alone go on when the leader dies."""

import json
import signal
import time

import pytest

from fleet import ADDRESSES, LEASE, until

MOVING, MOVING6 = '10.81.0.100', 'fd81::100'
PORT = dict(leader_addresses=[MOVING + '/24', MOVING6 + '/64'])
ASKER_TOO = ['fd81::9/64']  # of the client, which asks from an address of that network


def gids(polca):
    return [g['gid'] for g in polca.rpc('port_list')['ports'][0]['gids']]


def holders(fleet):
    return [p for p in fleet.alive() if MOVING in gids(p)]


def holder(fleet, *but):
    """The one appliance that has the address."""
    until('one holder', lambda: len(holders(fleet)) == 1 and holders(fleet)[0] not in but)
    p, = holders(fleet)
    until('it leads', lambda: fleet.leader() is p)
    return p


def answers(asker, address):
    """True if the SA at the moving address has the service."""
    r = asker.ctl('sa', 'table', 'service', '--json', '--to', address, '--timeout-ms', '300', check=False)
    return r.returncode == 0 and len(json.loads(r.stdout)['records']) == 1


def change(asker, lease, address=MOVING):
    own = 'fd81::9' if ':' in address else '::ffff:10.81.0.9'  # a client sets services of its own address
    return asker.ctl('sa', 'set', 'service', 'service_id=1', 'service_gid=' + own, 'service_pkey=0xffff',
                     'service_lease=%d' % lease, 'service_name=one', '--to', address, check=False).returncode == 0


def moves(asker, address):
    """How often the client has taken another MAC address for this one, as its announcement said."""
    return sum('%s is a neighbour that has moved to' % address in e['text']
               for e in asker.rpc('events', since=0, max=1000)['events'] if e['event'] == 'NEIGHBOUR_MOVED')


@pytest.mark.parametrize('address', [MOVING, MOVING6], ids=['4', '6'])
def test_clients_of_one_address_go_on_when_leaders_die(fleet, asker, address, capsys):
    first = holder(fleet)
    until('a change', lambda: change(asker, 600, address))
    until('an answer', lambda: answers(asker, address))
    gaps = []
    for dead in (first, None):
        dead = dead or holder(fleet)
        dead.kill()
        at = time.monotonic()
        until('the next one answers at the address', lambda: answers(asker, address))
        gaps.append(time.monotonic() - at)
        until('the client believed the announcement', lambda: moves(asker, address) == len(gaps))
        until('a change at the next one', lambda: change(asker, 601, address))
        new = holder(fleet)
        assert 'gave up' not in new.tail() and 'port0 has the address %s, too' % address in new.tail(), new.tail()
        dead.start()
        until('the dead one is back', lambda: dead.rpc('fleet_status')['watching'])
        assert holders(fleet) == [new]
    with capsys.disabled():
        print(' gap at %s: %s s with a lease of %d s ' % (address, ', '.join('%.1f' % g for g in gaps), LEASE), end='')


def test_a_leader_without_etcd_gives_the_address_up(fleet, asker, ns):
    """Before another one can have it; its own addresses stay."""
    old = holder(fleet)
    before = gids(old)
    assert before[1:] == [MOVING, MOVING6]
    # etcd stands still: nobody can lead
    for proc in fleet.etcd.procs:
        proc.send_signal(signal.SIGSTOP)
    try:
        until('nobody has it', lambda: not holders(fleet))
        assert gids(old) == [ADDRESSES[list(fleet.nodes.values()).index(old)]]
        assert old.alive() and 'gave up the address %s, which the fleet' % MOVING in old.tail()
    finally:
        for proc in fleet.etcd.procs:
            proc.send_signal(signal.SIGCONT)
    holder(fleet)
    until('a change at the address', lambda: change(asker, 600))


def test_a_leader_that_stood_still_gives_the_address_up(fleet, asker):
    """It has missed that its lease ended and another one leads: it does not answer there any more."""
    old = holder(fleet)
    old.proc.send_signal(signal.SIGSTOP)
    try:
        new, = until('another one has it', lambda: [p for p in fleet.alive() if p is not old and MOVING in gids(p)])
    finally:
        old.proc.send_signal(signal.SIGCONT)
    until('one has it', lambda: holders(fleet) == [new])
    until('a change at the address', lambda: change(asker, 600))
    assert new.rpc('fleet_status')['leads'] and 'gave up the address %s, which the fleet' % MOVING in old.tail()


def test_one_that_stops_hands_it_over(fleet, asker):
    old = holder(fleet)
    old.stop()
    holder(fleet)


def test_configuration(fleet, asker):
    p = fleet.nodes['a']
    p.stop()
    for more, text in (
            (dict(leader_addresses=[ADDRESSES[0] + '/24']), 'ports[0].leader_addresses[0]: got "%s", which '
             'ports[0].addresses[0] has already' % ADDRESSES[0]),
            (dict(leader_addresses=[{'address': MOVING + '/24', 'gateway': '10.9.9.9'}]),
             'ports[0].leader_addresses[0].gateway: got "10.9.9.9", allowed: one within 10.81.0.100/24'),
            (dict(rocev1=True), 'only a port of RoCEv2 alone'),
            (dict(addresses=[]), 'ports[0].addresses has none that the port always has'),
            (dict(leader_addresses=['10.81.0.%d/24' % i for i in range(50, 55)]), 'allowed: list of 0..4')):
        old = dict(p.config['ports'][0])
        p.config['ports'][0].update(more)
        assert text in p.fails(), p.tail()
        p.config['ports'][0] = old
    fleet_of = p.config.pop('fleet')
    assert 'ports[0].leader_addresses: given, but there is no fleet' in p.fails(), p.tail()
    p.config['fleet'] = fleet_of
