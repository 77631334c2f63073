/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef STORE_STORE_H
#define STORE_STORE_H

/**
 * @file
 * The record store: tables of records under 32-bit record identifiers (RIDs), in versions.
 *
 * A published version never changes. One writer makes the next version by copying the tree paths
 * that a change touches (O(log n)) and publishes it by storing one pointer. Readers load the
 * pointer, never wait, and never access the disk. Memory that only old versions use is freed when
 * no reader holds one of them and a grace period has passed.
 *
 * The store does not interpret records: the caller's functions give the index keys. The backend
 * makes a batch durable before the store publishes its version.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"

#define STORE_TABLES_MAX  16
#define STORE_INDEXES_MAX 16
#define STORE_READERS_MAX 136
#define STORE_KEYS_MAX    8 /* index keys of one record */

struct store;
struct store_version;
struct store_reader;
struct store_txn;

/** A record; it does not change. Valid while a version that contains it is held. */
struct store_record {
	uint64_t born; /**< number of the first version that contains it */
	uint32_t rid;
	uint16_t len; /**< of bytes */
	uint8_t table;
	uint8_t spare;
	uint8_t bytes[];
};

/** An index: records of a table by another key, which several records may share. */
struct store_index {
	uint8_t table;
	/** @return number of keys put into keys[STORE_KEYS_MAX] */
	unsigned int (*keys)(const struct store_record *r, uint64_t *keys);
};

/** A change: put one record, or remove it if bytes is NULL. */
struct store_op {
	uint8_t table;
	uint32_t rid;
	const uint8_t *bytes;
	uint16_t len;
};

/** Changes that the backend learned of by another way than apply(); they are durable. */
struct store_batch {
	const struct store_op *ops;
	size_t n;
	/** These, put only and sorted by table and RID, are all the records that there are. */
	bool replace;
};

/**
 * Durable storage of the records: LMDB, or LMDB as the copy of what a fleet shares (fleet.h). Only
 * the writer calls these functions.
 */
struct store_backend {
	void *arg;
	/**
	 * Call each() for all stored records, in any order. @return 0, or the error of each() or
	 * the engine
	 */
	int (*load)(void *arg, int (*each)(void *to, const struct store_op *op), void *to,
		struct error *err);
	/** Store all changes or none; they are durable when it returns 0. */
	int (*apply)(void *arg, const struct store_op *ops, size_t n, struct error *err);
	void (*close)(void *arg);
	/**
	 * Optional, for store_follow(). @return the oldest batch that was not taken, or NULL: none.
	 * It is valid until taken() or close().
	 */
	const struct store_batch *(*watch)(void *arg);
	/** The batch is published. */
	void (*taken)(void *arg);
	/** The most changes that apply() takes at one time; 0: any number. */
	size_t max_ops;
};

/**
 * LMDB at @p path (a directory, made when only it is missing; locked, so that no second process
 * uses it).
 *
 * @param map_bytes  the most it may grow to
 */
int store_lmdb_open(const char *path, uint64_t map_bytes, struct store_backend *backend,
	struct error *err);

struct store_config {
	unsigned int tables;
	const struct store_index *indexes;
	unsigned int num_indexes;
	unsigned int readers;
	const struct allocator *alloc; /**< may be called on the writer only */
	struct store_backend backend; /**< .apply NULL: memory only */
	/** Bytes that the records may take; 0: as many as there are. */
	uint64_t max_bytes;
	/** Bytes that old versions may keep; above it the oldest held version becomes stale. */
	uint64_t max_old_bytes;
	/** Versions held at one time; above it the oldest held version becomes stale. */
	unsigned int max_versions;
	/** Grace periods, as lib/mem has them: every reader has been quiescent since start(). */
	struct {
		uint64_t (*start)(void *arg);
		bool (*done)(void *arg, uint64_t token);
		void *arg;
	} grace;
};

/** Create a store and load the backend's records. Closes the backend if that fails. */
struct store *store_create(const struct store_config *config, struct error *err);
/** Destroy the store and close the backend, after all readers have stopped. */
void store_destroy(struct store *s);

/* --- readers: one each worker, single-threaded --- */

