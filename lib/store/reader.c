/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The readers' functions: loads and stores only, no lock and no atomic read-modify-write. */

#include <errno.h>
#include <stddef.h>

#include <rte_debug.h>

#include "store/private.h"

struct store_reader *
store_reader(struct store *s, unsigned int reader)
{
	return reader < s->config.readers ? &s->readers[reader] : NULL;
}

const struct store_version *
store_current(const struct store_reader *r)
{
	return __atomic_load_n(&r->store->current, __ATOMIC_ACQUIRE);
}

/*
 * @param v  a held version; NULL: find a free place
 * @return index of the place; r->top if there is none
 */
static unsigned int
version_place_of(const struct store_reader *r, const struct store_version *v)
{
	unsigned int i = 0;

	if (r->last < r->top && r->held[r->last].version == v)
		return r->last;
	while (i < r->top && r->held[i].version != v)
		i++;
	return i;
}

/*
 * The writer sees the stores of this function before this reader's next quiescent point. Until
 * then the grace period keeps the version.
 */
int
store_hold(struct store_reader *r, const struct store_version *v)
{
	unsigned int i = version_place_of(r, v);

	RTE_ASSERT(v->store == r->store);
	if (i == r->top)
		i = version_place_of(r, NULL);
	if (i == r->store->slots)
		return -ENOSPC;
	if (r->held[i].count++ == 0)
		__atomic_store_n(&r->held[i].version, v, __ATOMIC_RELEASE);
	if (i == r->top)
		__atomic_store_n(&r->top, i + 1, __ATOMIC_RELEASE);
	r->last = i;
	store_reader_check(r);
	return 0;
}

void
store_unhold(struct store_reader *r, const struct store_version *v)
{
	unsigned int i = version_place_of(r, v), top = r->top;

	RTE_ASSERT(i < top && r->held[i].count > 0);
	r->last = i;
	if (--r->held[i].count > 0)
		return;
	__atomic_store_n(&r->held[i].version, NULL, __ATOMIC_RELEASE);
	while (top > 0 && r->held[top - 1].version == NULL)
		top--;
	__atomic_store_n(&r->top, top, __ATOMIC_RELEASE);
	store_reader_check(r);
}

bool
store_stale(const struct store_version *v)
{
	return v->number < __atomic_load_n(&v->store->stale_below, __ATOMIC_RELAXED);
}

uint64_t
store_version_number(const struct store_version *v)
{
	return v->number;
}

uint64_t
store_table_changed(const struct store_version *v, unsigned int table)
{
	RTE_ASSERT(table < v->store->config.tables);
	return v->changed[table];
}

uint64_t
store_count(const struct store_version *v, unsigned int table)
{
	RTE_ASSERT(table < v->store->config.tables);
	return v->tree[table].count;
}

const struct store_record *
store_get(const struct store_version *v, unsigned int table, uint32_t rid)
{
	RTE_ASSERT(table < v->store->config.tables);
	return tree_get(&v->tree[table], table_key(rid));
}

uint64_t
store_rank(const struct store_version *v, unsigned int table, uint32_t rid)
{
	RTE_ASSERT(table < v->store->config.tables);
	return tree_rank(&v->tree[table], table_key(rid));
}

uint64_t
store_index_count(const struct store_version *v, unsigned int index, uint64_t first, uint64_t last)
{
	const struct tree *tree = &v->tree[v->store->config.tables + index];

	RTE_ASSERT(index < v->store->config.num_indexes && first <= last);
	return tree_rank(tree, (struct tree_key){ last, UINT32_MAX }) -
		tree_rank(tree, (struct tree_key){ first, 0 });
}

void
store_seek(struct store_cursor *c, const struct store_version *v, unsigned int table,
	uint64_t ordinal)
{
	RTE_ASSERT(table < v->store->config.tables + v->store->config.num_indexes);
	c->version = v;
	c->tree = (uint16_t)table;
	c->ordinal = ordinal;
	c->at = 0;
	c->leaf = NULL;
}

void
store_seek_index(struct store_cursor *c, const struct store_version *v, unsigned int index,
	uint64_t key)
{
	unsigned int tree = v->store->config.tables + index;

	RTE_ASSERT(index < v->store->config.num_indexes);
	store_seek(c, v, tree, tree_rank(&v->tree[tree], (struct tree_key){ key, 0 }));
}

const struct store_record *
store_next(struct store_cursor *c, uint64_t *key)
{
	const struct tree_node *leaf = c->leaf;

	if (leaf == NULL || c->at == leaf->n) {
		leaf = tree_select(&c->version->tree[c->tree], c->ordinal, &c->at);
		c->leaf = leaf;
		if (leaf == NULL)
			return NULL;
	}
	if (key != NULL)
		*key = leaf->hi[c->at];
	c->ordinal++;
	return leaf->record[c->at++];
}
