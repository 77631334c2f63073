/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_OWN_PORTS_FLEET_H
#define ENGINE_OWN_PORTS_FLEET_H

/**
 * @file
 * Records of an appliance's own RoCE ports in a fleet: they belong to it, and go when its lease
 * does (sa/owned.h, docs/fleet.md).
 */

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct sa_write;
struct store_forward;

int own_wish_create(struct engine *e);
void own_wish_destroy(struct engine *e);
/** Control thread: look whether the ports have changed. */
void own_wish_follow(struct engine *e);
/** Store's thread: ask for what is due. @return true if there was work */
bool own_wish_run(struct engine *e, struct store_forward *forward, uint64_t lease_now);
/** Store's thread: a change has its status. @return true: it was asked for here */
bool own_wish_handed_back(struct engine *e, const struct sa_write *write);

#endif
