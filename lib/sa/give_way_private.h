/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_GIVE_WAY_PRIVATE_H
#define SA_GIVE_WAY_PRIVATE_H

/**
 * @file
 * Private to give_way.c, which counts, and give_way_choose.c, which chooses.
 */

#include "sa/query.h"

#define HOLDERS 4096 /* a power of two */

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

static inline bool
never_gives_way(const struct give_way_item *i)
{
	return i->origin.at[GIVE_WAY_ADDRESS] == NULL;
}

/* What the holder of an item has of the items that these ranks are of. */
static inline struct share_holder *
holder_in(const struct give_way *g, const struct give_way_ranks *r, struct give_way_holder *h)
{
	return r == &g->queued ? &h->queued : r == &g->silent ? &h->silent : &h->answering;
}

/** Its peer has answered packets of ours: it is no longer among the first to give way. */
void give_way_list_answers(struct result *r);

#endif
