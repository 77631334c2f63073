/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The state machine of cm.md 6, both sides, as one table: the function that handles a message in a
 * state. IDLE stands for "no connection". A message without a function is counted and dropped.
 */

#include "cm/private.h"

/* The message has been answered, or an answer is on its way: only count it. */
static void
count_duplicate(struct cm_conn *c, struct cm_rx *rx)
{
	RTE_SET_USED(rx);
	cm_count(c->cm, duplicates);
}

static const cm_step steps[CM_STATES][CM_MESSAGES] = {
	[CM_STATE_IDLE] = {
		[CM_REQ] = cm_passive_req,
		[CM_REP] = cm_stray_rep,
		[CM_DREQ] = cm_stray_dreq,
		[CM_LAP] = cm_stray_lap,
		[CM_SIDR_REQ] = cm_sidr_req,
	},
	/* active */
	[CM_STATE_REQ_SENT] = {
		[CM_REP] = cm_active_rep,
		[CM_MRA] = cm_mra,
		[CM_REJ] = cm_rej_idle,
	},
	[CM_STATE_MRA_REQ_RCVD] = {
		[CM_REP] = cm_active_rep,
		[CM_MRA] = cm_mra,
		[CM_REJ] = cm_rej_idle,
	},
	[CM_STATE_REP_RCVD] = {
		[CM_REP] = count_duplicate,
		[CM_REJ] = cm_rej_timewait,
	},
	/* passive */
	[CM_STATE_REQ_RCVD] = {
		[CM_REQ] = cm_passive_req_again,
		[CM_REJ] = cm_rej_idle,
	},
	[CM_STATE_MRA_REQ_SENT] = {
		[CM_REQ] = cm_passive_req_again,
		[CM_REJ] = cm_rej_idle,
	},
	[CM_STATE_REP_SENT] = {
		[CM_REQ] = cm_passive_rep_again,
		[CM_RTU] = cm_passive_rtu,
		[CM_MRA] = cm_mra,
		[CM_REJ] = cm_rej_idle,
		[CM_DREQ] = cm_dreq,
	},
	[CM_STATE_MRA_REP_RCVD] = {
		[CM_REQ] = count_duplicate,
		[CM_RTU] = cm_passive_rtu,
		[CM_MRA] = cm_mra,
		[CM_REJ] = cm_rej_idle,
		[CM_DREQ] = cm_dreq,
	},
	/* either */
	[CM_STATE_ESTABLISHED] = {
		[CM_REQ] = count_duplicate,
		[CM_REP] = cm_active_rep_again,
		[CM_RTU] = count_duplicate,
		[CM_MRA] = cm_mra,
		[CM_REJ] = cm_rej_timewait,
		[CM_DREQ] = cm_dreq,
		[CM_LAP] = cm_lap,
		[CM_APR] = cm_apr,
	},
	[CM_STATE_DREQ_SENT] = {
		[CM_REQ] = count_duplicate,
		[CM_REP] = count_duplicate,
		[CM_RTU] = count_duplicate,
		[CM_REJ] = cm_rej_timewait,
		[CM_DREQ] = cm_dreq,
		[CM_DREP] = cm_drep,
	},
	[CM_STATE_TIMEWAIT] = {
		[CM_REQ] = cm_passive_req_stale,
		[CM_REP] = count_duplicate,
		[CM_RTU] = count_duplicate,
		[CM_DREQ] = cm_dreq_again,
		[CM_DREP] = count_duplicate,
	},
};

/* Record the message, and the state that it has led to unless the connection is gone. */
static void
cm_step_recorded(cm_step step, struct cm_conn *c, struct cm_rx *rx)
{
	struct trace_step *received = cm_trace_received(c, &rx->msg);
	cm_id id = c->id;

	step(c, rx);
	if (cm_lives(c, id) && c->trace != NULL)
		received->outcome = c->state;
}

void
cm_dispatch(struct cm_conn *c, struct cm_rx *rx)
{
	cm_step step = steps[c != NULL ? c->state : CM_STATE_IDLE][rx->msg.type];

	if (step == NULL) {
		cm_count(rx->cm, unmatched);
		rx->verdict = VERDICT_MAD_UNMATCHED;
		return;
	}
	if (unlikely(c != NULL && c->trace != NULL))
		cm_step_recorded(step, c, rx);
	else
		step(c, rx);
	if (c != NULL)
		cm_conn_check(c);
}
