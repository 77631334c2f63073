/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_SQ_H
#define RC_SQ_H

/**
 * @file
 * Private to lib/rc: how a WQE of the send queue completes. sq.c completes WQEs one by one; the
 * completer collects those that one ACK acknowledges, and publishes them together.
 */

#include "rc/cq.h"

/** An unsignaled request has no completion unless it fails. */
static __rte_always_inline bool
rc_wqe_silent(const struct rc_sq_wqe *wqe, enum wc_status status)
{
	return status == WC_SUCCESS && unlikely(!(wqe->flags & SEND_SIGNALED));
}

/** What the completion of a WQE says. */
static __rte_always_inline struct wc
rc_wqe_completion(const struct rc_qp *qp, const struct rc_sq_wqe *wqe, enum wc_status status)
{
	return (struct wc){
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = rc_wr_infos[wqe->opcode].wc_opcode,
		.byte_len = wqe->length,
		.qp_num = qp->qpn,
		.mw_key = wqe->opcode == WR_BIND_MW ? wqe->rkey : 0,
	};
}

/** Successful completions that are written to the CQ and not yet published. */
struct rc_sq_batch {
	const struct rc_cq *cq;
	struct rc_cq_ring *ring;
	uint32_t head; /**< ring index of the next completion */
	uint32_t end; /**< the CQ looks full there */
};

static __rte_always_inline struct rc_sq_batch
rc_sq_batch_begin(const struct rc_qp *qp)
{
	struct rc_cq *cq = qp->send_cq;
	struct rc_cq_ring *r = cq->rings[qp->worker->id];

	return (struct rc_sq_batch){ .cq = cq,
		.ring = r,
		.head = r->head,
		.end = likely(!rc_cq_overrun(cq)) ? r->tail_seen + cq->depth : r->head };
}

static __rte_always_inline void
rc_sq_batch_add(struct rc_sq_batch *b, const struct rc_qp *qp, const struct rc_sq_wqe *wqe)
{
	if (!rc_wqe_silent(wqe, WC_SUCCESS))
		rc_cq_write(b->cq, b->ring, b->head++, rc_wqe_completion(qp, wqe, WC_SUCCESS));
}

static __rte_always_inline void
rc_sq_batch_publish(const struct rc_sq_batch *b, struct rc_qp *qp)
{
	if (likely(b->head != b->ring->head))
		rc_cq_publish(qp->worker, b->ring, b->head, CQ_ARMED_ANY);
}

#endif
