/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_NEIGH_H
#define LINK_NEIGH_H

/*
 * Private to lib/link: the neighbour table.
 *
 * The table is append-only: the control thread creates entries and publishes their number, and an
 * index stays valid for the life of the link. A frame needs only one 64-bit word of an entry, which
 * holds MAC and flags, so the transmit path reads it with one relaxed load and never sees half of
 * an address. Any worker that hears an answer stores the word; only worker 0 uses the timed fields.
 *
 * One unsolicited message must not divert a neighbour's traffic: a resolved entry moves to another
 * MAC only when the old one no longer answers (the field .moving).
 */

#include <stdbool.h>
#include <stdint.h>

#include "link/link.h"

#define NEIGH_MAX   16384
#define NEIGH_VALID (UINT64_C(1) << 63)
/* the port itself: loop the frame back, a switch would not */
#define NEIGH_SELF (UINT64_C(1) << 62)

struct neigh {
	union gid gid; /* of the next hop */
	union gid source; /* our address that asks */
	uint64_t confirmed; /* when last heard; any worker, relaxed */
	uint16_t port;
	/* multicast, this port, or the other port of a pair: neither resolved nor aged */
	bool permanent;
	/* worker 0 */
	uint8_t probes;
	uint64_t next; /* time of the next check */
	/* another MAC that claims the address, with NEIGH_VALID; 0: none. Any worker, relaxed */
	uint64_t moving;
	uint64_t
		/* worker 0: time of the first question to the old MAC, of the next one */
		move_began;
	uint64_t move_next;
	uint8_t move_probes;
};

struct neigh_table {
	struct rte_hash *hash; /* {gid, port} -> index; lock-free readers */
	uint32_t count; /* published last */
	uint64_t now; /* worker 0's last tick, for ages */
	struct neigh entry[NEIGH_MAX];
	uint64_t mac[NEIGH_MAX];
};

struct link_port;

struct neigh_table *neigh_create(void);
void neigh_destroy(struct neigh_table *t);
/*
 * Any worker: a node on the link announced its address and MAC; update its entry if there is one.
 */
void neigh_heard(struct link_worker *w, const struct link_port *p, const union gid *gid,
	const uint8_t *mac);
/* Worker 0: the port has got this address; what was a neighbour by it is the port itself. */
void neigh_is_own(struct neigh_table *t, const struct link_port *p, const union gid *gid);
/* Worker 0: start to resolve entries that the control thread has made since. */
void neigh_new(struct link_worker *w, uint64_t now);
/* Worker 0: retries, ageing. */
void neigh_tick(struct link_worker *w, uint64_t now);

static inline uint32_t
neigh_count(const struct neigh_table *t)
{
	return __atomic_load_n(&t->count, __ATOMIC_ACQUIRE);
}

#endif
