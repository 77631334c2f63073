/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_STORE_NOTICES_H
#define ENGINE_STORE_NOTICES_H

/**
 * @file
 * Notices in a fleet (docs/fleet.md): the store's thread keeps them with the changes that cause
 * them, and the leader reports them.
 */

#include <stdbool.h>

struct store_fleet;
struct store_notices;

struct store_notices *store_notices_create(const struct store_fleet *side);
void store_notices_destroy(struct store_notices *sn);
/** What etcd and worker 0 have brought. @return true if there was work */
bool store_notices_run(struct store_notices *sn);

#endif
