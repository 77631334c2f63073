/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of session.h claim about a session, asserted. */

#include <inttypes.h>

#include "base/check.h"
#include "mad/core.h"

#ifdef RTE_ENABLE_ASSERT

static void
print_session_step(FILE *f, const struct trace_step *s)
{
	char what[MAD_STEP_TEXT_MAX];

	fprintf(f, "%-8s  ", mad_step_name(s->event));
	if (s->event == MAD_STEP_RECEIVED || s->event == MAD_STEP_SENT)
		fprintf(f, "segment %" PRIu32 "  ", s->number);
	fprintf(f, "%s  %s", mad_step_what(s, what), mad_state_name(s->outcome));
}

static void
say_session(FILE *f, const struct mad_session *s)
{
	fprintf(f, "session of TID 0x%016" PRIx64 " in %s:\n", s->key.tid,
		mad_state_name(s->state));
	trace_print(f, s->trace, s->w->config.hz, print_session_step);
}

/* Of session s. */
#define CHECK(what) CHECK_OF(what, say_session, s)

void
mad_session_check(const struct mad_session *s)
{
	uint64_t hash;

	if (s->state == MAD_STATE_FREE) {
		CHECK(!s->queued && s->work == 0);
		CHECK(!timer_armed(&s->timer));
		CHECK(s->body == NULL && s->source.release == NULL);
		return;
	}
	CHECK(s->state < MAD_STATE_COUNT && s->protocol != NULL);
	hash = mad_hash(s->w->config.hash_key, &s->key);
	CHECK(mad_session_find(s->w, &s->key, hash) == s);
	/* a session with something to send is on the run queue */
	CHECK(s->queued || s->work == 0);
	/* strangers' sessions are charged to their address; our calls are nobody's */
	CHECK(s->key.requester == (s->peer == NULL));
	CHECK(!s->half_open || s->peer != NULL);
	/* the end has released what the session held; it only answers repeats */
	CHECK(s->state != MAD_STATE_LINGER ||
		(s->body == NULL && s->source.release == NULL && s->taker.done == NULL));
	CHECK(s->tx.acked <= s->tx.sent && s->tx.sent <= s->tx.total);
	CHECK(s->rx.acked <= s->rx.expected);
}

#endif
