# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""opensm, unmodified from Debian, manages an appliance at the other end of its cable: from a
port without a LID in state Initialize to an active subnet. The tests build on each other."""

import re

import pytest

from conn import wait_until
from smp import PORT_INFO
from umad import dumps, fields

NAMES = ['a']
SM_LID = 1


@pytest.fixture(scope='module')
def managed(subnet):
    """True if a subnet manager has configured the port."""
    if subnet.opensm.proc is None:
        subnet.opensm.start()
    wait_until(lambda: subnet.port('a')['state'] == 'ACTIVE')
    return subnet


def events(subnet, after=0):
    return [e['event'] for e in subnet.polca['a'].rpc('events')['events'] if e['seq'] > after]


def last_event(subnet):
    return max([e['seq'] for e in subnet.polca['a'].rpc('events')['events']], default=0)


def trap(subnet, ident):
    return next(t for t in subnet.polca['a'].rpc('trap_list')['traps'] if t['trap'] == ident)


def raise_trap(subnet, *args):
    text = subnet.polca['a'].ctl('trap', 'send', *args).stdout
    return int(re.search(r'trap\s+(\d+)', text).group(1))


# ---- without a manager

def test_an_unconfigured_port(subnet):
    port = subnet.port('a')
    assert (port['state'], port['lid'], port['sm_lid']) == ('INIT', 0, 0)
    got = fields(subnet.bridge.run('smpquery', '-D', 'portinfo', '0,1', 1).stdout)
    assert (got['LinkState'], got['PhysLinkState'], got['Lid'], got['SMLid']) == (
        'Initialize', 'LinkUp', '0', '0')


def test_a_trap_waits_for_a_manager(subnet):
    """smp-sma 5: no trap is sent before the port is Active and knows its SM."""
    n = raise_trap(subnet, '--number', '144')
    # traps are handled one after the other: when the later one is held, the first has been handled
    later = raise_trap(subnet, '--number', '144')
    for ident in (later, n):
        wait_until(lambda: trap(subnet, ident)['state'] == 'HELD')
        assert trap(subnet, ident)['sent'] == 0, trap(subnet, ident)


# ---- opensm starts

def test_subnet_up(subnet):
    subnet.opensm.start()
    assert subnet.opensm.errors() == []
    assert 'SUBNET UP' in subnet.opensm.said()
    wait_until(lambda: subnet.port('a')['state'] == 'ACTIVE')
    port = subnet.port('a')
    assert port['lid'] not in (0, SM_LID) and port['sm_lid'] == SM_LID and port['lmc'] == 0
    assert 'Assigned port 0x%016x,' % subnet.guid('a') in subnet.opensm.said()
    assert re.search(r'Discovered new Channel Adapter node,\s+GUID 0x%x,' % (
        subnet.guid('a') - 1), subnet.opensm.said())


def test_events(managed):
    """The events for an application, in this order."""
    names = [e for e in events(managed) if e != 'PORT_ERR']
    for name in ('LID_CHANGE', 'SM_CHANGE', 'CLIENT_REREGISTER', 'PORT_ACTIVE'):
        assert name in names, names
    assert names.index('LID_CHANGE') < names.index('PORT_ACTIVE')


def test_the_waiting_trap_went(managed):
    """Sent once the port was Active, and repressed by opensm."""
    wait_until(lambda: managed.polca['a'].rpc('trap_list')['traps'][0]['state'] == 'REPRESSED')
    t, = managed.polca['a'].rpc('trap_list')['traps']
    assert (t['number'], t['sent']) == (144, 1)


def test_portinfo_as_the_manager_set_it(managed):
    raw = managed.polca['a'].rpc('smp_get', path='0', attribute='PortInfo')
    text = managed.bridge.run('smpquery', 'portinfo', managed.lid('a'), 1).stdout
    got = fields(text)
    assert (got['LinkState'], got['SMLid'], got['Lid']) == ('Active', str(SM_LID),
                                                            str(managed.lid('a')))
    assert got['GidPrefix'] == '0xfe80000000000000' and got['SubnetTimeout'] == '18'
    assert got['ClientReregister'] == '0'
    data = bytes.fromhex(raw['data'])
    assert PORT_INFO.get(data, 'lid') == managed.lid('a') and PORT_INFO.get(data, 'state') == 4


def test_sminfo(managed):
    text = managed.bridge.run('sminfo').stdout
    assert re.search(r'sm lid 1 sm guid 0x2c9fffe000011, .* state 3 SMINFO_MASTER', text), text


def test_ibping_by_the_new_lid(managed):
    text = managed.bridge.run('ibping', '-c', '3', '-f', managed.lid('a')).stdout
    assert '3 packets transmitted, 3 received, 0% packet loss' in text


# ---- traps

@pytest.mark.parametrize('number, kind', [(144, 4), (145, 4), (129, 1), (130, 1), (131, 1)])
def test_trap_is_repressed(managed, number, kind):
    """opensm logs it, and its TrapRepress ends it after the first transmission."""
    n = raise_trap(managed, '--number', number)
    wait_until(lambda: trap(managed, n)['state'] == 'REPRESSED')
    t = trap(managed, n)
    assert (t['number'], t['sent']) == (number, 1)
    want = re.compile(r'Received Generic Notice type:%d num:%d .* Producer:1 \(Channel Adapter\) '
                      r'from LID:%d( Port 1)? TID:%s$' % (kind, number, managed.lid('a'), t['tid']),
                      re.M)
    wait_until(lambda: want.search(managed.opensm.said()))


def test_bad_m_key_is_told(managed):
    """A Set with a wrong M_Key is not answered; trap 256 reports it to opensm. Its TrapRepress
    has no M_Key either, so the trap is repeated while the port is protected (smp-sma 4). With
    M_KeyProtectBits 0, a sweep of opensm would read the key and set it back to 0."""
    a, key = managed.polca['a'], '0x1122334455667788'
    newest = max(t['trap'] for t in a.rpc('trap_list')['traps'])

    def told():
        return [t for t in a.rpc('trap_list')['traps'] if t['number'] == 256 and t['trap'] > newest]
    a.ctl('smp', 'set', 'PortInfo', 'm_key=' + key, 'm_key_protect_bits=1', '--path', '0')
    try:
        r = managed.bridge.run('ibportstate', '-t', '200', managed.lid('a'), 1, 'down', check=False)
        assert r.returncode != 0
        wait_until(told)
        wait_until(lambda: 'Received Generic Notice type:2 num:256 ' in managed.opensm.said())
        assert managed.port('a')['state'] == 'ACTIVE'
        assert all(t['state'] == 'SENT' for t in told())
    finally:
        a.ctl('smp', 'set', 'PortInfo', 'm_key=0', 'm_key_protect_bits=0', '--path', '0', '--m-key', key)
    wait_until(lambda: all(t['state'] == 'REPRESSED' for t in told()), timeout=20)


# ---- two views of one port

def record(bridge, what, of):
    """A port's record in the SA that these tools query; opensm trusts requesters with its
    SM_Key."""
    text = bridge.run('saquery', '--smkey', 1, what, of).stdout
    return [kind for kind, _ in dumps(text)], dict(dumps(text)[-1][1])


@pytest.mark.parametrize('what, of', [('NR', '%d'), ('PIR', '%d'), ('GIR', '%d/0')])
def test_views_agree(managed, what, of):
    """The manager's record of the port and that of our SA, field by field."""
    lid = managed.lid('a')
    theirs = record(managed.bridge, what, of % lid)
    ours = record(managed.bridge.asking(lid), what, of % lid)
    assert len(theirs[1]) >= 10 and ours == theirs


