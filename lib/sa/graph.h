/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_GRAPH_H
#define SA_GRAPH_H

/**
 * @file
 * The switches of the subnet and the links between them, read from Link, PortInfo and SwitchInfo
 * records in slices; shortest routes between them, computed from one switch at a time and kept.
 * Sized at creation, one worker's own.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sa/sa.h"

struct graph;

/** The worst of the links of a route. */
struct route {
	uint8_t hops; /**< links crossed */
	uint8_t mtu; /**< codes */
	uint8_t rate;
	bool reached;
};

struct graph *graph_create(const struct allocator *alloc, uint32_t switches, uint32_t links,
	uint32_t routes);
void graph_destroy(struct graph *g);

/** Begin anew from a version; the routes are gone until graph_build() says true. */
void graph_begin(struct graph *g, const struct store_version *v);
/**
 * @param budget  records to look at; what was used is taken off. @retval false  go on later, the
 *                version must live until then
 */
bool graph_build(struct graph *g, unsigned int *budget);
/** Did the fabric have more switches or links than fit? */
bool graph_overflow(const struct graph *g);
/**
 * The shortest route between two switches; of several, the one with the largest MTU, then rate.
 *
 * @retval false  no switch of that LID, or no route
 */
bool graph_route(struct graph *g, uint16_t from_lid, uint16_t to_lid, struct route *route);
bool graph_has_switch(const struct graph *g, uint16_t lid);
/** Links looked at by graph_route() since the last call: what routes cost. */
unsigned int graph_work(struct graph *g);

#endif
