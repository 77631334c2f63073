/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_LIDS_H
#define LINK_LIDS_H

/*
 * Private to lib/link: LID routes of a native IB port.
 *
 * One 64-bit word a LID, MAC and flags together as in neigh.h: any worker stores what it hears, the
 * control thread stores what it is told, and whoever sends takes the word with one relaxed load.
 */

#include <stdint.h>

#include "link/neigh.h"
#include "port/port.h"

#define LID_FIXED (UINT64_C(1) << 61) /* told, not heard: no packet changes it */
#define LID_HEARD (UINT64_C(1) << 60) /* since worker 0 last looked */

struct lid_table {
	uint64_t peer; /* of the permissive LID */
	uint64_t route[PORT_LID_MULTICAST]; /* [LID]; 0: none */
	/* worker 0 */
	uint32_t age_cursor;
	uint64_t age_next;
};

struct link_port;

int lids_create(struct link_port *p, struct error *err);
/* A packet that we take says where its source LID is. Any worker. */
void lid_learn(struct link_worker *w, const struct link_port *p, const struct port_attr *attr,
	const struct packet *pkt, const uint8_t *smac);
/* Worker 0: forget learned routes that were silent for long, a few of them each time. */
void lids_tick(struct link_worker *w, uint64_t now);
/* Where packets to a LID go: MAC and flags; 0: no route. */
uint64_t lid_route(const struct link_port *p, const struct port_attr *attr, uint16_t dlid);

#endif
