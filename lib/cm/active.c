/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The active side of connection setup: send a REQ, receive a REP, send an RTU (cm.md 6). Received
 * REJ and MRA are here too, for both sides.
 */

#include <errno.h>

#include "cm/private.h"
#include "wire/wire.h"

/* --- REQ --- */

static void
fill_req(const struct cm_conn *c, const struct cm_connect *what, struct cm_req *req)
{
	const struct cm *cm = c->cm;

	*req = (struct cm_req){
		.service_id = c->service_id,
		.ca_guid = cm->config.ca_guid,
		.qpn = c->qpn,
		.responder_resources = c->responder_resources,
		.initiator_depth = c->initiator_depth,
		.remote_response_timeout = cm->limits.response_timeout,
		.transport = CM_TRANSPORT_RC,
		.flow_control = c->flow_control,
		.psn = c->rq_psn,
		.local_response_timeout = cm->limits.response_timeout,
		.retry_count = c->retry_cnt,
		.pkey = c->path.pkey,
		.mtu = port_mtu_code(c->path.mtu),
		.rnr_retry_count = c->peer_rnr_retry,
		.max_cm_retries = c->max_retries,
		.srq = c->srq,
	};
	cm_path_say(cm, &c->path, c->ack_timeout, &req->primary);
	if (what->alternate.present)
		cm_path_say(cm, &c->alternate, c->alternate_timeout, &req->alternate);
}

/* Write the RDMA-CM header, if wanted, then the user's private data. @return bytes written */
static uint8_t
fill_private(const struct cm_connect *what, uint8_t data[CM_REQ_PRIVATE])
{
	uint8_t len = 0, room = CM_REQ_PRIVATE;

	memset(data, 0, CM_REQ_PRIVATE);
	if (what->rdma.present) {
		cm_rdma_encode(&what->rdma, data);
		len = CM_RDMA_LEN;
	}
	room -= len;
	memcpy(data + len, what->param.private_data, RTE_MIN(what->param.private_len, room));
	return len + RTE_MIN(what->param.private_len, room);
}

static void
send_req(struct cm_conn *c, const struct cm_connect *what, uint64_t now)
{
	uint32_t ms = cm_req_interval_ms(c->path.packet_life, c->cm->limits.response_timeout);
	struct cm_msg m = { .type = CM_REQ };
	uint8_t data[CM_REQ_PRIVATE];

	fill_req(c, what, &m.req);
	m.private_len = fill_private(what, data);
	m.private_data = data;
	c->dreq_interval = cm_time(c->cm, ms);
	c->state = CM_STATE_REQ_SENT;
	cm_ask(c, &m, c->dreq_interval, now);
}

static int
cm_check_connect(const struct cm *cm, const struct cm_connect *what, struct error *err)
{
	const struct port_attr *port = cm_port(cm, what->path.av.port);
	uint8_t room = what->rdma.present ? CM_REQ_USER_PRIVATE : CM_REQ_PRIVATE;

	if (port == NULL)
		return error_set(err, ENODEV, "path: there is no port %u", what->path.av.port);
	if (port_mtu_code(what->path.mtu) == 0 || what->path.mtu > port->active_mtu)
		return error_set(err, EINVAL, "path mtu: got %u, allowed: 256 to %u",
			what->path.mtu, port->active_mtu);
	if (what->param.private_len > room)
		return error_set(err, EINVAL, "private_data: got %u bytes, allowed: %u",
			what->param.private_len, room);
	return 0;
}

static struct cm_conn *
active_conn_new(struct cm *cm, const struct cm_connect *what, uint64_t now)
{
	const struct mad_peer to = {
		.av = what->path.av,
		.qpn = what->remote_cm_qpn != 0 ? what->remote_cm_qpn : QPN_GSI,
		.qkey = MAD_QKEY,
		.pkey = what->path.pkey,
		.neighbour = what->path.neighbour,
	};
	struct cm_conn *c = cm_full(cm) ? NULL : cm_conn_new(cm, &to, now);
	uint8_t most = cm->limits.max_rd_atomic;

	if (c == NULL)
		return NULL;
	c->active = true;
	c->ops = what->ops;
	c->user = what->user;
	c->max_retries = cm->limits.max_retries;
	c->tid = cm_new_tid(c);
	c->service_id = what->service_id;
	c->path = what->path;
	c->path.packet_life = cm_packet_life(cm, &what->path);
	c->alternate = what->alternate;
	c->alternate.packet_life = cm_packet_life(cm, &what->alternate);
	c->rdma = what->rdma;
	c->rq_psn = rng_u32(cm->config.rng) & PSN_MASK;
	c->responder_resources = RTE_MIN(what->param.responder_resources, most);
	c->initiator_depth = RTE_MIN(what->param.initiator_depth, most);
	c->retry_cnt = what->param.retry_count & 7;
	c->ack_timeout = cm_ack_timeout(c->path.packet_life, cm->limits.ack_delay);
	c->alternate_timeout = cm_ack_timeout(c->alternate.packet_life, cm->limits.ack_delay);
	return c;
}

