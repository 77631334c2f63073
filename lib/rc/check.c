/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of qp.h, requester.h, responder.h, rq.h, cq.h and dcqcn.h claim, asserted. */

#include "base/check.h"
#include "rc/check.h"
#include "rc/dcqcn.h"
#include "rc/failure.h"

#ifdef RTE_ENABLE_ASSERT

/* Longer queues are checked at their ends only, so that a checked build stays usable. */
#define WALK_MAX 64

/* The QP that is checked: a failed check prints its last steps. */
static _Thread_local const struct rc_qp *checked;

#define CHECK(what) CHECK_OF(what, rc_trace_print, checked)

/* True if a, b and c are in this order on the circle of 2^32. */
static bool
in_order(uint32_t a, uint32_t b, uint32_t c)
{
	return b - a <= c - a;
}

/* The WQEs from ack to head: PSNs without a gap, and the Reads and Atomics that are outstanding. */
static void
check_assigned(const struct rc_requester *req)
{
	unsigned int answered = 0, assigned = 0;
	const struct rc_sq_wqe *wqe;
	uint32_t i, next = 0;

	for (i = req->ack; i != req->head; i++) {
		wqe = rc_sq_at(req, i);
		CHECK(wqe->only == 0 || !wqe->assigned);
		if (!wqe->assigned || rc_wqe_local(wqe))
			continue;
		CHECK(psn_sub(wqe->last_psn, wqe->psn) < PSN_WINDOW);
		/* una belongs to the oldest WQE */
		if (assigned++ == 0)
			CHECK(rc_psn_between(req->una, wqe->psn, wqe->last_psn));
		else
			CHECK(wqe->psn == next);
		next = psn_add(wqe->last_psn, 1);
		answered += rc_wqe_answered(wqe);
	}
	CHECK(req->rd_atomic == answered);
	if (assigned == 0)
		CHECK(rc_in_flight(req) == 0);
}

static void
check_requester(const struct rc_qp *qp)
{
	const struct rc_requester *req = &qp->req;

	CHECK(in_order(req->tail, req->ack, req->head));
	CHECK(in_order(req->ack, req->send, req->head));
	CHECK(req->head - req->tail <= req->max_wr);
	CHECK(rc_in_flight(req) <= PSN_WINDOW);
	CHECK(rc_from_una(req, req->send_psn) <= rc_in_flight(req));
	CHECK(req->retry_left <= req->retry_cnt && req->rnr_left <= req->rnr_retry);
	CHECK(!req->timing || (rc_in_flight(req) > 0 && timer_armed(&req->timer)));
	CHECK(req->rnr_wait != RC_RNR_WAIT || timer_armed(&req->timer));
	CHECK(req->tail == req->ack || req->held);
	if (qp->state == QPS_RESET || qp->state == QPS_ERR)
		CHECK(req->tail == req->head && rc_in_flight(req) == 0);
	if (req->head - req->ack <= WALK_MAX)
		check_assigned(req);
}

static void
check_ack_run(const struct rc_responder *r, const struct rc_ack_run *run)
{
	if (!run->owed)
		return;
	CHECK(psn_diff(run->last, run->first) >= 0);
	CHECK(psn_diff(run->last, r->epsn) < 0);
}

/* Saved requests in the order of their PSNs, all before ePSN; those before saved_done are sent. */
static void
check_responder(const struct rc_responder *r)
{
	const struct rc_saved *s, *before = NULL;
	unsigned int i;

	CHECK(r->saved_count <= r->saved_size && r->saved_limit <= r->saved_size);
	CHECK(r->saved_done <= r->saved_count);
	CHECK(r->saved_size == 0 || r->saved_head < r->saved_size);
	for (i = 0; i < r->saved_count; i++, before = s) {
		s = rc_saved_at(r, i);
		CHECK(psn_diff(s->last_psn, s->psn) >= 0);
		CHECK(psn_diff(s->last_psn, r->epsn) < 0);
		CHECK(before == NULL || psn_diff(before->last_psn, s->psn) < 0);
		CHECK(i >= r->saved_done || (!s->pending && !s->ack.owed));
		check_ack_run(r, &s->ack);
	}
	check_ack_run(r, &r->ack);
	CHECK(!r->wqe_taken || r->message != RESP_IDLE);
}

