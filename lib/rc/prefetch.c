/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * With many QPs at work each packet finds its QP in memory. Its lines (qp.h) are asked for some
 * packets ahead, between the packets at hand rather than a burst's all at once: a core waits for
 * some 16 lines at a time, and whoever asks for more waits with it. Turns: rc_prefetch_turns().
 */

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "rc/dev.h"
#include "wire/wire.h"

/* with what they lead to some 3 KiB each: twice a first-level cache */
#define FEW 32

/* Packets ahead: the QP, and what it leads to once it has come */
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
		rte_prefetch0(rc_sq_at(&qp->req, qp->req.ack));
		return;
	}
	/* of Sends in one packet, each its own */
	if (pkt->op->flags & OP_RQ_WQE)
		rte_prefetch0(rc_rq_at(qp->rq, qp->rq->tail + (pkt->psn - qp->resp.epsn)));
	rc_prefetch_header(qp);
}

void
rc_look_ahead(const struct rc_worker *w, struct packet *const *pkts, unsigned int n, unsigned int i)
{
	unsigned int k;

	if (unlikely(i == 0)) {
		for (k = 0; k < n && k < AHEAD_QP; k++)
			prefetch_qp(w, pkts[k]);
		for (k = 0; k < n && k < AHEAD_QUEUES; k++)
			prefetch_queues(w, pkts[k]);
	}
	if (i + AHEAD_QP < n)
		prefetch_qp(w, pkts[i + AHEAD_QP]);
	if (i + AHEAD_QUEUES < n)
		prefetch_queues(w, pkts[i + AHEAD_QUEUES]);
}

void
rc_prefetch(const struct rc_worker *w, uint32_t qpn)
{
	const struct rc_qp *qp = rc_qp_there(w, qpn);

	if (likely(qp != NULL))
		rc_prefetch_turn(qp);
}

void
rc_prefetch_send(const struct rc_worker *w, uint32_t qpn, unsigned int n)
{
	const struct rc_qp *qp = rc_qp_there(w, qpn);
	unsigned int i;

	if (unlikely(qp == NULL))
		return;
	for (i = 0; i < n; i++)
		rte_prefetch0(rc_sq_at(&qp->req, qp->req.head + i));
}
