/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Responder: what becomes of a request that is not executed, because its PSN is not ePSN or a check
 * failed (responder.c). "row N" cites the table of rc-transport 6. Duplicates: duplicates.c.
 */

#include "rc/failure.h"

/*
 * How a failed check is answered. For a bad access the NAK is 0x62 in all cases; the receive
 * completion tells a region that is too small from a key or right that is wrong (table 17-5, where
 * a Send that is too long is the only Local Length Error).
 */
struct refusal {
	uint8_t syndrome;
	uint8_t status; /* enum wc_status of the receive WQE */
};

#define REFUSE_INVALID                                                                             \
	{                                                                                          \
		AETH_NAK_INVALID_REQUEST, WC_REM_INV_REQ_ERR                                       \
	}

static const struct refusal refusals[QP_FAILURE_REASONS] = {
	/* row 2: the opcode does not follow the packet before it */
	[QP_FAILURE_SEQUENCE] = REFUSE_INVALID,
	/* row 3: no request that a QP executes; RDMA or Atomics that the QP does not allow */
	[QP_FAILURE_OPCODE] = REFUSE_INVALID,
	[QP_FAILURE_NOT_ENABLED] = REFUSE_INVALID,
	/* row 4b: more Reads and Atomics than agreed */
	[QP_FAILURE_NO_ROOM] = REFUSE_INVALID,
	/* rows 5 and 5b; a Send is longer than its receive WQE */
	[QP_FAILURE_LENGTH] = REFUSE_INVALID,
	[QP_FAILURE_DMALEN] = REFUSE_INVALID,
	[QP_FAILURE_SEND_TOO_LONG] = { AETH_NAK_INVALID_REQUEST, WC_LOC_LEN_ERR },
	/* row 6 */
	[QP_FAILURE_ALIGNMENT] = REFUSE_INVALID,
	/* row 7: R_Key or right; range */
	[QP_FAILURE_RKEY] = { AETH_NAK_REMOTE_ACCESS, WC_REM_ACCESS_ERR },
	[QP_FAILURE_RANGE] = { AETH_NAK_REMOTE_ACCESS, WC_REM_INV_REQ_ERR },
	/* row 8 */
	[QP_FAILURE_SCATTER] = { AETH_NAK_REMOTE_OP, WC_LOC_QP_OP_ERR },
};

static void
count_refusal(struct rc_qp *qp, const struct refusal *how)
{
	if (how->status == WC_LOC_LEN_ERR)
		rc_count(qp, resp_local_length_error);
	else if (how->syndrome == AETH_NAK_INVALID_REQUEST)
		rc_count(qp, resp_invalid_requests);
	else if (how->syndrome == AETH_NAK_REMOTE_ACCESS)
		rc_count(qp, resp_remote_access_errors);
}

/*
 * Refuse a request with NAK 0x61, 0x62 or 0x63: it is not executed, ePSN stays, the QP fails.
 * A request that uses a receive WQE completes it with the error; any other raises an affiliated
 * asynchronous event (seed 001). Any other request in the middle of a Send does both, because it
 * also ends the Send's WQE.
 */
static enum verdict
responder_refuse(struct rc_qp *qp, const struct packet *pkt, enum qp_failure_reason reason)
{
	const struct refusal *how = &refusals[reason];
	struct wc wc = { .status = how->status, .opcode = WC_RECV };
	bool uses = pkt->op->flags & (OP_SEND | OP_RQ_WQE);
	struct rc_responder *r = &qp->resp;

	count_refusal(qp, how);
	rc_owe_nak(qp, how->syndrome, pkt->psn);
	if (!r->wqe_taken && (pkt->op->flags & OP_RQ_WQE))
		rc_take_wqe(qp);
	uses &= r->wqe_taken;
	if (r->wqe_taken)
		rc_retire_wqe(qp, wc, false);
	if (!uses)
		rc_qp_event(qp,
			how->syndrome == AETH_NAK_REMOTE_ACCESS ? EVENT_QP_ACCESS_ERR
								: EVENT_QP_REQ_ERR);
	rc_fail(qp,
		(struct qp_failure){ .psn = pkt->psn,
			.expected = r->epsn,
			.opcode = pkt->opcode,
			.reason = reason,
			.length = pkt->payload_len,
			.syndrome = how->syndrome,
			.status = uses ? how->status : 0,
			.verdict = VERDICT_NAK_SENT });
	return VERDICT_NAK_SENT;
}

/* Rows 1 and 1b: PSN is not ePSN. */
static enum verdict
not_expected(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_responder *r = &qp->resp;

	if (psn_diff(pkt->psn, r->epsn) < 0)
		return rc_duplicate(qp, pkt);
	rc_charge(qp, pkt);
	if ((r->nak_sent || r->rnr_sent) && psn_diff(pkt->psn, r->dropped_psn) > 0)
		r->dropped_psn = pkt->psn;
	/* after an RNR NAK, only a request at ePSN may be NAKed (seed 001, rc-cases) */
	if (r->rnr_sent)
		return VERDICT_RNR_WAIT;
	rc_count(qp, out_of_sequence);
	/* one sequence NAK until the expected PSN arrives (seed 001) */
	if (r->nak_sent)
		return VERDICT_OUT_OF_SEQUENCE;
	r->nak_sent = true;
	r->dropped_psn = pkt->psn;
	rc_owe_nak(qp, AETH_NAK_PSN_SEQUENCE, r->epsn);
	return VERDICT_NAK_SENT;
}

/*
 * seed 001: raise EVENT_RQ_EMPTY so that the consumer posts a receive before the requester retries.
 */
static void
ask_for_receives(struct rc_qp *qp)
{
	if (qp->rq->missed_at == qp->rq->head)
		return; /* raised already, and nothing was posted since */
	qp->rq->missed_at = qp->rq->head;
	rc_qp_event(qp, EVENT_RQ_EMPTY);
}

static enum verdict
not_ready(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_responder *r = &qp->resp;

	r->rnr_sent = true;
	if (r->nak == 0) /* otherwise a sequence NAK not sent yet has set a newer dropped_psn */
		r->dropped_psn = pkt->psn;
	rc_owe_nak(qp, AETH_RNR_NAK | qp->attr.min_rnr_timer, pkt->psn);
	ask_for_receives(qp);
	return VERDICT_RNR_NAK_SENT;
}

enum verdict
rc_request_failed(struct rc_qp *qp, const struct packet *pkt, int failed)
{
	switch (failed) {
	case RESP_NOT_EXPECTED:
		return not_expected(qp, pkt);
	case RESP_NOT_READY:
		return not_ready(qp, pkt);
	default:
		return responder_refuse(qp, pkt, failed);
	}
}
