/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Move all that one owner has on a worker: queue pairs, and the shared receive queues that tie them
 * together. One fence in each CQ keeps the completions of all its queue pairs in order, since they
 * move at the same time; and the number of fences does not limit how many queue pairs can move.
 */

#include "rc/check.h"
#include "rc/qp_move.h"

static int
group_check(const struct rc_worker *w, const struct rc_group *g, unsigned int to, struct error *err)
{
	const struct rc_dev *dev = w->dev;
	struct rc_cq *cq;
	uint32_t i;
	int rc = rc_move_target_check(dev, to, err);

	if (rc != 0)
		return rc;
	for (i = 0; i < g->num_qps; i++)
		if (rc_qp_at(w, g->qpns[i]) == NULL)
			return rc_no_qp(g->qpns[i], err);
	for (i = 0; i < g->num_srqs; i++)
		if (rc_srq_find(w, g->srqns[i]) == NULL)
			return rc_no_srq(w, g->srqns[i], err);
	for (i = 0; i < g->num_cqs; i++) {
		cq = rc_cq_at(dev, g->cqns[i]);
		if (cq == NULL)
			return rc_no_cq("cq", g->cqns[i], err);
		if (rc_cq_ring(cq, w->id) != NULL && rc_cq_ring(cq, to) == NULL)
			return error_set(err, ENOMEM,
				"cq: completion queue %u has no memory for worker %u", g->cqns[i],
				to);
	}
	return 0;
}

#ifdef RTE_ENABLE_ASSERT
/* The caller has named all queue pairs of the share. */
static void
group_check_left(const struct rc_worker *w, const struct rc_share *share)
{
	const struct rc_qp *qp;

	RTE_ASSERT(share->turn == NULL && STAILQ_EMPTY(&share->waiting));
	LIST_FOREACH(qp, &w->qps, link)
		RTE_ASSERT(qp->share != share);
}
#else
#define group_check_left(w, share) RTE_SET_USED(share)
#endif

int
rc_group_export(struct rc_worker *w, const struct rc_group *g, unsigned int to, struct error *err)
{
	int rc = group_check(w, g, to, err);
	struct rc_qp *qp;
	uint32_t i;

	RTE_ASSERT(to != w->id);
	if (rc == 0)
		rc = rc_cq_fences_reserve(w, g->cqns, g->num_cqs, to, err);
	if (rc != 0)
		return rc;
	rc_share_stop(w, g->share);
	for (i = 0; i < g->num_qps; i++) {
		qp = rc_qp_at(w, g->qpns[i]);
		qp->on_run_queue = false; /* the share is on none */
		rc_qp_give(qp, to);
	}
	group_check_left(w, g->share);
	for (i = 0; i < g->num_srqs; i++)
		rc_srq_give(rc_srq_find(w, g->srqns[i]), to);
	return 0;
}

void
rc_group_import(struct rc_worker *w, const struct rc_group *g, unsigned int from)
{
	uint32_t i;

	rc_cq_fences_place(w, g->cqns, g->num_cqs, from);
	for (i = 0; i < g->num_qps; i++) {
		struct rc_qp *qp = rc_qp_take(w, g->qpns[i], g->share);

		RTE_ASSERT(qp != NULL);
		rc_qp_check(qp);
	}
}
