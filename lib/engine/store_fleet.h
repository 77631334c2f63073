/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_STORE_FLEET_H
#define ENGINE_STORE_FLEET_H

/**
 * @file
 * What the store's thread of an appliance in a fleet works with. The simulation has one without an
 * engine (test/sim/fleet_node.c).
 */

#include <stdint.h>

struct fleet;
struct sa;
struct store;

struct store_fleet {
	struct fleet *fleet;
	struct sa *sa;
	struct store *store;
	uint64_t max_import; /**< bytes of an import's records */
	uint64_t hz;
	uint64_t (*cycles)(void); /**< the clock, of .hz */
	uint64_t (*random)(void);
	unsigned int reader; /**< of .store: the store's thread */
	void (*wake_reporter)(void *arg); /**< worker 0 has Reports to send */
	void *arg;
};

#endif
