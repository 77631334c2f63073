# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""infiniband-diags, unmodified from Debian, against the subnet management agent: every printed
field equals the configuration, by LID and by directed route."""

import re

import pytest

from conn import wait_until
from ibports import DESCRIPTION, PORT_GUID, STATIC
from umad import fields

CONFIG = dict(ib=dict(STATIC, vls=4), pkeys=[0xffff, 0x8001, 0x1234])
BRIDGE = {}

BOTH = pytest.mark.parametrize('to', [['2'], ['-D', '0,1']], ids=['lid', 'route'])

NODE_INFO = {
    'BaseVers': '1', 'ClassVers': '1', 'NodeType': 'Channel Adapter', 'NumPorts': '1',
    'SystemGuid': '0x0002c90300770003', 'Guid': '0x0002c90300770000',
    'PortGuid': '0x0002c90300770001', 'PartCap': '64', 'DevId': '0x1234', 'Revision': '0x000000a0',
    'LocalPort': '1', 'VendorId': '0x000a0b'}
CAPABILITIES = '''IsNoticeSupported IsTrapSupported IsAutomaticMigrationSupported IsSLMappingSupported
    IsLedInfoSupported IsSystemImageGUIDsupported IsCommunicatonManagementSupported
    IsVendorClassSupported IsDRNoticeSupported
    IsCapabilityMaskNoticeSupported IsClientRegistrationSupported
    IsOtherLocalChangesNoticeSupported'''.split()
# LinkSpeed and width depend on the device: test_link() checks them
PORT_INFO = {
    'Mkey': '<not displayed>', 'GidPrefix': '0xfe80000000000000', 'Lid': '2', 'SMLid': '1',
    'CapMask': '0x6710a6c', 'DiagCode': '0x0000', 'MkeyLeasePeriod': '0', 'LocalPort': '1',
    'LinkState': 'Active', 'PhysLinkState': 'LinkUp', 'LinkDownDefState': 'Polling',
    'ProtectBits': '0', 'LMC': '0', 'NeighborMTU': '1024', 'SMSL': '0', 'VLCap': 'VL0-3',
    'InitType': '0x00', 'VLHighLimit': '0', 'VLArbHighCap': '64', 'VLArbLowCap': '64',
    'InitReply': '0x00', 'MtuCap': '1024', 'VLStallCount': '0', 'HoqLife': '0',
    'OperVLs': 'VL0-3', 'PartEnforceInb': '0', 'PartEnforceOutb': '0', 'FilterRawInb': '0',
    'FilterRawOutb': '0', 'MkeyViolations': '0', 'PkeyViolations': '0', 'QkeyViolations': '0',
    'GuidCap': '32', 'ClientReregister': '0', 'McastPkeyTrapSuppressionEnabled': '0',
    'SubnetTimeout': '18', 'LocalPhysErr': '8', 'OverrunErr': '8', 'MaxCreditHint': '0',
    'RoundTrip': '0', 'CapabilityMask2': '0x0'}
LINK = ('LinkWidthEnabled', 'LinkWidthSupported', 'LinkWidthActive', 'LinkSpeedSupported',
        'LinkSpeedActive', 'LinkSpeedEnabled', 'LinkSpeedExtActive', 'LinkSpeedExtSupported',
        'LinkSpeedExtEnabled', 'RespTimeVal')


# ---- smpquery

@BOTH
def test_nodeinfo(tool, to):
    assert fields(tool('smpquery', *to[:-1], 'nodeinfo', to[-1])) == NODE_INFO


@BOTH
def test_nodedesc(tool, to):
    assert fields(tool('smpquery', *to[:-1], 'nodedesc', to[-1])) == {
        'Node Description': DESCRIPTION}


@BOTH
@pytest.mark.parametrize('port', [[], ['0'], ['1']], ids=['none', '0', '1'])
def test_portinfo(tool, to, port):
    text = tool('smpquery', *to[:-1], 'portinfo', to[-1], *port)
    got = fields(text)
    assert {k: v for k, v in got.items() if k not in LINK} == PORT_INFO
    assert sorted(got) == sorted(list(PORT_INFO) + list(LINK))
    assert re.findall(r'\b(Is\w+)', text) == CAPABILITIES


def test_portinfo_of_a_port_that_is_not_there(wire):
    r = wire.bridge.run('smpquery', 'portinfo', 2, 9, check=False)
    assert r.returncode != 0 and 'port info query failed' in r.stderr + r.stdout, r


def test_link(tool, polca):
    """Width and speed are consistent: active values are enabled, enabled values are supported."""
    got = fields(tool('smpquery', 'portinfo', '2', '1'))
    assert got['LinkWidthActive'] == got['LinkWidthEnabled'] == '4X', got
    assert got['LinkWidthSupported'].startswith(('4X', '1X or 4X')), got
    assert got['LinkSpeedActive'] in got['LinkSpeedSupported'], got


@BOTH
def test_pkeys(tool, to):
    text = tool('smpquery', *to[:-1], 'pkeys', to[-1])
    keys = [int(v, 16) for v in re.findall(r'0x([0-9a-f]{4})\b', text)]
    assert keys == [0xffff, 0x8001, 0x1234] + [0] * 61
    assert '64 pkeys capacity for this port' in text


@BOTH
def test_guids(tool, to):
    text = tool('smpquery', *to[:-1], 'guidinfo', to[-1])
    assert [int(v, 16) for v in re.findall(r'0x([0-9a-f]{16})', text)] == [PORT_GUID] + [0] * 31
    assert '32 guids capacity for this port' in text


@BOTH
def test_sl2vl(tool, to):
    row = tool('smpquery', *to[:-1], 'sl2vl', to[-1]).splitlines()[-1]
    assert [int(v) for v in row.split('|')[1:-1]] == [0, 1, 2, 3] * 4


@BOTH
def test_vlarb(tool, to):
    text = tool('smpquery', *to[:-1], 'vlarb', to[-1], '1')
    assert 'LowCap 64 HighCap 64' in text
    rows = [[int(v, 16) for v in line.split('|')[1:-1]] for line in text.splitlines()
            if line.startswith(('VL ', 'WEIGHT'))]
    assert len(rows) == 8 and all(len(r) == 32 for r in rows)
    assert rows[0] == [0, 1, 2, 3] + [0] * 28  # low priority: each lane the same weight
    assert rows[1] == [1, 1, 1, 1] + [0] * 28
    assert rows[2:] == [[0] * 32] * 6


@BOTH
def test_switchinfo_is_not_served(wire, to):
    r = wire.bridge.run('smpquery', *to[:-1], 'switchinfo', to[-1], check=False)
    assert r.returncode != 0 and 'switch info query failed' in r.stdout + r.stderr, r


def test_beyond_the_appliance_there_is_nothing(wire, verdict):
    """A channel adapter forwards no directed route (C14-9)."""
    r = wire.bridge.run('smpquery', '-D', '-t', '100', 'nodeinfo', '0,1,1', check=False)
    assert r.returncode != 0 and 'node info query failed' in r.stderr + r.stdout, r
    assert verdict['smp_route'] >= 1


@pytest.mark.parametrize('to', [('2', '0'), ('1', '0,1')], ids=['no hop', 'one hop'])
def test_combined_route(tool, to):
    """To a LID, and by directed route from there: not at all, or from the tools' own port."""
    assert fields(tool('smpquery', '-c', 'nodeinfo', *to)) == NODE_INFO


