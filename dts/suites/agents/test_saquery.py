# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""saquery, unmodified from Debian, against subnet administration of the appliance: every record
type that it queries, each record compared with the imported one; tables of thousands by RMPP."""

import json
import os
import re

import pytest

from umad import dumps, fields

BRIDGE = {}
HERE = os.path.dirname(os.path.realpath(__file__))
FABRIC = os.path.join(HERE, '..', '..', '..', 'config', 'fabric-example.ibnetdiscover')
HOSTS, SWITCHES, LINKS = 200, 24, 656
NODES = HOSTS + SWITCHES


def load(wire):
    """The example fabric, imported as an operator does, and the default P_Key, which the file
    lacks."""
    wire.polca.ctl('sa', 'import', FABRIC, '--replace', '--mtu', '4096')
    with open(FABRIC) as f:
        lids = set(re.findall(r'# "[^"]*" base port 0 lid (\d+)|# lid (\d+) lmc', f.read()))
    wire.polca.rpc('sa_import', text=json.dumps([
        dict(record='P_KeyTableRecord', lid=int(a or b), port_num=0 if a else 1, pkeys='0xffff')
        for a, b in lids]))


@pytest.fixture(scope='module')
def fabric(wire):
    """The exported records by type."""
    wire.wait_own_records()
    load(wire)
    by_type, cursor = {}, 0
    while cursor is not None:
        page = wire.polca.rpc('sa_export', cursor=cursor)
        for r in page['records']:
            r.update({k: int(v, 0) for k, v in r.items() if k.endswith('lid')})
            by_type.setdefault(r['record'], []).append(r)
        cursor = page['cursor']
    return by_type


def number(v):
    return int(v, 0) if isinstance(v, str) else v


def table(tool, *query):
    return dumps(tool('saquery', *query))


def test_classportinfo(tool, fabric):
    got = fields(tool('saquery', '-c'))
    assert got['Base version'] == '1' and got['Class version'] == '2'
    assert got['Redirect GID'] == '::' and got['Redirect QP'] == '0x00000000'
    assert int(got['Capability mask'], 16) & 0x0200  # subnet administration: optional records


def test_nodes(tool, fabric):
    """Every NodeRecord, every field."""
    rows = table(tool, 'NR')
    assert len(rows) == NODES == len(fabric['NodeRecord'])
    types = {'ca': 'Channel Adapter', 'switch': 'Switch', 'router': 'Router'}
    want = {r['lid']: r for r in fabric['NodeRecord']}
    assert len(want) == NODES
    for kind, row in rows:
        w = want.pop(int(row['lid']))
        assert kind == 'NodeRecord'
        assert row == {
            'lid': str(w['lid']), 'reserved': '0x0', 'base_version': '0x%x' % w['base_version'],
            'class_version': '0x%x' % w['class_version'], 'node_type': types[w['node_type']],
            'num_ports': str(w['num_ports']), 'sys_guid': w['sys_guid'],
            'node_guid': w['node_guid'], 'port_guid': w['port_guid'],
            'partition_cap': '0x%x' % number(w['partition_cap']),
            'device_id': '0x%X' % number(w['device_id']),
            'revision': '0x%X' % number(w['revision']), 'port_num': str(w['port_num']),
            'vendor_id': '0x%X' % number(w['vendor_id']), 'NodeDescription': w['node_desc']}
    assert not want


@pytest.mark.parametrize('lid', [1, 213])
def test_node_by_lid(tool, fabric, lid):
    (kind, row), = table(tool, 'NR', lid)
    assert row['lid'] == str(lid)


def test_node_by_name(tool, fabric):
    assert tool('saquery', '-L', 'host016').strip() == '213'
    assert tool('saquery', '-G', 'host016').strip() == '0x0002c903001000f1'
    assert tool('saquery', '-O', '213').strip() == 'host016'


def test_ports(tool, fabric):
    """A PortInfoRecord of each end of each link, and of each switch's port 0."""
    text = tool('saquery', 'PIR')
    want = {(r['lid'], r['port_num']): r for r in fabric['PortInfoRecord']}
    rows = re.findall(r'PortInfoRecord dump:(.*?)(?=PortInfoRecord dump:|\Z)', text, re.S)
    assert len(rows) == len(want) == len(fabric['PortInfoRecord']) == LINKS + SWITCHES
    for body in rows:
        row = fields(body)
        w = want.pop((int(row['EndPortLid']), int(row['PortNum'])))
        assert number(row['GidPrefix']) == number(w['gid_prefix']) and int(row['Lid']) == w['base_lid']
        assert row['LinkState'].lower() == w['port_state']
        assert row['PhysLinkState'].lower() == w['port_phys_state'].replace('_', '')
        assert row['NeighborMTU'] == w['neighbor_mtu'] and row['MtuCap'] == w['mtu_cap']
        # port 0 of a switch: the file has no value
        assert row['LinkWidthActive'].lower().replace('undefined (0)', '0x0') == \
            w['link_width_active']
    assert not want


