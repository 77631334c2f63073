/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The wall clock, for the stamps of a timestamp answer (liveness 2). */

#include <rte_common.h>

#include "live/private.h"

void
live_set_clock(struct live *l, uint64_t now, uint32_t ms)
{
	l->clock_at = now;
	l->clock_ms = ms % LIVE_MS_PER_DAY;
	l->clock_set = true;
}

uint32_t
live_stamp(const struct live *l, uint64_t now)
{
	uint64_t per_ms = RTE_MAX(l->config.hz / 1000, 1u), ago;

	if (!l->clock_set)
		return LIVE_STAMP_NONSTANDARD | (uint32_t)(now / per_ms);
	if (now >= l->clock_at)
		return (l->clock_ms + (now - l->clock_at) / per_ms) % LIVE_MS_PER_DAY;
	/* a multi-packet request may have arrived before the clock was last set */
	ago = (l->clock_at - now + per_ms - 1) / per_ms % LIVE_MS_PER_DAY;
	return (uint32_t)(l->clock_ms + LIVE_MS_PER_DAY - ago) % LIVE_MS_PER_DAY;
}
