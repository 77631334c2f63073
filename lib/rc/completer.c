/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completer: processes the responder's packets (rc-transport 4 and 8). Only a response to a PSN in
 * flight has an effect; any other is a duplicate or a ghost and changes nothing. How a loss is
 * detected and repaired: docs/design.md, "The life of a loss".
 */

#include "rc/qp_directory.h"
#include "rc/sq.h"

/* --- common to all responses --- */

/* Verdict on a PSN that is not in flight: below una a duplicate, else never sent. */
static enum verdict
not_in_flight(const struct rc_requester *req, uint32_t psn)
{
	return psn_diff(psn, req->una) < 0 ? VERDICT_DUPLICATE_RESPONSE : VERDICT_GHOST_RESPONSE;
}

static bool
psn_in_flight(const struct rc_requester *req, uint32_t psn)
{
	return rc_from_una(req, psn) < rc_in_flight(req);
}

/*
 * rc-transport 3: LSN = MSN + credits, and it never moves back. Credit code 31 ("no credit
 * information") lifts the limit for good. @return true if the limit moved
 */
static bool
take_credits(struct rc_requester *req, const struct packet *pkt)
{
	uint8_t code = AETH_VALUE(pkt->syndrome);
	uint32_t lsn;

	if (req->unlimited)
		return false;
	req->credit_stalled = false;
	if (code == AETH_NO_CREDITS) {
		req->unlimited = true;
		return true;
	}
	lsn = psn_add(pkt->msn, aeth_scale(code));
	if (psn_diff(lsn, req->lsn) <= 0)
		return false;
	req->lsn = lsn;
	return true;
}

static bool
wqe_holds(const struct rc_sq_wqe *wqe, uint32_t psn)
{
	return rc_psn_between(psn, wqe->psn, wqe->last_psn);
}

/* The WQE that a PSN in flight belongs to */
static struct rc_sq_wqe *
find_wqe(const struct rc_requester *req, uint32_t psn)
{
	struct rc_sq_wqe *wqe;
	uint32_t i;

	for (i = req->ack;; i++) {
		wqe = rc_sq_at(req, i);
		if (!rc_wqe_local(wqe) && wqe_holds(wqe, psn))
			return wqe;
	}
}

/* --- una advances --- */

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

/*
 * una has advanced: reload counters, restart the timer, complete WQEs, resume sending.
 *
 * @retval false  the QP failed
 */
static __rte_always_inline bool
requester_progress(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	requester_reload(qp);
	/* progress ends a probe, but not the wait of an RNR NAK */
	req->rnr_wait &= RC_RNR_WAIT;
	/* skip PSNs between send_psn and una: acknowledged before they were sent again */
	if (unlikely(rc_retrying(req)) &&
		((int32_t)(req->send - req->ack) < 0 ||
			rc_from_una(req, req->send_psn) > rc_in_flight(req))) {
		req->send = req->ack;
		req->send_psn = req->una;
	}
	if (unlikely(!rc_sq_settle_acked(qp)))
		return false;
	if (req->send != req->head)
		rc_want(qp, WORK_REQUEST);
	return true;
}

/*
 * Acknowledge all PSNs before `end`, but stop at a Read or Atomic, which needs its own response.
 *
 * @return true if una reached `end`
 */
static inline bool
ack_before(struct rc_qp *qp, uint32_t end)
{
	struct rc_requester *req = &qp->req;
	uint32_t left = rc_from_una(req, end), at = req->ack, span;
	const struct rc_sq_wqe *wqe;

	for (; left > 0; at++) {
		wqe = rc_sq_at(req, at);
		if (unlikely(!rc_wqe_stream(wqe))) {
			if (!rc_wqe_local(wqe))
				break;
			continue;
		}
		span = psn_sub(wqe->last_psn + 1, end - left); /* its unacknowledged PSNs */
		if (left < span) {
			left = 0; /* `end` is inside this message */
			break;
		}
		left -= span;
	}
	req->una = psn_sub(end, left);
	req->ack = at;
	return left == 0;
}

/* --- PSNs that a response skips --- */

enum reach {
	REACHED, /* una is the PSN, or both are in the same WQE */
	REACH_SKIPS, /* an older Read or Atomic has no response yet */
	REACH_FAILED, /* the QP failed: the oldest WQE, or no retry is left */
};