def test_paths_of_both_views_agree(managed):
    """From the appliance to itself: LIDs, GIDs, P_Key, MTU and rate of both SAs."""
    lid = managed.lid('a')
    gid = 'fe80::2:c903:88:1'
    both = [dumps(b.run('saquery', 'PR', '--slid', lid, '--dlid', lid).stdout)
            for b in (managed.bridge, managed.bridge.asking(lid))]
    for rows in both:
        (_, row), = rows
        assert row['sgid'] == row['dgid'] == gid and row['slid'] == row['dlid'] == str(lid)
    theirs, ours = both[0][0][1], both[1][0][1]
    for k in ('pkey', 'mtu', 'rate', 'sl'):
        assert ours[k] == theirs[k], (k, ours, theirs)


# ---- the manager stops and starts

def test_killed_and_started_again(managed):
    """The port is unchanged without a manager, and keeps its LID with the next one."""
    lid = managed.lid('a')
    managed.opensm.kill()
    text = managed.bridge.run('ibping', '-c', '1', '-f', lid).stdout
    assert '1 received' in text
    managed.opensm.start()
    assert managed.opensm.errors() == []
    wait_until(lambda: managed.port('a')['state'] == 'ACTIVE')
    assert managed.lid('a') == lid


def test_a_port_that_fell_while_nobody_looked(managed):
    """After down and up it is in Initialize; the next manager makes it Active."""
    lid, seq = managed.lid('a'), last_event(managed)
    managed.opensm.kill()
    managed.bridge.run('ibportstate', '-D', '0,1', 1, 'reset')
    wait_until(lambda: managed.port('a')['state'] == 'INIT')
    managed.opensm.start()
    wait_until(lambda: managed.port('a')['state'] == 'ACTIVE')
    assert managed.lid('a') == lid
    assert 'PORT_ACTIVE' in events(managed, seq)
    assert managed.bridge.run('ibping', '-c', '1', '-f', lid).stdout.count('1 received') == 1


def test_a_new_appliance_process(managed):
    """kill -9: the port returns without a LID; the manager's next sweep assigns the old one."""
    lid, a = managed.lid('a'), managed.polca['a']
    a.kill()
    a.start()
    # opensm configures the port when a sweep finds it changed
    wait_until(lambda: managed.port('a')['state'] == 'ACTIVE', timeout=30, step=0.2)
    assert managed.lid('a') == lid
