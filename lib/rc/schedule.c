/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Whose turn it is to send: deficit round robin over the queue pairs with work, in bytes.
 *
 * A packet costs its payload and RC_PACKET_COST for the work any packet is. A QP without credit
 * gets a quantum when its turn comes and sends while it has some; it overdraws by less than a
 * packet, which its next turn pays. What it does not use it keeps, and gets no more before that is
 * gone. So a QP with little to send waits for one turn of each other at the most, whatever they
 * send: Read responses, long Sends, what a flood of duplicates asks for again.
 *
 * Packets that bring nothing are charged to their QP, too (rc_charge()), or one that is flooded
 * with them would have the worker's time for them beside its share. It still sends a packet each
 * turn, for they may come from a loss, which what it sends repairs.
 */

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "rc/qp_directory.h"
#include "wire/wire.h"

/*
 * rc_run()'s budget is in packets of so many bytes: the engine's 32 are 29 of the largest. A turn
 * of a worker is short then, and no more than a peer takes in with one burst: more would go out,
 * and again, before it can say what it misses.
 */
#define MEAN_COST 4096

/*
 * What a QP with a small message sends next waits for the end of this turn, and the answer for the
 * end of the peer's, which takes in what was sent in this one. So for a while after such a message
 * those with more work than their share count for so many times what they send: turns are short.
 */
#define LITTLE       (4 * RC_PACKET_COST) /* a small message and an Ack */
#define LITTLE_TURNS 256
#define LITTLE_TIMES 16

/* What is left of rc_run()'s turn */
struct turn {
	unsigned int packets;
	int64_t bytes;
	bool full; /* the sink takes no more */
	bool little; /* a small message went out */
};

bool
rc_pending(const struct rc_worker *w)
{
	return !STAILQ_EMPTY(&w->run_queue) || !LIST_EMPTY(&w->grace) || w->notify != NULL ||
		w->cq_overrun;
}

/* One half of the QP */
static inline void
serve_half(struct rc_qp *qp, uint8_t work, unsigned int (*half)(struct rc_qp *, unsigned int),
	struct turn *t)
{
	unsigned int n;

	if ((qp->work & work) == 0 || qp->credit <= 0 || t->packets == 0 || t->full)
		return;
	n = half(qp, t->packets);
	t->full = (qp->work & work) && n < t->packets && qp->credit > 0;
	t->packets -= n;
}

static inline void
serve_both(struct rc_qp *qp, struct turn *t)
{
	/* Read responses and the QP's own requests by turns, lest one starve the other */
	if (unlikely(qp->requests_first && qp->resp.saved_due))
		serve_half(qp, WORK_REQUEST, rc_request, t);
	serve_half(qp, WORK_RESPOND, rc_answer, t);
	serve_half(qp, WORK_REQUEST, rc_request, t);
}

/*
 * The QP's rate is limited (dcqcn.c): packet by packet, as far as its rate allows. Acknowledgements
 * go as ever, but for those that Read responses owed before hold up.
 *
 * @retval true  it waits, and a timer brings it back
 */
static bool __attribute__((noinline))
serve_limited(struct rc_qp *qp, struct turn *t)
{
	int32_t credit, cost;

	if (!qp->resp.saved_due)
		serve_half(qp, WORK_RESPOND, rc_answer, t);
	while (qp->work != 0 && qp->credit > 0 && t->packets > 0 && !t->full) {
		if (!rc_rp_may_send(qp))
			return true;
		credit = qp->credit;
		qp->credit = 1; /* for one packet */
		serve_both(qp, t);
		cost = 1 - qp->credit;
		qp->credit = credit - cost;
		if (cost != 0)
			rc_rp_sent(qp, (uint32_t)(cost - RC_PACKET_COST));
	}
	return false;
}

/* @retval true  there is work, but not now */
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
	if (unlikely(qp->limited))
		waits = serve_limited(qp, t);
	else
		serve_both(qp, t);
	cost = credit - qp->credit;
	t->bytes -= cost;
	if (qp->work != 0)
		t->bytes -= qp->worker->little > 0 ? (LITTLE_TIMES - 1) * cost : 0;
	else if (left > 0 && cost > RC_PACKET_COST && cost <= LITTLE)
		t->little = true; /* more than an Ack, and no more */
	return waits;
}

static void
check_grace_list(struct rc_worker *w)
{
	struct rc_qp *qp, *next;

	for (qp = LIST_FIRST(&w->grace); qp != NULL; qp = next) {
		next = LIST_NEXT(qp, grace_link);
		rc_requester_grace(qp);
	}
}

unsigned int
rc_run(struct rc_worker *w, uint64_t now, unsigned int budget)
{
	struct turn t = { .packets = budget, .bytes = (int64_t)budget * MEAN_COST };
	struct rc_qp *qp;
	bool waits;

	w->now = now;
	check_grace_list(w);
	while (t.packets > 0 && t.bytes > 0 && !t.full &&
			(qp = STAILQ_FIRST(&w->run_queue)) != NULL) {
		rc_prefetch_turns(qp);
		waits = serve_turn(qp, &t);
		/* cut short: its turn goes on next time. A full sink may be full for it alone. */
		if (qp->work != 0 && qp->credit > 0 && !t.full && !waits)
			break;
		STAILQ_REMOVE_HEAD(&w->run_queue, run_link);
		qp->on_run_queue = false;
		if (qp->work != 0 && !waits)
			rc_want(qp, 0);
	}
	if (t.little)
		w->little = LITTLE_TURNS;
	else if (w->little > 0)
		w->little--;
	if (unlikely(w->cq_overrun))
		rc_cq_overruns(w);
	rc_cq_notify(w);
	return budget - t.packets;
}
