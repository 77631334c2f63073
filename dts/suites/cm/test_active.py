# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca connects: REQ sent, REP received, RTU sent (cm 4, 5, 6, 7), field by field; rejected,
repeated, late and wrong messages."""

import pytest

import cmwire
from cmpeer import Asking, DREP, DREQ, POLCA_IP, REJ, REQ, RTU, STATION_IP, STATION_IP6
from conn import wait_until
from rpc import RpcError
from services import driver

PORT = 4711
# a REQ is repeated after twice the path's 64 ms plus the peer's 512 ms, that is 640 ms, within
# which even a slow peer answers
RESPONSE_TIMEOUT, PACKET_LIFE, ACK_DELAY, RETRIES = 17, 14, 14, 3
CONFIG = dict(cm=dict(response_timeout=RESPONSE_TIMEOUT, packet_life=PACKET_LIFE,
                      ack_delay=ACK_DELAY, max_retries=RETRIES))


@pytest.fixture
def ask(wire):
    """ask(...): start a cm_connect to the peer's port."""
    def start(address=STATION_IP, service='echo', port=PORT, **more):
        return Asking(wire.polca, 'cm_connect', dgid=address, service=service, port=port,
                      **dict(dict(count=1, size=16), **more))
    yield start
    for c in wire.connections():
        try:
            wire.polca.rpc('cm_disconnect', connection=c)
        except RpcError:
            pass


def refused(asking):
    with pytest.raises(RpcError) as e:
        asking.result()
    return e.value


def serve_one(c, n=0):
    """Echo the n-th Send of Polca."""
    r = c.data.rx()
    c.data.ack(r.psn, n + 1)
    c.data.send_only(c.remote_psn + n, r.payload)
    c.data.expect_acked(c.remote_psn + n)
    return r


def test_connect_transfer_disconnect(wire, peer, ask, counted):
    asking = ask()
    c, req = peer.expect_req()
    # cm 2, 4, 5, 7
    assert req.service_id == cmwire.service_id(PORT)
    assert (req.remote_timeout, req.local_timeout, req.max_cm_retries) == (
        RESPONSE_TIMEOUT, RESPONSE_TIMEOUT, RETRIES)
    assert (req.transport, req.extended, req.rdc, req.qkey, req.eecn, req.remote_eecn,
            req.vendor_id) == (cmwire.RC, 0, 0, 0, 0, 0, 0)
    assert (req.pkey, req.mtu, req.retry_count, req.rnr_retry_count) == (0xffff, 3, 7, 7)
    # a routed path has permissive LIDs
    assert (req.local_lid, req.remote_lid, req.subnet_local) == (0xffff, 0xffff, 0)
    assert req.hop_limit > 1 and (req.rate, req.sl, req.traffic_class) == (0, 0, 0)
    assert req.local_gid == cmwire.gid(POLCA_IP) and req.remote_gid == cmwire.gid(STATION_IP)
    # seed 002: the larger of delay and lifetime + 1, plus one if they are close to each other
    assert req.ack_timeout == PACKET_LIFE + 2
    assert not any(req.data[96:140])  # no alternate path
    assert req.qpn > 1 and req.ca_guid and req.local_id
    head = req.private[:36]
    assert head == cmwire.rdma(POLCA_IP, STATION_IP, cmwire.RDMA.get(head, 'src_port'))
    assert cmwire.RDMA.get(head, 'src_port')
    c.rep(responder_resources=3, initiator_depth=2, rnr_retry_count=5, ack_delay=20)
    rtu = c.expect(RTU, tid=req.tid)
    assert not any(rtu.private)
    answer = asking.result()
    assert (answer['connection'], answer['remote_qpn'], answer['qp_num']) == (
        c.remote_id, c.qpn, c.remote_qpn)
    # crossed; the timeout is computed again with the peer's delay: max(20, 15)
    qp = wire.polca.rpc('qp_show', qp_num=c.remote_qpn)
    assert (qp['qp_state'], qp['max_rd_atomic'], qp['max_dest_rd_atomic'], qp['rnr_retry'],
            qp['timeout'], qp['retry_cnt']) == (
        'RTS', min(3, req.initiator_depth), min(2, req.responder_resources), 5, 20, 7)
    r = serve_one(c)
    assert (r.psn, len(r.payload)) == (c.psn, 16)  # with the first PSN of our REP
    dreq = c.expect(DREQ, qpn=c.qpn)
    c.drep(dreq)
    wait_until(lambda: counted['disconnects'])
    grown = counted.grown()
    assert grown == dict(connections=1, disconnects=1, sent_req=1, sent_rtu=1, sent_dreq=1,
                         received_rep=1, received_drep=1), grown


