/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What each address and each prefix holds: queries that are put off, and chunks of lists. Addresses
 * and prefixes are told apart by a keyed hash, and ranked.
 */

#include <errno.h>

#include <rte_common.h>

#include "sa/give_way_private.h"
#include "sa/server.h"
#include "sa/tables.h"

static int
holders_create(struct give_way_ranks *r, const struct allocator *alloc, uint32_t most)
{
	unsigned int level;

	for (level = 0; level < GIVE_WAY_LEVELS; level++)
		if (share_rank_create(&r->at[level], alloc, most) != 0)
			return -ENOMEM;
	return 0;
}

static void
holders_destroy(struct give_way_ranks *r, const struct allocator *alloc)
{
	unsigned int level;

	for (level = 0; level < GIVE_WAY_LEVELS; level++)
		share_rank_destroy(&r->at[level], alloc);
}

struct give_way *
give_way_create(const struct allocator *alloc, uint32_t queries, uint32_t chunks)
{
	struct give_way *g = mem_zalloc(alloc, sizeof(*g), 64);
	struct give_way_holder *h;
	unsigned int i;

	if (g == NULL)
		return NULL;
	g->alloc = alloc;
	g->chunks = chunks;
	if (holders_create(&g->queued, alloc, queries) != 0 ||
		holders_create(&g->silent, alloc, chunks) != 0 ||
		holders_create(&g->answering, alloc, chunks) != 0) {
		give_way_destroy(g);
		return NULL;
	}
	for (i = 0; i < GIVE_WAY_LEVELS * HOLDERS; i++) {
		h = &g->holder[i / HOLDERS][i % HOLDERS];
		share_holder_init(&h->queued);
		share_holder_init(&h->silent);
		share_holder_init(&h->answering);
	}
	return g;
}

void
give_way_destroy(struct give_way *g)
{
	if (g == NULL)
		return;
	holders_destroy(&g->queued, g->alloc);
	holders_destroy(&g->silent, g->alloc);
	holders_destroy(&g->answering, g->alloc);
	mem_free(g->alloc, g);
}

struct give_way_origin
give_way_origin(struct give_way *g, const struct requester *who)
{
	const union gid prefix = gid_prefix(&who->gid);
	struct give_way_origin origin = { { NULL } };

	if (who->manager)
		return origin;
	origin.at[GIVE_WAY_ADDRESS] =
		&g->holder[GIVE_WAY_ADDRESS][sa_gid_key(who->gid.raw) % HOLDERS];
	origin.at[GIVE_WAY_PREFIX] = &g->holder[GIVE_WAY_PREFIX][sa_gid_key(prefix.raw) % HOLDERS];
	return origin;
}

/* --- ranks --- */

static void
item_add(const struct give_way *g, struct give_way_ranks *r, struct give_way_item *i)
{
	unsigned int level;

	for (level = 0; level < GIVE_WAY_LEVELS; level++)
		share_add(&r->at[level], holder_in(g, r, i->origin.at[level]), &i->share[level]);
	r->items++;
}

static void
item_remove(const struct give_way *g, struct give_way_ranks *r, struct give_way_item *i)
{
	unsigned int level;

	for (level = 0; level < GIVE_WAY_LEVELS; level++)
		share_remove(&r->at[level], holder_in(g, r, i->origin.at[level]), &i->share[level]);
	r->items--;
}

static void
item_change(const struct give_way *g, struct give_way_ranks *r, const struct give_way_item *i,
	int change)
{
	unsigned int level;

	for (level = 0; level < GIVE_WAY_LEVELS; level++)
		share_rank_change(&r->at[level], holder_in(g, r, i->origin.at[level]), change);
	r->items += (uint32_t)change;
}

/* --- lists --- */

static struct give_way_ranks *
list_ranks(const struct result *r)
{
	struct give_way *g = r->w->give_way;

	return r->answering ? &g->answering : &g->silent;
}

void
give_way_list_grew(struct result *r)
{
	const struct give_way *g = r->w->give_way;

	if (never_gives_way(&r->give_way))
		return;
	if (r->chunks++ == 0)
		item_add(g, list_ranks(r), &r->give_way);
	else
		item_change(g, list_ranks(r), &r->give_way, 1);
}

void
give_way_list_gone(struct result *r)
{
	const struct give_way *g = r->w->give_way;

	if (r->chunks == 0)
		return;
	item_change(g, list_ranks(r), &r->give_way, 1 - (int)r->chunks);
	item_remove(g, list_ranks(r), &r->give_way);
	r->chunks = 0;
}

void
give_way_list_answers(struct result *r)
{
	const struct give_way *g = r->w->give_way;
	uint32_t chunks = r->chunks;

	give_way_list_gone(r);
	r->answering = true;
	r->chunks = chunks;
	item_add(g, list_ranks(r), &r->give_way);
	item_change(g, list_ranks(r), &r->give_way, (int)chunks - 1);
}

/* --- queries put off --- */

void
give_way_query_queued(struct query *q)
{
	struct sa_worker *w = q->w;

	q->queued = true;
	w->queries_of_strangers += sa_is_limited(&q->who);
	if (!never_gives_way(&q->give_way))
		item_add(w->give_way, &w->give_way->queued, &q->give_way);
}

void
give_way_query_gone(struct query *q)
{
	struct sa_worker *w = q->w;

	if (!q->queued)
		return;
	q->queued = false;
	w->queries_of_strangers -= sa_is_limited(&q->who);
	if (!never_gives_way(&q->give_way))
		item_remove(w->give_way, &w->give_way->queued, &q->give_way);
}
