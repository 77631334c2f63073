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

/** What requesters with one address hold. */
struct give_way_address {
	struct share_holder queued; /**< queries put off */
	struct share_holder silent; /**< lists of peers that may be forged, by chunks */
	struct share_holder answering; /**< lists of peers that have answered, by chunks */
};

struct give_way;

/** @param queries, chunks  that the pools have */
struct give_way *give_way_create(const struct allocator *alloc, uint32_t queries, uint32_t chunks);
void give_way_destroy(struct give_way *g);
/** @return NULL: what this requester holds never gives way */
struct give_way_address *give_way_address(struct give_way *g, const struct requester *who);

/** The list has one more chunk, or loses them all. */
void give_way_list_grew(struct result *r);
void give_way_list_gone(struct result *r);
/** End another list, so that this one finds a chunk. @retval false  none gives way */
bool give_way_for_list(struct result *r);

/** The query is put off, or ends. */
void give_way_query_queued(struct query *q);
void give_way_query_gone(struct query *q);
/** End a query that is put off, so that another finds a place. @retval false  none gives way */
bool give_way_for_query(const struct query *q);

#endif
