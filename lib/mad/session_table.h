/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MAD_SESSION_TABLE_H
#define MAD_SESSION_TABLE_H

/**
 * @file
 * Private to session_table.c, which keeps it, and session_give_way.c, which makes room in it: the
 * sessions of a worker, the addresses that have some, and how these are ranked.
 */

#include "mad/core.h"

TAILQ_HEAD(idle_peers, mad_peer_entry);

/* Sessions of one kind, counted by address, by prefix and together. */
struct mad_ranks {
	struct share_rank address;
	struct share_rank prefix;
	uint32_t sessions;
};

struct mad_table {
	struct mad_session *sessions;
	struct hash_table by_key;
	uint64_t *live; /* a bit for each of .sessions, so that walks skip 64 at a time */
	struct hash_chain free;
	uint32_t size;
	uint32_t used; /* atomic: mad_worker_memory() reads it on another thread */
	struct mad_session_list linger; /* over all addresses, oldest first */
	struct mad_peer_entry *peers;
	struct hash_table by_address;
	struct hash_chain peer_free;
	uint32_t num_peers;
	struct idle_peers
		idle_peers; /* proven addresses without sessions and bytes, oldest first */
	struct mad_prefix *prefixes; /* by hash, as many as .by_address has buckets */
	/* neither lingering: */
	struct mad_ranks half_open;
	struct mad_ranks answering;
	size_t memory;
};

/* The entry of an address, or NULL. */
struct mad_peer_entry *mad_peer_find(const struct mad_worker *w, const union gid *addr);
/* The prefix of an address. */
struct mad_prefix *mad_prefix_of(const struct mad_worker *w, const union gid *addr);
/*
 * Take a session from the pool, which has a free one, for a key that has none. @return NULL: there
 * is no entry for the stranger's address
 */
struct mad_session *mad_session_take(struct mad_worker *w, const struct mad_key *key, uint64_t hash,
	bool stranger);

#endif
