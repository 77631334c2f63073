# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A port in a VLAN, with a gateway for what is outside its prefix."""

import pytest

from conn import wait_until
from roce import Op

VLAN = 5
GATEWAY = '10.77.0.2'  # the station itself
WIRE = dict(vlan=VLAN, addresses=[{'address': '10.77.0.1/24', 'gateway': GATEWAY},
                                  'fd77::1/64', '10.77.0.11/24'])


def test_tagged_both_ways(connect):
    c = connect()
    c.peer.tx(Op.WRITE_ONLY, c.psn, b'abc', reth=(c.va, c.key, 3), ackreq=1, vlan=VLAN)
    r = c.peer.expect_ack(c.next())
    assert r.vlan_tci & 0xfff == VLAN
    assert c.mr.read(0, 3) == b'abc'


@pytest.mark.parametrize('vlan', [None, 6])
def test_other_vlans_are_dropped(connect, vlan):
    c = connect()
    before = c.hca.verdicts()['not_our_vlan']
    c.peer.tx(Op.WRITE_ONLY, c.psn, b'abc', reth=(c.va, c.key, 3), ackreq=1, vlan=vlan)
    wait_until(lambda: c.hca.verdicts()['not_our_vlan'] == before + 1)
    c.peer.expect_nothing()


@pytest.mark.parametrize('sl', [0, 3, 7])
def test_service_level_is_the_priority_of_the_tag(connect, sl):
    c = connect(sl=sl)
    c.qp.post_send('write', sg=[(c.mr, 0, 4)], remote_addr=0, rkey=1)
    r = c.peer.expect(Op.WRITE_ONLY, c.sq_psn)
    assert (r.vlan_tci >> 13, r.vlan_tci & 0xfff) == (sl, VLAN)
    c.peer.tx(Op.ACK, r.psn, aeth=(31, 1), vlan=VLAN)
    assert c.qp.poll()[0].status == 0


def test_a_peer_beyond_the_gateway(connect):
    c = connect(peer_ip='198.51.100.9', next_hop=GATEWAY)
    c.qp.post_send('write', wr_id=4, sg=[(c.mr, 0, 4)], remote_addr=0, rkey=1)
    r = c.peer.expect(Op.WRITE_ONLY, c.sq_psn)
    assert r.dst == '198.51.100.9' and r.frame[:6].hex(':') == c.station.mac
    c.peer.tx(Op.ACK, r.psn, aeth=(31, 1), vlan=VLAN)
    assert c.qp.poll()[0].status == 0
