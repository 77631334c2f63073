/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The agents of class 0x07 on QP1: decode a MAD, find its connection and dispatch it; answer Get
 * ClassPortInfo and REQs of other class versions.
 */

#include "cm/private.h"

#define CPI_ATTRIBUTE          0x0001
#define CPI_OFF_BASE_VERSION   0
#define CPI_OFF_CLASS_VERSION  1
#define CPI_OFF_CAPABILITIES   2
#define CPI_OFF_RESP_TIME      7
#define CPI_RELIABLE_CONNECTED (1u << 9)

/* --- the connection of a message --- */

/*
 * The connection of a repeated REQ. A different REQ that uses the same communication ID belongs to
 * none: is_fresh() (passive.c) rejects it.
 */
static struct cm_conn *
conn_of_req(const struct cm_rx *rx)
{
	const struct cm_req *req = &rx->msg.req;
	struct cm_conn *c =
		cm_find(rx->cm, CM_KEY_REMOTE_ID, req->ca_guid, rx->msg.local_id, rx->peer);

	if (c == NULL || c->active || c->tid != rx->msg.tid || c->remote_qpn != req->qpn ||
		c->sq_psn != req->psn)
		return NULL;
	return c;
}

/*
 * Find the connection by our communication ID. The peer's ID must match too, once we know it; a REJ
 * may leave it out (cm.md 2).
 */
static struct cm_conn *
conn_of_ids(const struct cm_rx *rx)
{
	struct cm_conn *c = cm_conn_of(rx->cm, rx->msg.remote_id);

	if (c == NULL)
		return NULL;
	/* an ID can be guessed by trying: only messages from the peer's address count */
	if (!cm_is_peer(c, rx->peer)) {
		cm_count(rx->cm, wrong_peer);
		return NULL;
	}
	/*
	 * No REP yet, so the peer's ID is unknown. A DREQ then counts as one without a connection:
	 * cm_stray_dreq() answers it (cm.md 6).
	 */
	if (!(c->keyed & 1u << CM_KEY_REMOTE_ID))
		return rx->msg.type == CM_DREQ ? NULL : c;
	if (rx->msg.type == CM_REJ && rx->msg.local_id == 0)
		return c;
	return c->remote_id == rx->msg.local_id ? c : NULL;
}

/* A peer that gave up its REQ may not know our ID: its GUID is in the ARI of its REJ (cm.md 2). */
static struct cm_conn *
conn_of_rej(const struct cm_rx *rx)
{
	const struct cm_rej *rej = &rx->msg.rej;

	if (rej->reason == CM_REJ_TIMEOUT && rx->msg.remote_id == 0 && rej->ari_len >= 8)
		return cm_find(rx->cm, CM_KEY_REMOTE_ID, get_be64(rej->ari), rx->msg.local_id,
			rx->peer);
	return conn_of_ids(rx);
}

static struct cm_conn *
conn_of(const struct cm_rx *rx)
{
	switch (rx->msg.type) {
	case CM_REQ:
		return conn_of_req(rx);
	case CM_REJ:
		return conn_of_rej(rx);
	case CM_SIDR_REQ:
	case CM_SIDR_REP:
		return NULL;
	default:
		return conn_of_ids(rx);
	}
}

static void
count_received(struct cm_rx *rx)
{
	unsigned int reason = rx->msg.type == CM_REJ ? rx->msg.rej.reason : CM_REASONS;

	cm_count(rx->cm, received[rx->msg.type]);
	if (rx->msg.type == CM_REJ)
		cm_count(rx->cm, rej_received[reason < CM_REASONS ? reason : 0]);
}

/* --- requests --- */

static enum mad_outcome
cm_class_port_info(const struct cm *cm, struct mad_request *req)
{
	uint8_t *data = req->reply + MAD_HEADER_LEN;

	data[CPI_OFF_BASE_VERSION] = MAD_BASE_VERSION;
	data[CPI_OFF_CLASS_VERSION] = CM_CLASS_VERSION;
	put_be16(data + CPI_OFF_CAPABILITIES, CPI_RELIABLE_CONNECTED);
	data[CPI_OFF_RESP_TIME] = mad_resp_time(cm->config.mad);
	return MAD_ANSWER;
}

