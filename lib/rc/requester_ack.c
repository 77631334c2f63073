/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requester: advance the oldest unacknowledged PSN (una). rc_progress() reloads counters and timer.
 * rc_acknowledge() is the fast path for the common ACK; completer.c handles all others.
 */

#include <rte_branch_prediction.h>

#include "rc/qp_directory.h"

/* An outstanding request was retired: both counters reload (rc-transport 8). */
static inline void
requester_reload(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	req->retry_left = req->retry_cnt;
	req->rnr_left = req->rnr_retry;
	req->gap = false;
	if (req->una == req->next_psn)
		req->timing = false; /* the timer stays armed; its handler then does nothing */
	else if (req->timing)
		timer_move(qp->worker->wheel, &req->timer, qp->worker->now + req->ack_timeout);
}

void
rc_progress(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	requester_reload(qp);
	req->rnr_wait &= RC_RNR_WAIT; /* progress ends a probe, but not the wait of an RNR NAK */
	/* PSNs between send_psn and una were acknowledged before they were sent again: skip them */
	if ((int32_t)(req->send - req->ack) < 0 ||
		rc_from_una(req, req->send_psn) > rc_in_flight(req)) {
		req->send = req->ack;
		req->send_psn = req->una;
	}
	rc_sq_settle(qp);
	if (req->send != req->head)
		rc_want(qp, WORK_REQUEST);
}

/* True if rc_sq_settle() has work: QP not in RTS, or the oldest WQE is local or failed. */
static inline bool
must_settle(const struct rc_qp *qp)
{
	const struct rc_requester *req = &qp->req;
	const struct rc_sq_wqe *wqe = rc_sq_at(req, req->ack);

	return qp->state != QPS_RTS ||
		(req->ack != req->head && (rc_wqe_local(wqe) || wqe->status != WC_SUCCESS));
}

bool
rc_acknowledge(struct rc_qp *qp, uint32_t psn)
{
	struct rc_worker *w = qp->worker;
	struct rc_requester *req = &qp->req;
	struct rc_cq *cq = qp->send_cq;
	struct rc_cq_ring *r = cq->rings[w->id];
	uint32_t next = req->una, left = rc_from_una(req, psn) + 1, span;
	uint32_t at = req->ack, head = r->head, end = r->tail_seen + cq->depth;
	const struct rc_sq_wqe *wqe;

	if (unlikely(left > rc_in_flight(req) || !req->unlimited || at != req->tail ||
		    req->rnr_wait != RC_RNR_NONE || rc_retrying(req) || !rc_cq_has_room(cq, r)))
		return false;
	for (; left > 0; at++, left -= span) {
		wqe = rc_sq_at(req, at);
		if (unlikely(!rc_wqe_stream(wqe) || head == end))
			return false; /* entries past r->head were not published: no harm done */
		span = (wqe->last_psn + 1 - next) & PSN_MASK;
		if (left < span)
			break; /* the ACK ends inside this message */
		next += span;
		/* an unsignaled request has no completion unless it fails */
		if (likely(wqe->flags & SEND_SIGNALED))
			rc_cq_write_done(cq, r, head++, wqe->wr_id,
				rc_wr_infos[wqe->opcode].wc_opcode, wqe->length, qp->qpn);
	}
	req->una = psn_add(psn, 1);
	req->ack = req->tail = at;
	if (likely(head != r->head))
		rc_cq_publish(w, r, head, CQ_ARMED_ANY);
	requester_reload(qp);
	if (unlikely(must_settle(qp)))
		rc_sq_settle(qp);
	if (req->send != req->head)
		rc_want(qp, WORK_REQUEST);
	return true;
}