/* A limiter that is not used has no timer; one that is keeps its rates within their bounds. */
static void
check_limiter(const struct rc_qp *qp)
{
	const struct rc_congestion *c = &qp->worker->dev->limits.congestion;
	const struct rc_rp *rp = qp->rp;

	CHECK(!rc_limited(qp) || rp != NULL);
	if (rp == NULL)
		return;
	CHECK(rp->qp == qp && rp->alpha <= RC_RP_ONE);
	if (!rc_limited(qp)) {
		CHECK(!timer_armed(&rp->timer));
		return;
	}
	CHECK(rp->rate >= c->min_rate * UINT64_C(1000000));
	CHECK(rp->rate <= c->max_rate * UINT64_C(1000000));
	CHECK(rp->target <= c->max_rate * UINT64_C(1000000));
}

/*
 * What is published and not yet polled fits into the ring, and so do its fences. The ring's worker
 * and its poller may ask: one end stands still, and the other one moves within the bounds.
 */
static bool
ring_fits(const struct rc_cq *cq, const struct rc_cq_ring *r)
{
	uint32_t tail = __atomic_load_n(&r->tail, __ATOMIC_RELAXED);
	uint32_t passed = __atomic_load_n(&r->fence_tail, __ATOMIC_RELAXED);

	return r->cq == cq && __atomic_load_n(&r->head, __ATOMIC_RELAXED) - tail <= cq->depth &&
		__atomic_load_n(&r->fence_head, __ATOMIC_RELAXED) - passed <= CQ_FENCES;
}

/* The poller's view; check_ring() is the worker's. */
void
rc_cq_check(const struct rc_cq *cq)
{
	const struct rc_cq_ring *r;
	unsigned int i;

	RTE_ASSERT(cq->turn < cq->workers);
	for (i = 0; i < cq->workers; i++) {
		r = rc_cq_ring(cq, i);
		RTE_ASSERT(r == NULL || ring_fits(cq, r));
	}
}

static void
check_ring(const struct rc_cq *cq, unsigned int worker)
{
	const struct rc_cq_ring *r = rc_cq_ring(cq, worker);
	uint32_t tail;

	if (r == NULL)
		return;
	tail = __atomic_load_n(&r->tail, __ATOMIC_RELAXED);
	CHECK(ring_fits(cq, r));
	CHECK(r->head - r->tail_seen <= cq->depth);
	/* the poller reads only what is published, and its tail was never ahead of now */
	CHECK(tail - r->tail_seen <= r->head - r->tail_seen);
	CHECK((r->notify & ~(CQ_ARMED_SOLICITED | CQ_ARMED_ANY)) == 0);
}

/* An SRQ is on the worker of its QPs, and is disarmed when it has raised its limit event. */
void
rc_srq_check(const struct rc_srq *srq)
{
	const struct rc_dev *dev = srq->worker->dev;

	RTE_ASSERT(dev->srqs[srq->srqn] == srq);
	RTE_ASSERT(rc_srq_owner(dev, srq->srqn) == (int)srq->worker->id);
	RTE_ASSERT(rc_rq_posted(&srq->rq) <= srq->rq.max_wr);
	RTE_ASSERT(srq->limit <= srq->rq.max_wr);
	/* of requests that wait elsewhere, a client may take back some at any time */
	RTE_ASSERT(srq->limit == 0 || rc_rq_posted(&srq->rq) >= srq->limit ||
		srq->count_waiting != NULL);
}

void
rc_qp_check(const struct rc_qp *qp)
{
	checked = qp;
	CHECK(qp->worker->dev->worker[qp->worker->id] == qp->worker);
	CHECK(qp->totals == &qp->worker->counters[qp->path.av.port]);
	/* a failure noted in a step has moved the QP to ERR at its end */
	CHECK(!(qp->worker->errors & RC_QP_FAILED));
	/* a QP with work waits on the run queue, or for a timer to allow it to send */
	CHECK(qp->work == 0 || qp->on_run_queue || rc_limited(qp));
	CHECK(qp->state != QPS_RESET || qp->work == 0);
	CHECK(rc_rq_posted(qp->rq) <= qp->rq->max_wr);
	if (qp->srq != NULL) {
		CHECK(qp->rq == &qp->srq->rq && qp->srq->users > 0);
		CHECK(qp->srq->worker == qp->worker);
		rc_srq_check(qp->srq);
	}
	check_requester(qp);
	check_responder(&qp->resp);
	check_limiter(qp);
	check_ring(qp->send_cq, qp->worker->id);
	check_ring(qp->recv_cq, qp->worker->id);
}

#endif
