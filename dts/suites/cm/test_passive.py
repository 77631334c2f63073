# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca accepts connections: REQ received, REP sent, RTU received (cm 4, 6), field by field;
repeated, lost and crossed messages; and disconnecting."""

import pytest

import cmwire
from cmpeer import ACK_TIMEOUT, DREP, DREQ, REJ
from cmwire import service_id
from conn import PMTU, wait_until
from roce import NAK_SEQUENCE, Op, RNR
from services import services

ECHO, SINK, PERFTEST = 7, 9, 18515
CONFIG = dict(
    cm=dict(ack_delay=13, max_retries=3),
    services=[dict(kind='echo', port=ECHO, size=1024, max_connections=512),
              dict(kind='sink', port=SINK, size=1024)])


def test_connect_transfer_disconnect(wire, peer, counted):
    c = peer.new()
    req = c.req(service_id(ECHO))
    rep = c.expect_rep()
    # cm 4: crossed and limited; the RNR count is Polca's own; its ack delay is configured
    assert rep.responder_resources <= req.initiator_depth
    assert rep.initiator_depth <= req.responder_resources
    assert (rep.ack_delay, rep.qkey, rep.eecn, rep.srq) == (13, 0, 0, 0)
    assert rep.qpn > 1 and rep.psn <= 0xffffff and rep.ca_guid
    row = wire.connections()[c.remote_id]
    assert (row['state'], row['side']) == ('REP_SENT', 'PASSIVE')
    c.rtu()
    for n in range(20):
        c.echo(b'message %d' % n, n)
    assert wire.connections()[c.remote_id]['service'] == 'echo'
    show = wire.polca.rpc('cm_show', connection=c.remote_id)
    assert (show['state'], show['qp_num'], show['remote_qpn'], show['remote_id']) == (
        'ESTABLISHED', c.remote_qpn, c.qpn, c.local_id)
    assert show['port'] == ECHO and show['remote_ca_guid'] == '0x%016x' % peer.guid
    assert show['rdma_cm']['src_port'] == c.local_id & 0xffff
    qp = wire.polca.rpc('qp_show', qp_num=c.remote_qpn)
    assert (qp['qp_state'], qp['timeout'], qp['retry_cnt'], qp['rnr_retry'], qp['path_mtu'],
            qp['max_rd_atomic'], qp['max_dest_rd_atomic']) == (
        'RTS', ACK_TIMEOUT, 7, 7, 1024, rep.initiator_depth, rep.responder_resources)
    c.disconnect()
    wire.gone(c)
    grown = counted.grown()
    assert grown == dict(connections=1, disconnects=1, received_req=1, received_rtu=1,
                         received_dreq=1, sent_rep=1, sent_drep=1), grown


def test_answer_nobody_waits_for(wire, peer):
    """The perftest service answers a Send that is followed by no other for a while, because it
    may be a latency test; but the client measures bandwidth and was only slow. The answer never
    finds a receive, and as with rxe, each RNR NAK is followed by a NAK 0x60, which arrives late
    here. Nothing fails because of this."""
    name = wire.polca.rpc('cm_listen', kind='perftest', port=PERFTEST)['name']
    c = peer.connect(PERFTEST, ack_timeout=18)
    data = b'x' * 3000
    for i, op in enumerate([Op.SEND_FIRST, Op.SEND_MIDDLE, Op.SEND_LAST]):
        c.data.tx(op, c.remote_psn + i & 0xffffff, data[i * PMTU:(i + 1) * PMTU], ackreq=i == 2)
    seen = []
    while not seen or seen[-1].op != Op.SEND_LAST:  # the whole answer, after the ACK
        seen.append(c.data.rx())
    for _ in range(20):
        c.data.nak(RNR + 1, c.psn, 0)
        c.data.expect(Op.SEND_FIRST, c.psn)
        c.data.nak(NAK_SEQUENCE, c.psn, 0)
    # the client continues
    last = c.remote_psn + 19 & 0xffffff
    for i in range(3, 20):
        c.data.send_only(c.remote_psn + i & 0xffffff, b'y')
    while (seen[-1].op, seen[-1].psn) != (Op.ACK, last):
        seen.append(c.data.rx())
    assert wire.polca.rpc('qp_show', qp_num=c.remote_qpn)['qp_state'] == 'RTS'
    row = next(r for r in services(wire.polca) if r['name'] == name)
    assert (row['messages_in'], row['errors']) == (18, 0)
    c.disconnect()
    wire.polca.rpc('cm_unlisten', service=name, disconnect=True)


@pytest.mark.parametrize('resources,depth', [(0, 0), (1, 1), (255, 255)])
def test_resources_are_crossed_and_clipped(wire, peer, resources, depth):
    """cm 4: the peer's InitiatorDepth limits Polca's ResponderResources, and vice versa."""
    c = peer.connect(ECHO, responder_resources=resources, initiator_depth=depth)
    rep = c.rep_seen
    assert rep.responder_resources <= depth and rep.initiator_depth <= resources
    qp = wire.polca.rpc('qp_show', qp_num=c.remote_qpn)
    assert (qp['max_rd_atomic'], qp['max_dest_rd_atomic']) == (
        rep.initiator_depth, rep.responder_resources)


@pytest.mark.parametrize('code,mtu', [(1, 256), (2, 512), (3, 1024)])
def test_mtu_of_the_request(wire, peer, code, mtu):
    c = peer.connect(ECHO, mtu=code)
    assert wire.polca.rpc('qp_show', qp_num=c.remote_qpn)['path_mtu'] == mtu


def test_ipv6(wire, counted):
    with wire.peer('fd78::2') as peer:
        c = peer.connect(ECHO)
        c.echo(b'sixth', 0)
        assert wire.connections()[c.remote_id]['peer'] == 'fd78::2'
    assert counted['connections'] == 1


def test_duplicate_request_gets_the_same_reply(wire, peer, counted):
    """The REP was lost: cm 6."""
    c = peer.new()
    c.req(service_id(ECHO))
    first = c.expect_rep()
    for _ in range(3):
        c.req(service_id(ECHO))
        assert c.expect_rep().mad == first.mad
    c.rtu()
    c.echo(b'once', 0)
    c.rtu()  # repeated: no effect
    c.req(service_id(ECHO))  # late: no effect either
    c.echo(b'twice', 1)
    assert counted['duplicates'] == 5 and counted['connections'] == 1
    assert not peer.drain()


def test_reply_comes_again_until_it_is_taken(wire, peer, counted):
    """cm 5: every ms(LocalCMResponseTimeout), here 64 ms, at most MaxCMRetries times."""
    c = peer.new()
    c.req(service_id(ECHO), local_timeout=14, max_cm_retries=15)
    first = c.expect_rep()
    for _ in range(2):  # three messages for the REQ, until the peer's address is proven
        assert c.expect_rep().mad == first.mad
    c.rtu()
    c.echo(b'at last', 0)
    peer.drain()  # a REP may have been under way
    assert counted['retries'] >= 2 and counted['connections'] == 1


def test_reply_that_nobody_takes(wire, peer, counted):
    """Retries exhausted: REJ timeout (cm 6), and nothing is left."""
    c = peer.new()
    c.req(service_id(ECHO), local_timeout=12, max_cm_retries=1)
    reps = [c.expect_rep() for _ in range(2)]
    assert len({r.mad for r in reps}) == 1
    m = peer.expect(REJ, remote_id=c.local_id, tid=c.tid, reason=cmwire.TIMEOUT)
    # cm 3: with reason 4 the ARI has its GUID
    assert m.info_length == 8 and int.from_bytes(m.ari[:8], 'big') == reps[0].ca_guid
    c.open = False
    wire.gone(c)
    assert counted.grown() == dict(received_req=1, sent_rep=2, retries=1, timeouts=1, sent_rej=1,
                                   rej_sent_timeout=1)
    assert wire.polca.rpc('service_list')['services'][0]['connections'] == 0


def test_data_stands_for_a_lost_rtu(wire, peer, counted):
    """cm 6: RTU, or the first data packet on the QP."""
    c = peer.new()
    c.req(service_id(ECHO))
    c.expect_rep()
    c.echo(b'no RTU', 0)
    wire.stands(c)
    assert counted['connections'] == 1 and counted['received_rtu'] == 0


def test_mra_of_the_reply_is_waited_for(wire, peer, counted):
    """cm 5: an MRA stops the retransmissions for its time."""
    c = peer.new()
    c.req(service_id(ECHO), local_timeout=14, max_cm_retries=15)
    c.expect_rep()
    c.mra(cmwire.OF_REP, 20)  # four seconds
    wait_until(lambda: wire.connections()[c.remote_id]['state'] == 'MRA_REP_RCVD')
    peer.drain()  # sent before the MRA
    assert peer.maybe(1.0) is None  # 16 of its intervals
    c.rtu()
    c.echo(b'slow', 0)
    assert counted['received_mra'] == 1


@pytest.mark.parametrize('answers', [cmwire.OF_REQ, cmwire.OF_LAP, 3])
def test_mra_of_another_message(wire, peer, counted, answers):
    c = peer.new()
    c.req(service_id(ECHO))
    c.expect_rep()
    c.mra(answers, 31)
    c.rtu()
    c.echo(b'as if nothing were', 0)
    assert counted['unmatched'] + counted['malformed'] == 1


def test_peer_rejects_the_reply(wire, peer, counted):
    c = peer.new()
    c.req(service_id(ECHO))
    c.expect_rep()
    c.rej(cmwire.CONSUMER, answers=cmwire.OF_REP)
    c.open = False
    wire.gone(c)
    assert counted['rejected'] == 1 and counted['rej_received_consumer_rejected'] == 1


def test_peer_gives_up_without_knowing_our_id(wire, peer, counted):
    """cm 2: reason 4 is matched by the GUID in its ARI and LocalCommID. (The GUID is the
    sender's.)"""
    c = peer.new()
    c.req(service_id(ECHO))
    c.expect_rep()
    c.rej(cmwire.TIMEOUT, remote_id=0, info_length=8, ari=peer.guid.to_bytes(8, 'big'))
    c.open = False
    wire.gone(c)
    assert counted['rej_received_timeout'] == 1


def test_stale_connection(wire, peer, counted):
    """cm 6: the same QPN of the same channel adapter under another ID: the peer has restarted.
    REJ 10 for the REQ; the old connection ends when its queue pair answers none of three
    probes."""
    old = peer.connect(ECHO)
    old.echo(b'alive', 0)
    new = peer.new(qpn=old.qpn, data=old.data)
    new.req(service_id(ECHO))
    rej = peer.expect(REJ, reason=cmwire.STALE)
    assert (rej.remote_id, rej.local_id) == (new.local_id, 0)
    probes = [old.data.rx(10) for _ in range(3)]
    assert {(p.op, p.psn, p.payload) for p in probes} == {(Op.SEND_ONLY, old.psn, b'')}
    wire.gone(old)
    old.open = False
    # now the next one is accepted
    again = peer.new(qpn=old.qpn)
    again.req(service_id(ECHO))
    again.expect_rep()
    again.rtu()
    again.echo(b'reborn', 0)
    assert counted['stale'] == 1 and counted['rej_sent_stale_connection'] == 1


def test_forged_request_ends_nothing(wire, peer, counted):
    """A stranger writes a REQ with our address and queue pair: the connection goes on."""
    old = peer.connect(ECHO)
    old.echo(b'alive', 0)
    forged = peer.new(qpn=old.qpn, data=old.data)
    forged.open = False
    forged.req(service_id(ECHO))
    peer.expect(REJ, reason=cmwire.STALE, remote_id=forged.local_id)
    probe = old.data.rx(10)
    assert (probe.op, probe.psn, probe.payload) == (Op.SEND_ONLY, old.psn, b'')
    old.data.ack(probe.psn, 1)
    for n in range(1, 20):
        old.echo(b'still alive', n)
    assert counted['stale'] == 0 and counted['probes'] == 1


def test_request_again_in_timewait_is_stale(wire, peer):
    c = peer.new()
    c.req(service_id(ECHO), ack_timeout=19)  # TIMEWAIT lasts two seconds
    c.expect_rep()
    c.rtu()
    tid = c.tid
    c.disconnect()
    c.req(service_id(ECHO), tid=tid)
    peer.expect(REJ, reason=cmwire.STALE, remote_id=c.local_id)
    c.remote_id = 0


def test_same_id_with_another_queue_pair(wire, peer):
    """cm 3, reason 30: one LocalCommID is one connection."""
    c = peer.connect(ECHO)
    second = peer.new(local_id=c.local_id)
    second.req(service_id(ECHO))
    second.expect_rej(cmwire.DUPLICATE_ID)
    second.open = False
    c.echo(b'undisturbed', 0)


def test_disconnect_asked_by_polca(wire, peer, counted):
    c = peer.connect(SINK)
    wire.stands(c)
    wire.polca.rpc('cm_disconnect', connection=c.remote_id)
    dreq = c.expect(DREQ, qpn=c.qpn)  # RemoteQPN is the receiver's
    c.drep(dreq)
    wire.gone(c)
    assert counted['disconnects'] == 1


def test_lost_drep(wire, peer, counted):
    """The DREQ is repeated after each of the peer's intervals, up to MaxCMRetries of its REQ."""
    c = peer.connect(SINK, local_timeout=13, max_cm_retries=3)
    wire.stands(c)
    wire.polca.rpc('cm_disconnect', connection=c.remote_id)
    mads = [c.expect(DREQ).mad for _ in range(4)]
    assert len(set(mads)) == 1
    c.open = False
    wire.gone(c)
    assert counted['retries'] == 3


def test_lost_drep_of_ours(wire, peer):
    """In TIMEWAIT, and when nothing is left: the DREP is repeated."""
    c = peer.connect(SINK)
    c.disconnect()
    for _ in range(3):
        c.dreq()
        c.expect(DREP, tid=c.tid)
    wire.gone(c)
    c.dreq()
    c.expect(DREP, tid=c.tid)


def test_both_disconnect_at_once(wire, peer):
    """cm 6: each DREQ has its own TID, one DREP suffices."""
    c = peer.connect(SINK)
    wire.stands(c)
    wire.polca.rpc('cm_disconnect', connection=c.remote_id)
    theirs = c.expect(DREQ)
    c.tid += 1 << 40
    c.dreq()
    c.expect(DREP, tid=c.tid)
    assert theirs.tid != c.tid
    c.open = False
    wire.gone(c)  # without our DREP


def test_dreq_of_nothing(wire, peer, counted):
    """cm 6: no context: a DREP with the IDs swapped."""
    c = peer.new(remote_id=0x0badcafe, remote_qpn=77)
    c.dreq()
    c.expect(DREP, tid=c.tid)
    c.open = False
    assert counted['unmatched'] == 1


def test_dreq_for_another_queue_pair(wire, peer, counted):
    c = peer.connect(ECHO)
    c.dreq(qpn=c.remote_qpn + 1)
    c.echo(b'not ours', 0)
    assert counted['malformed'] == 1 and not peer.drain()


def test_reply_of_nothing(wire, peer, counted):
    """A REP without a request: REJ 6 for it."""
    c = peer.new(remote_id=0x0badcafe)
    c.rep()
    peer.expect(REJ, reason=cmwire.INVALID_ID, answers=cmwire.OF_REP, remote_id=c.local_id,
                tid=c.tid)
    c.open = False


def test_private_data_travels(wire, peer):
    """The grant of service memory is in the REP (polca-ctl cm listen --help explains its
    layout)."""
    service = wire.polca.rpc('cm_listen', kind='memory', port=4791, length=65536)['name']
    try:
        c = peer.connect(4791)
        grant = c.rep_seen.private[:24]
        assert grant[0] == 1 and int.from_bytes(grant[16:24], 'big') == 65536
        rkey, va = int.from_bytes(grant[4:8], 'big'), int.from_bytes(grant[8:16], 'big')
        c.data.write_only(c.remote_psn, va, rkey, b'by the grant')
        c.data.expect_ack(c.remote_psn)
        c.data.read(c.remote_psn + 1, va, rkey, 12)
        assert c.data.rx().payload == b'by the grant'
        c.disconnect()
    finally:
        wire.polca.rpc('cm_unlisten', service=service, disconnect=True)


def test_unlisten_refuses_and_keeps(wire, peer):
    service = wire.polca.rpc('cm_listen', kind='echo', port=77)['name']
    c = peer.connect(77)
    wire.polca.rpc('cm_unlisten', service=service)
    late = peer.new()
    late.req(service_id(77))
    late.expect_rej(cmwire.INVALID_SERVICE)
    late.open = False
    c.echo(b'stays', 0)


def test_many_one_after_the_other(wire, peer, counted):
    for i in range(200):
        c = peer.connect(ECHO)
        c.echo(b'%d' % i, 0)
        c.disconnect()
    wire.wait_idle()
    assert counted['connections'] == 200 and counted['disconnects'] == 200


