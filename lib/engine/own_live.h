/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_OWN_LIVE_H
#define ENGINE_OWN_LIVE_H

/**
 * @file
 * Private to lib/engine: the liveness agent of each worker, and what it says of this host.
 */

#include "engine/worker.h"

/** Look at this host, once, before there are workers. */
int own_host_create(struct engine *e, struct error *err);
void own_host_destroy(struct engine *e);

int own_live_create(struct worker *w, struct error *err);
/** After the worker's mad_worker is gone. */
void own_live_destroy(struct worker *w);
/** Its clock. */
void own_live_tick(struct worker *w, uint64_t now);

#endif
