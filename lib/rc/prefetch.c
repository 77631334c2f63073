/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * With many active QPs, a packet's QP is usually not in the cache. A worker prefetches the QP's
 * lines (qp.h) a few packets ahead, interleaved with processing: a core can have only about 16
 * misses outstanding, so prefetching a whole burst at once would stall. The run queue's prefetches:
 * rc_prefetch_turns().
 */

#include "rc/qp_directory.h"

/* A QP and its queues use some 3 KiB: so many QPs fill twice a first-level cache */
#define FEW 32

/* Packets ahead: first the QP, then the queues that it points to */
#define AHEAD_QP     8
#define AHEAD_QUEUES 4

bool
rc_crowd(const struct rc_worker *w)
{
	return w->num_qps > FEW;
}

void
rc_prefetch_place(const struct rc_worker *w, uint32_t qpn)
{
	uint32_t slot = rc_slot(w->dev, qpn);

	rte_prefetch0(&w->dev->owners[slot]);
	rte_prefetch0(&w->dev->qps[slot]);
}

static inline void
prefetch_qp(const struct rc_worker *w, const struct packet *pkt)
{
	const struct rc_qp *qp = rc_qp_there(w, pkt->dest_qpn);

	if (unlikely(qp == NULL))
		return;
	rte_prefetch0(qp);
	rte_prefetch0(&qp->path);
	rte_prefetch0(&qp->counters);
	if (pkt->op->flags & OP_RESPONSE) {
		rte_prefetch0(&qp->req);
		rte_prefetch0(&qp->req.ack_timeout);
	} else {
		rte_prefetch0(&qp->recv_cq);
		rte_prefetch0(&qp->own_rq);
	}
}

static inline void
prefetch_queues(const struct rc_worker *w, const struct packet *pkt)
{
	const struct rc_qp *qp = rc_qp_there(w, pkt->dest_qpn);

	if (unlikely(qp == NULL))
		return;
	if (pkt->op->flags & OP_RESPONSE) {
		rte_prefetch0(rc_sq_oldest(&qp->req));
		return;
	}
	/* assumes that each packet ahead is a Send Only and takes its own WQE */
	if (pkt->op->flags & OP_RQ_WQE)
		rte_prefetch0(rc_rq_at(qp->rq, qp->rq->tail + (pkt->psn - qp->resp.epsn)));
	rc_prefetch_header(qp);
}

void
rc_look_ahead(const struct rc_worker *w, struct packet *const *pkts, unsigned int n, unsigned int i)
{
	unsigned int k;

	RTE_ASSERT(i < n);
	/* before the first packet all of those ahead, then one more for each */
	for (k = i == 0 ? 0 : i + AHEAD_QP; k < n && k <= i + AHEAD_QP; k++)
		prefetch_qp(w, pkts[k]);
	for (k = i == 0 ? 0 : i + AHEAD_QUEUES; k < n && k <= i + AHEAD_QUEUES; k++)
		prefetch_queues(w, pkts[k]);
}
