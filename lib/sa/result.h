/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_RESULT_H
#define SA_RESULT_H

/**
 * @file The result of a query, as a mad_source over a held version. A whole table or range of RIDs
 * is only two numbers and costs no memory; selected records or paths are a list in chunks of the
 * worker's pool.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/give_way.h"
#include "sa/path.h"
#include "sa/record.h"
#include "store/store.h"

struct query;
struct sa_worker;
struct chunk;
struct result_pool;

enum result_kind {
	RESULT_RANGE,
	RESULT_RECORDS,
	RESULT_PATHS,
	RESULT_BULK, /**< whole tables, one after the other (bulk.h) */
};

struct result {
	struct sa_worker *w;
	const struct sa_record_type *type; /**< RESULT_BULK: of the table being read */
	const struct store_version *version; /**< NULL: not needed */
	struct result *next_free;
	uint64_t guid; /**< the requester's, for redacting */
	uint64_t first; /**< RESULT_RANGE: ordinal of the first record */
	uint64_t count;
	struct store_cursor cursor;
	const struct store_record *at; /**< the record read last, number at_index */
	uint64_t at_index;
	struct chunk *root; /**< tree of the list */
	uint64_t span; /**< leaves that fit the tree */
	struct chunk *leaf; /**< leaf used last */
	uint64_t leaf_number;
	struct chunk *newest; /**< list of all chunks, by .next */
	struct chunk *oldest;
	struct path_common common;
	/* give_way.c */
	mad_handle handle; /**< the request */
	uint8_t owner[LIMIT_PEER_LEN]; /**< GID of the requester */
	struct query *queued; /**< the query that still fills it, if that was put off */
	struct give_way_item give_way;
	uint32_t chunks; /**< of the list */
	bool answering; /**< its peer is known to have answered packets of ours */
	uint16_t tables; /**< RESULT_BULK: a bit for each table included */
	uint8_t kind;
	uint8_t class_version;
	uint8_t sight; /**< enum sa_sight */
	bool held;
};

#define CHUNK_BYTES 512

/** @param transfers  most results at the same time. @param bytes  memory for chunks */
struct result_pool *result_pool_create(const struct allocator *alloc, uint32_t transfers,
	uint32_t bytes);
void result_pool_destroy(struct result_pool *p);

/** The result of a query. @return NULL: none is free, and no session gives way */
struct result *result_new(const struct query *q, enum result_kind kind);
void result_free(struct result *r);
/** @retval -ENOSPC */
int result_add_record(struct result *r, const struct store_record *rec);
int result_add_path(struct result *r, const struct path_entry *e);
/** Remove all entries. */
void result_clear(struct result *r);
/** Hold the version while the result exists. @retval -ENOSPC */
int result_hold(struct result *r, const struct store_version *v);
/** Length of the whole result on the wire, in its class version. */
uint64_t result_length(const struct result *r);
/** Make the result a source, which frees it on release. */
void result_source(struct result *r, struct mad_source *source);

/** Encode one record, without what the requester may not see. */
void result_encode(const struct sa_record_type *t, enum sa_version v, const uint8_t *rec,
	uint32_t rid, enum sa_sight sight, uint64_t guid, uint8_t *wire);

#endif
