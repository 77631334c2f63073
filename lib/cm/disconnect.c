/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Ending a connection: DREQ and DREP; REJ if it is not established yet (cm.md 6). */

#include <errno.h>

#include "cm/private.h"

/* --- ended by us --- */

void
cm_send_dreq(struct cm_conn *c, const uint8_t *private_data, uint8_t len, uint64_t now)
{
	struct cm_msg m = {
		.type = CM_DREQ,
		.tid = cm_new_tid(c),
		.dreq = { .qpn = c->remote_qpn },
		.private_data = private_data,
		.private_len = RTE_MIN(len, CM_DREQ_PRIVATE),
	};

	cm_qp_error(c);
	cm_probe_end(c);
	c->lap_waiting = false;
	c->state = CM_STATE_DREQ_SENT;
	cm_ask(c, &m, c->dreq_interval, now);
}

/*
 * End a connection that is not established yet: REJ tells the peer (cm.md 6: refuse, reject,
 * abandon).
 */
static void
cm_abandon(struct cm_conn *c, const uint8_t *private_data, uint8_t len, uint64_t now)
{
	const struct cm_refusal consumer = {
		.answers = c->state == CM_STATE_REP_RCVD ? CM_ANSWERS_REP : CM_ANSWERS_OTHER,
		.reason = CM_REJ_CONSUMER,
		.private_data = private_data,
		.private_len = RTE_MIN(len, CM_REJ_PRIVATE),
	};
	bool rts = c->state == CM_STATE_REP_SENT || c->state == CM_STATE_MRA_REP_RCVD ||
		c->state == CM_STATE_REP_RCVD;

	if (c->active && c->state != CM_STATE_REP_RCVD)
		cm_reject_timeout(c);
	else
		cm_reject(c, &consumer);
	if (rts)
		cm_end_timewait(c, CM_END_CANCELLED, 0, NULL, 0, now);
	else
		cm_end_idle(c, CM_END_CANCELLED, 0, NULL, 0, now);
}

int
cm_disconnect(struct cm *cm, cm_id id, const uint8_t *private_data, uint8_t len, uint64_t now)
{
	struct cm_conn *c = cm_conn_of(cm, id);

	RTE_ASSERT(private_data != NULL || len == 0);
	if (c == NULL || c->state == CM_STATE_IDLE)
		return -ENOENT;
	switch (c->state) {
	case CM_STATE_ESTABLISHED:
		cm_send_dreq(c, private_data, len, now);
		cm_conn_check(c);
		return 0;
	case CM_STATE_DREQ_SENT:
	case CM_STATE_DREQ_RCVD:
	case CM_STATE_TIMEWAIT:
		return -EALREADY;
	}
	cm_abandon(c, private_data, len, now);
	cm_conn_check(c);
	return 0;
}

/* --- ended by the peer --- */

/* The DREP has the DREQ's TID and its communication IDs, swapped. c is NULL if there is none. */
static void
send_drep(struct cm_conn *c, const struct cm_rx *rx)
{
	const struct cm_msg m = {
		.type = CM_DREP,
		.tid = rx->msg.tid,
		.local_id = rx->msg.remote_id,
		.remote_id = rx->msg.local_id,
	};

	if (c != NULL)
		cm_trace_sent(c, CM_DREP, 0);
	cm_send(rx->cm, rx->peer, &m);
}

static bool
for_my_qp(const struct cm_conn *c, struct cm_rx *rx)
{
	if (rx->msg.dreq.qpn == c->qpn)
		return true;
	cm_count(c->cm, malformed);
	rx->verdict = VERDICT_MAD_UNMATCHED;
	return false;
}

void
cm_dreq(struct cm_conn *c, struct cm_rx *rx)
{
	if (!for_my_qp(c, rx))
		return;
	c->state = CM_STATE_DREQ_RCVD;
	send_drep(c, rx);
	cm_end_timewait(c, CM_END_DISCONNECTED, 0, rx->msg.private_data, rx->msg.private_len,
		rx->now);
}

void
cm_dreq_again(struct cm_conn *c, struct cm_rx *rx)
{
	if (!for_my_qp(c, rx))
		return;
	cm_count(c->cm, duplicates);
	send_drep(c, rx);
}

/* A DREQ without a connection here: answer it, so that the peer does not wait. */
void
cm_stray_dreq(struct cm_conn *c, struct cm_rx *rx)
{
	cm_count(rx->cm, unmatched);
	send_drep(c, rx);
}

void
cm_drep(struct cm_conn *c, struct cm_rx *rx)
{
	cm_end_timewait(c, CM_END_DISCONNECTED, 0, rx->msg.private_data, rx->msg.private_len,
		rx->now);
}
