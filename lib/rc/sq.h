/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_SQ_H
#define RC_SQ_H

/**
 * @file
 * Private to lib/rc: complete the WQEs of the send queue, in order. For sq.c, and inline for the
 * completer, which does it for each ACK.
 */

#include "rc/cq.h"

/* sq.c */

/** True if this local operation's completion must wait for its grace period. */
bool rc_sq_waits(struct rc_qp *qp, struct rc_sq_wqe *wqe);
/** Put the QP on the worker's list of those that wait for a grace period, or take it off. */
void rc_sq_hold(struct rc_qp *qp, bool hold);
/**
 * Complete the WQEs that are done, in order, up to the first that waits for a grace period. Then
 * fail the QP if the oldest WQE failed locally, or raise EVENT_SQ_DRAINED if it is due.
 *
 * @retval false  the QP failed: the caller ends the step
 */
bool rc_sq_settle(struct rc_qp *qp);

/**
 * Complete a WQE, once. An unsignaled request has no completion unless it fails.
 *
 * @param local  a constant: false if it is no local operation
 */
static __rte_always_inline void
rc_sq_complete(struct rc_qp *qp, struct rc_cq_batch *b, const struct rc_sq_wqe *wqe,
	enum wc_status status, bool local)
{
	if (status == WC_SUCCESS && unlikely(!(wqe->flags & SEND_SIGNALED)))
		return;
	rc_cq_add(b, qp,
		(struct wc){
			.wr_id = wqe->wr_id,
			.status = status,
			.opcode = rc_wr_infos[wqe->opcode].wc_opcode,
			.byte_len = wqe->length,
			.qp_num = qp->qpn,
			.mw_key = local && wqe->opcode == WR_BIND_MW ? wqe->rkey : 0,
		},
		false);
}

/**
 * Complete WQEs from tail to ack, up to the first that waits for a grace period. If the QP fails
 * none may wait: such a local operation was executed, but other workers may not see it yet, so it
 * completes as flushed.
 */
static __rte_always_inline void
rc_sq_retire(struct rc_qp *qp, bool fails)
{
	struct rc_cq_batch b = rc_cq_begin(qp->send_cq, qp->worker);
	struct rc_requester *req = &qp->req;
	uint32_t at = req->tail, ack = req->ack;
	struct rc_sq_wqe *wqe;
	bool waits;

	for (; at != ack; at++) {
		wqe = rc_sq_at(req, at);
		if (likely(!rc_wqe_local(wqe))) {
			rc_sq_complete(qp, &b, wqe, WC_SUCCESS, false);
			continue;
		}
		waits = rc_sq_waits(qp, wqe);
		if (waits && !fails) {
			rc_sq_hold(qp, true);
			break;
		}
		rc_sq_complete(qp, &b, wqe, waits ? WC_WR_FLUSH_ERR : WC_SUCCESS, true);
	}
	rc_cq_end(&b, qp->worker, false);
	req->tail = at;
	if (unlikely(req->held) && at == ack)
		rc_sq_hold(qp, false);
}

/** True if the WQE at ack is local, or failed. */
static inline bool
rc_sq_stops_at_ack(const struct rc_requester *req)
{
	const struct rc_sq_wqe *wqe = rc_sq_oldest(req);

	return req->ack != req->head && (rc_wqe_local(wqe) || wqe->status != WC_SUCCESS);
}

/** rc_sq_settle() inline, for a QP that is acknowledged. */
static __rte_always_inline bool
rc_sq_settle_acked(struct rc_qp *qp)
{
	if (unlikely(!COMMON_CASE(qp->state != QPS_SQD && !rc_sq_stops_at_ack(&qp->req))))
		return rc_sq_settle(qp);
	rc_sq_retire(qp, false);
	return true;
}

#endif