def test_ipv6(wire, ask):
    with wire.peer(STATION_IP6) as peer:
        asking = ask(STATION_IP6)
        c, req = peer.expect_req()
        assert req.private[1] == 0x60 and req.local_gid == cmwire.gid(wire.polca_ip6)
        c.rep()
        c.expect(RTU)
        asking.result()
        serve_one(c)
        c.drep(c.expect(DREQ))


def test_request_comes_again_the_same(peer, ask, counted):
    asking = ask()
    c, req = peer.expect_req()
    for _ in range(RETRIES):
        assert peer.expect(REQ).mad == req.mad
    c.rep()
    while peer.expect_any(RTU, REQ).kind is not RTU:  # another REQ may have been under way
        pass
    asking.result()
    serve_one(c)
    c.drep(c.expect(DREQ))
    assert counted['retries'] == RETRIES


def test_silence(wire, peer, ask, counted):
    """cm 6: retries exhausted: REJ timeout, and an error that says so; nothing is left."""
    e = ask()
    mads = [peer.expect(REQ).mad for _ in range(RETRIES + 1)]
    assert len(set(mads)) == 1
    rej = peer.expect(REJ, reason=cmwire.TIMEOUT)
    req = cmwire.Message(mads[0])
    assert (rej.tid, rej.local_id, rej.remote_id) == (req.tid, req.local_id, 0)
    assert rej.info_length == 8 and int.from_bytes(rej.ari[:8], 'big') == req.ca_guid
    assert refused(e).data['errno'] == 'ETIMEDOUT'
    assert counted['timeouts'] == 1
    assert req.local_id not in wire.connections()


@pytest.mark.parametrize('reason', list(range(1, 34)) + [35, 36, 0, 0xffff])
def test_rejected(wire, peer, ask, reason, counted):
    """Each reason, known or not, ends the attempt and is reported."""
    asking = ask(service='sink')
    c, req = peer.expect_req()
    c.open = False
    c.rej(reason, local_id=0, private=b'because')
    e = refused(asking)
    assert e.data['errno'] == 'ECONNREFUSED' and e.data['reason'] == reason
    assert bytes.fromhex(e.data['private_data'])[:7] == b'because'
    assert counted['rejected'] == 1 and counted['received_rej'] == 1
    wire.wait_idle()


def test_mra_of_the_request_is_waited_for(wire, peer, ask, counted):
    """cm 5: the MRA's time is longer than all retries would have lasted."""
    asking = ask(timeout_ms=60000)
    c, _ = peer.expect_req()
    c.mra(cmwire.OF_REQ, 21)  # eight seconds
    wait_until(lambda: wire.connections()[c.remote_id]['state'] == 'MRA_REQ_RCVD')
    peer.drain()
    assert peer.maybe(3.0) is None
    c.rep()
    c.expect(RTU)
    asking.result()
    serve_one(c)
    c.drep(c.expect(DREQ))
    assert counted['received_mra'] == 1


def test_reply_again_gets_the_rtu_again(peer, ask, counted):
    asking = ask()
    c, _ = peer.expect_req()
    c.rep()
    first = c.expect(RTU)
    for _ in range(3):
        c.rep()
        assert c.expect(RTU).data == first.data
    asking.result()
    serve_one(c)
    c.drep(c.expect(DREQ))
    assert counted['duplicates'] == 3 and counted['connections'] == 1


def test_reply_of_a_queue_pair_that_is_connected(wire, peer, ask):
    """cm 6: the stale test on a REP: REJ 10 of a REP. The old connection ends,
    because its queue pair does not answer."""
    asking = ask(service='sink', count=1000000)
    old, _ = peer.expect_req()
    old.rep()
    old.expect(RTU)
    asking.result()
    asking = ask(service='sink')
    new, _ = peer.expect_req()
    new.open = False
    new.rep(qpn=old.qpn)
    rej = peer.expect(REJ, reason=cmwire.STALE)
    assert (rej.answers, rej.remote_id) == (cmwire.OF_REP, new.local_id)
    old.open = False
    assert refused(asking).data['reason'] == cmwire.STALE
    wire.wait_idle()


@pytest.mark.parametrize('qpn', [0, 1])
def test_reply_with_an_impossible_queue_pair(peer, ask, qpn, counted):
    """A wrong one is dropped; the right one is still accepted."""
    asking = ask()
    c, _ = peer.expect_req()
    c.rep(qpn=qpn)
    c.rep()
    c.expect(RTU)
    asking.result()
    serve_one(c)
    c.drep(c.expect(DREQ))
    assert counted['malformed'] == 1


