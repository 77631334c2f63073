/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A connection's timer expired: what each state does (cm.md 5, 6). */

#include "cm/private.h"

typedef void (*expire_fn)(struct cm_conn *c, uint64_t now);

static bool
cm_retry(struct cm_conn *c, uint64_t now)
{
	if (c->retries_left == 0 || (c->half_open && now >= c->patience))
		return false;
	c->retries_left--;
	cm_set_timer(c, c->interval, now);
	cm_repeat(c);
	return true;
}

/* Our REQ or REP was not answered. After the last retry a REJ tells the peer that we gave up. */
static void
expire_connecting(struct cm_conn *c, uint64_t now)
{
	if (cm_retry(c, now))
		return;
	cm_reject_timeout(c);
	cm_end_idle(c, CM_END_TIMEOUT, 0, NULL, 0, now);
}

/* The user did not accept or refuse in time, or did not move its own QP to RTS. */
static void
expire_user(struct cm_conn *c, uint64_t now)
{
	cm_reject_timeout(c);
	cm_end_idle(c, CM_END_TIMEOUT, 0, NULL, 0, now);
}

static void
expire_lap(struct cm_conn *c, uint64_t now)
{
	if (c->lap_waiting && !cm_retry(c, now))
		cm_lap_give_up(c);
}

static void
expire_dreq(struct cm_conn *c, uint64_t now)
{
	if (!cm_retry(c, now))
		cm_end_timewait(c, CM_END_DISCONNECTED, 0, NULL, 0, now);
}

static void
expire_timewait(struct cm_conn *c, uint64_t now)
{
	RTE_SET_USED(now);
	cm_want(c, CM_WORK_RELEASE);
}

static const expire_fn expiries[CM_STATES] = {
	[CM_STATE_REQ_SENT] = expire_connecting,
	[CM_STATE_MRA_REQ_RCVD] = expire_connecting,
	[CM_STATE_REP_RCVD] = expire_user,
	[CM_STATE_REQ_RCVD] = expire_user,
	[CM_STATE_MRA_REQ_SENT] = expire_user,
	[CM_STATE_REP_SENT] = expire_connecting,
	[CM_STATE_MRA_REP_RCVD] = expire_connecting,
	[CM_STATE_ESTABLISHED] = expire_lap,
	[CM_STATE_DREQ_SENT] = expire_dreq,
	[CM_STATE_TIMEWAIT] = expire_timewait,
};

void
cm_expired(struct timer *timer, uint64_t now)
{
	struct cm_conn *c = (struct cm_conn *)((char *)timer - offsetof(struct cm_conn, timer));

	c->cm->now = now;
	if (unlikely(c->trace != NULL))
		cm_trace_put(c, CM_STEP_TIMEOUT, 0, c->retries_left);
	if (expiries[c->state] != NULL)
		expiries[c->state](c, now);
	cm_conn_check(c);
}