/* A response to `psn`, which is in flight, implicitly acknowledges all PSNs before it. */
static enum reach
reach(struct rc_qp *qp, uint32_t psn)
{
	struct rc_requester *req = &qp->req;
	uint32_t una = req->una;
	bool all = ack_before(qp, psn);

	if (req->una != una && unlikely(!requester_progress(qp)))
		return REACH_FAILED;
	if (all || wqe_holds(rc_sq_oldest(req), psn))
		return REACHED;
	return REACH_SKIPS;
}

/*
 * A packet skipped una (implied NAK): retry the Read or Atomic at una. Until its response comes,
 * further skips belong to the same gap and use no other retry, because
 * - responses to packets sent before the retry arrive with rising PSNs;
 * - the responder acknowledges each duplicate Send or Write with its newest PSN (rc-transport 7).
 * A PSN below that of the last skip of the same kind answers a packet sent after the retry, so
 * una's response was lost again. The kinds are compared apart: after an ACK for a duplicate, with
 * the newest PSN, the response of a later Read is lower, and shows no loss. If no lower PSN shows a
 * second loss, the transport timer expires: these packets do not restart it. While send_psn is una,
 * the requester has gone back already and has sent nothing again yet.
 *
 * @retval false  no retry is left: the QP failed
 */
static bool __rte_noinline
skipped(struct rc_qp *qp, uint32_t psn, enum rc_skip kind)
{
	struct rc_requester *req = &qp->req;
	bool same = req->gap && rc_from_una(req, psn) >= rc_from_una(req, req->gap_psn[kind]);

	rc_count(qp, implied_nak_seq_err);
	if (same || req->send_psn == req->una) {
		req->gap_psn[kind] = psn;
		return true;
	}
	if (!rc_retry(qp))
		return false;
	req->gap_psn[RC_SKIP_ACK] = req->gap_psn[RC_SKIP_RESPONSE] = req->una;
	req->gap_psn[kind] = psn;
	req->gap = true;
	return true;
}

/* --- Acknowledge packets --- */

static inline enum verdict
complete_ack(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_requester *req = &qp->req;
	uint32_t una = req->una, end = psn_add(pkt->psn, 1);
	bool credits, all, alive = true;

	if (unlikely(!psn_in_flight(req, pkt->psn))) {
		/* a repeat of the newest ACK may carry new credits */
		if (end != una || !take_credits(req, pkt))
			return not_in_flight(req, pkt->psn);
		rc_want(qp, WORK_REQUEST);
		return VERDICT_RESPONSE;
	}
	credits = take_credits(req, pkt);
	all = ack_before(qp, end);
	if (likely(req->una != una))
		alive = requester_progress(qp);
	else if (credits)
		rc_want(qp, WORK_REQUEST);
	if (likely(all))
		return VERDICT_RESPONSE;
	/* an ACK never completes a Read or Atomic: its response was lost (rc-transport 4) */
	if (alive)
		skipped(qp, pkt->psn, RC_SKIP_ACK);
	return VERDICT_IMPLIED_NAK;
}

/* NAK 0x60 for the oldest WQE: retry from una, which the NAK has reached. */
static enum verdict
sequence_nak(struct rc_qp *qp, uint32_t psn)
{
	struct rc_requester *req = &qp->req;

	/*
	 * rc-cases: ignore a NAK for the PSN that the current retransmission began with. It answers
	 * packets sent before the rewind, also after an RNR wait, and costs no second retry. A NAK
	 * for a later PSN is new: the retransmission lost a packet.
	 */
	if (rc_retrying(req) && psn == req->round_psn)
		return VERDICT_STALE_NAK;
	/* otherwise the requester will resend from una anyway */
	if (req->rnr_wait != RC_RNR_WAIT && req->send_psn != req->una)
		rc_retry(qp);
	return VERDICT_RESPONSE;
}

/* Resend from una when the RNR NAK's timer value has passed. */
static void
wait_rnr(struct rc_qp *qp, uint8_t syndrome)
{
	struct rc_requester *req = &qp->req;
	struct rc_worker *w = qp->worker;

	if (req->send_psn != req->una) /* otherwise skipped() has rewound already */
		rc_rewind(qp);
	req->timing = false; /* until something is sent again */
	req->rnr_wait = RC_RNR_WAIT;
	timer_arm(w->wheel, &req->timer,
		w->now + rc_ns_to_time(w->dev, rnr_timer_ns(AETH_VALUE(syndrome))));
}

