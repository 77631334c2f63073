/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Events of a worker: the engine passes them to the consumer. */

#include "rc/qp.h"

void
rc_event_pass(const struct rc_worker *w, const struct event *ev)
{
	if (w->config.event != NULL)
		w->config.event(w->config.event_arg, ev);
}

void
rc_event(struct rc_worker *w, enum event_type type, uint32_t element)
{
	rc_event_pass(w, &(struct event){ .type = type, .element = element });
}

void
rc_qp_event(struct rc_qp *qp, enum event_type type)
{
	rc_event(qp->worker, type, qp->qpn);
}

void
rc_srq_below_limit(struct rc_srq *srq)
{
	uint32_t waiting = srq->count_waiting == NULL ? 0 : srq->count_waiting(srq->waiting_arg);

	if (rc_rq_posted(&srq->rq) + waiting >= srq->limit)
		return;
	srq->limit = 0; /* disarm: the event is raised once */
	rc_event(srq->worker, EVENT_SRQ_LIMIT_REACHED, srq->srqn);
}
