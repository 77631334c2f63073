/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_GIVE_WAY_H
#define SA_GIVE_WAY_H

/**
 * @file
 * Anti-exhaustion: which queries and lists of results end when their pools are used up. Requests of
 * holders of an operator's SM_Key never do.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/share.h"

struct query;
struct requester;
struct result;
struct sa_worker;

enum give_way_level {
	GIVE_WAY_ADDRESS,
	GIVE_WAY_PREFIX, /**< an IPv4 /24, else a /64 */
	GIVE_WAY_LEVELS,
};

/** What requesters with one address, or one prefix, hold. */
struct give_way_holder {
	struct share_holder queued; /**< queries put off */
	struct share_holder silent; /**< lists of peers that may be forged, by chunks */
	struct share_holder answering; /**< lists of peers that have answered, by chunks */
};

/** Whom a query and its list count for. */
struct give_way_origin {
	struct give_way_holder *at[GIVE_WAY_LEVELS]; /**< NULL: it never gives way */
};

/** Embedded in a query and in a result. */
struct give_way_item {
	struct give_way_origin origin;
	struct share_item share[GIVE_WAY_LEVELS];
};

struct give_way;

/** @param queries, chunks  that the pools have */
struct give_way *give_way_create(const struct allocator *alloc, uint32_t queries, uint32_t chunks);
void give_way_destroy(struct give_way *g);
/** Whom the queries of this requester count for. */
struct give_way_origin give_way_origin(struct give_way *g, const struct requester *who);

/** The list has one more chunk, or loses them all. */
void give_way_list_grew(struct result *r);
void give_way_list_gone(struct result *r);
/**
 * give_way_choose.c: end another list, so that this one finds a chunk. @retval false  none gives
 * way
 */
bool give_way_for_list(struct result *r);

/** The query is put off, or ends. */
void give_way_query_queued(struct query *q);
void give_way_query_gone(struct query *q);
/**
 * give_way_choose.c: end a query that is put off, so that another finds a place. @retval false
 * none gives way
 */
bool give_way_for_query(const struct query *q);

#endif