struct store_reader *store_reader(struct store *s, unsigned int reader);
/** The newest version; valid until the reader's next quiescent point, or while it is held. */
const struct store_version *store_current(const struct store_reader *r);
/**
 * Hold a version across quiescent points; each call needs one store_unhold().
 *
 * @retval -ENOSPC  this reader holds twice max_versions: it has not released its stale ones
 */
int store_hold(struct store_reader *r, const struct store_version *v);
void store_unhold(struct store_reader *r, const struct store_version *v);
/** True if a held version exceeded a limit. Then it must not be read, only released. */
bool store_stale(const struct store_version *v);
uint64_t store_version_number(const struct store_version *v);
/** Number of the version that last changed a table: a change token (sa-multipacket A6). */
uint64_t store_table_changed(const struct store_version *v, unsigned int table);

uint64_t store_count(const struct store_version *v, unsigned int table);
/** @return the record, or NULL */
const struct store_record *store_get(const struct store_version *v, unsigned int table,
	uint32_t rid);
/** Number of an index's entries whose keys are between two, both included: O(log n). */
uint64_t store_index_count(const struct store_version *v, unsigned int index, uint64_t first,
	uint64_t last);
/** Number of records with a smaller RID. */
uint64_t store_rank(const struct store_version *v, unsigned int table, uint32_t rid);

/** A position in a table or index of a version; valid as long as the version. */
struct store_cursor {
	const struct store_version *version;
	const void *leaf;
	uint32_t at;
	uint16_t tree;
	uint64_t ordinal; /**< of the next record */
};
/** Position before record number @p ordinal: O(log n); store_next() is O(1) amortised. */
void store_seek(struct store_cursor *c, const struct store_version *v, unsigned int table,
	uint64_t ordinal);
/** Position before the first record of an index whose key is >= @p key. */
void store_seek_index(struct store_cursor *c, const struct store_version *v, unsigned int index,
	uint64_t key);
/** @param key  set to the entry's key if on an index; may be NULL. @return NULL at the end */
const struct store_record *store_next(struct store_cursor *c, uint64_t *key);

/* --- the writer: one thread --- */

/** Begin the next version. @retval NULL  a transaction is open, or no memory */
struct store_txn *store_begin(struct store *s);
/** The transaction's contents as a version, for the readers' functions; store_put() changes it. */
const struct store_version *store_txn_view(const struct store_txn *t);
/** Put or replace. @retval -ENOMEM the transaction is as before */
int store_put(struct store_txn *t, unsigned int table, uint32_t rid, const void *bytes,
	uint16_t len);
/** @retval -ENOENT */
int store_del(struct store_txn *t, unsigned int table, uint32_t rid);
/** A point to return to, so that a failing request does not undo the others of its batch. */
struct store_savepoint {
	size_t made;
	size_t retired;
	size_t ops;
	uint64_t changed[STORE_TABLES_MAX];
	uint64_t trees[3 * (STORE_TABLES_MAX + STORE_INDEXES_MAX)];
};
void store_save(struct store_txn *t, struct store_savepoint *sp);
void store_rollback(struct store_txn *t, const struct store_savepoint *sp);
/**
 * Make the changes durable, then publish them, if there are any. On an error nothing has changed.
 * Ends the transaction.
 *
 * @retval -ENOSPC  there is no room for them; removals always have room
 */
int store_commit(struct store_txn *t, struct error *err);
void store_abort(struct store_txn *t);
/** The most changes that one transaction may have; 0: any number. */
size_t store_max_ops(const struct store *s);
/**
 * Publish the next batch of changes that were made elsewhere as a version.
 *
 * @return 1, or 0 if there is none
 * @retval -ENOMEM  the batch stays; try again later
 * @retval -EBADMSG  it has a record of a table that this program does not know
 */
int store_follow(struct store *s, struct error *err);
/** Free memory that no reader can reach; the writer calls it from time to time. */
void store_reclaim(struct store *s);

struct store_stats {
	uint64_t version;
	uint64_t bytes; /**< in use by all versions */
	uint64_t old_bytes; /**< kept for old versions or a grace period */
	uint64_t versions_held; /**< including stale ones not released yet */
	uint64_t versions_given_up;
	uint64_t commits;
	uint64_t ops;
};
/** Writer: true if the records take more than @p percent of store_config.max_bytes. */
bool store_is_above(const struct store *s, unsigned int percent);
/** Any thread. */
void store_stats(const struct store *s, struct store_stats *stats);

#endif
