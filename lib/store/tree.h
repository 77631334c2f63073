/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_TREE_H
#define STORE_TREE_H

/**
 * @file
 * Private to lib/store: a persistent B+ tree with counts. A change copies the nodes on its
 * path, so the old tree stays intact; a node made in the same step of the transaction is changed in
 * place. Each inner node has the number of entries below each child, so finding the n-th entry or
 * the rank of a key is O(log n).
 */

#include <stdbool.h>
#include <stdint.h>

struct store_record;

#define TREE_FAN 32

/** Tables: {0, rid}. Indexes: {key, rid}. */
struct tree_key {
	uint64_t hi;
	uint32_t lo;
};

struct tree_node {
	uint64_t step; /**< of the transaction that made it; only there it may change */
	uint64_t born; /**< number of the first version that has it */
	uint16_t n;
	bool leaf;
	/** keys of entries; of an inner node the smallest below each child */
	uint64_t hi[TREE_FAN];
	uint32_t lo[TREE_FAN];
	union {
		const struct store_record *record[TREE_FAN];
		struct tree_node *child[TREE_FAN];
	};
	uint64_t count[]; /**< inner nodes: entries below each child, TREE_FAN of them */
};

struct tree {
	struct tree_node *root; /**< NULL: empty */
	uint64_t count;
	unsigned int depth; /**< levels; 0: empty */
};

/** The writer's functions that make and retire nodes. */
struct tree_writer {
	uint64_t step;
	uint64_t version; /**< number of the version being made */
	/** Never NULL: the writer has reserved tree_nodes_needed() nodes before a change. */
	struct tree_node *(*make)(struct tree_writer *w, bool leaf);
	/** The node is no longer part of the newest tree. */
	void (*retire)(struct tree_writer *w, struct tree_node *n);
};

static inline uint32_t
tree_node_size(bool leaf)
{
	return (uint32_t)(sizeof(struct tree_node) + (leaf ? 0 : TREE_FAN * sizeof(uint64_t)));
}

/** Nodes that one tree_put() or tree_del() makes at most. */
static inline unsigned int
tree_nodes_needed(const struct tree *t)
{
	return 2 * t->depth + 2;
}

/** Put, or replace the record of an equal key. */
void tree_put(struct tree *t, struct tree_writer *w, struct tree_key key,
	const struct store_record *rec);
/** @retval false  no such key */
bool tree_del(struct tree *t, struct tree_writer *w, struct tree_key key);

const struct store_record *tree_get(const struct tree *t, struct tree_key key);
/** Entries with a smaller key. */
uint64_t tree_rank(const struct tree *t, struct tree_key key);
/** The leaf of entry number @p ordinal, and its place there. @retval NULL  beyond the end */
const struct tree_node *tree_select(const struct tree *t, uint64_t ordinal, uint32_t *at);

#endif
