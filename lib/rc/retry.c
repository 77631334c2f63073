/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requester: retransmission from the oldest unacknowledged PSN, and the timer that asks for it
 * (docs/design.md, "The life of a loss").
 */

#include "rc/check.h"
#include "rc/failure.h"

void
rc_rewind(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	rc_count(qp, completer_retry_err);
	req->send = req->ack;
	req->send_psn = req->round_psn = req->una;
	req->timing = false; /* until something is sent again */
	rc_want(qp, WORK_REQUEST);
}

bool
rc_retry(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	/* seed 001: migration is tried before giving up, and reloads the counter */
	if (req->retry_left > 0) {
		req->retry_left--;
	} else if (qp->mig_state == MIG_ARMED) {
		rc_migrate(qp);
	} else {
		rc_count(qp, retry_exceeded_err);
		rc_sq_fail(qp, WC_RETRY_EXC_ERR);
		return false;
	}
	rc_rewind(qp);
	return true;
}

void
rc_requester_timer(struct timer *t, uint64_t now)
{
	struct rc_qp *qp = container_of(t, struct rc_qp, req.timer);
	struct rc_requester *req = &qp->req;

	qp->worker->now = now;
	if (qp->trace != NULL)
		rc_trace_timer(qp);
	if (req->rnr_wait == RC_RNR_WAIT) {
		req->rnr_wait = RC_RNR_PROBE;
		rc_want(qp, WORK_REQUEST);
	} else if (req->timing) {
		req->timing = false;
		rc_count(qp, local_ack_timeout_err);
		rc_retry(qp);
	}
	rc_step_done(qp);
	rc_qp_check(qp);
}