/* Free a connection whose REQ was not sent, without telling the user. */
static void
active_conn_drop(struct cm_conn *c)
{
	c->ops = NULL;
	cm_release(c);
}

int
cm_connect(struct cm *cm, const struct cm_connect *what, uint64_t now, cm_id *id, struct error *err)
{
	struct cm_conn *c;
	union gid addr;
	int ret;

	RTE_ASSERT(what->ops != NULL && id != NULL);
	ret = cm_check_connect(cm, what, err);
	if (ret != 0)
		return ret;
	c = active_conn_new(cm, what, now);
	if (c == NULL) {
		addr = cm_address(&what->path.av);
		cm_count_no_resources(cm, &addr);
		return error_set(err, ENOSPC,
			"worker %u has no more connections for this peer "
			"(cm.max_connections %u, cm.max_connections_per_peer %u)",
			cm->config.id, cm->limits.max_connections,
			cm->limits.max_connections_per_peer);
	}
	*id = c->id;
	ret = 0;
	if (what->param.qpn != 0)
		cm_qp_take(c, &what->param);
	else
		ret = cm_qp_create(c, &what->param, err);
	if (ret != 0) {
		cm_count_no_resources(cm, &c->peer->addr);
		active_conn_drop(c);
		cm_conn_check(c);
		return ret;
	}
	send_req(c, what, now);
	cm_conn_check(c);
	return 0;
}

/* --- REP --- */

static void
send_rtu(struct cm_conn *c)
{
	struct cm_msg m = { .type = CM_RTU };

	cm_say(c, &m);
}

/* Reject the REP and end our connection. */
static void
refuse_rep(struct cm_conn *c, struct cm_rx *rx, uint16_t reason)
{
	const struct cm_refusal r = { .answers = CM_ANSWERS_REP, .reason = reason };

	cm_reject_message(rx, &r);
	cm_end_idle(c, CM_END_REFUSED, reason, NULL, 0, rx->now);
}

/* The REP's communication ID and QPN must not be in use (cm.md 6). @return 0 or a REJ reason */
static uint16_t
active_check_rep(const struct cm_rx *rx)
{
	const struct cm_rep *rep = &rx->msg.rep;
	struct cm_conn *old;

	if (cm_find(rx->cm, CM_KEY_REMOTE_ID, rep->ca_guid, rx->msg.local_id, rx->peer) != NULL)
		return CM_REJ_DUPLICATE_ID;
	old = cm_find(rx->cm, CM_KEY_REMOTE_QPN, rep->ca_guid, rep->qpn, rx->peer);
	if (old == NULL)
		return 0;
	cm_probe(old);
	return CM_REJ_STALE;
}

/*
 * Take over the REP's values (cm.md 4): the peer's responder resources limit our initiator depth
 * and vice versa, its PSN is where our sending starts, the ack timeout includes its TargetAckDelay.
 */
static void
take_rep(struct cm_conn *c, const struct cm_rx *rx)
{
	const struct cm_rep *rep = &rx->msg.rep;

	c->remote_id = rx->msg.local_id;
	c->remote_ca_guid = rep->ca_guid;
	c->remote_qpn = rep->qpn;
	c->sq_psn = rep->psn;
	c->responder_resources = RTE_MIN(c->responder_resources, rep->initiator_depth);
	c->initiator_depth = RTE_MIN(c->initiator_depth, rep->responder_resources);
	c->rnr_retry = rep->rnr_retry_count;
	c->ack_timeout = cm_ack_timeout(c->path.packet_life, rep->target_ack_delay);
	c->alternate_timeout = cm_ack_timeout(c->alternate.packet_life, rep->target_ack_delay);
	cm_key_add(c, CM_KEY_REMOTE_ID);
	cm_key_add(c, CM_KEY_REMOTE_QPN);
}

/* The user has a QP of its own, moves it to RTS, and calls cm_ready(). */
static void
wait_for_ready(struct cm_conn *c, const struct cm_rx *rx)
{
	struct cm_info info;

	cm_unwant(c, CM_WORK_SEND);
	cm_set_timer(c, cm_time(c->cm, CM_PEER_MS_MAX), rx->now);
	cm_fill_info(c, rx->now, &info);
	c->ops->responded(c->user, &info, rx->msg.private_data, rx->msg.private_len);
}

