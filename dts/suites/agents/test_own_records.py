# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""An SA without imported records returns the same about its own port as the port's agent: two
tools, two ways, the same answers."""

import re

import pytest

from conn import wait_until
from ibports import DESCRIPTION, LID, PORT_GUID, STATIC
from umad import dumps, fields

CONFIG = dict(ib=dict(STATIC, vls=4), pkeys=[0xffff, 0x8001])
BRIDGE = {}


def port_record(tool, lid=LID):
    """The PortInfo in the SA's record."""
    return fields(tool('saquery', 'PIR', lid).split('PortInfo dump:')[1])


def port_info(tool, lid=LID):
    return fields(tool('smpquery', 'portinfo', lid, 1))


def test_node(tool):
    (_, row), = dumps(tool('saquery', 'NR'))
    assert row == {
        'lid': '2', 'reserved': '0x0', 'base_version': '0x1', 'class_version': '0x1',
        'node_type': 'Channel Adapter', 'num_ports': '1', 'sys_guid': '0x0002c90300770003',
        'node_guid': '0x0002c90300770000', 'port_guid': '0x0002c90300770001',
        'partition_cap': '0x40', 'device_id': '0x1234', 'revision': '0xA0', 'port_num': '1',
        'vendor_id': '0xA0B', 'NodeDescription': DESCRIPTION}


def test_port(tool):
    """PortInfoRecord and Get(PortInfo): all fields except the changing counters."""
    record, info = port_record(tool), port_info(tool)
    assert len(record) > 40
    for k in record:
        if 'Violations' not in k:
            assert record[k] == info[k], (k, record, info)


def test_pkeys(tool):
    text = tool('saquery', 'PKTR', '%d/1/0' % LID)
    keys = [int(v, 16) for v in re.findall(r'\b0x([0-9a-f]{4})\b', text)]
    assert keys == [0xffff, 0x8001] + [0] * 30


def test_guids(tool):
    text = tool('saquery', 'GIR', '%d/0' % LID)
    assert [int(v, 16) for v in re.findall(r'0x([0-9a-f]{16})', text)] == [PORT_GUID] + [0] * 7


@pytest.mark.parametrize('what', ['LR', 'SWIR'])
def test_no_switch_no_links(tool, what):
    assert dumps(tool('saquery', what)) == []


def test_it_follows_the_port(wire, tool):
    """A manager assigns another LID: a query to the new LID finds it in the record."""
    tool('ibportstate', '-D', '0,1', 1, 'smlid', 5)
    tool('ibportstate', '-D', '0,1', 1, 'lid', 17)
    try:
        there = wire.bridge.asking(17)

        def record():
            text = there.run('saquery', 'PIR', 17).stdout
            return fields(text.split('PortInfo dump:')[1]) if 'PortInfo dump:' in text else {}
        wait_until(lambda: record().get('SMLid') == '5')
        assert record()['Lid'] == '17'
        (_, row), = dumps(there.run('saquery', 'NR').stdout)
        assert row['lid'] == '17'
    finally:
        tool('ibportstate', '-D', '0,1', 1, 'smlid', 1)
        tool('ibportstate', '-D', '0,1', 1, 'lid', LID)
    wait_until(lambda: dumps(tool('saquery', 'NR', LID)))
    tool('ibportstate', LID, 1, 'mtu', 1)
    wait_until(lambda: port_record(tool)['NeighborMTU'] == '256')
