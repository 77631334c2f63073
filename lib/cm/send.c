/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Sending messages. A connection keeps the message that waits for an answer and sends it again
 * until the answer comes. Other messages are sent once: if one is lost, the peer repeats what it
 * answers.
 */

#include "cm/private.h"

static bool
cm_transmit(struct cm *cm, const struct mad_peer *to, const uint8_t *mad, enum cm_message type)
{
	if (mad_send(cm->config.mad, to, mad) != 0) {
		cm_count(cm, tx_stall);
		return false;
	}
	cm_count(cm, sent[type]);
	return true;
}

/*
 * While a connection is half open, the source of its REQ may be forged and has a budget. What
 * exceeds it is treated as sent and lost: the peer repeats what it wants answered.
 */
static bool
may_send(struct cm_conn *c)
{
	if (!c->half_open || unproven_spend(&c->budget, MAD_LEN))
		return true;
	cm_count(c->cm, unproven);
	return false;
}

void
cm_send(struct cm *cm, const struct mad_peer *to, const struct cm_msg *m)
{
	uint8_t mad[MAD_LEN];

	cm_msg_encode(m, mad);
	cm_transmit(cm, to, mad, m->type);
}

static void
set_ids(const struct cm_conn *c, struct cm_msg *m)
{
	m->local_id = c->id;
	m->remote_id = c->remote_id;
	if (m->tid == 0)
		m->tid = c->tid;
}

void
cm_say(struct cm_conn *c, struct cm_msg *m)
{
	set_ids(c, m);
	if (!may_send(c))
		return;
	cm_trace_sent(c, m->type, 0);
	cm_send(c->cm, &c->to, m);
}

/* Type of the kept message, from its attribute ID. */
static enum cm_message
kept_type(const struct cm_conn *c)
{
	uint16_t attribute = get_be16(c->mad + MAD_OFF_ATTRIBUTE);

	return (enum cm_message)(attribute - cm_msg_layouts[CM_REQ].attribute);
}

bool
cm_send_waiting(struct cm_conn *c)
{
	if (!may_send(c))
		return true;
	if (!cm_transmit(c->cm, &c->to, c->mad, kept_type(c)))
		return false;
	cm_trace_sent(c, kept_type(c), 0);
	return true;
}

static void
send_kept(struct cm_conn *c)
{
	if (cm_send_waiting(c))
		cm_unwant(c, CM_WORK_SEND);
	else
		cm_want(c, CM_WORK_SEND);
}

void
cm_ask(struct cm_conn *c, struct cm_msg *m, uint64_t interval, uint64_t now)
{
	set_ids(c, m);
	cm_msg_encode(m, c->mad);
	c->cm->now = now;
	c->interval = interval;
	c->retries_left = c->max_retries;
	cm_set_timer(c, interval, now);
	send_kept(c);
}

void
cm_repeat(struct cm_conn *c)
{
	cm_count(c->cm, retries);
	send_kept(c);
}

/* A TID that this side has not used before (cm.md 1). */
uint64_t
cm_new_tid(struct cm_conn *c)
{
	return (uint64_t)c->id << 32 | (++c->cm->tids & UINT32_MAX);
}

/* --- REJ --- */

static void
fill_rej(struct cm_msg *m, const struct cm_refusal *r)
{
	m->type = CM_REJ;
	m->rej = (struct cm_rej){
		.answers = r->answers,
		.reason = r->reason,
		.ari_len = r->ari_len,
	};
	memcpy(m->rej.ari, r->ari, sizeof(r->ari));
	m->private_data = r->private_data;
	m->private_len = r->private_len;
}

static void
count_rej(struct cm *cm, uint16_t reason)
{
	unsigned int i = reason < CM_REASONS ? reason : 0;

	cm_count(cm, rej_sent[i]);
}

/* cm.md 2: a REJ of a REQ has LocalCommID 0; a received REQ has RemoteCommID 0. */
void
cm_reject_message(const struct cm_rx *rx, const struct cm_refusal *r)
{
	struct cm_msg m = {
		.tid = rx->msg.tid,
		.remote_id = rx->msg.local_id,
		.local_id = rx->msg.remote_id,
	};

	fill_rej(&m, r);
	count_rej(rx->cm, r->reason);
	cm_send(rx->cm, rx->peer, &m);
}

/* In REQ_RCVD the peer does not know our ID yet: LocalCommID is 0 (cm.md 2). */
void
cm_reject(struct cm_conn *c, const struct cm_refusal *r)
{
	struct cm_msg m = { .tid = c->tid, .remote_id = c->remote_id };

	if (c->state != CM_STATE_REQ_RCVD)
		m.local_id = c->id;
	fill_rej(&m, r);
	if (c->state == CM_STATE_REQ_RCVD || c->state == CM_STATE_MRA_REQ_SENT)
		m.rej.answers = CM_ANSWERS_REQ;
	if (!may_send(c))
		return;
	count_rej(c->cm, r->reason);
	cm_trace_sent(c, CM_REJ, r->reason);
	cm_send(c->cm, &c->to, &m);
}

void
cm_reject_timeout(struct cm_conn *c)
{
	struct cm_refusal r = {
		.answers = CM_ANSWERS_OTHER,
		.reason = CM_REJ_TIMEOUT,
		.ari_len = 8,
	};

	put_be64(r.ari, c->cm->config.ca_guid);
	cm_reject(c, &r);
}
