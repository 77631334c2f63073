/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The writer's side: a transaction makes the next version. Memory that a change can need is set
 * aside before it begins, so that a change happens as a whole or not at all.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_debug.h>

#include "store/private.h"

#define ROOM_KEPT 65536 /* places for blocks and operations, from one transaction to the next */

_Static_assert(sizeof(((struct store_savepoint *)0)->trees) ==
		sizeof(((struct store_version *)0)->tree),
	"a savepoint has all roots");

/* --- nodes --- */

static struct tree_node *
make_node(struct tree_writer *w, bool leaf)
{
	struct store_txn *t = (struct store_txn *)w;
	struct tree_node *n = t->spare[leaf];

	t->spare[leaf] = n->child[0];
	t->num_spare[leaf]--;
	n->leaf = leaf;
	t->made.at[t->made.n++] = (struct block){ n, w->version, tree_node_size(leaf) };
	return n;
}

static void
retire_node(struct tree_writer *w, struct tree_node *n)
{
	struct store_txn *t = (struct store_txn *)w;

	t->retired.at[t->retired.n++] = (struct block){ n, n->born, tree_node_size(n->leaf) };
}

static int
set_nodes_aside(struct store_txn *t, bool leaf, unsigned int n)
{
	struct tree_node *node;

	while (t->num_spare[leaf] < n) {
		node = store_alloc(t->store, tree_node_size(leaf));
		if (node == NULL)
			return -ENOMEM;
		node->child[0] = t->spare[leaf];
		t->spare[leaf] = node;
		t->num_spare[leaf]++;
	}
	return 0;
}

static void
drop_spare(struct store_txn *t, bool leaf)
{
	struct tree_node *n;

	while ((n = t->spare[leaf]) != NULL) {
		t->spare[leaf] = n->child[0];
		store_free(t->store, n, tree_node_size(leaf));
	}
	t->num_spare[leaf] = 0;
}

static int
reserve_op(struct store_txn *t)
{
	size_t room = t->room_ops > 0 ? t->room_ops * 2 : 64;
	struct store_op *ops;

	if (t->num_ops < t->room_ops)
		return 0;
	ops = mem_zalloc(t->store->config.alloc, room * sizeof(*ops), 8);
	if (ops == NULL)
		return -ENOMEM;
	if (t->num_ops > 0)
		memcpy(ops, t->ops, t->num_ops * sizeof(*ops));
	mem_free(t->store->config.alloc, t->ops);
	t->ops = ops;
	t->room_ops = room;
	return 0;
}

/* --- a record and its index keys --- */

/* Keys of a record (NULL: none) in index i. */
static unsigned int
index_keys(const struct store *s, unsigned int i, const struct store_record *r, uint64_t *keys)
{
	const struct store_index *index = &s->config.indexes[i];

	return r != NULL && index->table == r->table ? index->keys(r, keys) : 0;
}

/*
 * Everything one change can take: in the record's table, and in each index once for each key of
 * the old and of the new record. A tree may grow by a level on the way.
 */
static int
set_aside(struct store_txn *t, const struct store_record *old, const struct store_record *new)
{
	const struct store *s = t->store;
	unsigned int table = old != NULL ? old->table : new->table;
	uint64_t keys[STORE_KEYS_MAX];
	unsigned int i, n, nodes, leaves;
	int rc;

	nodes = tree_nodes_needed(&t->next->tree[table]);
	leaves = 4;
	for (i = 0; i < s->config.num_indexes; i++) {
		n = index_keys(s, i, old, keys);
		n += index_keys(s, i, new, keys);
		nodes += n * (tree_nodes_needed(&t->next->tree[s->config.tables + i]) + 2);
		leaves += 4 * n;
	}
	rc = set_nodes_aside(t, false, nodes);
	if (rc == 0)
		rc = set_nodes_aside(t, true, leaves);
	if (rc == 0)
		rc = blocks_reserve(t->store, &t->made, nodes + leaves + 1);
	if (rc == 0)
		rc = blocks_reserve(t->store, &t->retired, 2 * (nodes + leaves) + 1);
	return rc == 0 ? reserve_op(t) : rc;
}

static bool
has_key(const uint64_t *keys, unsigned int n, uint64_t key)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (keys[i] == key)
			return true;
	return false;
}

