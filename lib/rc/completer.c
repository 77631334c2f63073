/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completer: what the peer answers to the requester's packets (rc-transport 4 and 8). Whatever a
 * response says, it says of PSNs in flight; anything else is a duplicate or a ghost and changes
 * nothing.
 */

#include <string.h>

#include <rte_branch_prediction.h>

#include "rc/dev.h"
#include "wire/opcode.h"

/* --- what the responses have in common --- */

/* Not in flight: retired long ago, or never sent. */
static enum verdict
not_in_flight(const struct rc_requester *req, uint32_t psn)
{
	return psn_diff(psn, req->una) < 0 ? VERDICT_DUPLICATE_RESPONSE : VERDICT_GHOST_RESPONSE;
}

static bool
in_flight(const struct rc_requester *req, uint32_t psn)
{
	return rc_from_una(req, psn) < rc_in_flight(req);
}

/*
 * rc-transport 3: LSN = MSN + credits, never back; "no credit information" once, and there is no
 * limit. @return it moved
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
	lsn = psn_add(pkt->msn, credit_values[code]);
	if (psn_diff(lsn, req->lsn) <= 0)
		return false;
	req->lsn = lsn;
	return true;
}

static bool
holds(const struct rc_sq_wqe *wqe, uint32_t psn)
{
	return ((psn - wqe->psn) & PSN_MASK) <= ((wqe->last_psn - wqe->psn) & PSN_MASK);
}

/* The WQE of a PSN in flight */
static struct rc_sq_wqe *
find_wqe(const struct rc_requester *req, uint32_t psn)
{
	struct rc_sq_wqe *wqe;
	uint32_t i;

	for (i = req->ack; ; i++) {
		wqe = rc_sq_at(req, i);
		if (!rc_wqe_local(wqe) && holds(wqe, psn))
			return wqe;
	}
}

/*
 * Move una up to `end`, as far as no Read or Atomic stands without its answer. @return whether it
 * got there
 */
static inline bool
ack_before(struct rc_requester *req, uint32_t end)
{
	uint32_t left = rc_from_una(req, end), span;
	const struct rc_sq_wqe *wqe;

	while (left > 0) {
		wqe = rc_sq_at(req, req->ack);
		if (unlikely(!rc_wqe_stream(wqe))) {
			if (!rc_wqe_local(wqe))
				break;
			req->ack++;
			continue;
		}
		span = (wqe->last_psn + 1 - (end - left)) & PSN_MASK; /* PSNs it has yet */
		if (unlikely(left < span)) {
			left = 0; /* the end is in the midst of it */
			break;
		}
		left -= span;
		req->ack++;
	}
	req->una = (end - left) & PSN_MASK;
	return left == 0;
}

enum reach {
	REACHED, /* una is the PSN, or in the Read that holds it */
	REACH_SKIPS, /* an older Read or Atomic lacks its answer */
	REACH_DEAD, /* a WQE that had failed locally became the oldest: the QP is in ERR */
};

/* A response for `psn` says that all before it was received; in_flight(psn). */
static enum reach
reach(struct rc_qp *qp, uint32_t psn, bool *moved)
{
	struct rc_requester *req = &qp->req;
	uint32_t una = req->una;
	bool all = ack_before(req, psn);

	*moved = req->una != una;
	if (*moved) {
		rc_progress(qp);
		if (unlikely(qp->state == QPS_ERR))
			return REACH_DEAD;
	}
	if (all || holds(rc_sq_at(req, req->ack), psn))
		return REACHED;
	return REACH_SKIPS;
}

/*
 * A response skipped una: the Read or Atomic that una belongs to is requested again. Until that is
 * answered it is one gap, and costs one retry:
 * - responses to what was sent before the retry follow with rising PSNs;
 * - the peer acknowledges each duplicate Send and Write with its newest PSN (rc-transport 7).
 * A lower PSN answers what was sent after the retry, so una's answer was lost again. If no lower
 * one tells of a second loss, the transport timer does, which these responses do not restart.
 */
