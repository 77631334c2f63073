/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Addresses and prefixes are told apart by a keyed hash, and ranked by what they hold. When a pool
 * is used up, the oldest item of the address with most ends for one of an address with less, or the
 * oldest item of the prefix with most for one of a prefix with less. A prefix with more than half
 * comes before addresses of others: a /64 of addresses that hold little each holds nothing against
 * them. Lists whose peer has acknowledged a segment come last: one ends only if its address, or its
 * prefix, has more than its fair share.
 */

#include <errno.h>

#include <rte_common.h>

#include "sa/server.h"
#include "sa/tables.h"

#define HOLDERS 4096 /* a power of two */
#define SMALL   16 /* chunks: an address with so few may displace any other */

/* Holders of one kind of item. */
struct give_way_ranks {
	struct share_rank at[GIVE_WAY_LEVELS];
	uint32_t items; /* or chunks, of all of them */
};

struct give_way {
	const struct allocator *alloc;
	struct give_way_ranks queued;
	struct give_way_ranks silent;
	struct give_way_ranks answering;
	uint32_t chunks;
	struct give_way_holder holder[GIVE_WAY_LEVELS][HOLDERS];
};

#define ITEM_OF_SHARE(s, level) container_of(s, struct give_way_item, share[level])
#define RESULT_OF_ITEM(i)       container_of(i, struct result, give_way)
#define QUERY_OF_ITEM(i)        container_of(i, struct query, give_way)

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

static bool
never_gives_way(const struct give_way_item *i)
{
	return i->origin.at[GIVE_WAY_ADDRESS] == NULL;
}

/* --- ranks --- */

/* What the holder of an item has of the items that these ranks are of. */
static struct share_holder *
holder_in(const struct give_way *g, const struct give_way_ranks *r, struct give_way_holder *h)
{
	return r == &g->queued ? &h->queued : r == &g->silent ? &h->silent : &h->answering;
}

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

/* The oldest item, but @p fresh, of the holder that has most at a level. */
static struct give_way_item *
oldest_item_of_most(const struct give_way_ranks *r, unsigned int level,
	const struct give_way_item *fresh)
{
	const struct share_holder *most = share_most(&r->at[level]);
	struct share_item *s = most != NULL ? TAILQ_FIRST(&most->items) : NULL;

	if (s != NULL && s == &fresh->share[level])
		s = TAILQ_NEXT(s, link);
	return s != NULL ? ITEM_OF_SHARE(s, level) : NULL;
}

/*
 * The item that ends for @p fresh; NULL: none.
 *
 * @param may   at each level: its holder has so little that it may take from the one with most
 * @param pool  more than half of it is the majority
 */
static struct give_way_item *
item_that_gives_way(const struct give_way *g, const struct give_way_ranks *r,
	const struct give_way_item *fresh, const bool may[GIVE_WAY_LEVELS], uint32_t pool)
{
	struct give_way_item *of_address = oldest_item_of_most(r, GIVE_WAY_ADDRESS, fresh);
	struct give_way_item *of_prefix = oldest_item_of_most(r, GIVE_WAY_PREFIX, fresh);

	if (!may[GIVE_WAY_ADDRESS] && !may[GIVE_WAY_PREFIX])
		return NULL;
	if (of_address == NULL || !may[GIVE_WAY_ADDRESS] ||
		share_prefix_first(share_most(&r->at[GIVE_WAY_PREFIX]),
			holder_in(g, r, of_address->origin.at[GIVE_WAY_PREFIX]), pool))
		return of_prefix;
	return of_address;
}

static uint32_t
most_at(const struct give_way_ranks *r, unsigned int level)
{
	const struct share_holder *most = share_most(&r->at[level]);

	return most != NULL ? most->count : 0;
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

/* Its peer has answered packets of ours: it is no longer among the first to give way. */
static void
list_answers(struct result *r)
{
	const struct give_way *g = r->w->give_way;
	uint32_t chunks = r->chunks;

	give_way_list_gone(r);
	r->answering = true;
	r->chunks = chunks;
	item_add(g, list_ranks(r), &r->give_way);
	item_change(g, list_ranks(r), &r->give_way, (int)chunks - 1);
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

/* Chunks of all lists of the address, or of the prefix, of a list. */
static uint32_t
list_holds(const struct result *r, unsigned int level)
{
	const struct give_way_holder *h = r->give_way.origin.at[level];

	return h != NULL ? h->silent.count + h->answering.count : 0;
}

static struct give_way_item *
silent_list(const struct result *r)
{
	const struct give_way *g = r->w->give_way;
	const struct give_way_ranks *silent = &g->silent;
	const uint32_t most = most_at(silent, GIVE_WAY_ADDRESS);
	const bool may[GIVE_WAY_LEVELS] = {
		[GIVE_WAY_ADDRESS] = never_gives_way(&r->give_way) ||
			list_holds(r, GIVE_WAY_ADDRESS) < RTE_MAX(most, (uint32_t)SMALL),
		[GIVE_WAY_PREFIX] =
			list_holds(r, GIVE_WAY_PREFIX) < most_at(silent, GIVE_WAY_PREFIX),
	};

	return item_that_gives_way(g, silent, &r->give_way, may, g->chunks);
}

/* Last resort: who guesses Acks, or has thousands of addresses, has lists that answer, too. */
static struct give_way_item *
unfair_list(const struct result *r)
{
	const struct give_way *g = r->w->give_way;
	const struct give_way_ranks *answering = &g->answering;
	bool may[GIVE_WAY_LEVELS];
	struct give_way_holder *own;
	unsigned int level;
	uint32_t fair;

	for (level = 0; level < GIVE_WAY_LEVELS; level++) {
		own = r->give_way.origin.at[level];
		fair = share_fair(&answering->at[level], g->chunks,
			own != NULL ? &own->answering : NULL);
		may[level] = most_at(answering, level) > fair && list_holds(r, level) < fair;
	}
	return item_that_gives_way(g, answering, &r->give_way, may, g->chunks);
}

bool
give_way_for_list(struct result *r)
{
	struct give_way_item *victim;

	while ((victim = silent_list(r)) != NULL) {
		if (list_gives_way(RESULT_OF_ITEM(victim), false))
			return true;
		list_answers(RESULT_OF_ITEM(victim)); /* once in the life of a list */
	}
	victim = unfair_list(r);
	return victim != NULL && list_gives_way(RESULT_OF_ITEM(victim), true);
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

/* Who has one query more than this one keeps it, or each would end the other's in turn. */
bool
give_way_for_query(const struct query *q)
{
	struct sa_worker *w = q->w;
	const struct give_way *g = w->give_way;
	const struct give_way_holder *own;
	bool may[GIVE_WAY_LEVELS];
	struct give_way_item *item;
	struct query *victim;
	unsigned int level;

	for (level = 0; level < GIVE_WAY_LEVELS; level++) {
		own = q->give_way.origin.at[level];
		may[level] = most_at(&g->queued, level) > (own != NULL ? own->queued.count : 0) + 1;
	}
	item = item_that_gives_way(g, &g->queued, &q->give_way, may, g->queued.items);
	if (item == NULL)
		return false;
	victim = QUERY_OF_ITEM(item);
	mad_give_way(w->mad, victim->handle, true);
	w->counters.gave_way++;
	limit_peer_note(&w->limited.gave_way, victim->who.gid.raw);
	query_abandon(victim);
	return true;
}
