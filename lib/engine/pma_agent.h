/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_PMA_AGENT_H
#define ENGINE_PMA_AGENT_H

/**
 * @file
 * Private to lib/engine: the performance management agent of all ports, on worker 0; the other
 * workers have none.
 */

#include "engine/worker.h"

int pma_agent_create(struct worker *w, struct error *err);
/** Call after mad_worker_destroy(). */
void pma_agent_destroy(struct worker *w);
/** Every tick: tell the agent the state of the links. */
void pma_agent_tick(struct worker *w);

#endif
