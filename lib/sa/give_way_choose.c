/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Who gives way. When a pool is used up, the oldest item of the address with most ends for one of
 * an address with less, or the oldest item of the prefix with most for one of a prefix with less. A
 * prefix with more than half comes before addresses of others: a /64 of addresses that hold little
 * each holds nothing against them. Lists whose peer has acknowledged a segment come last: one ends
 * only if its address, or its prefix, has more than its fair share.
 */

#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "sa/give_way_private.h"
#include "sa/server.h"

#define SMALL 16 /* chunks: an address with so few may displace any other */

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
		give_way_list_answers(RESULT_OF_ITEM(victim)); /* once in the life of a list */
	}
	victim = unfair_list(r);
	return victim != NULL && list_gives_way(RESULT_OF_ITEM(victim), true);
}

/* --- queries put off --- */

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