static void
change_indexes(struct store_txn *t, const struct store_record *old, const struct store_record *new)
{
	const struct store *s = t->store;
	uint64_t was[STORE_KEYS_MAX], is[STORE_KEYS_MAX];
	unsigned int i, k, num_was, num_is;
	struct tree *tree;

	for (i = 0; i < s->config.num_indexes; i++) {
		tree = &t->next->tree[s->config.tables + i];
		num_was = index_keys(s, i, old, was);
		num_is = index_keys(s, i, new, is);
		for (k = 0; k < num_was; k++)
			if (!has_key(is, num_is, was[k]))
				tree_del(tree, &t->writer, (struct tree_key){ was[k], old->rid });
		for (k = 0; k < num_is; k++)
			tree_put(tree, &t->writer, (struct tree_key){ is[k], new->rid }, new);
	}
}

static uint32_t
record_size(const struct store_record *r)
{
	return (uint32_t)sizeof(*r) + r->len;
}

static void
retire_record(struct store_txn *t, const struct store_record *r)
{
	t->retired.at[t->retired.n++] =
		(struct block){ (void *)(uintptr_t)r, r->born, record_size(r) };
}

int
store_put(struct store_txn *t, unsigned int table, uint32_t rid, const void *bytes, uint16_t len)
{
	const struct store_record *old = tree_get(&t->next->tree[table], table_key(rid));
	struct store_record *r = store_alloc(t->store, (uint32_t)sizeof(*r) + len);
	int rc;

	RTE_ASSERT(t->open && table < t->store->config.tables);
	if (r == NULL)
		return -ENOMEM;
	r->born = t->next->number;
	r->rid = rid;
	r->len = len;
	r->table = (uint8_t)table;
	memcpy(r->bytes, bytes, len);
	rc = set_aside(t, old, r);
	if (rc != 0) {
		store_free(t->store, r, record_size(r));
		return rc;
	}
	t->made.at[t->made.n++] = (struct block){ r, r->born, record_size(r) };
	if (old != NULL)
		retire_record(t, old);
	tree_put(&t->next->tree[table], &t->writer, table_key(rid), r);
	change_indexes(t, old, r);
	t->next->changed[table] = t->next->number;
	t->ops[t->num_ops++] = (struct store_op){ (uint8_t)table, rid, r->bytes, len };
	return 0;
}

int
store_del(struct store_txn *t, unsigned int table, uint32_t rid)
{
	const struct store_record *old = tree_get(&t->next->tree[table], table_key(rid));
	int rc;

	RTE_ASSERT(t->open && table < t->store->config.tables);
	if (old == NULL)
		return -ENOENT;
	rc = set_aside(t, old, NULL);
	if (rc != 0)
		return rc;
	retire_record(t, old);
	tree_del(&t->next->tree[table], &t->writer, table_key(rid));
	change_indexes(t, old, NULL);
	t->next->changed[table] = t->next->number;
	t->ops[t->num_ops++] = (struct store_op){ (uint8_t)table, rid, NULL, 0 };
	return 0;
}

/* --- the transaction --- */

void
txn_init(struct store *s)
{
	s->txn.store = s;
	s->txn.writer.make = make_node;
	s->txn.writer.retire = retire_node;
}

void
txn_fini(struct store *s)
{
	struct store_txn *t = &s->txn;

	drop_spare(t, false);
	drop_spare(t, true);
	blocks_free(s, &t->made);
	blocks_free(s, &t->retired);
	mem_free(s->config.alloc, t->ops);
	mem_free(s->config.alloc, t->old);
}

struct store_txn *
store_begin(struct store *s)
{
	struct store_txn *t = &s->txn;

	if (t->open)
		return NULL;
	if (t->next == NULL)
		t->next = store_alloc(s, sizeof(*t->next));
	if (t->old == NULL)
		t->old = mem_zalloc(s->config.alloc, sizeof(*t->old), 8);
	if (t->next == NULL || t->old == NULL)
		return NULL;
	*t->next = *s->current;
	t->next->number++;
	t->writer.version = t->next->number;
	t->writer.step++;
	t->open = true;
	return t;
}

