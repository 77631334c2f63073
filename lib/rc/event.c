/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Events of a worker: the engine passes them to the consumer. */

#include "rc/qp.h"

void
rc_event(struct rc_worker *w, enum event_type type, uint32_t element)
{
	struct event ev = { .type = type, .element = element };

	if (w->config.event != NULL)
		w->config.event(w->config.event_arg, &ev);
}

void
rc_srq_taken(struct rc_srq *srq)
{
	if (srq->limit == 0 || rc_rq_posted(&srq->rq) >= srq->limit)
		return;
	srq->limit = 0; /* disarm: the event is raised once */
	rc_event(srq->worker, EVENT_SRQ_LIMIT_REACHED, srq->srqn);
}