# ---- smpdump

def words(text):
    return bytes.fromhex(''.join(re.findall(r'\b[0-9a-f]{4}\b', text.split('SMP status')[0])))


@BOTH
def test_smpdump(tool, to):
    assert words(tool('smpdump', *to, '0x11')).hex() == (
        '01010101' '0002c90300770003' '0002c90300770000' '0002c90300770001' '0040' '1234'
        '000000a0' '01' '000a0b').ljust(128, '0')
    assert words(tool('smpdump', *to, '0x10')) == DESCRIPTION.encode().ljust(64, b'\0')
    assert words(tool('smpdump', *to, '0x16')).hex() == 'ffff80011234'.ljust(128, '0')


@pytest.mark.parametrize('attribute, status', [
    (0x12, 'SMP status: 0xc'), (0x19, 'SMP status: 0xc'), (0x20, 'SMP status: 0xc'),
    (0xff00, 'SMP status: 0xc'), (0x30, ''), (0x31, '')])
def test_smpdump_of_attributes(tool, attribute, status):
    """Status 0x000C for attributes of switches, managers and vendors; VendorDiag and LedInfo are
    empty."""
    text = tool('smpdump', '2', '0x%x' % attribute)
    assert words(text) == bytes(64) and text.split('\n', 4)[4].strip() == status, text


