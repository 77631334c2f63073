/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_NEIGHBOURS_H
#define ENGINE_NEIGHBOURS_H

/** @file Private to lib/engine: the search for neighbours that nobody uses. */

#include <stdbool.h>
#include <stdint.h>

#include "link/link.h"

struct engine;

/** Control thread only. */
struct neighbour_search {
	bool running;
	unsigned int step;
	unsigned int worker; /* whose management sessions are asked */
	uint64_t cursor;
	uint64_t next; /* TSC: not before */
	uint64_t regular; /* TSC: then in any case, so that idle neighbours age out */
	struct link_neighbours_used used;
};

/**
 * Control thread, each of its turns: continue the search, or begin one if the link has more than
 * engine_config.neighbours_kept neighbours, has refused one, or idle ones may have aged.
 */
void neighbours_watch(struct engine *e, uint64_t now);

#endif