def test_links(tool, fabric):
    rows = table(tool, 'LR')
    got = sorted((int(r['FromLID']), int(r['FromPort']), int(r['ToPort']), int(r['ToLID']))
                 for _, r in rows)
    assert len(got) == LINKS
    assert got == sorted((r['from_lid'], r['from_port'], r['to_port'], r['to_lid'])
                         for r in fabric['LinkRecord'])


def test_switches(tool, fabric):
    rows = re.findall(r'\bLID\.+(\d+)', tool('saquery', 'SWIR'))
    assert sorted(map(int, rows)) == sorted(r['lid'] for r in fabric['NodeRecord']
                                            if r['node_type'] == 'switch')


def test_guids(tool, fabric):
    want = {r['lid']: r['port_guid'] for r in fabric['NodeRecord']}
    text = tool('saquery', 'GIR')
    parts = re.findall(r'LID\.+(\d+)\s+Block\.+(\d+)\s+GUID 0\.+(0x[0-9a-f]{16})\s+'
                       r'GUID 1\.+0x0000000000000000', text)
    assert {int(lid): guid for lid, block, guid in parts} == want


def test_pkeys(tool, fabric):
    """A P_KeyTableRecord of each node, the default partition first."""
    text = tool('saquery', 'PKTR')
    parts = re.findall(r'LID\.+(\d+)\s+Port\.+(\d+)\s+Block\.+(\d+)\s+PKey Table:\s+(0x\w{4})',
                       text)
    assert len(parts) == NODES and {p[3] for p in parts} == {'0xffff'}
    assert sorted(int(p[0]) for p in parts) == sorted(r['lid'] for r in fabric['NodeRecord'])


def test_all_paths(tool, fabric):
    """50,176 PathRecords in one answer of 16,057 segments, each pair of ports once."""
    text = tool('saquery', '-t', 30000, 'PR')  # its limit for the whole table
    pairs = re.findall(r'dgid\.+(\S+)\s+sgid\.+(\S+)\s+dlid\.+(\d+)\s+slid\.+(\d+)\s', text)
    assert len(pairs) == NODES * NODES == len(set(pairs))

    def gid(guid):
        g = '%016x' % int(guid, 16)
        return 'fe80::' + ':'.join(x.lstrip('0') or '0' for x in (g[0:4], g[4:8], g[8:12], g[12:]))
    of = {r['lid']: gid(r['port_guid']) for r in fabric['NodeRecord']}
    assert {(p[0], int(p[2])) for p in pairs} == {(g, lid) for lid, g in of.items()}
    assert {(p[1], int(p[3])) for p in pairs} == {(g, lid) for lid, g in of.items()}


def test_one_path(tool, fabric):
    (kind, row), = table(tool, 'PR', '--src-to-dst', 'host001:host016')
    assert kind == 'PathRecord'
    assert (row['slid'], row['dlid']) == ('1', '213')
    assert row['sgid'] == 'fe80::2:c903:10:1' and row['dgid'] == 'fe80::2:c903:10:f1'
    assert row['pkey'] == '0xFFFF' and row['sl'] == '0x0' and int(row['num_path_revers'], 16) & 0x80


@pytest.mark.parametrize('query', ['SL2VL', 'VLAR', 'SMIR', 'MCMR', 'SR', 'IIR'])
def test_tables_without_records(wire, fabric, query):
    """Success, and no records (sa-multipacket B7)."""
    r = wire.bridge.run('saquery', query)
    assert dumps(r.stdout) == [] and r.stderr == '', r


def test_forwarding_tables(wire, tool, fabric):
    """Forwarding tables of one switch, only during this test, because paths would follow them."""
    lid = fabric['SwitchInfoRecord'][0]['lid']
    lft = [dict(record='LinearForwardingTableRecord', lid=lid, block_num=b,
                ports=','.join(str(b + i % 8) for i in range(64))) for b in (0, 3)]
    mft = dict(record='MulticastForwardingTableRecord', lid=lid, position=1, block_num=2,
               masks=','.join(hex(0x100 + i) for i in range(32)))
    wire.polca.rpc('sa_import', text=json.dumps(lft + [mft]))
    try:
        text = tool('saquery', 'LFTR')
        assert re.findall(r'LID\.+(\d+)\s+Block\.+(\d+)', text) == [(str(lid), '0'),
                                                                     (str(lid), '3')]
        assert re.findall(r'^\s+(\d+)\t(\d+)$', text, re.M) == [
            (str(64 * b + i), str(b + i % 8)) for b in (0, 3) for i in range(64)]
        text = tool('saquery', 'MFTR')
        assert re.findall(r'^\s+(0x\w{4})\t(0x\w{4})$', text, re.M) == [
            ('0x%04x' % (0xc040 + i), '0x%04x' % (0x100 + i)) for i in range(32)]
    finally:
        load(wire)
    assert table(tool, 'LFTR') == []


def test_nothing_found(wire, fabric):
    r = wire.bridge.run('saquery', 'NR', 0xbeef)
    assert (r.stdout, r.stderr) == ('', ''), r
