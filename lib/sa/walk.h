/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_WALK_H
#define SA_WALK_H

/**
 * @file
 * The route of packets from switch to switch by their forwarding tables, which are read from the
 * store each time (sa-multipacket B12).
 */

#include <stdint.h>

#include "sa/port_view.h"

#define WALK_HOPS_MAX 64 /* most switches, as in opensm; a longer route is a loop */

/** What a route offers. */
struct walk {
	uint8_t hops; /**< number of switches */
	uint8_t mtu; /**< lowest on the route; code, 0: not known */
	uint8_t rate;
	uint16_t sls; /**< SLs that no known table drops, a bit each */
	bool sls_known; /**< every SLtoVL table on the route is stored */
};

/** True if the store has any forwarding tables. */
bool walk_possible(const struct store_version *v);
/**
 * Follow the route from a port to a LID of another port.
 *
 * @retval 0
 * @retval -ENETUNREACH  the tables lead nowhere, or in a loop
 * @retval -ENODATA  the store lacks the tables of a switch on the route
 */
int walk_route(const struct store_version *v, const struct port_view *from,
	const struct port_view *to, uint16_t dlid, struct walk *w);
/** The SL that the subnet manager gave the path; -1: unknown. */
int walk_path_sl(const struct store_version *v, uint16_t slid, uint16_t dlid);

#endif
