/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_STORE_FORWARD_H
#define ENGINE_STORE_FORWARD_H

/**
 * @file
 * Changes in a fleet (docs/fleet.md): the store's thread executes them if this appliance leads, and
 * passes them to the leader otherwise.
 */

#include <stdbool.h>
#include <stdint.h>

struct sa_write;
struct store_fleet;
struct store_forward;

/** @param hand_back  gets changes that have their status, on the store's thread */
struct store_forward *store_forward_create(const struct store_fleet *side,
	void (*hand_back)(void *arg, struct sa_write *write), void *arg);
void store_forward_destroy(struct store_forward *sf);
/**
 * Changes of this appliance's clients. Each is handed back sooner or later.
 *
 * @param lease_now  seconds, as sa_write_execute()
 */
void store_forward_batch(struct store_forward *sf, struct sa_write **writes, unsigned int n,
	uint64_t lease_now);
/** What etcd has brought, and what is due. @return true if there was work */
bool store_forward_run(struct store_forward *sf, uint64_t lease_now);
/** Hand back all that wait: the appliance stops. */
void store_forward_stop(struct store_forward *sf);

#endif
