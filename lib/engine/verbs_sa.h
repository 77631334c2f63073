/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_SA_H
#define ENGINE_VERBS_SA_H

/**
 * @file
 * Subnet administration for the control plane: queries of other managers or of our own, what the
 * database holds, sessions and figures. As all verbs on the control thread.
 *
 * A query runs on a worker; its records gather in memory of a fixed bound that the control thread
 * reads. It stays, with what it brought, until it is cancelled, or until nobody has looked at it
 * for some minutes.
 */

#include "engine/engine.h"
#include "sa/client.h"
#include "sa/import.h"

struct engine_ah;

#define ENGINE_SA_QUERIES 32 /* at one time, finished ones included */

/** What to ask: struct sa_query with the control plane's ideas of an address. */
struct engine_sa_query {
	struct sa_query query; /**< .to, .records and .rids as below */
	bool own; /**< ask this appliance's own SA, over the loopback of .ah->port */
	const struct engine_ah *ah; /**< of whom; own: .port alone counts */
	uint16_t pkey_index;
	uint32_t timeout_ms; /**< in all; 0: as the protocol's timeouts and retries have it */
	int worker; /**< -1: one after the other */
};

/** Starts a query; records of a Config are copied. */
int engine_sa_query(struct engine *e, const struct engine_sa_query *q, uint32_t *id,
	struct error *err);

struct engine_sa_progress {
	bool done;
	/* while it runs, and after */
	uint64_t records;
	uint64_t bytes; /**< of records in the buffer */
	uint32_t segment; /**< received in order */
	uint32_t segments; /**< in all, 0: not known */
	uint64_t elapsed_us;
	/* once done */
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

/** A record; bytes stay where they are as long as the query. */
struct engine_sa_record {
	const struct sa_record_type *type;
	uint32_t rid; /**< record identifier; 0: the type has none */
	const uint8_t *bytes; /**< the house's form */
};
/** Next record a query brought: *cursor 0 starts. @retval false  none, or none yet */
bool engine_sa_next(struct engine *e, uint32_t id, uint64_t *cursor, struct engine_sa_record *r);

/** End it, if it still runs, and forget it. */
int engine_sa_cancel(struct engine *e, uint32_t id, struct error *err);
/** Deadlines, and what nobody fetches: engine_watch() does this. */
void engine_sa_watch(struct engine *e);

/** Does this appliance serve? */
bool engine_sa_enabled(const struct engine *e);
/** Key that its own trusted requesters give. */
uint64_t engine_sa_key(const struct engine *e);

/** Walk the sessions of all workers: *cursor 0 starts. */
struct engine_sa_session {
	unsigned int worker;
	struct mad_session_info info;
};
bool engine_sa_session_next(struct engine *e, uint64_t *cursor, struct engine_sa_session *s);

struct engine_sa_stats {
	struct mad_counters mad;
	struct sa_counters sa;
	uint64_t aborts_sent[256]; /**< by RMPP status */
	uint64_t aborts_received[256];
	uint64_t memory_used; /**< of sessions and request bodies, bytes */
	uint64_t memory_total;
	struct store_stats store; /**< whole appliance; zero where it does not serve */
};
/** @param worker  -1: the sum of all */
void engine_sa_stats(const struct engine *e, int worker, struct engine_sa_stats *s);

/* --- the database --- */

/** Takes a file apart: sa_import_ibnetdiscover(), or the caller's. Runs on the import's thread. */
typedef int (*engine_sa_parser)(const char *text, size_t len, const struct sa_import_sink *sink,
	struct error *err);

struct engine_sa_import {
	const char *path; /**< of a file, or */
	const char *text;
	size_t len;
	engine_sa_parser parser;
	enum sa_replaced replace; /**< what is removed first */
	uint8_t mtu; /**< code, of ports whose MTU the file does not say; 0: stays not known */
};
struct engine_sa_imported {
	bool done;
	int result; /**< negative errno: err of engine_sa_import_poll() says why */
	uint64_t records;
	uint64_t elapsed_us;
};
/**
 * Put records into the database, all or none, beside the control thread.
 *
 * @retval -EBUSY  another import is under way
 */
int engine_sa_import_start(struct engine *e, const struct engine_sa_import *import,
	struct error *err);
/** How it goes. Once done, the next may start. */
void engine_sa_import_poll(struct engine *e, struct engine_sa_imported *i, struct error *err);

/** Put or remove records at once; all or nothing. Waits for the store. */
int engine_sa_change(struct engine *e, const struct sa_change *changes, size_t n,
	struct error *err);

/**
 * Walk what is stored, as it was when *cursor was 0. A walk that is left alone for minutes, or
 * that the database has changed away under, ends.
 *
 * @param bytes  room for SA_RECORD_MAX
 * @return 1: a record; 0: the end; -ESTALE, -ENOSPC, -EINVAL with words
 */
int engine_sa_export(struct engine *e, uint64_t *cursor, const struct sa_record_type **type,
	uint32_t *rid, uint8_t *bytes, struct error *err);

#endif