def test_late_reply(wire, peer, ask):
    """The attempt was given up meanwhile: REJ 6 for the REP, so the peer need not wait."""
    asking = ask()
    c, req = peer.expect_req()
    for _ in range(RETRIES):
        peer.expect(REQ)
    peer.expect(REJ, reason=cmwire.TIMEOUT)
    refused(asking)
    c.rep()
    peer.expect(REJ, reason=cmwire.INVALID_ID, answers=cmwire.OF_REP, remote_id=c.local_id,
                local_id=req.local_id)
    c.open = False


def test_given_up_by_its_owner(wire, peer, ask):
    """cm 6: abandoned before it was established: REJ timeout."""
    asking = ask(service='sink')
    c, req = peer.expect_req()
    wire.polca.rpc('cm_disconnect', connection=req.local_id)
    peer.expect(REJ, reason=cmwire.TIMEOUT)
    c.open = False
    assert refused(asking).data['errno'] == 'ECONNABORTED'
    assert req.local_id not in wire.connections()


def test_rej_of_what_stands(wire, peer, ask):
    """cm 6: ESTABLISHED, REJ: TIMEWAIT."""
    asking = ask(service='sink', count=1000000)
    c, _ = peer.expect_req()
    c.rep()
    c.expect(RTU)
    asking.result()
    c.rej(cmwire.CONSUMER, answers=cmwire.OF_OTHER)
    c.open = False
    wait_until(lambda: wire.connections()[c.remote_id]['state'] == 'TIMEWAIT')
    assert wire.connections()[c.remote_id]['end'] == 'REJECTED'
    wire.gone(c)


def test_peer_disconnects_in_mid_transfer(wire, peer, ask):
    asking = ask(service='sink', count=1000000)
    c, _ = peer.expect_req()
    c.rep()
    c.expect(RTU)
    answer = asking.result()

    def row():
        return driver(wire.polca, answer['connection'])
    c.data.ack(c.data.rx().psn, 1)
    wait_until(lambda: row()['messages_out'])
    c.disconnect()
    wire.gone(c)
    assert row()['state'] == 'ENDED' and row()['messages_out'] < 1000000
    c.data.drain()


def test_peer_falls_silent(wire, peer, ask):
    """Retry exceeded: the QP is in ERR, DREQs are sent until their retries are exhausted, and
    everything is freed."""
    asking = ask(service='sink', count=1000000)
    c, _ = peer.expect_req()
    c.rep(ack_delay=0)
    c.expect(RTU)
    asking.result()
    dreqs = [c.expect(DREQ, timeout=60) for _ in range(RETRIES + 1)]
    assert len({d.mad for d in dreqs}) == 1
    assert wire.connections()[c.remote_id]['qp_num'] == c.remote_qpn
    wire.gone(c)
    c.open = False
    c.data.drain()


def test_disconnects_cross(wire, peer, ask):
    """cm 6: both DREQs under way: each side gets its DREP or ends without it."""
    asking = ask(service='sink', count=1000000)
    c, _ = peer.expect_req()
    c.rep()
    c.expect(RTU)
    asking.result()
    wire.polca.rpc('cm_disconnect', connection=c.remote_id)
    theirs = c.expect(DREQ)
    c.tid = next(peer.tids)
    c.dreq()
    c.expect(DREP, tid=c.tid)
    c.drep(theirs)
    wire.gone(c)


def test_callers_own_queue_pair(wire, peer):
    """Without a service, the caller's own calls drive the connection."""
    rpc = wire.polca.rpc
    pd, cq = rpc('pd_create')['pd'], rpc('cq_create', depth=16)['cq']
    mr = rpc('mr_register', pd=pd, length=4096, access=['LOCAL_WRITE'])
    asking = Asking(wire.polca, 'cm_connect', dgid=STATION_IP, port=PORT, pd=pd, send_cq=cq,
                    private_data=b'to the peer'.hex())
    c, req = peer.expect_req()
    assert req.private[36:47] == b'to the peer'
    c.rep(private=b'to polca')
    c.expect(RTU)
    answer = asking.result()
    assert bytes.fromhex(answer['private_data'])[:8] == b'to polca'
    rpc('mr_write', key=mr['key'], offset=0, data=b'by hand'.hex())
    rpc('post_send', qp_num=answer['qp_num'], wr=[dict(
        wr_id=5, opcode='SEND', send_flags=['SIGNALED'],
        sg_list=[dict(key=mr['key'], length=7)])])
    r = c.data.rx()
    assert r.payload == b'by hand'
    c.data.ack(r.psn, 1)
    assert rpc('cq_poll', cq=cq, max=1, min=1, timeout_ms=20000)['wc'][0]['status'] == 'SUCCESS'
    c.disconnect()
    wire.gone(c)
    rpc('mr_deregister', key=mr['key'])
    rpc('cq_destroy', cq=cq)
    rpc('pd_destroy', pd=pd)
