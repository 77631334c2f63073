/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of worker.h claim about packets for other workers, asserted. */

#include <rte_debug.h>

#include "engine/worker.h"

#ifdef RTE_ENABLE_ASSERT

void
handoff_check(const struct worker *w)
{
	unsigned int to, i, full = 0;

	RTE_ASSERT(w->num_dirty < w->workers && w->num_dirty <= LINK_BURST);
	for (to = 0; to < w->workers; to++) {
		RTE_ASSERT(w->out[to].n <= LINK_BURST && w->arrived[to].n <= LINK_BURST);
		full += w->out[to].n > 0;
	}
	/* a batch is listed once if it has packets; none is for the worker itself */
	RTE_ASSERT(full == w->num_dirty);
	for (i = 0; i < w->num_dirty; i++)
		RTE_ASSERT(w->out_dirty[i] != w->id && w->out[w->out_dirty[i]].n > 0);
}

#endif
