/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Sessions send in turns of one slice each, so that a long table delays no other session. A session
 * with nothing to send is not on the queue and costs nothing.
 */

#include <rte_prefetch.h>

#include "mad/core.h"

#define SLICE  64u /* packets a session sends in one turn */
#define STALLS 8 /* turns in which nothing was sent before the sink counts as full */

/* Prefetch the session that sends next. */
static void
prefetch_next(const struct mad_worker *w)
{
	const struct mad_session *s = TAILQ_FIRST(&w->run_queue);
	const char *line = (const char *)s;

	if (s == NULL)
		return;
	for (; line < (const char *)s->mad + 64; line += 64)
		rte_prefetch0(line);
	for (line = (const char *)&s->path; line < (const char *)(&s->path + 1); line += 64)
		rte_prefetch0(line);
}

unsigned int
mad_run(struct mad_worker *w, uint64_t now, unsigned int budget)
{
	unsigned int sent, stalls = 0, n;
	struct mad_session *s;

	w->now = now;
	sent = mad_replies_run(w, budget);
	while (sent < budget && stalls < STALLS && (s = TAILQ_FIRST(&w->run_queue)) != NULL) {
		TAILQ_REMOVE(&w->run_queue, s, run_link);
		s->queued = false;
		prefetch_next(w);
		n = s->protocol->send(s, RTE_MIN(budget - sent, SLICE));
		sent += n;
		if (n == 0)
			stalls++;
		mad_want(s, 0); /* queue it again if it has work left; an ended session has none */
		mad_session_check(s);
	}
	RTE_ASSERT(sent <= budget);
	return sent;
}

bool
mad_pending(const struct mad_worker *w)
{
	return !TAILQ_EMPTY(&w->run_queue) || w->replies.count > 0 || w->smp_replies.count > 0;
}
