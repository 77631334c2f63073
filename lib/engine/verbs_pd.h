/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_PD_H
#define ENGINE_VERBS_PD_H

/** @file Protection domains, beside verbs.h: which there are. */

#include "mem/pd.h"

struct engine;

/** mem_pd_next() of the engine's domains, those of services among them: engine_pd_service(). */
bool engine_pd_next(const struct engine *e, uint32_t *cursor, struct mem_pd_info *info);

#endif
