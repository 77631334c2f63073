/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The passive side of connection setup: receive a REQ, send a REP, receive an RTU or data (cm.md
 * 6).
 */

#include <errno.h>

#include "cm/private.h"

/* --- conflicts of a new REQ with existing connections --- */

static void
passive_refuse(const struct cm_rx *rx, const struct cm_refusal *r)
{
	cm_count(rx->cm, refused);
	cm_tell_of_stranger(rx->cm, EVENT_CONNECTION_REFUSED, 0,
		(struct connection_change){ .service_id = rx->msg.req.service_id,
			.peer_qpn = rx->msg.req.qpn,
			.reason = r->reason },
		&rx->peer->av, rx->now);
	cm_reject_message(rx, r);
}

static void
passive_refuse_reason(const struct cm_rx *rx, uint16_t reason)
{
	const struct cm_refusal r = { .answers = CM_ANSWERS_REQ, .reason = reason };

	passive_refuse(rx, &r);
}

/*
 * True if no connection with this peer has the REQ's communication ID or QPN; otherwise the REQ is
 * rejected (cm.md 6). A peer is a CA GUID and an address (a choice): if the GUID were enough, any
 * host that knows it could block the QPNs of that CA. A REQ can be forged, so it ends nothing by
 * itself: the old connection is probed.
 */
static bool
is_fresh(const struct cm_rx *rx)
{
	const struct cm_req *req = &rx->msg.req;
	struct cm_conn *old;

	old = cm_find(rx->cm, CM_KEY_REMOTE_QPN, req->ca_guid, req->qpn, rx->peer);
	if (old != NULL) {
		passive_refuse_reason(rx, CM_REJ_STALE);
		cm_probe(old);
		return false;
	}
	if (cm_find(rx->cm, CM_KEY_REMOTE_ID, req->ca_guid, rx->msg.local_id, rx->peer) != NULL) {
		passive_refuse_reason(rx, CM_REJ_DUPLICATE_ID);
		return false;
	}
	return true;
}

/* --- a new connection --- */

static struct cm_conn *
passive_conn_new(const struct cm_rx *rx, const struct cm_request *req)
{
	const struct cm_req *m = &rx->msg.req;
	struct cm_conn *c = cm_conn_new(rx->cm, rx->peer, rx->now);
	uint32_t ms;

	if (c == NULL)
		return NULL;
	c->tid = rx->msg.tid;
	c->service_id = m->service_id;
	c->remote_id = rx->msg.local_id;
	c->remote_ca_guid = m->ca_guid;
	c->remote_qpn = m->qpn;
	c->sq_psn = m->psn;
	c->rq_psn = rng_u32(rx->cm->config.rng) & PSN_MASK;
	c->responder_resources = m->responder_resources;
	c->initiator_depth = m->initiator_depth;
	c->retry_cnt = m->retry_count;
	c->rnr_retry = m->rnr_retry_count;
	c->max_retries = m->max_cm_retries;
	c->ack_timeout = m->primary.ack_timeout;
	c->alternate_timeout = m->alternate.ack_timeout;
	c->path = req->path;
	c->alternate = req->alternate;
	c->rdma = req->rdma;
	ms = cm_rep_interval_ms(m->local_response_timeout);
	c->dreq_interval = cm_peer_time(rx->cm, ms);
	c->state = CM_STATE_REQ_RCVD;
	if (unlikely(c->trace != NULL))
		cm_trace_received(c, &rx->msg)->expected = 0; /* no ID was known before */
	cm_key_add(c, CM_KEY_REMOTE_ID);
	cm_key_add(c, CM_KEY_REMOTE_QPN);
	cm_half_open_add(c);
	cm_half_open_heard(c, false);
	cm_be_patient(c, rx->now);
	return c;
}

/* The user may take as long as the peer waits for our REP: all retries of its REQ. */
static void
wait_for_user(struct cm_conn *c, uint64_t now)
{
	cm_set_timer(c, (c->max_retries + 1u) * c->dreq_interval, now);
}

static bool
waits_for_user(const struct cm_conn *c)
{
	return c->state == CM_STATE_REQ_RCVD || c->state == CM_STATE_MRA_REQ_SENT;
}

/* The user of a connection that waits for its place. */
static const struct cm_user cm_nobody = { .name = "half open" };

