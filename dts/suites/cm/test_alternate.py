# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Alternate paths: LAP and APR in both directions, and the reason for each status (cm 2, 3). The
alternate path is the second address of the side that receives the LAP."""

import pytest

from cmpeer import Asking, DREQ, POLCA_IP, POLCA_IP_SECOND, STATION_IP, STATION_IP_SECOND
from cmwire import APR, gid, LAP

CONFIG = dict(cm=dict(response_timeout=17, packet_life=14, max_retries=3),
              services=[dict(kind='memory', port=5, length=4096)])
(OK, INVALID_ID, UNSUPPORTED, REJECTED, REDIRECT, IS_CURRENT, INVALID_QPN, INVALID_LID,
 INVALID_GID) = range(9)
OTHER = dict(local_lid=0xffff, remote_lid=0xffff, local_gid=gid(STATION_IP),
             remote_gid=gid(POLCA_IP_SECOND), hop_limit=64, ack_timeout=15)


@pytest.fixture
def standing(peer):
    return peer.connect(5)


def lap(c, **over):
    c.tid = next(c.peer.tids)
    return c.say(LAP, **dict(dict(OTHER, qpn=c.remote_qpn, remote_timeout=18), **over))


def alternate(wire, c):
    return wire.polca.rpc('cm_show', connection=c.remote_id).get('alternate')


def test_loaded_by_the_peer(wire, standing):
    c = standing
    assert alternate(wire, c) is None
    lap(c)
    c.expect(APR, tid=c.tid, status=OK)
    a = alternate(wire, c)
    assert a['sgid'].endswith(POLCA_IP_SECOND) and a['dgid'].endswith(STATION_IP), a
    assert a['path_mtu'] == 1024


def test_loaded_again_with_the_same_message(wire, standing, counted):
    """The APR was lost."""
    c = standing
    m = lap(c)
    first = c.expect(APR, status=OK)
    for _ in range(2):
        c.peer.way.send(m.mad)
        assert c.expect(APR).mad == first.mad
    assert counted['duplicates'] == 2


@pytest.mark.parametrize('over,status', [
    (dict(remote_gid=gid('10.78.0.99')), INVALID_GID),
    (dict(local_gid=bytes(16)), INVALID_GID),
    (dict(local_gid=gid(STATION_IP_SECOND)), INVALID_GID),  # another host's, for all we know
    (dict(remote_gid=gid(POLCA_IP)), IS_CURRENT),
    (dict(rate=1), 12)])
def test_refused(wire, standing, over, status):
    c = standing
    lap(c, **over)
    c.expect(APR, tid=c.tid, status=status)
    assert alternate(wire, c) is None


def test_for_another_queue_pair(wire, standing):
    c = standing
    c.tid = next(c.peer.tids)
    c.say(LAP, **dict(OTHER, qpn=c.remote_qpn ^ 1))
    c.expect(APR, tid=c.tid, status=INVALID_QPN)


@pytest.fixture
def ours(wire, peer):
    asking = Asking(wire.polca, 'cm_connect', dgid=STATION_IP, port=5, service='memory')
    c = peer.accept(asking)
    yield c
    wire.polca.rpc('cm_disconnect', connection=c.remote_id)
    while (m := c.peer.expect_any(DREQ, LAP)).kind is LAP:
        pass  # repeated before it was answered
    c.drep(m)


def propose(wire, c):
    return Asking(wire.polca, 'cm_load_alternate', connection=c.remote_id, dgid=STATION_IP_SECOND,
                  sgid_index=sgid_index(wire))


def sgid_index(wire):
    """The index of the second address in the port's table."""
    table = wire.polca.rpc('port_list')['ports'][0]['gids']
    return next(g['index'] for g in table if g['gid'].endswith(POLCA_IP_SECOND))


def test_proposed_by_polca(wire, ours):
    c = ours
    asking = propose(wire, c)
    m = c.expect(LAP, qpn=c.qpn)
    assert (m.local_gid, m.remote_gid) == (gid(POLCA_IP_SECOND), gid(STATION_IP_SECOND))
    assert (m.local_lid, m.remote_lid, m.hop_limit > 1, m.subnet_local) == (0xffff, 0xffff, 1, 0)
    c.say(APR, tid=m.tid, status=OK)
    assert asking.result()['agreed']
    assert alternate(wire, c)['dgid'].endswith(STATION_IP_SECOND)


def test_proposal_comes_again_and_is_given_up(wire, ours, counted):
    c = ours
    asking = propose(wire, c)
    mads = [c.expect(LAP).mad for _ in range(4)]
    assert len(set(mads)) == 1
    assert c.peer.maybe(1.0) is None
    assert not asking.result()['agreed']
    assert alternate(wire, c) is None and counted['retries'] == 3


def test_proposal_is_refused(wire, ours, counted):
    c = ours
    asking = propose(wire, c)
    m = c.expect(LAP)
    c.say(APR, tid=m.tid, status=UNSUPPORTED)
    assert not asking.result()['agreed'] and counted['received_apr'] == 1
    c.peer.drain()  # a message may have been under way
    assert c.peer.maybe(1.0) is None
    assert alternate(wire, c) is None
