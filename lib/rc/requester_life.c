/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requester: start, state changes and migration. Sending: requester.c. Retry and timer: retry.c.
 */

#include "rc/qp_directory.h"

static uint64_t
ack_timeout(const struct rc_qp *qp)
{
	const struct rc_dev *dev = qp->worker->dev;
	uint8_t t = qp->attr.timeout;

	if (t == 0)
		return 0; /* the timer is off */
	if (t < dev->limits.min_ack_timeout)
		t = dev->limits.min_ack_timeout; /* seed 002: a CA may use its minimum */
	return rc_ns_to_time(dev, UINT64_C(4096) << t);
}

void
rc_requester_start(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	req->una = req->send_psn = req->next_psn = qp->attr.sq_psn;
	req->window = qp->worker->dev->limits.window;
	req->ssn = 1;
	req->lsn = 0;
	req->unlimited = false;
	req->since_ackreq = 0;
	rc_requester_resume(qp);
}

void
rc_requester_resume(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	req->ack_timeout = ack_timeout(qp);
	req->retry_left = req->retry_cnt = qp->attr.retry_cnt;
	req->rnr_left = req->rnr_retry = qp->attr.rnr_retry;
	if (req->send != req->head)
		rc_want(qp, WORK_REQUEST);
}

void
rc_requester_migrated(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	req->ack_timeout = ack_timeout(qp);
	req->retry_left = req->retry_cnt;
	if (rc_in_flight(req) == 0 || req->rnr_wait == RC_RNR_WAIT)
		return;
	req->timing = req->ack_timeout != 0;
	if (req->timing)
		timer_start(qp->worker->wheel, &req->timer, req->ack_timeout);
}

void
rc_requester_reset(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	/* nothing is left to flush, so no completion is written */
	req->tail = req->ack = req->head;
	rc_requester_flush(qp);
}