static void
rnr_nak(struct rc_qp *qp, uint8_t syndrome)
{
	struct rc_requester *req = &qp->req;

	if (req->rnr_left == 0) {
		rc_count(qp, rnr_nak_retry_err);
		rc_sq_fail(qp, WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (req->rnr_retry != 7) /* 7: retry without limit */
		req->rnr_left--;
	wait_rnr(qp, syndrome);
}

/* NAK 0x61 to 0x63: fail the WQE without a retry (rc-transport 8) */
static void
fatal_nak(struct rc_qp *qp, uint8_t syndrome)
{
	enum wc_status status;

	if (syndrome == AETH_NAK_INVALID_REQUEST) {
		rc_count(qp, req_remote_invalid_request);
		status = WC_REM_INV_REQ_ERR;
	} else if (syndrome == AETH_NAK_REMOTE_ACCESS) {
		rc_count(qp, req_remote_access_errors);
		status = WC_REM_ACCESS_ERR;
	} else {
		rc_count(qp, req_remote_operation_errors);
		status = WC_REM_OP_ERR;
	}
	rc_sq_fail(qp, status);
}

/* A NAK acknowledges all before it, and has an effect of its own only on the oldest WQE. */
static enum verdict __rte_noinline
complete_nak(struct rc_qp *qp, const struct packet *pkt)
{
	bool rnr = AETH_KIND(pkt->syndrome) == AETH_RNR_NAK;
	bool sequence = pkt->syndrome == AETH_NAK_PSN_SEQUENCE;
	enum reach r;

	if (!rnr && (pkt->syndrome < AETH_NAK_PSN_SEQUENCE || pkt->syndrome > AETH_NAK_REMOTE_OP))
		return VERDICT_SYNDROME;
	if (!psn_in_flight(&qp->req, pkt->psn))
		return not_in_flight(&qp->req, pkt->psn);
	rc_add(qp, rcvd_rnr_err, rnr);
	rc_add(qp, rcvd_seq_err, sequence);
	if (rnr && qp->req.rnr_wait == RC_RNR_WAIT)
		return VERDICT_STALE_NAK;
	r = reach(qp, pkt->psn);
	if (r == REACH_SKIPS) {
		/* the refused request follows the retried Read: both wait (seed 001) */
		if (skipped(qp, pkt->psn, RC_SKIP_ACK) && rnr)
			wait_rnr(qp, pkt->syndrome);
		return VERDICT_IMPLIED_NAK;
	}
	if (r == REACH_FAILED)
		return VERDICT_RESPONSE;
	if (sequence)
		return sequence_nak(qp, pkt->psn);
	if (rnr)
		rnr_nak(qp, pkt->syndrome);
	else
		fatal_nak(qp, pkt->syndrome);
	return VERDICT_RESPONSE;
}

/* --- Read responses and Atomic ACKs --- */

static bool
reserved_syndrome(uint8_t s)
{
	return AETH_KIND(s) != AETH_ACK && AETH_KIND(s) != AETH_RNR_NAK && AETH_KIND(s) != AETH_NAK;
}

/*
 * The checks common to Read responses and Atomic ACKs. If they pass, una is the response's PSN and
 * its WQE is of the expected kind: use the payload.
 */
static enum verdict
completer_check_response(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_requester *req = &qp->req;
	bool aeth = pkt->op->headers & HDR_AETH, inside;
	struct rc_sq_wqe *wqe;
	enum reach r;

	if (!psn_in_flight(req, pkt->psn))
		return not_in_flight(req, pkt->psn);
	if (aeth && reserved_syndrome(pkt->syndrome))
		return VERDICT_SYNDROME;
	wqe = find_wqe(req, pkt->psn);
	if (!rc_wqe_answered(wqe)) /* the PSN belongs to a Send or Write */
		return VERDICT_GHOST_RESPONSE;
	inside = wqe == rc_sq_oldest(req); /* belongs to the oldest WQE */
	r = reach(qp, pkt->psn);
	if (r == REACH_FAILED)
		return VERDICT_RESPONSE;
	if (r == REACH_SKIPS || req->una != pkt->psn) {
		skipped(qp, pkt->psn, RC_SKIP_RESPONSE);
		return inside ? VERDICT_READ_OUT_OF_ORDER : VERDICT_IMPLIED_NAK;
	}
	if ((pkt->opcode == RC_ATOMIC_ACK) != rc_wqe_atomic(wqe) ||
		(aeth && AETH_KIND(pkt->syndrome) != AETH_ACK)) {
		rc_sq_fail(qp, WC_BAD_RESP_ERR);
		return VERDICT_RESPONSE;
	}
	return RC_PASSED;
}

/* Copy payload to byte `at` of the WQE's scatter list. @retval false  an lkey does not allow it */
static bool
completer_scatter(struct rc_qp *qp, struct rc_sq_wqe *wqe, uint32_t at, const void *from,
	uint32_t len)
{
	struct rc_requester *req = &qp->req;
	struct rc_chunk chunks[RC_SGE_MAX];
	const uint8_t *p = from;
	int i, n;

	rc_cursor_seek(&req->scatter, wqe, req->ack, at);
	n = rc_cursor_take(qp, &req->scatter, wqe, len, MEM_ACCESS_LOCAL_WRITE, chunks);
	for (i = 0; i < n; i++) {
		memcpy(chunks[i].host, p, chunks[i].len);
		p += chunks[i].len;
	}
	return n >= 0;
}

/* The response to una was used: advance una. */
static void
completer_response_used(struct rc_qp *qp, const struct rc_sq_wqe *wqe, const struct packet *pkt)
{
	struct rc_requester *req = &qp->req;

	if (pkt->op->headers & HDR_AETH)
		take_credits(req, pkt);
	if (req->una == wqe->last_psn) {
		req->ack++;
		req->rd_atomic--;
	}
	req->una = psn_add(req->una, 1);
	rc_add(qp, rcvd_bytes, pkt->payload_len);
	requester_progress(qp);
}

/*
 * First or Only is valid at the first PSN, and after a retry at the PSN it restarted from
 * (rc-cases). Middle and Last are valid there too: responses to the first request may still arrive.
 */
static bool
read_opcode_fits(const struct rc_sq_wqe *wqe, const struct packet *pkt)
{
	bool first = pkt->op->flags & OP_FIRST, last = pkt->op->flags & OP_LAST;

	if (last != (pkt->psn == wqe->last_psn))
		return false;
	if (first)
		return pkt->psn == wqe->psn || pkt->psn == wqe->restart_psn;
	return pkt->psn != wqe->psn;
}

static enum verdict __rte_noinline
complete_response(struct rc_qp *qp, const struct packet *pkt)
{
	/* an Atomic's result: host byte order in memory (rc-transport 11) */
	uint32_t at = 0, len = sizeof(pkt->atomic_orig);
	const void *data = &pkt->atomic_orig;
	enum verdict v = completer_check_response(qp, pkt);
	struct rc_sq_wqe *wqe;

	if (v != RC_PASSED)
		return v;
	wqe = rc_sq_oldest(&qp->req);
	if (wqe->opcode == WR_RDMA_READ) {
		at = rc_offset(qp, pkt->psn, wqe->psn);
		len = pkt->psn == wqe->last_psn ? wqe->length - at : qp->pmtu;
		data = pkt->payload;
		if (!read_opcode_fits(wqe, pkt) || pkt->payload_len != len) {
			rc_sq_fail(qp, WC_BAD_RESP_ERR);
			return VERDICT_RESPONSE;
		}
	}
	if (completer_scatter(qp, wqe, at, data, len))
		completer_response_used(qp, wqe, pkt);
	else
		rc_sq_fail(qp, WC_LOC_PROT_ERR);
	return VERDICT_RESPONSE;
}

enum verdict
rc_complete(struct rc_qp *qp, const struct packet *pkt)
{
	if (unlikely(pkt->payload_len != 0 && pkt->op->payload == PAYLOAD_NONE))
		return VERDICT_ACK_PAYLOAD;
	if (unlikely(pkt->opcode != RC_ACK))
		return complete_response(qp, pkt);
	if (unlikely(AETH_KIND(pkt->syndrome) != AETH_ACK))
		return complete_nak(qp, pkt);
	return complete_ack(qp, pkt);
}
