# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""CM on a native InfiniBand port, message by message: incoming connections, and connections with
the path returned by the SA (cm 2, 4)."""

import struct

import pytest

import cmwire
import ibports
from cmpeer import Asking, CmPeer, DREQ, IbWay, RTU
from ibports import LID, PEER_LID, PORT_GUID, PREFIX
from mad import CLASS_PORT_INFO, Mad, PATH
from rpc import RpcError

SERVICE = 0x1000000012345678
PEER_PORT_GUID = 0x0002c90300780001
POLCA_GID = struct.pack('>QQ', PREFIX, PORT_GUID)
PEER_GID = struct.pack('>QQ', PREFIX, PEER_PORT_GUID)
PEER_GID_TEXT = 'fe80::2:c903:78:1'
SUBN_ADM, GET_TABLE = 3, 0x12


@pytest.fixture(scope='module')
def wire(kept, sockets):
    w = ibports.Wire(kept, sockets, cm=dict(response_timeout=18, max_retries=2),
                     services=[dict(kind='sink', service_id='0x%x' % SERVICE)])
    try:
        w.polca.start()
        w.by_hand()
        yield w
        w.audit()
    finally:
        w.close()


@pytest.fixture
def peer(wire):
    with CmPeer(IbWay(wire.station, PEER_GID, POLCA_GID)) as p:
        yield p
    assert wire.polca.alive(), wire.polca.tail()


def connect(wire, **more):
    return Asking(wire.polca, 'cm_connect', service_id=SERVICE, service='sink', count=1000000,
                  **more)


def test_connected_to(wire, peer):
    c = peer.new()
    c.req(SERVICE)
    c.expect_rep()
    c.rtu()
    show = wire.polca.rpc('cm_show', connection=c.remote_id)
    assert (show['path']['dlid'], show['path']['path_mtu']) == (PEER_LID, 1024), show
    qp = wire.polca.rpc('qp_show', qp_num=c.remote_qpn)
    assert qp['qp_state'] == 'RTS'
    c.disconnect()


@pytest.mark.parametrize('fields,reason', [
    (dict(remote_lid=LID + 7), cmwire.INVALID_LID),
    (dict(local_lid=0), cmwire.INVALID_LID),
    (dict(local_lid=0xc001), cmwire.INVALID_LID),
    (dict(remote_gid=PEER_GID), cmwire.INVALID_GID),
    (dict(subnet_local=0, hop_limit=1), cmwire.INVALID_HOP_LIMIT),
    (dict(rate=1), cmwire.INVALID_RATE),
    (dict(service_id=5), cmwire.INVALID_SERVICE)])
def test_refused(peer, fields, reason):
    c = peer.new()
    c.req(fields.pop('service_id', SERVICE), **fields)
    c.expect_rej(reason)
    c.open = False


def test_connects_by_all_that_its_caller_knows(wire, peer):
    asking = connect(wire, dlid=PEER_LID, dgid=PEER_GID_TEXT, hop_limit=1, path_mtu=1024,
                     packet_life=14)
    c, req = peer.expect_req()
    assert (req.local_lid, req.remote_lid, req.subnet_local) == (LID, PEER_LID, 1)
    assert (req.local_gid, req.remote_gid) == (POLCA_GID, PEER_GID)
    assert (req.mtu, req.pkey, req.service_id) == (3, 0xffff, SERVICE)
    c.rep()
    c.expect(RTU)
    answer = asking.result()
    assert answer['path_mtu'] == 1024
    wire.polca.rpc('cm_disconnect', connection=c.remote_id)
    c.drep(c.expect(DREQ))


def answer_path(wire, timeout=10, status=0, **record):
    """The SA's part: its ClassPortInfo, which Polca queries once, and the PathRecord; returns
    the query's data."""
    q = Mad(wire.station.rx(timeout).mad)
    if q.attr == CLASS_PORT_INFO.attr:
        data = CLASS_PORT_INFO.put(base_version=1, class_version=2, resp_time=16)
        wire.station.tx(bytes(q.turned(data=data)), 1)
        q = Mad(wire.station.rx(timeout).mad)
    assert (q.raw[1], q.attr) == (SUBN_ADM, PATH.attr), q
    assert q.method == 0x01, q  # Get
    data = PATH.put(**dict(dict(dgid=PEER_GID, sgid=POLCA_GID, dlid=PEER_LID, slid=LID,
                                reversible=1, numb_path=1, pkey=0xffff, mtu_selector=2, mtu=2,
                                rate_selector=2, rate=3, packet_life_selector=2, packet_life=17),
                           **record)) if not status else b''
    wire.station.tx(bytes(q.turned(data=data, status=status)), 1)
    return q


def test_asks_the_sa_for_the_path(wire, peer):
    """MTU, lifetime and rate of the PathRecord are in the REQ."""
    asking = connect(wire, dgid=PEER_GID_TEXT)
    q = answer_path(wire)
    assert PATH.get(q.data, 'dgid') == int.from_bytes(PEER_GID, 'big')
    c, req = peer.expect_req()
    assert (req.local_lid, req.remote_lid, req.mtu, req.rate) == (LID, PEER_LID, 2, 3)
    assert req.ack_timeout in (18, 19)  # 17 + 1, plus one if our delay is close to it
    c.rej(cmwire.CONSUMER, local_id=0)
    c.open = False
    with pytest.raises(RpcError) as e:
        asking.result()
    assert e.value.data['errno'] == 'ECONNREFUSED'


def test_the_sa_knows_no_path(wire, peer):
    asking = connect(wire, dgid=PEER_GID_TEXT)
    answer_path(wire, status=0x0300)  # no records
    with pytest.raises(RpcError) as e:
        asking.result()
    assert 'path' in e.value.message.lower(), e.value
    assert not peer.drain()
