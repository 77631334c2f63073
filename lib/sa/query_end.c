/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The end of a query, answered or not. */

#include "sa/server.h"

void
query_release(struct query *q)
{
	give_way_query_gone(q);
	if (q->result != NULL)
		result_free(q->result);
	if (q->held)
		store_unhold(q->w->reader, q->snapshot);
	if (q->body != NULL)
		mad_body_free(q->w->mad, q->body);
	q->body = NULL;
	q->result = NULL;
	q->held = false;
}

void
query_abandon(struct query *q)
{
	TAILQ_REMOVE(&q->w->queries_running, q, link);
	query_release(q);
	TAILQ_INSERT_HEAD(&q->w->queries_free, q, link);
}
