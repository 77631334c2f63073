/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_LIVE_AGENT_H
#define ENGINE_LIVE_AGENT_H

/**
 * @file
 * Private to lib/engine: the liveness agent of each worker, and what it says of this host.
 */

#include "engine/worker.h"

/** Look at this host, once, before there are workers. */
int live_agent_host_create(struct engine *e, struct error *err);
void live_agent_host_destroy(struct engine *e);

int live_agent_create(struct worker *w, struct error *err);
/** After the worker's mad_worker is gone. */
void live_agent_destroy(struct worker *w);
/** Its clock. */
void live_agent_tick(struct worker *w, uint64_t now);

#endif
