/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_SA_QUERIES_H
#define ENGINE_SA_QUERIES_H

/**
 * @file
 * Private to lib/engine: the table of our SA queries.
 */

#include "engine/verbs_private.h"
#include "engine/verbs_sa.h"

/** A record in a query's memory; 8-byte aligned. */
struct query_entry {
	const struct sa_record_type *type;
	uint32_t rid;
	uint32_t spare;
	uint8_t bytes[];
};

struct query {
	/* used by the control thread only */
	bool used;
	bool timed_out;
	uint32_t generation;
	unsigned int worker;
	uint64_t started; /* TSC */
	uint64_t seen; /* TSC of the last access by a client */
	uint64_t timeout; /* TSC; 0: none */
	uint64_t page; /* number of the record after the last page read */
	uint64_t page_at; /* its offset in .buf */
	uint8_t *buf;
	size_t size;
	uint8_t *records_sent; /* a copy of the records of a Config request */
	size_t records_size;
	/* written by the worker until .done */
	mad_handle handle;
	uint64_t filled; /* bytes of .buf in use; stored with release */
	uint64_t records; /* number of records in .buf; relaxed */
	uint64_t ended;
	struct mad_result result;
	uint64_t sa_key;
	uint32_t done;
};

struct sa_queries {
	struct query query[ENGINE_SA_QUERIES];
	unsigned int turn; /* round robin over the workers */
};

static inline uint32_t
query_id(const struct sa_queries *all, const struct query *q)
{
	return place_number(q->generation, ENGINE_SA_QUERIES, (size_t)(q - all->query));
}

#endif
