/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_SA_H
#define ENGINE_VERBS_SA_H

/**
 * @file
 * Subnet administration for the control plane: queries to other SAs or to our own, the contents of
 * our database, sessions and statistics. Like all verbs, these run on the control thread.
 *
 * A query runs on a worker, which stores the records in memory of fixed size; the control thread
 * reads them. A query and its records stay until it is cancelled, or until no client has read it
 * for some minutes.
 */

#include "engine/engine.h"
#include "sa/client.h"
#include "sa/import.h"

struct engine_ah;

#define ENGINE_SA_QUERIES 32 /* most queries at one time, finished ones included */

/** A query: struct sa_query, with the address as the control plane gives it. */
struct engine_sa_query {
	struct sa_query query; /**< .to, .records and .rids as below */
	bool own; /**< ask this appliance's own SA, over the loopback of .ah->port */
	const struct engine_ah *ah; /**< the SA's address; own: only .port counts */
	uint16_t pkey_index;
	uint32_t timeout_ms; /**< in all; 0: the protocol's timeouts and retries */
	int worker; /**< -1: round robin, or with .query.keep_tid the one that can ask */
	bool monitoring; /**< who asks sees no keys, and no queries of others */
};

/** Start a query; the records of a Config request are copied. */
int engine_sa_query(struct engine *e, const struct engine_sa_query *ask, uint32_t *id,
	struct error *err);

struct engine_sa_progress {
	bool done;
	bool monitoring; /**< as asked */
	/* valid while it runs, and after */
	uint64_t records;
	uint64_t bytes; /**< of records in the buffer */
	uint32_t segment; /**< received in order */
	uint32_t segments; /**< in all, 0: not known */
	uint64_t elapsed_us;
	/* valid once done */
	enum mad_end end;
	bool timed_out; /**< by .timeout_ms */
	uint16_t status; /**< of the answer */
	uint8_t rmpp_status;
	int error; /**< negative errno of MAD_END_REFUSED and MAD_END_PROTOCOL */
	uint32_t resent;
	uint64_t sa_key; /**< class version 1: change token */
};
int engine_sa_progress(struct engine *e, uint32_t id, struct engine_sa_progress *p,
	struct error *err);

/** A record; .bytes is valid as long as the query. */
struct engine_sa_record {
	const struct sa_record_type *type;
	uint32_t rid; /**< record identifier; 0: the type has none */
	const uint8_t *bytes; /**< encoded as in the store (sa/record.h) */
};
/** The next record of a query: *cursor 0 starts. @retval false  no more records, or none yet */
bool engine_sa_next(struct engine *e, uint32_t id, uint64_t *cursor, struct engine_sa_record *r);

/** Cancel a query if it still runs, and forget it. */
int engine_sa_cancel(struct engine *e, uint32_t id, struct error *err);
/** Check deadlines, and forget queries that no client reads; engine_watch() calls this. */
void engine_sa_watch(struct engine *e);

/** @return false if this appliance belongs to no fleet; then the status is zero */
bool engine_fleet_status(struct engine *e, struct fleet_status *status);
/** fleet_accept_empty(). @retval -ENOENT  also if this appliance belongs to no fleet */
int engine_fleet_accept(struct engine *e, struct error *err);
/** True if this appliance serves an SA. */
bool engine_sa_enabled(const struct engine *e);
/** The SM_Key by which our SA trusts requests of this process. */
uint64_t engine_sa_key(const struct engine *e);

/** Walk the sessions of all workers: *cursor 0 starts. */
struct engine_sa_session {
	unsigned int worker;
	struct mad_session_info info;
};
bool engine_sa_session_next(struct engine *e, uint64_t *cursor, struct engine_sa_session *s);

struct engine_sa_stats {
	struct mad_counters mad; /**< of all management classes */
	struct sa_counters sa;
	uint64_t aborts_sent[256]; /**< by RMPP status */
	uint64_t aborts_received[256];
	uint64_t memory_used; /**< of sessions and request bodies, bytes */
	uint64_t memory_total;
	struct store_stats store; /**< of the whole appliance; zero if it serves no SA */
};
/** @param worker  -1: the sum over all workers; .store is never divided by worker */
void engine_sa_stats(const struct engine *e, int worker, struct engine_sa_stats *s);

/* --- the database --- */

/**
 * Parser of a file: sa_import_ibnetdiscover(), or the caller's own. Runs on the import's thread.
 */
typedef int (*engine_sa_parser)(const char *text, size_t len, const struct sa_import_sink *sink,
	struct error *err);

struct engine_sa_import {
	int fd; /**< a regular file, which stays the caller's; read if .text is NULL */
	const char *text;
	size_t len; /**< of .text */
	engine_sa_parser parser;
	enum sa_replaced replace; /**< what is removed first */
	uint8_t mtu; /**< MTU code of ports whose MTU the file does not contain; 0: unknown */
};
struct engine_sa_imported {
	bool done;
	int result; /**< 0, or a negative errno; engine_sa_import_poll() fills in err */
	uint64_t records;
	uint64_t elapsed_us;
};
/**
 * Put records into the database, all or none, on a thread of its own.
 *
 * @retval -EBUSY  another import is under way
 */
int engine_sa_import_start(struct engine *e, const struct engine_sa_import *what,
	struct error *err);
/** Read the state of the import. Once it is done, the next may start. */
void engine_sa_import_poll(struct engine *e, struct engine_sa_imported *i, struct error *err);

/**
 * Walk the records of the database as it was when *cursor was 0. The walk ends if it is not
 * continued for two minutes, or if the database changes so much that the old version is dropped.
 *
 * @param bytes  room for SA_RECORD_MAX
 * @return 1: a record; 0: the end; -ESTALE, -ENOSPC or -EINVAL
 */
int engine_sa_export(struct engine *e, uint64_t *cursor, const struct sa_record_type **type,
	uint32_t *rid, uint8_t *bytes, struct error *err);

#endif
