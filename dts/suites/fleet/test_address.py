# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""An address that the leader has: clients with this one address alone go on when the leader dies."""

import json
import signal
import time

from fleet import ADDRESSES, LEASE, until

MOVING = '10.81.0.100'
PORT = dict(leader_addresses=[MOVING + '/24', 'fd81::100/64'])


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


def answers(asker, *options):
    """True if the SA at the moving address has the service."""
    r = asker.ctl('sa', 'table', 'service', '--json', '--to', MOVING, '--timeout-ms', '300', *options, check=False)
    return r.returncode == 0 and len(json.loads(r.stdout)['records']) == 1


def change(asker, lease):
    return asker.ctl('sa', 'set', 'service', 'service_id=1', 'service_gid=::ffff:10.81.0.9', 'service_pkey=0xffff',
                     'service_lease=%d' % lease, 'service_name=one', '--to', MOVING, check=False).returncode == 0


def test_clients_of_one_address_go_on_when_leaders_die(fleet, asker, capsys):
    first = holder(fleet)
    until('a change', lambda: change(asker, 600))
    until('an answer', lambda: answers(asker))
    gaps = []
    for dead in (first, None):
        dead = dead or holder(fleet)
        dead.kill()
        at = time.monotonic()
        until('the next one answers at the address', lambda: answers(asker))
        gaps.append(time.monotonic() - at)
        until('a change at the next one', lambda: change(asker, 601))
        new = holder(fleet)
        assert 'gave up' not in new.tail() and 'port0 has the address %s, too' % MOVING in new.tail(), new.tail()
        dead.start()
        until('the dead one is back', lambda: dead.rpc('fleet_status')['watching'])
        assert holders(fleet) == [new]
    with capsys.disabled():
        print(' gap at the address: %s s with a lease of %d s ' % (', '.join('%.1f' % g for g in gaps), LEASE),
              end='')


def test_a_leader_without_etcd_gives_the_address_up(fleet, asker, ns):
    """Before another one can have it; its own addresses stay."""
    old = holder(fleet)
    before = gids(old)
    assert before[1:] == [MOVING, 'fd81::100']
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
