/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A worker's liveness agent: creation, counters.
 */

#include <rte_debug.h>

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
	struct live *l;

	RTE_ASSERT(config->mad != NULL && config->alloc != NULL && config->hz > 0);
	RTE_ASSERT(config->port != NULL && (config->limits.rate == 0 || config->rng != NULL));
	RTE_ASSERT(config->cpu != NULL || config->num_cpus == 0);
	l = mem_zalloc(config->alloc, sizeof(*l), 64);
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

const struct live_counters *
live_counters(const struct live *l)
{
	return &l->counters;
}
