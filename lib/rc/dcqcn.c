/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Reaction point: CNPs reduce a QP's rate. Rules and choices: docs/spec/congestion.md; "congestion
 * N" cites its sections. Divisions are done when a rate changes, never per packet.
 */

#include "rc/check.h"
#include "rc/dcqcn.h"

#define MBPS       UINT64_C(1000000)
#define TIME_SHIFT 20 /* fraction bits of byte_time */
#define HEADERS    64 /* congestion 4: bytes charged per packet besides its payload */
#define PATIENCE   16384 /* congestion 4: bytes that a late QP may send in a burst to catch up */
#define STAGES_MAX 4096 /* congestion 3: most timer expiries that rp_catch_up() processes at once */

static const struct rc_congestion *
rp_params(const struct rc_qp *qp)
{
	return &qp->worker->dev->limits.congestion;
}

bool
rc_rp_params_ok(const struct rc_congestion *c)
{
	return !c->dcqcn ||
		(c->g >= 1 && c->g <= 65536 && c->alpha_timer != 0 && c->increase_timer != 0 &&
			c->byte_counter != 0 && c->fast_recovery != 0 && c->rate_ai != 0 &&
			c->min_rate != 0 && c->min_rate <= c->max_rate);
}

struct rc_rp_times
rc_rp_times(const struct rc_dev *dev)
{
	const struct rc_congestion *c = &dev->limits.congestion;

	return (struct rc_rp_times){
		.alpha = rc_ns_to_time(dev, c->alpha_timer * UINT64_C(1000)),
		.raise = rc_ns_to_time(dev, c->increase_timer * UINT64_C(1000)),
		.cut = rc_ns_to_time(dev, c->cut_interval * UINT64_C(1000)),
	};
}

/* --- the rate --- */

static void
rp_set_rate(struct rc_qp *qp, uint64_t rate)
{
	struct rc_rp *rp = qp->rp;

	rp->rate = RTE_MAX(rate, rp_params(qp)->min_rate * MBPS);
	rp->byte_time = (8 * qp->worker->dev->hz << TIME_SHIFT) / rp->rate;
	rp->patience = PATIENCE * rp->byte_time >> TIME_SHIFT;
}

/* congestion 3.2: fast recovery, additive increase, hyper increase */
static void
rp_raise(struct rc_qp *qp)
{
	const struct rc_congestion *c = rp_params(qp);
	struct rc_rp *rp = qp->rp;
	uint32_t low = RTE_MIN(rp->timer_stage, rp->byte_stage);
	uint32_t high = RTE_MAX(rp->timer_stage, rp->byte_stage);

	if (low > c->fast_recovery)
		rp->target += (low - c->fast_recovery) * (c->rate_hai * MBPS);
	else if (high >= c->fast_recovery)
		rp->target += c->rate_ai * MBPS;
	rp->target = RTE_MIN(rp->target, c->max_rate * MBPS);
	rp_set_rate(qp, (rp->rate + rp->target + 1) / 2);
}

/* congestion 3.3: within 1 Mbit/s of max_rate the QP is no longer limited */
static bool
rp_recovered(const struct rc_qp *qp)
{
	return qp->rp->rate + MBPS > rp_params(qp)->max_rate * MBPS;
}

/* Process the timer expiries since the last call. */
static void
rp_catch_up(struct rc_qp *qp)
{
	const struct rc_rp_times *times = &qp->worker->dev->rp_times;
	uint64_t now = qp->worker->now;
	struct rc_rp *rp = qp->rp;
	unsigned int n;

	for (n = 0; now >= rp->alpha_at && n < STAGES_MAX; n++) {
		rp->alpha -= rp->alpha / rp_params(qp)->g;
		rp->alpha_at += times->alpha;
	}
	for (n = 0; now >= rp->raise_at && !rp_recovered(qp) && n < STAGES_MAX; n++) {
		rp->timer_stage++;
		rp_raise(qp);
		rp->raise_at += times->raise;
	}
	rp->alpha_at = RTE_MAX(rp->alpha_at, now + 1);
	rp->raise_at = RTE_MAX(rp->raise_at, now + 1);
}

/* --- events of a QP --- */

