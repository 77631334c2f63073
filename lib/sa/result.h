/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_RESULT_H
#define SA_RESULT_H

/**
 * @file
 * What a query found, ready to be sent: a mad_source over a held version. Everything of a table or
 * of a range of RIDs is two numbers and costs no memory; what was picked out is a list of record
 * pointers, or of paths, in chunks of the worker's pool.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/path.h"
#include "sa/record.h"
#include "store/store.h"

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
	const struct sa_record_type *type; /**< of RESULT_BULK: of the table where it stands */
	const struct store_version *version; /**< NULL: none is needed */
	struct result *next_free;
	uint64_t guid; /**< of an untrusted requester: what it may not know is taken out */
	uint64_t first; /**< RESULT_RANGE: ordinal */
	uint64_t count;
	struct store_cursor cursor;
	const struct store_record *at; /**< record number at_index, read last */
	uint64_t at_index;
	struct chunk *root; /**< of the list */
	uint64_t span; /**< leaves that there is a place for */
	struct chunk *leaf; /**< written or read last */
	uint64_t leaf_number;
	struct chunk *newest; /**< all of its chunks, one behind the other */
	struct chunk *oldest;
	struct path_common common;
	uint16_t tables; /**< RESULT_BULK: a bit for each that is in it */
	uint8_t kind;
	uint8_t class_version;
	bool redact;
	bool held;
};

/** @param transfers  results at one time. @param bytes  of chunks */
struct result_pool *result_pool_create(const struct allocator *alloc, uint32_t transfers,
	uint32_t bytes);
void result_pool_destroy(struct result_pool *p);

/** @return NULL: none is free */
struct result *result_new(struct sa_worker *w, enum result_kind kind,
	const struct sa_record_type *type, enum sa_version version);
void result_free(struct result *r);
/** @retval -ENOSPC */
int result_add_record(struct result *r, const struct store_record *rec);
int result_add_path(struct result *r, const struct path_entry *e);
/** Drop what was added. */
void result_clear(struct result *r);
/** Keep the version for as long as the result lives. @retval -ENOSPC */
int result_hold(struct result *r, const struct store_version *v);
/** Bytes of one record on the wire in the result's class version, and of all. */
uint64_t result_length(const struct result *r);
/** The result as a source; it is freed on release. */
void result_source(struct result *r, struct mad_source *source);

/** One record on the wire, what the requester may not know taken out. */
void result_encode(const struct sa_record_type *t, enum sa_version v, const uint8_t *rec,
	uint32_t rid, bool redact, uint64_t guid, uint8_t *wire);

#endif
