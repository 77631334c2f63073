/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_NEIGH_H
#define LINK_NEIGH_H

/*
 * Private to lib/link: the neighbour table.
 *
 * The control thread creates entries and, when it has found out that nobody uses them any more,
 * removes them (link_neighbours_forget()). A place is used again only when no worker can still look
 * at what it held. A frame needs only one 64-bit word of an entry, which holds MAC and flags, so
 * the transmit path reads it with one relaxed load and never sees half of an address. Any worker
 * that hears an answer stores the word; only worker 0 uses the timed fields.
 *
 * One unsolicited message must not divert a neighbour's traffic: a resolved entry moves to another
 * MAC only when the old one no longer answers (the field .moving).
 */

#include <rte_hash.h>

#include "link/private.h"

#define NEIGH_MAX LINK_NEIGHBOURS
/* entries of all strangers: unresolved, and resolved or not */
#define NEIGH_UNRESOLVED (NEIGH_MAX / 16)
#define NEIGH_STRANGERS  (NEIGH_MAX / 2)
#define NEIGH_SEARCHES   3 /* after which an unused entry has gone, though one is running */
#define NEIGH_VALID      (UINT64_C(1) << 63)
/* the port itself: loop the frame back, a switch would not */
#define NEIGH_SELF (UINT64_C(1) << 62)

struct neigh {
	union gid gid; /* of the next hop */
	union gid source; /* our address that asks */
	union gid stranger; /* control thread: who made us ask, or zero */
	uint32_t asked; /* control thread: number of the last search in which it was asked for */
	uint64_t used; /* control thread: when last asked for, or found to be in use */
	int32_t hash_place; /* control thread: of its key, once that has been removed */
	bool present; /* written by the control thread: worker 0 looks at present entries only */
	uint64_t confirmed; /* when last heard; any worker, relaxed */
	uint16_t port;
	/* multicast, this port, or the other port of a pair: neither resolved nor aged */
	bool permanent;
	/* worker 0 */
	uint8_t probes;
	uint64_t next; /* time of the next check */
	/* another MAC that claims the address, with NEIGH_VALID; 0: none. Any worker, relaxed */
	uint64_t moving;
	/* worker 0: time of the first question to the old MAC, of the next one */
	uint64_t move_began;
	uint64_t move_next;
	uint8_t move_probes;
};

struct neigh_key {
	union gid gid;
	uint64_t port; /* 64 bits, so that the key has no padding */
};

struct neigh_table {
	struct rte_hash *hash; /* struct neigh_key -> index; lock-free readers */
	struct rte_rcu_qsbr *rcu; /* of the workers, or NULL */
	uint32_t count; /* places that were ever used */
	uint32_t made; /* entries that were ever created; published last */
	/* the place of the nth entry that was created, at n % NEIGH_MAX: worker 0 begins with it */
	uint16_t order[NEIGH_MAX];
	/* control thread */
	uint32_t present;
	uint64_t forgotten;
	uint64_t refused;
	uint32_t searches; /* for unused entries */
	uint8_t wanted; /* an entry was refused: so many searches are worth while */
	uint32_t num_free;
	uint16_t free[NEIGH_MAX];
	/* removed, but a worker may still look at them until a grace period has passed */
	uint32_t num_leaving;
	uint16_t leaving[NEIGH_MAX];
	uint64_t leaving_token;
	uint16_t idle[NEIGH_MAX]; /* of a search: resolved entries that nobody uses */
	uint64_t now; /* worker 0's last tick, for ages */
	struct neigh entry[NEIGH_MAX];
	uint64_t mac[NEIGH_MAX];
};

/* @param rcu  whose readers are the workers; NULL: there are none */
struct neigh_table *neigh_create(struct rte_rcu_qsbr *rcu);
void neigh_destroy(struct neigh_table *t);
/* @return the index of its present entry, or -1 */
int neigh_find(const struct neigh_table *t, unsigned int port, const union gid *gid);
/* Control thread: places whose grace period is over may be used again. */
void neigh_reclaim(struct neigh_table *t);
/* Control thread: count a refusal, and have unused entries looked for. */
void neigh_refuse(struct neigh_table *t);
/*
 * Builds with RTE_ENABLE_ASSERT end the program if an invariant fails. On the control thread: each
 * place that was ever used is present, free, or leaving; each present entry is found.
 */
#ifdef RTE_ENABLE_ASSERT
void neigh_check(const struct neigh_table *t);
#else
#define neigh_check(t) RTE_SET_USED(t)
#endif
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

static inline bool
neigh_is_present(const struct neigh *n)
{
	return ACQUIRE_GET(n->present);
}

static inline bool
neigh_is_resolved(const struct neigh_table *t, uint32_t i)
{
	return RELAXED_GET(t->mac[i]) & NEIGH_VALID;
}

/*
 * The invariants of an entry, on any thread that has changed it: its words are the MAC of a node
 * with NEIGH_VALID, or nothing, and whoever claims its address is one other node.
 */
static inline void
neigh_entry_check(const struct neigh_table *t, uint32_t i)
{
	RTE_SET_USED(t);
	RTE_SET_USED(i);
	RTE_ASSERT(i < ACQUIRE_GET(t->count));
	RTE_ASSERT(RELAXED_GET(t->mac[i]) == 0 || neigh_is_resolved(t, i));
	RTE_ASSERT(RELAXED_GET(t->entry[i].moving) == 0 ||
		(RELAXED_GET(t->entry[i].moving) & (NEIGH_VALID | NEIGH_SELF)) == NEIGH_VALID);
}

#endif
