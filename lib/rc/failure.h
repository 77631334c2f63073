/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_FAILURE_H
#define RC_FAILURE_H

/**
 * @file
 * Private to lib/rc: the one way into ERR.
 *
 * A step is what a worker does for one QP: it handles a packet, lets one half of the QP send, runs
 * its timer, or ends a grace period. Code inside a step never changes the QP to ERR. It completes
 * the work request that failed, notes the reason with rc_fail(), and returns an outcome with which
 * its callers end the step. The code that began the step then calls rc_step_done(), which moves the
 * QP. A consumer's modify calls rc_qp_error(), and rc_cq_overruns() handles each QP as a step.
 */

#include "rc/qp.h"

/* rc_worker.errors */
#define RC_QP_FAILED  0x1 /* the QP of the step failed */
#define RC_CQ_OVERRUN 0x2 /* a CQ has overrun: rc_cq_overruns() moves its QPs to ERR */
#define RC_RECORDS    0x4 /* the step handles a packet of a recorded QP (trace.h) */

/** The QP of this step fails. If it fails again in the same step, the first reason counts. */
static inline void
rc_fail(struct rc_qp *qp, struct qp_failure why)
{
	RTE_ASSERT(!(qp->worker->errors & RC_QP_FAILED) || qp->worker->failed == qp);
	if (qp->state == QPS_ERR || (qp->worker->errors & RC_QP_FAILED))
		return;
	qp->failure = why;
	qp->worker->errors |= RC_QP_FAILED;
#ifdef RTE_ENABLE_ASSERT
	qp->worker->failed = qp; /* a step is of one QP only */
#endif
}

/* failure.c */

/**
 * Move the QP to ERR: flush both queues (WR_FLUSH_ERR), disarm timers. The responder still sends
 * the responses that rc_forget_answers() keeps. With an SRQ: EVENT_QP_LAST_WQE_REACHED.
 */
void rc_qp_error(struct rc_qp *qp);
/** EVENT_QP_ERROR says why the QP failed and who the peer is, then rc_qp_error(). */
void rc_qp_failed(struct rc_qp *qp);
/** The QPs whose send or receive CQ has overrun go to ERR. */
void rc_cq_overruns(struct rc_worker *w);

/** The end of a step: move the QP to ERR if it failed. */
static inline void
rc_step_done(struct rc_qp *qp)
{
	if (unlikely(qp->worker->errors & RC_QP_FAILED))
		rc_qp_failed(qp);
}

#endif
