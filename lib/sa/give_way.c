/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Addresses are told apart by a keyed hash, and ranked by what they hold. When a pool is used up,
 * the oldest item of the address with most ends for one of an address with less. Lists whose peer
 * has acknowledged a segment come last: one ends only if its address has more than its fair share.
 */

#include <errno.h>

#include <rte_common.h>

#include "sa/server.h"
#include "sa/tables.h"

#define ADDRESSES 4096 /* a power of two */
#define SMALL     16 /* chunks: an address with so few may displace any other */

struct give_way {
	const struct allocator *alloc;
	struct share_rank queued;
	struct share_rank silent;
	struct share_rank answering;
	uint32_t chunks;
	struct give_way_address address[ADDRESSES];
};

#define RESULT_OF_ITEM(i) container_of(i, struct result, share)
#define QUERY_OF_ITEM(i)  container_of(i, struct query, share)

struct give_way *
give_way_create(const struct allocator *alloc, uint32_t queries, uint32_t chunks)
{
	struct give_way *g = mem_zalloc(alloc, sizeof(*g), 64);
	unsigned int i;

	if (g == NULL)
		return NULL;
	g->alloc = alloc;
	g->chunks = chunks;
	if (share_rank_create(&g->queued, alloc, queries) != 0 ||
		share_rank_create(&g->silent, alloc, chunks) != 0 ||
		share_rank_create(&g->answering, alloc, chunks) != 0) {
		give_way_destroy(g);
		return NULL;
	}
	for (i = 0; i < ADDRESSES; i++) {
		share_holder_init(&g->address[i].queued);
		share_holder_init(&g->address[i].silent);
		share_holder_init(&g->address[i].answering);
	}
	return g;
}

void
give_way_destroy(struct give_way *g)
{
	if (g == NULL)
		return;
	share_rank_destroy(&g->queued, g->alloc);
	share_rank_destroy(&g->silent, g->alloc);
	share_rank_destroy(&g->answering, g->alloc);
	mem_free(g->alloc, g);
}

struct give_way_address *
give_way_address(struct give_way *g, const struct requester *who)
{
	return who->manager ? NULL : &g->address[sa_gid_key(who->gid.raw) % ADDRESSES];
}

/* --- lists --- */

static struct share_rank *
list_rank(const struct result *r)
{
	struct give_way *g = r->w->give_way;

	return r->answering ? &g->answering : &g->silent;
}

static struct share_holder *
list_holder(const struct result *r)
{
	return r->answering ? &r->address->answering : &r->address->silent;
}

void
give_way_list_grew(struct result *r)
{
	if (r->address == NULL)
		return;
	if (r->chunks++ == 0)
		share_add(list_rank(r), list_holder(r), &r->share);
	else
		share_rank_change(list_rank(r), list_holder(r), 1);
}

void
give_way_list_gone(struct result *r)
{
	if (r->chunks == 0)
		return;
	share_rank_change(list_rank(r), list_holder(r), 1 - (int)r->chunks);
	share_remove(list_rank(r), list_holder(r), &r->share);
	r->chunks = 0;
}

/* Its peer has answered packets of ours: it is no longer among the first to give way. */
static void
list_answers(struct result *r)
{
	uint32_t chunks = r->chunks;

	give_way_list_gone(r);
	r->answering = true;
	r->chunks = chunks;
	share_add(list_rank(r), list_holder(r), &r->share);
	share_rank_change(list_rank(r), list_holder(r), (int)chunks - 1);
}

/* The oldest list of this address but @p r. */
static struct result *
oldest_list(const struct share_holder *h, const struct result *r)
{
	struct share_item *item = TAILQ_FIRST(&h->items);

	if (item != NULL && item == &r->share)
		item = TAILQ_NEXT(item, link);
	return item != NULL ? RESULT_OF_ITEM(item) : NULL;
}

/* @param proven  even if its peer has answered. @retval false  it stays */
static bool
list_gives_way(struct result *r, bool proven)
{
	struct sa_worker *w = r->w;
	struct query *q = r->queued;
	uint8_t owner[LIMIT_PEER_LEN];

	memcpy(owner, r->owner, sizeof(owner)); /* the session may release the result */
	if (mad_give_way(w->mad, r->handle, proven) == -EBUSY)
		return false;
	w->counters.gave_way++;
	limit_peer_note(&w->limited.gave_way, owner);
	if (q != NULL) /* otherwise the session has released the result */
		query_abandon(q);
	return true;
}

static bool
silent_list_gives_way(const struct result *r, uint32_t held)
{
	const struct share_rank *silent = &r->w->give_way->silent;
	const struct share_holder *most;
	struct result *victim;

	while ((most = share_most(silent)) != NULL &&
		(r->address == NULL || held < RTE_MAX(most->count, (uint32_t)SMALL))) {
		victim = oldest_list(most, r);
		if (victim == NULL)
			return false;
		if (list_gives_way(victim, false))
			return true;
		list_answers(victim); /* once in the life of a list */
	}
	return false;
}

bool
give_way_for_list(struct result *r)
{
	const struct give_way *g = r->w->give_way;
	const struct give_way_address *own = r->address;
	uint32_t held = own != NULL ? own->silent.count + own->answering.count : 0;
	const struct share_holder *most;
	struct result *victim;
	uint32_t fair;

	if (silent_list_gives_way(r, held))
		return true;
	most = share_most(&g->answering);
	fair = share_fair(&g->answering, g->chunks, own != NULL ? &own->answering : NULL);
	if (most == NULL || most->count <= fair || held >= fair)
		return false;
	victim = oldest_list(most, r);
	return victim != NULL && list_gives_way(victim, true);
}

/* --- queries put off --- */

void
give_way_query_queued(struct query *q)
{
	struct sa_worker *w = q->w;

	q->queued = true;
	w->queries_of_strangers += sa_is_limited(&q->who);
	if (q->address != NULL)
		share_add(&w->give_way->queued, &q->address->queued, &q->share);
}

void
give_way_query_gone(struct query *q)
{
	struct sa_worker *w = q->w;

	if (!q->queued)
		return;
	q->queued = false;
	w->queries_of_strangers -= sa_is_limited(&q->who);
	if (q->address != NULL)
		share_remove(&w->give_way->queued, &q->address->queued, &q->share);
}

/* An address with one query more than this one keeps it, or each would end the other's in turn. */
bool
give_way_for_query(const struct query *q)
{
	struct sa_worker *w = q->w;
	const struct share_holder *most = share_most(&w->give_way->queued);
	uint32_t held = q->address != NULL ? q->address->queued.count : 0;
	struct query *victim;

	if (most == NULL || most->count <= held + 1)
		return false;
	victim = QUERY_OF_ITEM(TAILQ_FIRST(&most->items));
	mad_give_way(w->mad, victim->handle, true);
	w->counters.gave_way++;
	limit_peer_note(&w->limited.gave_way, victim->who.gid.raw);
	query_abandon(victim);
	return true;
}
