/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of private.h claim about the streams, asserted. */

#include <rte_debug.h>

#include "live/private.h"

#ifdef RTE_ENABLE_ASSERT

/* A stream either sends a body, or is in the list of those that are free. */
void
live_streams_check(const struct live *l)
{
	unsigned int i, free = 0, sending = 0;
	const struct live_stream *s;

	for (s = l->streams_free; s != NULL && free <= LIVE_STREAMS; s = s->next_free, free++)
		RTE_ASSERT(s->live == l && s->body == NULL);
	for (i = 0; i < LIVE_STREAMS; i++)
		sending += l->streams[i].body != NULL;
	RTE_ASSERT(free + sending == LIVE_STREAMS);
}

#endif
