/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_PD_H
#define ENGINE_VERBS_PD_H

/** @file List of protection domains; the other verbs of domains are in verbs.h. */

#include "mem/mem.h"

struct engine;

/** mem_pd_next() of the engine's domains, including those of services (engine_pd_service()). */
bool engine_pd_next(const struct engine *e, uint64_t *cursor, struct mem_pd_info *info);

#endif
