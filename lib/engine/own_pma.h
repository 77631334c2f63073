/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_OWN_PMA_H
#define ENGINE_OWN_PMA_H

/**
 * @file
 * Private to lib/engine: the performance management agent of all ports, on worker 0; the other
 * workers have none.
 */

#include "engine/worker.h"

int own_pma_create(struct worker *w, struct error *err);
/** After its mad_worker is gone. */
void own_pma_destroy(struct worker *w);
/** Many times a second: have links gone down? */
void own_pma_tick(struct worker *w);

#endif
