/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_WALK_H
#define SA_WALK_H

/**
 * @file
 * The route that packets take: from switch to switch as their forwarding tables say, read from the
 * store each time (sa-multipacket B12).
 */

#include <stdint.h>

#include "sa/port_view.h"

#define WALK_HOPS_MAX 64 /* switches; opensm's bound. What takes more is a loop */

/** What a packet meets on its way. */
struct walk {
	uint8_t hops; /**< switches */
	uint8_t mtu; /**< the smallest; codes, 0: not known */
	uint8_t rate;
	uint16_t sls; /**< SLs that no switch is known to drop, a bit each */
	bool sls_known; /**< every SLtoVL table on the way is stored */
};

/** Does the store hold any forwarding tables? */
bool walk_possible(const struct store_version *v);
/**
 * Go from a port to a LID of another port.
 *
 * @retval 0
 * @retval -ENETUNREACH  the tables lead nowhere, or round in circles
 * @retval -ENODATA  a switch on the way has no tables in the store
 */
int walk_route(const struct store_version *v, const struct port_view *from,
	const struct port_view *to, uint16_t dlid, struct walk *w);
/** SL that the subnet manager gave the path; -1: not known. */
int walk_path_sl(const struct store_version *v, uint16_t slid, uint16_t dlid);

#endif