def test_smpdump_of_notice(tool):
    """An empty queue has type 0x7F."""
    assert words(tool('smpdump', '2', '0x2')).hex() == '7f'.ljust(128, '0')


# ---- the other small ones

@BOTH
def test_ibaddr(tool, to):
    assert tool('ibaddr', *to).strip() == 'GID fe80::2:c903:77:1 LID start 0x2 end 0x2'


@BOTH
def test_ibportstate_query(tool, to):
    text = tool('ibportstate', *to, '1', 'query')
    got = fields(text)
    assert text.startswith('CA/RT PortInfo:')
    for k in ('LinkState', 'PhysLinkState', 'Lid', 'SMLid', 'LMC', 'MkeyLeasePeriod',
              'ProtectBits'):
        assert got[k] == PORT_INFO[k], (k, got)


def test_iblinkinfo(tool):
    """Both ends of the cable, each as seen by the other."""
    text = tool('iblinkinfo')
    assert re.search(r'CA: polca agents:\s*\n\s+0x0002c90300770001\s+2\s+1\[ *\] ==\( *4X .*Active/'
                     r' *LinkUp\)==>\s+1\s+1\[ *\] "bridge"', text), text
    assert re.search(r'CA: bridge:\s*\n\s+0x0002c9fffe000011\s+1\s+1\[ *\] ==\( *4X .*Active/'
                     r' *LinkUp\)==>\s+2\s+1\[ *\] "polca agents"', text), text


def test_ibnetdiscover(tool):
    text = tool('ibnetdiscover')
    # diags 44 prints the bare identifiers
    assert re.search(r'vendid=0xa0b\ndevid=0x1234\nsysimgguid=0x2c90300770003\n'
                     r'caguid=0x2c90300770000\nCa\t1 "H-0002c90300770000"\t+# "polca agents"\n'
                     r'\[1\]\(2c90300770001\) ', text), text
    assert '# lid 2 lmc 0 "bridge" lid 1 4x' in text


def test_ibhosts(tool):
    assert 'Ca\t: 0x0002c90300770000 ports 1 "polca agents"' in tool('ibhosts')


def test_ibtracert(tool):
    text = tool('ibtracert', '1', '2')
    assert re.search(r'From ca \{0x0002c9fffe000010\} portnum 1 lid 1-1 "bridge"\n'
                     r'\[1\] -> ca port \{0x0002c90300770001\}\[1\] lid 2-2 "polca agents"',
                     text), text


def test_sminfo_of_a_port_without_manager(wire):
    r = wire.bridge.run('sminfo', '-t', '300', '2', check=False)
    assert r.returncode != 0 and 'query' in r.stderr + r.stdout, r


# ---- what tools set

@pytest.fixture
def heard(polca):
    """The events since the test began."""
    next_one = polca.rpc('events', since=0, max=1000)['next']
    return lambda: [e['event'] for e in polca.rpc('events', since=next_one)['events']]