void
rc_rp_notified(struct rc_qp *qp)
{
	const struct rc_congestion *c = rp_params(qp);
	const struct rc_rp_times *times = &qp->worker->dev->rp_times;
	uint64_t now = qp->worker->now;
	struct rc_rp *rp = qp->rp;

	if (rp == NULL || qp->path.av.encap > ENCAP_ROCEV2_IPV6 ||
		(rc_limited(qp) && now < rp->cut_at)) {
		rc_count(qp, rp_cnp_ignored);
		return;
	}
	rc_count(qp, rp_cnp_handled);
	if (rc_limited(qp)) {
		rp_catch_up(qp);
	} else { /* congestion 2: the first CNP finds the QP at full rate with alpha 1 */
		qp->apart |= RC_APART_LIMITED;
		rp->rate = c->max_rate * MBPS;
		rp->alpha = RC_RP_ONE;
		rp->next_send = now;
	}
	rp->target = rp->rate;
	rp_set_rate(qp, rp->rate - rp->rate * rp->alpha / (2 * RC_RP_ONE));
	rp->alpha += (RC_RP_ONE - rp->alpha) / c->g;
	rp->timer_stage = 0;
	rp->byte_stage = 0;
	rp->byte_left = c->byte_counter;
	rp->alpha_at = now + times->alpha;
	rp->raise_at = now + times->raise;
	rp->cut_at = now + times->cut;
}

bool
rc_rp_may_send(struct rc_qp *qp)
{
	uint64_t now = qp->worker->now;
	struct rc_rp *rp = qp->rp;

	if (!rc_limited(qp))
		return true;
	if (now >= RTE_MIN(rp->alpha_at, rp->raise_at))
		rp_catch_up(qp);
	if (rp_recovered(qp)) {
		rc_rp_release(qp);
		return true;
	}
	if (timer_armed(&rp->timer))
		return false;
	if (now >= rp->next_send)
		return true;
	rc_count(qp, rp_rate_limited);
	rc_rp_rearm(qp);
	return false;
}

void
rc_rp_sent(struct rc_qp *qp, uint32_t payload)
{
	uint64_t now = qp->worker->now, bytes = payload + HEADERS;
	struct rc_rp *rp = qp->rp;

	if (!rc_limited(qp))
		return;
	if (rp->next_send + rp->patience < now)
		rp->next_send = now - rp->patience;
	rp->next_send += bytes * rp->byte_time >> TIME_SHIFT;
	rp->byte_left -= bytes;
	if (rp->byte_left > 0)
		return;
	rp->byte_left += rp_params(qp)->byte_counter;
	rp->byte_stage++;
	rp_raise(qp);
}

void
rc_rp_release(struct rc_qp *qp)
{
	qp->apart &= ~RC_APART_LIMITED;
	rc_rp_disarm(qp);
}

/* --- timer and memory --- */

static void
rp_timer_expired(struct timer *t, uint64_t now)
{
	struct rc_rp *rp = container_of(t, struct rc_rp, timer);

	rp->qp->worker->now = now;
	if (rp->qp->work != 0)
		rc_want(rp->qp, 0);
	rc_qp_check(rp->qp);
}

void
rc_rp_disarm(struct rc_qp *qp)
{
	if (qp->rp != NULL)
		timer_disarm(qp->worker->wheel, &qp->rp->timer);
}

void
rc_rp_rearm(struct rc_qp *qp)
{
	uint64_t now = qp->worker->now;

	/* the wait begins when the driver has taken the packets before it (rc-transport 8) */
	if (rc_limited(qp))
		timer_start(qp->worker->wheel, &qp->rp->timer,
			qp->rp->next_send > now ? qp->rp->next_send - now : 0);
}

int
rc_rp_create(struct rc_qp *qp)
{
	if (!rp_params(qp)->dcqcn)
		return 0;
	qp->rp = mem_zalloc(qp->worker->dev->alloc, sizeof(*qp->rp), CACHE_LINE);
	if (qp->rp == NULL)
		return -ENOMEM;
	qp->rp->qp = qp;
	timer_init(&qp->rp->timer, rp_timer_expired);
	return 0;
}

void
rc_rp_destroy(struct rc_qp *qp)
{
	rc_rp_disarm(qp);
	mem_free(qp->worker->dev->alloc, qp->rp);
}

uint32_t
rc_rp_update_rate(struct rc_qp *qp)
{
	if (!rc_limited(qp))
		return 0;
	rp_catch_up(qp);
	if (!rp_recovered(qp))
		return qp->rp->rate / 1000;
	rc_rp_release(qp);
	if (qp->work != 0)
		rc_want(qp, 0);
	return 0;
}