int
cm_ready(struct cm *cm, cm_id id, uint64_t now)
{
	struct cm_conn *c = cm_conn_of(cm, id);

	if (c == NULL)
		return -ENOENT;
	if (c->state != CM_STATE_REP_RCVD || !c->users_qp)
		return -EINVAL;
	send_rtu(c);
	cm_establish(c, NULL, 0, now);
	cm_conn_check(c);
	return 0;
}

void
cm_active_rep(struct cm_conn *c, struct cm_rx *rx)
{
	cm_id id = c->id;
	struct error err;
	uint16_t reason;

	if (rx->msg.rep.qpn <= QPN_GSI) {
		cm_count(c->cm, malformed);
		return;
	}
	reason = active_check_rep(rx);
	if (!cm_lives(c, id))
		return; /* ending a stale connection called its user, who gave up this one */
	if (reason != 0) {
		refuse_rep(c, rx, reason);
		return;
	}
	take_rep(c, rx);
	c->state = CM_STATE_REP_RCVD;
	if (c->users_qp) {
		wait_for_ready(c, rx);
		return;
	}
	if (cm_qp_connect(c, &err) != 0) {
		cm_count_no_resources(c->cm, &c->peer->addr);
		refuse_rep(c, rx, CM_REJ_NO_RESOURCES);
		return;
	}
	send_rtu(c);
	if (c->alternate.present)
		c->alternate.present = rx->msg.rep.failover == 0 &&
			cm_qp_arm(c, &c->alternate, c->alternate_timeout) == CM_APR_OK;
	cm_establish(c, rx->msg.private_data, rx->msg.private_len, rx->now);
}

/* The peer repeats its REP because our RTU was lost: send the RTU again. */
void
cm_active_rep_again(struct cm_conn *c, struct cm_rx *rx)
{
	RTE_SET_USED(rx);
	cm_count(c->cm, duplicates);
	if (c->active)
		send_rtu(c);
}

/* A REP without a connection here: REJ tells the peer not to wait for an RTU. */
void
cm_stray_rep(struct cm_conn *c, struct cm_rx *rx)
{
	static const struct cm_refusal r = {
		.answers = CM_ANSWERS_REP,
		.reason = CM_REJ_INVALID_ID,
	};

	RTE_SET_USED(c);
	cm_count(rx->cm, unmatched);
	cm_reject_message(rx, &r);
}

/* --- MRA, REJ --- */

/* By state: the message an MRA must answer, and the next state. */
static const struct {
	uint8_t answers;
	uint8_t next;
} mra_of[CM_STATES] = {
	[CM_STATE_REQ_SENT] = { CM_ANSWERS_REQ, CM_STATE_MRA_REQ_RCVD },
	[CM_STATE_MRA_REQ_RCVD] = { CM_ANSWERS_REQ, CM_STATE_MRA_REQ_RCVD },
	[CM_STATE_REP_SENT] = { CM_ANSWERS_REP, CM_STATE_MRA_REP_RCVD },
	[CM_STATE_MRA_REP_RCVD] = { CM_ANSWERS_REP, CM_STATE_MRA_REP_RCVD },
	[CM_STATE_ESTABLISHED] = { CM_ANSWERS_LAP, CM_STATE_ESTABLISHED },
};

/* The peer needs more time: no retry is sent until its service timeout is over (cm.md 5). */
void
cm_mra(struct cm_conn *c, struct cm_rx *rx)
{
	const struct cm_mra *m = &rx->msg.mra;
	uint32_t ms = cm_mra_interval_ms(m->service_timeout, c->ack_timeout);

	if (m->answers != mra_of[c->state].answers ||
		(c->state == CM_STATE_ESTABLISHED && !c->lap_waiting)) {
		cm_count(c->cm, unmatched);
		rx->verdict = VERDICT_MAD_UNMATCHED;
		return;
	}
	c->state = mra_of[c->state].next;
	cm_unwant(c, CM_WORK_SEND);
	cm_set_timer(c, cm_peer_time(c->cm, ms), rx->now);
}

void
cm_rej_timewait(struct cm_conn *c, struct cm_rx *rx)
{
	enum cm_end end = c->state == CM_STATE_DREQ_SENT ? CM_END_DISCONNECTED : CM_END_REJECTED;

	cm_end_timewait(c, end, rx->msg.rej.reason, rx->msg.private_data, rx->msg.private_len,
		rx->now);
}

/* A REJ before the connection is established frees it at once; reason 10 (stale) needs TIMEWAIT. */
void
cm_rej_idle(struct cm_conn *c, struct cm_rx *rx)
{
	if (rx->msg.rej.reason == CM_REJ_STALE) {
		cm_rej_timewait(c, rx);
		return;
	}
	cm_end_idle(c, CM_END_REJECTED, rx->msg.rej.reason, rx->msg.private_data,
		rx->msg.private_len, rx->now);
}
