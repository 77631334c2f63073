/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_NEIGH_H
#define LINK_NEIGH_H

/*
 * Private to lib/link: the neighbour table.
 *
 * Append-only: the control thread makes entries and publishes their number; an index stays good for
 * the life of the link. What a frame needs of an entry is one 64-bit word, MAC and flags together,
 * so that the transmit path takes it with one relaxed load and sees either all of an address or
 * nothing. Any worker that hears an answer stores the word; the timed part of an entry belongs to
 * worker 0.
 */

#include <stdbool.h>
#include <stdint.h>

#include "link/link.h"

#define NEIGH_MAX   16384
#define NEIGH_VALID (UINT64_C(1) << 63)
#define NEIGH_SELF  (UINT64_C(1) << 62) /* the port itself: no switch would send it back */

struct neigh {
	union gid gid; /* of the next hop */
	union gid source; /* ours, that asks */
	uint64_t confirmed; /* when last heard; any worker, relaxed */
	uint16_t port;
	bool permanent; /* multicast, ourselves, the other end of a pair: not asked for, not aged */
	/* worker 0 */
	uint8_t probes;
	uint64_t next; /* when to look again */
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
 * An address of a port said that this is its MAC: refresh its entry, if there is one. Any worker.
 */
void neigh_heard(struct link_worker *w, const struct link_port *p, const union gid *gid,
	const uint8_t *mac);
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
