/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_LIVE_AGENT_H
#define ENGINE_LIVE_AGENT_H

/**
 * @file Private to lib/engine: the liveness agent of each worker, and the description of this host
 * that it reports.
 */

#include "engine/worker.h"

/** Read the description of this host, once, before the workers are created. */
int live_agent_host_create(struct engine *e, struct error *err);
void live_agent_host_destroy(struct engine *e);

int live_agent_create(struct worker *w, struct error *err);
/** Call after mad_worker_destroy(). */
void live_agent_destroy(struct worker *w);
/** Set the agent's time of day. */
void live_agent_tick(struct worker *w, uint64_t now);

#endif
