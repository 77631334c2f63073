/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_LIDS_H
#define LINK_LIDS_H

/*
 * Private to lib/link: LID routes of a native IB port.
 *
 * Each LID has one 64-bit word with MAC and flags, as in neigh.h. Any worker stores routes that it
 * learns from packets, the control thread stores fixed routes, and a sender reads the word with one
 * relaxed load.
 */

#include "link/neigh.h"

#define LID_FIXED (UINT64_C(1) << 61) /* configured, not learned: packets do not change it */
#define LID_HEARD (UINT64_C(1) << 60) /* heard since worker 0 last aged it */

struct lid_table {
	uint64_t peer; /* route of the permissive LID */
	uint64_t route[PORT_LID_MULTICAST]; /* [LID]; 0: none */
	/* worker 0 */
	uint32_t age_cursor;
	uint64_t age_next;
};

int lids_create(struct link_port *p, struct error *err);
/* Any worker: learn the route to an accepted packet's source LID. */
void lid_learn(struct link_worker *w, const struct link_port *p, const struct port_attr *attr,
	const struct packet *pkt, const uint8_t *smac);
/* Worker 0: forget learned routes after long silence; each call ages a part of the table. */
void lids_tick(struct link_worker *w, uint64_t now);
/* The route to a LID: MAC and flags; 0: no route. */
uint64_t lid_route(const struct link_port *p, const struct port_attr *attr, uint16_t dlid);

#endif
