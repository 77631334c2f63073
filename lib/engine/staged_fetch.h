/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_STAGED_FETCH_H
#define ENGINE_STAGED_FETCH_H

/** @file Private to lib/engine: what a request of a fleet has staged (sa/staged.h). */

#include "base/error.h"

struct sa_write;
struct store_fleet;

/**
 * Leader, store's thread: read the records of a request that names parts.
 *
 * @param write  .staged is to be released with free()
 * @retval -ENOENT, -EBADMSG, -EFBIG  they will never be there
 */
int staged_fetch(const struct store_fleet *side, struct sa_write *write, struct error *err);

#endif
