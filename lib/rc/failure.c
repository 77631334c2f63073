/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* How a queue pair enters ERR (failure.h). */

#include "rc/check.h"
#include "rc/failure.h"

void
rc_qp_error(struct rc_qp *qp)
{
	if (qp->state == QPS_ERR)
		return;
	qp->state = QPS_ERR;
	rc_qp_changed(qp);
	qp->work &= ~WORK_REQUEST;
	rc_requester_flush(qp);
	rc_responder_flush(qp);
	if (qp->srq != NULL)
		rc_qp_event(qp, EVENT_QP_LAST_WQE_REACHED);
}

void
rc_qp_failed(struct rc_qp *qp)
{
	struct qp_failure *why = &qp->failure;
	const struct av *av = &qp->path.av;

	RTE_ASSERT(qp->worker->failed == qp);
	qp->worker->errors &= ~RC_QP_FAILED;
	why->port = av->port;
	why->peer_qpn = qp->attr.dest_qp_num;
	if (av->encap == ENCAP_IB && !av->grh)
		why->dlid = av->dlid;
	else
		why->peer = av->dgid;
	if (qp->trace != NULL)
		rc_trace_failed(qp);
	rc_event_pass(qp->worker,
		&(struct event){ .type = EVENT_QP_ERROR,
			.element = qp->qpn,
			.failure = *why,
			.steps = qp->trace });
	rc_qp_error(qp);
}

void
rc_cq_overruns(struct rc_worker *w)
{
	struct rc_qp *qp;

	w->errors &= ~RC_CQ_OVERRUN;
	LIST_FOREACH(qp, &w->qps, link) {
		if (qp->state == QPS_RESET || qp->state == QPS_ERR ||
			!(rc_cq_overrun(qp->send_cq) || rc_cq_overrun(qp->recv_cq)))
			continue;
		rc_qp_event(qp, EVENT_QP_FATAL);
		rc_count(qp, cq_overrun);
		rc_fail(qp,
			(struct qp_failure){ .verdict = VERDICT_COUNT,
				.reason = QP_FAILURE_CQ_OVERRUN });
		rc_step_done(qp);
		rc_qp_check(qp);
	}
	/* flushed completions that found no room may have set it again */
	w->errors &= ~RC_CQ_OVERRUN;
}