static void
ask_user(struct cm_conn *c, const struct cm_listener *l, struct cm_request *req,
	const struct cm_rx *rx)
{
	struct cm_conn_param param = { .private_len = 0 };
	struct cm_refusal r = { .answers = CM_ANSWERS_REQ };
	uint16_t reason;

	req->id = c->id;
	req->local_psn = c->rq_psn;
	reason = l->ops->request(l->listener, req, &param, &c->user);
	if (!cm_lives(c, req->id) || !waits_for_user(c) || reason == CM_LATER)
		return; /* CM_LATER: the timer of wait_for_user() limits the wait */
	if (reason == 0 && c->user == NULL && l->ops->seat != NULL) {
		c->ops = &cm_nobody;
		c->seat_ops = l->ops;
		c->listener = l->listener;
	}
	if (reason == 0) {
		cm_accept(rx->cm, req->id, &param, rx->now);
		return;
	}
	/* the user refused inside request(): ended() and released() are not called */
	r.reason = reason;
	r.private_data = param.private_data;
	r.private_len = RTE_MIN(param.private_len, CM_REJ_PRIVATE);
	cm_count(c->cm, refused);
	cm_reject(c, &r);
	c->ops = NULL;
	cm_release(c);
}

void
cm_passive_req(struct cm_conn *c, struct cm_rx *rx)
{
	const struct cm_listener *l;
	struct cm_request req;
	struct cm_refusal r;
	const union gid addr = cm_address(&rx->peer->av);

	if (cm_is_paused(rx->cm, &addr, rx->now)) {
		cm_count(rx->cm, paused);
		passive_refuse_reason(rx, CM_REJ_NO_RESOURCES);
		return;
	}
	if (!is_fresh(rx))
		return;
	l = cm_listener_find(rx->cm, rx->msg.req.service_id);
	if (l == NULL) {
		passive_refuse_reason(rx, CM_REJ_INVALID_SERVICE_ID);
		return;
	}
	if (cm_request_check(rx, &req, &r) != 0) {
		passive_refuse(rx, &r);
		return;
	}
	if (l->ops->admits != NULL && !l->ops->admits(l->listener, &req)) {
		passive_refuse_reason(rx, CM_REJ_INVALID_SERVICE_ID);
		return;
	}
	if (!cm_half_open_room(rx->cm, rx->peer, rx->now)) {
		rx->verdict = VERDICT_MAD_REFUSED;
		return;
	}
	c = cm_full(rx->cm) || !cm_prefix_room(rx->cm, rx->peer) ? NULL
								 : passive_conn_new(rx, &req);
	if (c == NULL) {
		cm_count_no_resources(rx->cm, &addr);
		passive_refuse_reason(rx, CM_REJ_NO_RESOURCES);
		return;
	}
	c->ops = l->ops;
	wait_for_user(c, rx->now);
	ask_user(c, l, &req, rx);
	cm_conn_check(c);
}

/* --- the answer --- */

static void
send_rep(struct cm_conn *c, const struct cm_conn_param *param, uint64_t now)
{
	struct cm_msg m = {
		.type = CM_REP,
		.rep = {
			.qpn = c->qpn,
			.psn = c->rq_psn,
			.responder_resources = c->responder_resources,
			.initiator_depth = c->initiator_depth,
			.target_ack_delay = c->cm->limits.ack_delay,
			.failover = c->failover,
			.flow_control = c->flow_control,
			.rnr_retry_count = c->peer_rnr_retry,
			.srq = c->srq,
			.ca_guid = c->cm->config.ca_guid,
		},
		.private_data = param->private_data,
		.private_len = RTE_MIN(param->private_len, CM_REP_PRIVATE),
	};

	c->state = CM_STATE_REP_SENT;
	cm_be_patient(c, now);
	cm_ask(c, &m, c->dreq_interval, now);
}

/*
 * Arm the REQ's alternate path, if it has one. FailoverAccepted of the REP: 0 armed, 1 not
 * supported.
 */
static void
arm_alternate(struct cm_conn *c)
{
	if (!c->alternate.present)
		return;
	c->failover = cm_qp_arm(c, &c->alternate, c->alternate_timeout) != CM_APR_OK;
	c->alternate.present = c->failover == 0;
}

/* Create the QP and move it to RTS. @retval -ECANCELED the user ended the connection meanwhile */
static int
passive_make_qp(struct cm_conn *c, const struct cm_conn_param *param, uint64_t now)
{
	struct cm *cm = c->cm;
	cm_id id = c->id;
	struct error err;
	int ret;

	ret = cm_qp_create(c, param, &err);
	/* no QP or no memory left: strangers may hold it */
	if ((ret == -ENOSPC || ret == -ENOMEM) && !c->has_qp && cm_half_open_evict(cm, c, now))
		ret = cm_qp_create(c, param, &err);
	if (!cm_lives(c, id) || !waits_for_user(c))
		return -ECANCELED;
	if (c->has_qp)
		cm_half_open_weigh(c, rc_qp_bytes(&param->qp), now);
	return ret != 0 ? ret : cm_qp_connect(c, &err);
}