static void
skipped(struct rc_qp *qp, uint32_t psn)
{
	struct rc_requester *req = &qp->req;
	bool same = req->gap && rc_from_una(req, psn) >= rc_from_una(req, req->gap_psn);

	rc_count(qp, implied_nak_seq_err, 1);
	if (same || req->send_psn == req->una) {
		req->gap_psn = psn;
		return;
	}
	if (!rc_retry(qp))
		return;
	req->gap = true;
	req->gap_psn = psn;
}

/* --- Acknowledge packets --- */

/* What rc_acknowledge() leaves */
static enum verdict
positive(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_requester *req = &qp->req;
	uint32_t una = req->una;
	bool credits, all;

	if (!in_flight(req, pkt->psn)) {
		/* the newest ACK again, to tell of new credits */
		if (psn_add(pkt->psn, 1) != una || !take_credits(req, pkt))
			return not_in_flight(req, pkt->psn);
		rc_want(qp, WORK_REQUEST);
		return VERDICT_RESPONSE;
	}
	credits = take_credits(req, pkt);
	all = ack_before(req, psn_add(pkt->psn, 1));
	if (req->una != una)
		rc_progress(qp);
	else if (credits)
		rc_want(qp, WORK_REQUEST);
	if (all)
		return VERDICT_RESPONSE;
	/* an ACK never completes a Read or an Atomic: their answer was lost (rc-transport 4) */
	if (qp->state != QPS_ERR)
		skipped(qp, pkt->psn);
	return VERDICT_IMPLIED_NAK;
}

/* A NAK of `psn`; in_flight(psn). @retval false  no more than *v is to be made of it */
static bool
nak_reaches(struct rc_qp *qp, uint32_t psn, bool *moved, enum verdict *v)
{
	switch (reach(qp, psn, moved)) {
	case REACH_DEAD:
		*v = VERDICT_RESPONSE;
		return false;
	case REACH_SKIPS:
		skipped(qp, psn);
		*v = VERDICT_IMPLIED_NAK;
		return false;
	case REACHED:
		break;
	}
	return true;
}

static enum verdict
sequence_nak(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_requester *req = &qp->req;
	enum verdict v;
	bool moved;

	if (!in_flight(req, pkt->psn))
		return not_in_flight(req, pkt->psn);
	rc_count(qp, rcvd_seq_err, 1);
	if (!nak_reaches(qp, pkt->psn, &moved, &v))
		return v;
	/*
	 * it neither ends an RNR wait nor costs a retry, not behind the wait either, before what
	 * follows has gone again; and a round of retries is gone through once (rc-cases). A NAK of
	 * what lies behind the round's beginning is no repeated one: the round lost a packet, too
	 */
	if (!moved && rc_retrying(req) && pkt->psn == req->round_psn)
		return VERDICT_STALE_NAK;
	/* already about to go from there */
	if (req->rnr_wait == RC_RNR_WAIT || req->send_psn == req->una)
		return VERDICT_RESPONSE;
	rc_retry(qp);
	return VERDICT_RESPONSE;
}

/* Send again from una, when the time is over that the RNR NAK names. */
static void
wait_rnr(struct rc_qp *qp, uint8_t syndrome)
{
	struct rc_requester *req = &qp->req;
	struct rc_worker *w = qp->worker;

	if (req->send_psn != req->una) /* else skipped() has gone back already */
		rc_rewind(qp);
	req->timing = false; /* until something is sent again */
	req->rnr_wait = RC_RNR_WAIT;
	timer_arm(w->wheel, &req->timer,
		w->now + rc_ns_to_time(w->dev, rnr_timer_ns[AETH_VALUE(syndrome)]));
}

