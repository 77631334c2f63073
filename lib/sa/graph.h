/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_GRAPH_H
#define SA_GRAPH_H

/**
 * @file
 * The switches of the subnet and the links between them, read in slices from Link, PortInfo and
 * SwitchInfo records; shortest routes, computed from one switch at a time and cached. Sized at
 * creation; belongs to one worker.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sa/sa.h"

struct graph;

/** A route: mtu and rate are the lowest of its links. */
struct route {
	uint8_t hops; /**< links crossed */
	uint8_t mtu; /**< codes */
	uint8_t rate;
	bool reached;
};

struct graph *graph_create(const struct allocator *alloc, uint32_t switches, uint32_t links,
	uint32_t routes);
void graph_destroy(struct graph *g);

/** Start building from a version; routes are invalid until graph_build() returns true. */
void graph_begin(struct graph *g, const struct store_version *v);
/**
 * @param budget  records that may be read; reduced by those read. @retval false  call again; the
 *                version must be held until then
 */
bool graph_build(struct graph *g, unsigned int *budget);
/** True if the fabric has more switches or links than fit. */
bool graph_overflow(const struct graph *g);
/**
 * The shortest route between two switches; of several, the one with the largest MTU, then rate.
 *
 * @retval false  no switch has that LID, or there is no route
 */
bool graph_route(struct graph *g, uint16_t from_lid, uint16_t to_lid, struct route *route);
bool graph_has_switch(const struct graph *g, uint16_t lid);
/** Links examined by graph_route() since the last call: the cost of routes. */
unsigned int graph_work(struct graph *g);

#endif
