/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_OWN_PORTS_FLEET_H
#define ENGINE_OWN_PORTS_FLEET_H

/**
 * @file
 * Records of an appliance's own ports in a fleet: they belong to it, and go when its lease
 * does (sa/owned.h, own_wish.h, docs/fleet.md). All functions are for the control thread.
 */

#include <stddef.h>

struct engine;
struct sa_change;

/** The records of our native IB ports. @param records  taken, to be freed */
void own_ports_fleet_native(struct engine *e, struct sa_change *records, size_t n);
/** Look whether the ports have changed, or their records could not be renewed before. */
void own_ports_fleet_follow(struct engine *e);
/** After the store's thread has ended. */
void own_ports_fleet_destroy(struct engine *e);

#endif
