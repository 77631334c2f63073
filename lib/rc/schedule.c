/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The scheduler: deficit round robin, in bytes, over the QPs with packets to send.
 *
 * A packet costs its payload and RC_PACKET_COST for the fixed work per packet. At its turn, a QP
 * without credit gets a quantum; it sends while its credit is positive. It may overdraw by less
 * than the cost of a packet, which its next quantum pays. It keeps unused credit, and gets a new
 * quantum only when that is used up. A QP with little to send therefore waits for at most one turn
 * of each other QP, whether they send Read responses, long Sends or replays for a flood of
 * duplicates. The QPs of a share (share.c) count as one.
 *
 * Duplicate and out-of-sequence requests are charged to their QP (rc_charge()), because receiving
 * them costs the worker time beyond the QP's share. The charge is limited so that the QP still
 * sends at least one packet per turn: such requests may follow a loss, which its packets repair.
 */

#include "rc/check.h"
#include "rc/failure.h"
#include "rc/sq.h"

/*
 * rc_run() also limits the cost of a run, to this much per packet of budget: the engine's budget of
 * 32 allows 29 packets of the largest PMTU. So a run is short and sends no more than a peer
 * receives in one burst; a longer run would send, and send again, before the peer can report a
 * loss.
 */
#define MEAN_COST 4096

/*
 * A QP that exchanges small messages waits for the end of the worker's run before it sends, and its
 * peer's response waits for the peer's run. So for LITTLE_TURNS runs after a small message, a QP
 * that still has work after its turn is counted at LITTLE_TIMES its cost, which makes runs short.
 *
 * A short run sends 2 packets of the largest PMTU, so LITTLE_TURNS of them send 128. A QP whose
 * next small message comes later has waited longer than these runs take, and a long run of 29
 * packets delays it by little: one small message now and then keeps nobody's runs short.
 */
#define LITTLE       (4 * RC_PACKET_COST) /* most that a small message and an ACK cost */
#define LITTLE_TURNS 64
#define LITTLE_TIMES 16

/* What rc_run() may still send in this run */
struct turn {
	unsigned int packets;
	int64_t bytes;
	bool full; /* the sink is full */
	bool little; /* a small message was sent */
};

bool
rc_pending(const struct rc_worker *w)
{
	return !STAILQ_EMPTY(&w->run_queue) || !LIST_EMPTY(&w->grace) || w->notify != NULL ||
		w->errors != 0;
}

/* Let one half of the QP, responder or requester, send. `work`, a constant, says which. */
static __rte_always_inline void
serve_half(struct rc_qp *qp, uint8_t work, struct turn *t)
{
	unsigned int n;

	if ((qp->work & work) == 0 || qp->credit <= 0 || t->packets == 0 || t->full)
		return;
	n = work == WORK_RESPOND ? rc_answer(qp, t->packets) : rc_request(qp, t->packets);
	rc_step_done(qp);
	t->full = (qp->work & work) && n < t->packets && qp->credit > 0;
	t->packets -= n;
}

static __rte_always_inline void
serve_both(struct rc_qp *qp, struct turn *t)
{
	/*
	 * alternate who sends first, so that Read responses and requests cannot starve each other
	 */
	if (unlikely(qp->requests_first && qp->resp.saved_due))
		serve_half(qp, WORK_REQUEST, t);
	serve_half(qp, WORK_RESPOND, t);
	serve_half(qp, WORK_REQUEST, t);
}

/*
 * Serve a QP with a rate limit (dcqcn.c): packet by packet, as far as its rate allows. ACKs are not
 * limited, unless they are owed after a Read response.
 *
 * @retval true  the QP must wait; a timer requeues it
 */
static bool
serve_limited(struct rc_qp *qp, struct turn *t)
{
	int32_t credit, cost;

	if (!qp->resp.saved_due)
		serve_half(qp, WORK_RESPOND, t);
	while (qp->work != 0 && qp->credit > 0 && t->packets > 0 && !t->full) {
		if (!rc_rp_may_send(qp))
			return true;
		credit = qp->credit;
		qp->credit = 1; /* allows one packet */
		serve_both(qp, t);
		cost = 1 - qp->credit;
		qp->credit = credit - cost;
		if (cost != 0)
			rc_rp_sent(qp, (uint32_t)(cost - RC_PACKET_COST));
	}
	return false;
}

/*
 * Serve a QP that cannot be served in the common way (RC_APART_). @retval true  as serve_limited()
 */
static bool __rte_noinline
serve_apart(struct rc_qp *qp, struct turn *t)
{
	struct rc_worker *w = qp->worker;
	bool traced = qp->trace != NULL, waits = false;

	if (traced)
		rc_trace_begin(qp);
	if (rc_limited(qp))
		waits = serve_limited(qp, t);
	else
		serve_both(qp, t);
	if (traced)
		rc_trace_end(w);
	return waits;
}

/* One turn of a QP. @retval true  it has work, but must wait for its rate */
static inline bool
serve_turn(struct rc_qp *qp, struct turn *t)
{
	int32_t credit, cost, left = qp->credit;
	bool waits = false;

	if (qp->credit <= 0) {
		qp->credit += RC_QUANTUM;
		qp->requests_first = !qp->requests_first;
	}
	credit = qp->credit;
	if (unlikely(qp->apart != 0))
		waits = serve_apart(qp, t);
	else
		serve_both(qp, t);
	cost = credit - qp->credit;
	t->bytes -= cost;
	if (qp->work != 0)
		t->bytes -= qp->worker->little > 0 ? (LITTLE_TIMES - 1) * cost : 0;
	else if (left > 0 && cost > RC_PACKET_COST && cost <= LITTLE)
		t->little = true; /* more than an ACK, at most a small message */
	return waits;
}

static void
check_grace_list(struct rc_worker *w)
{
	struct rc_qp *qp, *next;

	for (qp = LIST_FIRST(&w->grace); qp != NULL; qp = next) {
		next = LIST_NEXT(qp, grace_link);
		rc_sq_settle(qp); /* completes local operations whose grace period is over */
		rc_step_done(qp);
		rc_qp_check(qp);
	}
}

unsigned int
rc_run(struct rc_worker *w, uint64_t now, unsigned int budget)
{
	struct turn t = { .packets = budget, .bytes = (int64_t)budget * MEAN_COST };
	struct rc_qp *qp;
	bool waits;

	RTE_ASSERT((int64_t)(now - w->now) >= 0);
	w->now = now;
	check_grace_list(w);
	while (t.packets > 0 && t.bytes > 0 && !t.full &&
		(qp = STAILQ_FIRST(&w->run_queue)) != NULL) {
		rc_prefetch_turns(qp);
		waits = serve_turn(qp, &t);
		/*
		 * The budget cut the turn short: the QP stays first and continues in the next run.
		 * With a full sink it goes to the end, because the sink may be full for it alone.
		 */
		if (qp->work != 0 && qp->credit > 0 && !t.full && !waits)
			break;
		STAILQ_REMOVE_HEAD(&w->run_queue, run_link);
		qp->on_run_queue = false;
		if (unlikely(qp->share != NULL))
			rc_share_pass(qp, t.full);
		if (qp->work != 0 && !waits)
			rc_want(qp, 0);
		rc_qp_check(qp);
	}
	if (t.little)
		w->little = LITTLE_TURNS;
	else if (w->little > 0)
		w->little--;
	if (unlikely(w->errors & RC_CQ_OVERRUN))
		rc_cq_overruns(w);
	rc_cq_notify(w);
	RTE_ASSERT(t.packets <= budget && w->notify == NULL);
	return budget - t.packets;
}