const struct store_version *
store_txn_view(const struct store_txn *t)
{
	RTE_ASSERT(t->open);
	return t->next;
}

void
store_save(struct store_txn *t, struct store_savepoint *sp)
{
	RTE_ASSERT(t->open);
	t->writer.step++; /* what was made before is copied from here on */
	sp->made = t->made.n;
	sp->retired = t->retired.n;
	sp->ops = t->num_ops;
	memcpy(sp->changed, t->next->changed, sizeof(sp->changed));
	memcpy(sp->trees, t->next->tree, sizeof(t->next->tree));
}

/* Undo what came after these points. */
static void
unmake(struct store_txn *t, size_t made, size_t retired, size_t ops)
{
	struct block *b;

	while (t->made.n > made) {
		b = &t->made.at[--t->made.n];
		store_free(t->store, b->mem, b->size);
	}
	t->retired.n = retired;
	t->num_ops = ops;
}

void
store_rollback(struct store_txn *t, const struct store_savepoint *sp)
{
	RTE_ASSERT(t->open && sp->made <= t->made.n && sp->retired <= t->retired.n);
	RTE_ASSERT(sp->ops <= t->num_ops);
	t->writer.step++;
	unmake(t, sp->made, sp->retired, sp->ops);
	memcpy(t->next->changed, sp->changed, sizeof(sp->changed));
	memcpy(t->next->tree, sp->trees, sizeof(t->next->tree));
	store_check(t->store);
}

/* What a large transaction needed is not kept for ever. */
static void
txn_end(struct store_txn *t)
{
	t->made.n = 0;
	t->retired.n = 0;
	t->num_ops = 0;
	if (t->made.room > ROOM_KEPT)
		blocks_free(t->store, &t->made);
	if (t->retired.room > ROOM_KEPT)
		blocks_free(t->store, &t->retired);
	if (t->room_ops > ROOM_KEPT) {
		mem_free(t->store->config.alloc, t->ops);
		t->ops = NULL;
		t->room_ops = 0;
	}
	t->open = false;
}

void
store_abort(struct store_txn *t)
{
	RTE_ASSERT(t->open);
	unmake(t, 0, 0, 0);
	txn_end(t);
	store_check(t->store);
}

bool
store_is_above(const struct store *s, unsigned int percent)
{
	uint64_t used = s->stats.bytes - s->stats.old_bytes;

	return s->config.max_bytes != 0 && used > s->config.max_bytes / 100 * percent;
}

/* True if the transaction puts records and they are too many. */
static bool
txn_is_too_large(const struct store_txn *t)
{
	const struct store *s = t->store;
	uint64_t left = s->stats.bytes - s->stats.old_bytes;
	bool puts = false;
	size_t i;

	if (!store_is_above(s, 100))
		return false;
	for (i = 0; i < t->retired.n; i++)
		left -= t->retired.at[i].size;
	for (i = 0; i < t->num_ops; i++)
		puts |= t->ops[i].bytes != NULL;
	return puts && left > s->config.max_bytes;
}

void
txn_publish(struct store_txn *t)
{
	const struct store_version *last = t->store->current;
	struct store *s = t->store;

	__atomic_store_n(&s->current, t->next, __ATOMIC_RELEASE);
	stat_add(s, commits, 1);
	stat_add(s, ops, t->num_ops);
	stat_set(s, version, t->next->number);
	t->next = NULL;
	retire_version(s, last);
	txn_end(t);
	reclaim_after_commit(s);
	store_check(s);
}

int
store_commit(struct store_txn *t, struct error *err)
{
	struct store *s = t->store;
	int rc = 0;

	RTE_ASSERT(t->open);
	if (t->num_ops == 0) {
		store_abort(t);
		return 0;
	}
	if (txn_is_too_large(t))
		rc = error_set(err, ENOSPC,
			"the records take %" PRIu64
			" MiB, all that they may: raise sa.map_mb; nothing was changed",
			s->config.max_bytes >> 20);
	else if (s->config.backend.apply != NULL)
		rc = s->config.backend.apply(s->config.backend.arg, t->ops, t->num_ops, err);
	if (rc != 0) {
		store_abort(t);
		return rc;
	}
	txn_publish(t);
	return 0;
}
