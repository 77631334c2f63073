/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_SHARE_H
#define BASE_SHARE_H

/**
 * @file
 * Anti-exhaustion: how much of a pool each address, or each prefix, holds, and which of them holds
 * most. When the pool is full, the oldest item of the holder with most gives way, so that a flood
 * displaces its own items first. Everything takes constant time.
 *
 * An item counts for 1 when it is added; one that takes more of the pool grows by
 * share_rank_change(), and shrinks back before it is removed. Where nothing may give way, as an
 * established connection must not, share_leaves_room() says who gets one more.
 *
 * Used for half-open connections (lib/cm), for the sessions of strangers and the memory of their
 * requests (lib/mad), and for queries and lists of results (lib/sa). What strangers store in
 * the SA has fixed limits instead, because it must survive a restart (lib/sa/share.c).
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_debug.h>

#include "base/env.h"

/** Embedded in whatever the pool has. */
struct share_item {
	TAILQ_ENTRY(share_item) link;
};
TAILQ_HEAD(share_items, share_item);

struct share_holder {
	struct share_items items; /**< oldest first */
	uint32_t count;
	TAILQ_ENTRY(share_holder) rank_link;
};
TAILQ_HEAD(share_holders, share_holder);

/** The holders that have items, by their number of items. */
struct share_rank {
	struct share_holders *with; /**< [0..most] */
	uint32_t top; /**< nobody has more; 0: nobody has any */
	uint32_t holders; /**< that have any */
};

/** @param most  what one holder can have */
static inline int
share_rank_create(struct share_rank *r, const struct allocator *alloc, uint32_t most)
{
	uint32_t i;

	r->with = mem_zalloc(alloc, (most + 1) * sizeof(*r->with), 64);
	if (r->with == NULL)
		return -ENOMEM;
	for (i = 0; i <= most; i++)
		TAILQ_INIT(&r->with[i]);
	r->top = r->holders = 0;
	return 0;
}

static inline void
share_rank_destroy(struct share_rank *r, const struct allocator *alloc)
{
	mem_free(alloc, r->with);
}

static inline void
share_holder_init(struct share_holder *h)
{
	*h = (struct share_holder){ .count = 0 };
	TAILQ_INIT(&h->items);
}

/** The holder has an item more or less, or one of its items has grown or shrunk by so much. */
static inline void
share_rank_change(struct share_rank *r, struct share_holder *h, int change)
{
	RTE_ASSERT(change >= 0 || h->count >= (uint32_t)-change);
	if (h->count != 0) {
		TAILQ_REMOVE(&r->with[h->count], h, rank_link);
		r->holders--;
	}
	h->count += (uint32_t)change;
	if (h->count != 0) {
		TAILQ_INSERT_TAIL(&r->with[h->count], h, rank_link);
		r->holders++;
	}
	if (h->count > r->top)
		r->top = h->count;
	while (r->top != 0 && TAILQ_EMPTY(&r->with[r->top]))
		r->top--;
}

static inline void
share_add(struct share_rank *r, struct share_holder *h, struct share_item *item)
{
	TAILQ_INSERT_TAIL(&h->items, item, link);
	share_rank_change(r, h, 1);
}

static inline void
share_remove(struct share_rank *r, struct share_holder *h, struct share_item *item)
{
	TAILQ_REMOVE(&h->items, item, link);
	share_rank_change(r, h, -1);
}

/** The holder that has most items; of several, the one that has had so many for longest. */
static inline struct share_holder *
share_most(const struct share_rank *r)
{
	return r->top != 0 ? TAILQ_FIRST(&r->with[r->top]) : NULL;
}

/** True if the holder has more than half of a pool's items: its oldest may go, however young. */
static inline bool
share_is_majority(const struct share_holder *h, uint32_t items)
{
	return 2 * (uint64_t)h->count > items;
}

/**
 * True if the prefix with most items gives way before the address with most: it has more than half
 * of all, and the address is in another prefix. Otherwise a host with two would give way to a flood
 * from thousands of addresses that have one each.
 *
 * @param of_address  the prefix of that address
 */
static inline bool
share_prefix_first(const struct share_holder *prefix, const struct share_holder *of_address,
	uint32_t items)
{
	return prefix != of_address && share_is_majority(prefix, items);
}

/**
 * True if a holder may take one more item of a pool whose items do not give way: it has less than
 * three times as many as are left (a choice). So one holder gets three quarters, the next one three
 * quarters of the rest, and whoever comes then still finds some.
 */
static inline bool
share_leaves_room(uint32_t held, uint32_t left)
{
	return held < 3 * (uint64_t)left;
}

/**
 * How many of a pool's items each holder has if all have equally many.
 *
 * @param h  the one that asks for an item; NULL: it has none yet
 */
static inline uint32_t
share_fair(const struct share_rank *r, uint32_t items, const struct share_holder *h)
{
	return items / (r->holders + (h == NULL || h->count == 0));
}

#endif
