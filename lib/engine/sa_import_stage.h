/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_SA_IMPORT_STAGE_H
#define ENGINE_SA_IMPORT_STAGE_H

/**
 * @file
 * The steps of an import at an appliance of a fleet that does not lead. The simulation takes them
 * without an engine (test/sim/fleet_clients.c).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sa/staged.h"
#include "sa/write.h"

struct fleet;

/** What asks the leader; in use until it is answered. */
struct import_request {
	struct sa_write write;
	uint8_t head[STAGED_HEAD_MAX];
};

/** The import's thread. */
struct import_thread {
	const char *owner; /**< the appliance's name */
	size_t part_max; /**< bytes of a part, up to STAGED_PART_MAX */
	uint64_t (*random)(void);
	/** Have the store's thread run a function. @return its result */
	int (*call)(void *arg, int (*fn)(struct fleet *f, void *arg), void *fn_arg);
	/** Wait, before a part is put again. @return false: the appliance stops */
	bool (*pause)(void *arg);
	bool (*stops)(void *arg);
	/** Send the request and wait for its answer. @return false: the appliance stops before */
	bool (*ask)(void *arg);
	void *arg;
};

/** Stage records, and have the leader make the import: see import_at_leader(). */
int import_staged(const struct import_thread *t, struct import_request *request,
	enum sa_replaced replace, const struct sa_change *records, size_t n, struct error *err);

#endif