static enum verdict
rnr_nak(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_requester *req = &qp->req;
	enum verdict v;
	bool moved;

	if (!in_flight(req, pkt->psn))
		return not_in_flight(req, pkt->psn);
	rc_count(qp, rcvd_rnr_err, 1);
	if (req->rnr_wait == RC_RNR_WAIT)
		return VERDICT_STALE_NAK;
	if (!nak_reaches(qp, pkt->psn, &moved, &v)) {
		/* what it names would follow the Read that is requested again: both wait (seed 001) */
		if (v == VERDICT_IMPLIED_NAK && qp->state != QPS_ERR)
			wait_rnr(qp, pkt->syndrome);
		return v;
	}
	if (req->rnr_left == 0) {
		rc_count(qp, rnr_nak_retry_err, 1);
		rc_sq_fail(qp, WC_RNR_RETRY_EXC_ERR);
		return VERDICT_RESPONSE;
	}
	if (req->rnr_retry != 7) /* seven: for ever */
		req->rnr_left--;
	wait_rnr(qp, pkt->syndrome);
	return VERDICT_RESPONSE;
}

/* 0x61 to 0x63: no retry (rc-transport 8) */
static enum verdict
fatal_nak(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_requester *req = &qp->req;
	enum wc_status status;
	enum verdict v;
	bool moved;

	if (!in_flight(req, pkt->psn))
		return not_in_flight(req, pkt->psn);
	if (!nak_reaches(qp, pkt->psn, &moved, &v))
		return v;
	if (pkt->syndrome == AETH_NAK_INVALID_REQUEST) {
		rc_count(qp, req_remote_invalid_request, 1);
		status = WC_REM_INV_REQ_ERR;
	} else if (pkt->syndrome == AETH_NAK_REMOTE_ACCESS) {
		rc_count(qp, req_remote_access_errors, 1);
		status = WC_REM_ACCESS_ERR;
	} else {
		rc_count(qp, req_remote_operation_errors, 1);
		status = WC_REM_OP_ERR;
	}
	rc_sq_fail(qp, status);
	return VERDICT_RESPONSE;
}

static enum verdict
acknowledge(struct rc_qp *qp, const struct packet *pkt)
{
	switch (AETH_KIND(pkt->syndrome)) {
	case AETH_ACK:
		return positive(qp, pkt);
	case AETH_RNR_NAK:
		return rnr_nak(qp, pkt);
	default:
		break;
	}
	switch (pkt->syndrome) {
	case AETH_NAK_PSN_SEQUENCE:
		return sequence_nak(qp, pkt);
	case AETH_NAK_INVALID_REQUEST:
	case AETH_NAK_REMOTE_ACCESS:
	case AETH_NAK_REMOTE_OP:
		return fatal_nak(qp, pkt);
	default:
		return VERDICT_SYNDROME;
	}
}

/* --- answers to Reads and Atomics --- */

static bool
reserved_syndrome(uint8_t s)
{
	return AETH_KIND(s) != AETH_ACK && AETH_KIND(s) != AETH_RNR_NAK && AETH_KIND(s) != AETH_NAK;
}

/*
 * What Read responses and Atomic ACKs must pass alike. Afterwards una is the response's PSN, in a
 * WQE of the wanted kind.
 *
 * @return whether the answer may be used; else *v says what became of it
 */
static bool
check_answer(struct rc_qp *qp, const struct packet *pkt, bool read, enum verdict *v)
{
	struct rc_requester *req = &qp->req;
	bool aeth = pkt->op->headers & HDR_AETH, inside, moved;
	struct rc_sq_wqe *wqe;
	enum reach r;

	if (!in_flight(req, pkt->psn)) {
		*v = not_in_flight(req, pkt->psn);
		return false;
	}
	if (aeth && reserved_syndrome(pkt->syndrome)) {
		*v = VERDICT_SYNDROME;
		return false;
	}
	wqe = find_wqe(req, pkt->psn);
	if (!rc_wqe_answered(wqe)) { /* no Read or Atomic was sent with this PSN */
		*v = VERDICT_GHOST_RESPONSE;
		return false;
	}
	inside = wqe == rc_sq_at(req, req->ack); /* of the answer that is due */
	*v = VERDICT_RESPONSE;
	r = reach(qp, pkt->psn, &moved);
	if (r == REACH_DEAD)
		return false;
	if (r == REACH_SKIPS || req->una != pkt->psn) {
		*v = inside ? VERDICT_READ_OUT_OF_ORDER : VERDICT_IMPLIED_NAK;
		skipped(qp, pkt->psn);
		return false;
	}
	if (read != (wqe->opcode == WR_RDMA_READ) ||
			(aeth && AETH_KIND(pkt->syndrome) != AETH_ACK)) {
		rc_sq_fail(qp, WC_BAD_RESP_ERR);
		return false;
	}
	return true;
}

