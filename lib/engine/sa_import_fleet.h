/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_SA_IMPORT_FLEET_H
#define ENGINE_SA_IMPORT_FLEET_H

/**
 * @file
 * Private to lib/engine: imports at an appliance of a fleet that does not lead (sa/staged.h,
 * docs/fleet.md).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sa/sa.h"

struct engine;

/** Control thread, before an import: nothing to do outside of a fleet. */
int import_fleet_create(struct engine *e);
void import_fleet_destroy(struct engine *e);
/**
 * The import's thread: have the leader make the import, and wait until its records are here.
 *
 * @retval -EINPROGRESS  it is not known whether the import was made
 */
int import_at_leader(struct engine *e, enum sa_replaced replace, const struct sa_change *records,
	size_t n, struct error *err);
/** Control thread: the appliance stops; import_at_leader() returns soon. */
void import_fleet_stop(struct engine *e);
/** Control thread: the import's thread has ended. */
void import_fleet_stopped(struct engine *e);

#endif
