/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Lists of records or paths grow. When the pool has no chunk left, the list of another gives way.
 */

#include <errno.h>
#include <string.h>

#include "sa/result_private.h"
#include "sa/server.h"

static struct chunk *
chunk_get(struct result *r)
{
	struct result_pool *p = r->w->results;
	struct chunk *c;

	if (p->free_chunks == NULL && !give_way_for_list(r))
		return NULL;
	c = p->free_chunks;
	p->free_chunks = c->next;
	c->next = r->newest;
	r->newest = c;
	if (r->oldest == NULL)
		r->oldest = c;
	give_way_list_grew(r);
	return c;
}

/* Add a level to the tree, which is full. */
static bool
result_grow(struct result *r)
{
	struct chunk *c = chunk_get(r);

	if (c == NULL)
		return false;
	c->child[0] = r->root;
	r->root = c;
	r->span = r->span == 0 ? 1 : r->span * FANOUT;
	return true;
}

/* Append leaf number n and the chunks that lead to it. */
static struct chunk *
result_new_leaf(struct result *r, uint64_t n)
{
	struct chunk **at = &r->root;
	uint64_t span, below;

	if (n == r->span && !result_grow(r))
		return NULL;
	for (span = r->span; span > 1; span = below) {
		below = span / FANOUT;
		at = &(*at)->child[n / below % FANOUT];
		if (n % below == 0 && (*at = chunk_get(r)) == NULL)
			return NULL;
	}
	return *at;
}

/* Room for the next entry. NULL: the pool is empty. */
static void *
result_append(struct result *r, unsigned int per_chunk, size_t size)
{
	unsigned int at = r->count % per_chunk;

	if (at == 0) {
		struct chunk *leaf = result_new_leaf(r, r->count / per_chunk);

		if (leaf == NULL)
			return NULL;
		r->leaf = leaf;
		r->leaf_number = r->count / per_chunk;
	}
	r->count++;
	return r->leaf->data + at * size;
}

int
result_add_record(struct result *r, const struct store_record *rec)
{
	void *room = result_append(r, RECORDS_PER_CHUNK, sizeof(rec));

	RTE_ASSERT(r->kind == RESULT_RECORDS);
	if (room == NULL)
		return -ENOSPC;
	memcpy(room, &rec, sizeof(rec));
	return 0;
}

int
result_add_path(struct result *r, const struct path_entry *e)
{
	void *room = result_append(r, PATHS_PER_CHUNK, sizeof(*e));

	RTE_ASSERT(r->kind == RESULT_PATHS);
	if (room == NULL)
		return -ENOSPC;
	memcpy(room, e, sizeof(*e));
	return 0;
}