static enum mad_outcome
cm_reply_status(struct mad_request *req, uint16_t status)
{
	put_be16(req->reply + MAD_OFF_STATUS, status);
	return MAD_ANSWER;
}

static enum mad_outcome
other_method(const struct cm *cm, struct mad_request *req)
{
	if (req->mad[MAD_OFF_METHOD] != MAD_GET)
		return cm_reply_status(req, MAD_STATUS_BAD_METHOD);
	if (get_be16(req->mad + MAD_OFF_ATTRIBUTE) != CPI_ATTRIBUTE)
		return cm_reply_status(req, MAD_STATUS_BAD_METHOD_ATTR);
	return cm_class_port_info(cm, req);
}

static enum mad_outcome
cm_no_reply(struct mad_request *req, enum verdict verdict)
{
	req->verdict = verdict;
	return MAD_SILENT;
}

static enum mad_outcome
cm_agent_request(void *arg, struct mad_request *req)
{
	struct cm_rx rx = {
		.cm = arg,
		.peer = req->peer,
		.now = req->now,
		.verdict = VERDICT_DATAGRAM,
	};
	struct cm_conn *c;

	if (req->mad[MAD_OFF_METHOD] != MAD_SEND)
		return other_method(arg, req);
	if (cm_msg_decode(req->mad, &rx.msg) != 0) {
		cm_count(rx.cm, malformed);
		return cm_no_reply(req, VERDICT_MAD_UNMATCHED);
	}
	count_received(&rx);
	rx.cm->now = req->now;
	c = conn_of(&rx);
	if (c != NULL && c->half_open)
		cm_half_open_heard(c, rx.msg.remote_id != 0);
	cm_dispatch(c, &rx);
	return cm_no_reply(req, rx.verdict);
}

/* --- other class versions: only a REQ is answered, by REJ 31 in the REQ's class version --- */

static void
reject_version(struct cm_rx *rx, const struct mad_request *req)
{
	struct cm_msg m = {
		.type = CM_REJ,
		.tid = get_be64(req->mad + MAD_OFF_TID),
		.remote_id = get_be32(req->mad + MAD_HEADER_LEN),
		.rej = { .answers = CM_ANSWERS_REQ, .reason = CM_REJ_INVALID_CLASS_VERSION,
			.ari_len = 1, .ari = { CM_CLASS_VERSION }, },
	};
	uint8_t mad[MAD_LEN];

	cm_msg_encode(&m, mad);
	mad[MAD_OFF_CLASS_VERSION] = req->mad[MAD_OFF_CLASS_VERSION];
	if (mad_send(rx->cm->config.mad, rx->peer, mad) != 0) {
		cm_count(rx->cm, tx_stall);
		return;
	}
	cm_count(rx->cm, refused);
	cm_count(rx->cm, sent[CM_REJ]);
	cm_count(rx->cm, rej_sent[CM_REJ_INVALID_CLASS_VERSION]);
}

static enum mad_outcome
cm_agent_other_version(void *arg, struct mad_request *req)
{
	struct cm_rx rx = { .cm = arg, .peer = req->peer, .now = req->now };

	if (req->mad[MAD_OFF_METHOD] != MAD_SEND)
		return cm_reply_status(req, MAD_STATUS_BAD_VERSION);
	if (get_be16(req->mad + MAD_OFF_ATTRIBUTE) != cm_msg_layouts[CM_REQ].attribute) {
		cm_count(rx.cm, malformed);
		return cm_no_reply(req, VERDICT_MAD_UNMATCHED);
	}
	reject_version(&rx, req);
	return cm_no_reply(req, VERDICT_DATAGRAM);
}

int
cm_agents_add(struct cm *cm)
{
	const struct mad_agent agents[] = {
		{ CM_CLASS, CM_CLASS_VERSION, "cm", MAD_SINGLE, MAD_HEADER_LEN, NULL,
			cm_agent_request, cm },
		{ CM_CLASS, MAD_ANY_VERSION, "cm of another version", MAD_SINGLE, MAD_HEADER_LEN,
			NULL, cm_agent_other_version, cm },
	};
	unsigned int i;
	int ret = 0;

	for (i = 0; i < RTE_DIM(agents) && ret == 0; i++)
		ret = mad_agent_add(cm->config.mad, &agents[i]);
	return ret;
}
