/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_PRIVATE_H
#define STORE_PRIVATE_H

/**
 * @file
 * Private to lib/store: versions, who holds them, and what waits to be freed.
 */

#include <rte_common.h>

#include "store/store.h"
#include "store/tree.h"

#define TREES_MAX (STORE_TABLES_MAX + STORE_INDEXES_MAX)

/* A version: the root of each table, then of each index. Numbers start at 1. */
struct store_version {
	uint64_t number;
	struct store *store;
	uint64_t changed[STORE_TABLES_MAX]; /* number of the version that last changed a table */
	struct tree tree[TREES_MAX];
	uint64_t seen_held; /* value of store.looks when the writer last found it held */
};

/* A block of memory, and the first version that contains it. */
struct block {
	void *mem;
	uint64_t born;
	uint32_t size;
};

struct blocks {
	struct block *at;
	size_t n;
	size_t room;
};

/*
 * A version that is no longer the newest, and the blocks that it was the last to use; oldest first
 * in store.old.
 */
struct retired {
	struct retired *next;
	uint64_t number;
	uint64_t grace;
	uint64_t bytes;
	struct store_version *version; /* the struct itself */
	struct blocks blocks;
};

struct held {
	const struct store_version *version; /* NULL: none; the writer reads it */
	uint64_t count;
};

struct store_reader {
	struct store *store;
	struct held *held; /* store.slots of them */
	unsigned int top; /* those from here on are unused; the writer reads it */
	unsigned int last; /* index of the version held or released last */
} __attribute__((aligned(64)));

struct store_txn {
	struct tree_writer writer;
	struct store *store;
	struct store_version *next; /* working roots */
	struct blocks made; /* allocated by this transaction */
	struct blocks retired; /* not used by the next version any more */
	struct tree_node *spare[2]; /* reserved inner nodes and leaves, linked by child[0] */
	unsigned int num_spare[2];
	struct store_op *ops; /* changes for the backend, in order */
	size_t num_ops;
	size_t room_ops;
	struct retired *old; /* reserved for the commit */
	bool open;
};

struct store {
	struct store_config config;
	const struct store_version *current; /* published */
	uint64_t stale_below; /* versions with a smaller number are stale; published */
	uint64_t stale_grace;
	uint64_t stale_done; /* no reader reads versions below it any more */
	struct store_reader *readers;
	unsigned int slots; /* of each reader */
	uint64_t looks; /* number of times that the writer looked for held versions */
	struct retired *old;
	struct retired **old_tail;
	struct retired *in_grace; /* the first whose grace period may not be over */
	uint64_t graced; /* number of the last version whose grace period is over */
	unsigned int settled; /* number of held versions at the last look */
	unsigned int commits; /* commits since the last look */
	struct store_txn txn;
	/* written by the writer, read by anyone */
	struct store_stats stats;
};

#define stat_set(s, name, value) __atomic_store_n(&(s)->stats.name, (value), __ATOMIC_RELAXED)
#define stat_add(s, name, n)     stat_set(s, name, (s)->stats.name + (n))

static inline struct tree_key
table_key(uint32_t rid)
{
	return (struct tree_key){ 0, rid };
}

/* alloc.c: memory, counted in stats.bytes */
void *store_alloc(struct store *s, uint32_t size);
void store_free(struct store *s, void *mem, uint32_t size);
/* Room for n more. @retval -ENOMEM */
int blocks_reserve(struct store *s, struct blocks *b, size_t n);
void blocks_free(struct store *s, struct blocks *b);

/* txn.c */
void txn_init(struct store *s);
void txn_fini(struct store *s);
/* Publish the transaction's version, which is durable, and end the transaction. */
void txn_publish(struct store_txn *t);

/* reclaim.c */
/* Version v is no longer the newest; txn.retired was last used by it. */
void retire_version(struct store *s, const struct store_version *v);
/* After a commit. The search for held versions costs O(held), so one serves several commits. */
void reclaim_after_commit(struct store *s);
/* Free everything, also held versions. */
void reclaim_all(struct store *s);

/* check.c: builds with RTE_ENABLE_ASSERT end the program if an invariant fails */
#ifdef RTE_ENABLE_ASSERT
/* After a transaction or a reclaim; on the writer. */
void store_check(const struct store *s);
/* After a version was held or released; on the reader's thread. */
void store_reader_check(const struct store_reader *r);
#else
#define store_check(s)        RTE_SET_USED(s)
#define store_reader_check(r) RTE_SET_USED(r)
#endif

#endif
