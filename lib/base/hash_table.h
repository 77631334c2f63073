/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_HASH_TABLE_H
#define BASE_HASH_TABLE_H

/**
 * @file
 * Hash tables with chains, for objects of pools whose size is known at the start: nothing is
 * allocated later, and nothing fails. An object has a struct hash_link for each table it may be in.
 * Hash keys that come from the network by siphash.h, so that nobody can aim them at one chain.
 */

#include <errno.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/env.h"

struct hash_link {
	LIST_ENTRY(hash_link) chain;
	uint64_t hash;
};

LIST_HEAD(hash_chain, hash_link);

struct hash_table {
	struct hash_chain *buckets;
	uint64_t mask;
};

/** @param size  objects that it will have at most */
static inline int
hash_create(struct hash_table *t, const struct allocator *a, uint32_t size)
{
	t->mask = 1;
	while (t->mask < size)
		t->mask *= 2;
	t->buckets = mem_zalloc(a, t->mask * sizeof(*t->buckets), 64);
	t->mask--;
	return t->buckets != NULL ? 0 : -ENOMEM;
}

static inline struct hash_chain *
hash_bucket(const struct hash_table *t, uint64_t hash)
{
	return &t->buckets[hash & t->mask];
}

static inline void
hash_add(struct hash_table *t, struct hash_link *l, uint64_t hash)
{
	l->hash = hash;
	LIST_INSERT_HEAD(hash_bucket(t, hash), l, chain);
}

static inline void
hash_remove(struct hash_link *l)
{
	LIST_REMOVE(l, chain);
}

/** From @p l on the first with this hash: the caller compares the keys. NULL: there is none. */
static inline struct hash_link *
hash_find(struct hash_link *l, uint64_t hash)
{
	while (l != NULL && l->hash != hash)
		l = LIST_NEXT(l, chain);
	return l;
}

#define HASH_FOREACH(l, t, key_hash)                                                               \
	for (l = hash_find(LIST_FIRST(hash_bucket(t, key_hash)), key_hash); l != NULL;             \
		l = hash_find(LIST_NEXT(l, chain), key_hash))

#endif
