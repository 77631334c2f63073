# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The peer has one virtual lane, the appliance eight: opensm sets OperVLs and takes the link
down for this; the port trains again at once, and the manager reports no error."""

from conn import wait_until
from umad import fields

NAMES = ['a']
OPTIONS = dict(vl_cap=1)


def test_subnet_up(subnet):
    subnet.opensm.start()
    wait_until(lambda: subnet.port('a')['state'] == 'ACTIVE', timeout=30)
    assert subnet.opensm.errors() == []
    got = fields(subnet.bridge.run('smpquery', 'portinfo', subnet.lid('a'), 1).stdout)
    assert got['OperVLs'] == 'VL0' and got['VLCap'] == 'VL0-7', got
    assert '1 received' in subnet.bridge.run('ibping', '-c', '1', '-f', subnet.lid('a')).stdout
