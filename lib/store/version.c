/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The readers' side: loads, no lock, no atomic read-modify-write.
 */

#include <errno.h>
#include <stddef.h>

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

int
store_hold(struct store_reader *r, const struct store_version *v)
{
	unsigned int i, free = r->store->config.max_versions;
	struct held *h;

	for (i = 0; i < r->top; i++) {
		h = &r->held[i];
		if (h->version == v) {
			h->count++;
			return 0;
		}
		if (h->version == NULL && i < free)
			free = i;
	}
	if (free == r->store->config.max_versions) {
		if (r->top == free)
			return -ENOSPC;
		free = r->top++;
	}
	h = &r->held[free];
	h->version = v;
	h->count = 1;
	/* seen by the writer before this reader's next quiescent point is */
	__atomic_store_n(&h->number, v->number, __ATOMIC_RELEASE);
	return 0;
}

void
store_unhold(struct store_reader *r, const struct store_version *v)
{
	struct held *h = r->held;

	while (h->version != v)
		h++;
	if (--h->count > 0)
		return;
	h->version = NULL;
	__atomic_store_n(&h->number, NO_VERSION, __ATOMIC_RELEASE);
	while (r->top > 0 && r->held[r->top - 1].version == NULL)
		r->top--;
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
	return v->changed[table];
}

uint64_t
store_count(const struct store_version *v, unsigned int table)
{
	return v->tree[table].count;
}

const struct store_record *
store_get(const struct store_version *v, unsigned int table, uint32_t rid)
{
	return tree_get(&v->tree[table], table_key(rid));
}

uint64_t
store_rank(const struct store_version *v, unsigned int table, uint32_t rid)
{
	return tree_rank(&v->tree[table], table_key(rid));
}

void
store_seek(struct store_cursor *c, const struct store_version *v, unsigned int table,
	uint64_t ordinal)
{
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
