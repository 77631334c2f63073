/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_OWN_WISH_H
#define ENGINE_OWN_WISH_H

/**
 * @file
 * An appliance's wish that records of its own ports are stored. The simulation has it without an
 * engine (test/sim/fleet_owned.c).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct own_wish;
struct sa_write;
struct store_fleet;
struct store_forward;

struct own_wish *own_wish_create(const struct store_fleet *side);
void own_wish_destroy(struct own_wish *o);
/** Any thread: the request for our ports, as by owned_put(). */
void own_wish_set(struct own_wish *o, const uint8_t *bytes, size_t len);
/** Store's thread: ask for what is due. @return true if there was work */
bool own_wish_run(struct own_wish *o, struct store_forward *forward, uint64_t lease_now);
/** Store's thread: a change has its status. @return true: it was asked for here */
bool own_wish_handed_back(struct own_wish *o, const struct sa_write *write);

#endif
