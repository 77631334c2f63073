/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of session.h claim about a session, asserted. */

#include <rte_debug.h>

#include "mad/core.h"

#ifdef RTE_ENABLE_ASSERT

void
mad_session_check(const struct mad_session *s)
{
	uint64_t hash;

	if (s->state == MAD_STATE_FREE) {
		RTE_ASSERT(!s->queued && s->work == 0);
		RTE_ASSERT(!timer_armed(&s->timer));
		RTE_ASSERT(s->body == NULL && s->source.release == NULL);
		return;
	}
	RTE_ASSERT(s->state < MAD_STATE_COUNT && s->protocol != NULL);
	hash = mad_hash(s->w->config.hash_key, &s->key);
	RTE_ASSERT(mad_session_find(s->w, &s->key, hash) == s);
	/* a session with something to send is on the run queue */
	RTE_ASSERT(s->queued || s->work == 0);
	/* strangers' sessions are charged to their address; our calls are nobody's */
	RTE_ASSERT(s->key.requester == (s->peer == NULL));
	RTE_ASSERT(!s->half_open || s->peer != NULL);
	/* the end has released what the session held; it only answers repeats */
	RTE_ASSERT(s->state != MAD_STATE_LINGER ||
		(s->body == NULL && s->source.release == NULL && s->taker.done == NULL));
	RTE_ASSERT(s->tx.acked <= s->tx.sent && s->tx.sent <= s->tx.total);
	RTE_ASSERT(s->rx.acked <= s->rx.expected);
}

#endif
