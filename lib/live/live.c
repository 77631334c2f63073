/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A worker's liveness agent: creation, clock, counters.
 */

#include <rte_common.h>

#include "live/private.h"

void
live_destroy(struct live *l)
{
	const struct allocator *alloc;

	if (l == NULL)
		return;
	alloc = l->config.alloc;
	mem_free(alloc, l->sources);
	mem_free(alloc, l->streams);
	mem_free(alloc, l->cpu_text);
	mem_free(alloc, l);
}

struct live *
live_create(const struct live_config *config)
{
	struct live *l = mem_zalloc(config->alloc, sizeof(*l), 64);

	if (l == NULL)
		return NULL;
	l->config = *config;
	l->config.host[LIVE_HOST_MAX - 1] = '\0';
	if (live_source_init(l) != 0 || live_echo_init(l) != 0 || live_sysstat_init(l) != 0 ||
		live_serve_init(l) != 0) {
		live_destroy(l);
		return NULL;
	}
	return l;
}

/* --- the wall clock (liveness 2) --- */

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

const struct live_counters *
live_counters(const struct live *l)
{
	return &l->counters;
}