int
cm_accept(struct cm *cm, cm_id id, const struct cm_conn_param *param, uint64_t now)
{
	struct cm_conn *c = cm_conn_of(cm, id);
	uint8_t most = cm->limits.max_rd_atomic, wanted;
	int ret = 0;

	RTE_ASSERT(param->private_len <= CM_REP_PRIVATE);
	if (c == NULL)
		return -ENOENT;
	if (!waits_for_user(c) || c->has_qp || c->users_qp)
		return -EINVAL;
	/*
	 * cm.md 4: our initiator depth is limited by the peer's responder resources, and vice versa
	 */
	wanted = c->initiator_depth;
	c->initiator_depth = RTE_MIN(RTE_MIN(param->initiator_depth, most), c->responder_resources);
	c->responder_resources = RTE_MIN(RTE_MIN(param->responder_resources, most), wanted);
	if (param->qpn != 0)
		cm_qp_take(c, param);
	else
		ret = passive_make_qp(c, param, now);
	if (ret == -ECANCELED)
		return -ENOENT;
	if (ret != 0) {
		cm_count_no_resources(cm, &c->peer->addr);
		cm_refuse(cm, id, c->has_qp ? CM_REJ_NO_RESOURCES : CM_REJ_NO_QP, NULL, 0, now);
		return ret;
	}
	arm_alternate(c);
	send_rep(c, param, now);
	cm_conn_check(c);
	return 0;
}

int
cm_refuse(struct cm *cm, cm_id id, uint16_t reason, const uint8_t *private_data, uint8_t len,
	uint64_t now)
{
	const struct cm_refusal r = {
		.answers = CM_ANSWERS_REQ,
		.reason = reason,
		.private_data = private_data,
		.private_len = RTE_MIN(len, CM_REJ_PRIVATE),
	};
	struct cm_conn *c = cm_conn_of(cm, id);

	RTE_ASSERT(reason != 0 && reason != CM_LATER && (private_data != NULL || len == 0));
	if (c == NULL)
		return -ENOENT;
	if (!waits_for_user(c))
		return -EINVAL;
	cm_reject(c, &r);
	cm_end_idle(c, CM_END_REFUSED, reason, NULL, 0, now);
	cm_conn_check(c);
	return 0;
}

/* --- repeated REQs --- */

/* The user has not decided yet: an MRA asks the peer to wait longer (cm.md 5). */
void
cm_passive_req_again(struct cm_conn *c, struct cm_rx *rx)
{
	struct cm_msg m = {
		.type = CM_MRA,
		.mra = { .answers = CM_ANSWERS_REQ, .service_timeout = CM_MRA_SERVICE_TIMEOUT },
	};

	cm_count(c->cm, duplicates);
	if (!c->cm->limits.send_mra)
		return;
	cm_say(c, &m);
	if (c->state == CM_STATE_MRA_REQ_SENT)
		return;
	c->state = CM_STATE_MRA_REQ_SENT;
	cm_be_patient(c, rx->now);
	cm_set_timer(c, cm_time(c->cm, cm_ms(CM_MRA_SERVICE_TIMEOUT)), rx->now);
}

/* The peer repeats its REQ because our REP was lost or is late: send the REP again. */
void
cm_passive_rep_again(struct cm_conn *c, struct cm_rx *rx)
{
	RTE_SET_USED(rx);
	cm_count(c->cm, duplicates);
	cm_repeat(c);
}

void
cm_passive_req_stale(struct cm_conn *c, struct cm_rx *rx)
{
	cm_count(c->cm, duplicates);
	passive_refuse_reason(rx, CM_REJ_STALE);
}

/* --- RTU --- */

int
cm_heard(struct cm *cm, cm_id id, uint64_t now)
{
	struct cm_conn *c = cm_conn_of(cm, id);

	if (c == NULL)
		return -ENOENT;
	if (c->state != CM_STATE_REP_SENT && c->state != CM_STATE_MRA_REP_RCVD)
		return -EINVAL;
	cm_establish(c, NULL, 0, now);
	cm_conn_check(c);
	return 0;
}

void
cm_passive_rtu(struct cm_conn *c, struct cm_rx *rx)
{
	cm_establish(c, rx->msg.private_data, rx->msg.private_len, rx->now);
}