/* Put the bytes where the WQE wants them. */
static bool
scatter(struct rc_qp *qp, struct rc_sq_wqe *wqe, uint32_t at, const void *from, uint32_t len)
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

/* una has its answer. */
static void
answered(struct rc_qp *qp, const struct rc_sq_wqe *wqe, const struct packet *pkt)
{
	struct rc_requester *req = &qp->req;

	if (pkt->op->headers & HDR_AETH)
		take_credits(req, pkt);
	if (req->una == wqe->last_psn) {
		req->ack++;
		req->rd_atomic--;
	}
	req->una = psn_add(req->una, 1);
	rc_count(qp, rcvd_bytes, pkt->payload_len);
	rc_progress(qp);
}

/*
 * First, Middle ..., Last, or Only; after a restart from the middle First or Only again
 * (rc-cases). An answer to an earlier request of the same Read may still be under way, so Middle
 * and Last are good there too.
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

static enum verdict
read_response(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_requester *req = &qp->req;
	struct rc_sq_wqe *wqe;
	uint32_t at, want;
	enum verdict v;

	if (!check_answer(qp, pkt, true, &v))
		return v;
	wqe = rc_sq_at(req, req->ack);
	at = ((pkt->psn - wqe->psn) & PSN_MASK) << qp->pmtu_shift;
	want = pkt->psn == wqe->last_psn ? wqe->length - at : qp->pmtu;
	if (!read_opcode_fits(wqe, pkt) || pkt->payload_len != want) {
		rc_sq_fail(qp, WC_BAD_RESP_ERR);
		return VERDICT_RESPONSE;
	}
	if (!scatter(qp, wqe, at, pkt->payload, want)) {
		rc_sq_fail(qp, WC_LOC_PROT_ERR);
		return VERDICT_RESPONSE;
	}
	answered(qp, wqe, pkt);
	return VERDICT_RESPONSE;
}

static enum verdict
atomic_response(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_sq_wqe *wqe;
	enum verdict v;

	if (!check_answer(qp, pkt, false, &v))
		return v;
	wqe = rc_sq_at(&qp->req, qp->req.ack);
	/* host byte order in memory (rc-transport 11) */
	if (!scatter(qp, wqe, 0, &pkt->atomic_orig, sizeof(pkt->atomic_orig))) {
		rc_sq_fail(qp, WC_LOC_PROT_ERR);
		return VERDICT_RESPONSE;
	}
	answered(qp, wqe, pkt);
	return VERDICT_RESPONSE;
}

static enum verdict __rte_noinline
complete_any(struct rc_qp *qp, const struct packet *pkt)
{
	if (pkt->payload_len != 0 && pkt->op->payload == PAYLOAD_NONE)
		return VERDICT_ACK_PAYLOAD;
	if (pkt->opcode == RC_ACK)
		return acknowledge(qp, pkt);
	if (pkt->opcode == RC_ATOMIC_ACK)
		return atomic_response(qp, pkt);
	return read_response(qp, pkt);
}

enum verdict
rc_complete(struct rc_qp *qp, const struct packet *pkt)
{
	if (likely(pkt->opcode == RC_ACK) && likely(AETH_KIND(pkt->syndrome) == AETH_ACK) &&
			likely(pkt->payload_len == 0) && likely(rc_acknowledge(qp, pkt->psn)))
		return VERDICT_RESPONSE;
	return complete_any(qp, pkt);
}