@BOTH
@pytest.mark.parametrize('how', ['down', 'reset'])
def test_ibportstate_down_and_up(tool, polca, heard, to, how):
    """A link that is taken down trains again: the answer shows this, and without a subnet
    manager this port becomes Active again. An event reports it."""
    first, then = tool('ibportstate', *to, '1', how).split('After PortInfo set:')
    assert fields(first)['LinkState'] == 'Active'
    for got in (fields(then), fields(tool('ibportstate', '-D', '0,1', '1', 'query'))):
        assert (got['LinkState'], got['PhysLinkState']) == ('Active', 'LinkUp')
    wait_until(lambda: heard() == ['PORT_ERR', 'PORT_ACTIVE'])


@BOTH
def test_ibportstate_disable(wire, tool, polca, heard, to):
    """A disabled port sends nothing, not even the answer to that Set; only a local command
    enables it again."""
    r = wire.bridge.run('ibportstate', '-t', '100', *to, '1', 'disable', check=False)
    assert r.returncode != 0, r
    wait_until(lambda: heard() == ['PORT_ERR'])
    for route in (['2'], ['-D', '0,1']):
        r = wire.bridge.run('smpquery', '-t', '100', *route[:-1], 'nodeinfo', route[-1], check=False)
        assert r.returncode != 0, r
    info = polca.rpc('smp_get', attribute='PortInfo', path='0')['fields']
    assert (info['port_state'], info['port_phys_state']) == ('down', 'disabled'), info
    polca.rpc('smp_set', attribute='PortInfo', path='0', fields=dict(port_phys_state='polling'))
    wire.to_itself += 6  # two Gets and the Set, each with its answer
    wait_until(lambda: heard() == ['PORT_ERR', 'PORT_ACTIVE'])
    assert fields(tool('smpquery', 'portinfo', '2', '1'))['LinkState'] == 'Active'


def test_ibportstate_active_again(tool):
    """Set the port's present state again."""
    then = tool('ibportstate', '2', '1', 'active').split('After PortInfo set:')[1]
    assert fields(then)['LinkState'] == 'Active'


@pytest.mark.parametrize('what', [('width', '8'), ('speed', '4'), ('arm',)])
def test_ibportstate_refused(wire, tool, what):
    """An unsupported width or speed, or an invalid state: status 0x001C, and the field is
    unchanged."""
    before = fields(tool('smpquery', 'portinfo', '2', '1'))
    r = wire.bridge.run('ibportstate', '2', '1', *what, check=False)
    assert r.returncode != 0 and 'smp set portinfo failed' in r.stdout, r
    assert fields(tool('smpquery', 'portinfo', '2', '1')) == before


@pytest.mark.parametrize('mtu, shown', [('1', '256'), ('3', '1024')])
def test_ibportstate_changes_the_mtu(tool, polca, mtu, shown):
    tool('ibportstate', '2', '1', 'mtu', mtu)
    assert fields(tool('smpquery', 'portinfo', '2', '1'))['NeighborMTU'] == shown
    assert polca.rpc('port_list')['ports'][0]['active_mtu'] == int(shown)


def test_ibportstate_changes_the_lid(wire, tool, polca):
    """A new LID is valid at once: the old one is not answered, the new one is."""
    try:
        wire.bridge.run('ibportstate', '-D', '0,1', '1', 'lid', '9', check=False)
        assert fields(tool('smpquery', '-D', 'portinfo', '0,1', '1'))['Lid'] == '9'
        assert fields(tool('smpquery', 'nodeinfo', '9')) == NODE_INFO
        assert polca.rpc('port_list')['ports'][0]['lid'] == 9
        r = wire.bridge.run('smpquery', '-t', '100', 'nodeinfo', '2', check=False)
        assert r.returncode != 0
    finally:
        wire.bridge.run('ibportstate', '-D', '0,1', '1', 'lid', '2', check=False)
    assert fields(tool('smpquery', 'nodeinfo', '2')) == NODE_INFO
