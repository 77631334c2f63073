/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_CLIENT_H
#define SA_CLIENT_H

/**
 * @file
 * Subnet administration, the client: queries and changes by record type and component mask, in
 * either class version. All calls belong to one worker; results are records in our stored form.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/record.h"

enum sa_op {
	SA_OP_GET,
	SA_OP_TABLE,
	SA_OP_BULK, /**< version 1 */
	SA_OP_SET, /**< version 1: add; version 2: Set */
	SA_OP_DELETE,
	SA_OP_MULTI, /**< version 2, GetMulti: a MultiPathRecord asks, PathRecords answer */
	SA_OP_CONFIG_ADD, /**< version 1, many records */
	SA_OP_CONFIG_DELETE,
	SA_OP_CONFIG_EDIT,
};

/** resp_time: ask the SA's ClassPortInfo for its RespTimeValue once, and remember it. */
#define SA_RESP_TIME_ASK 0xFF

/** What -EEXIST means to who has given the TID. */
#define SA_TID_IN_USE                                                                              \
	"tid: a request to this SA has this TID and is not over: wait for its end, or cancel it"

/** A query or change, and its destination. */
struct sa_query {
	enum sa_op op;
	enum sa_version version;
	const struct sa_record_type *type; /**< not for SA_OP_BULK */
	struct mad_peer to;
	uint8_t resp_time; /**< the SA's RespTimeValue, or SA_RESP_TIME_ASK */
	/** ask with .tid, on the worker that mad_call_worker() says; otherwise with a random one */
	bool keep_tid;
	uint64_t tid;
	uint64_t sm_key;
	uint64_t sa_key; /**< version 1: change token; 0: all */
	uint64_t mask; /**< in version 2's numbering, for either version */
	uint8_t tmpl[SA_RECORD_MAX];
	bool by_rid; /**< version 1: select by RID or RID range instead of by template */
	uint32_t rid;
	uint32_t end_rid; /**< end of the range */
	/**
	 * SA_OP_CONFIG_*: records, SA_RECORD_MAX bytes apart; the caller keeps them until done()
	 */
	const uint8_t *records;
	const uint32_t *rids;
	uint32_t num_records;
	/**
	 * SA_OP_MULTI: SGIDs, then DGIDs, 16 bytes each, counted in tmpl; kept until done(), too
	 */
	const uint8_t *gids;
};

/** Receives the answer; called on the worker. */
struct sa_taker {
	void *arg;
	/** A record of the answer, in order. @retval negative errno: end the query */
	int (*record)(void *arg, const struct sa_record_type *type, uint32_t rid,
		const uint8_t *rec);
	/** Called exactly once. @param sa_key  version 1: the table's change token */
	void (*done)(void *arg, const struct mad_result *result, uint64_t sa_key);
	/** The ClassPortInfo has arrived; the query continues under this handle. May be NULL. */
	void (*moved)(void *arg, mad_handle h);
};

struct sa_client;
/** @param max  most queries at the same time */
struct sa_client *sa_client_create(struct mad_worker *mad, const struct allocator *alloc,
	unsigned int max);
void sa_client_destroy(struct sa_client *c);
/** RespTimeValues that SAs have announced; zero-initialised. */
#define SA_KNOWN_SLOTS 64
struct sa_known {
	uint64_t slot[SA_KNOWN_SLOTS];
};
/**
 * Share the known RespTimeValues with other workers' clients; by default each client has its own.
 */
void sa_client_share(struct sa_client *c, struct sa_known *known);
/** Set EditModifier for add, delete, edit; default 1, 2, 3 (sa-multipacket A6: UNCONFIRMED). */
void sa_client_edit_codes(struct sa_client *c, const uint8_t codes[3]);

/**
 * Start a query. With SA_RESP_TIME_ASK and an SA whose RespTimeValue is unknown it begins with a
 * Get(ClassPortInfo). Then a TID that an open call to this SA has ends it (MAD_END_REFUSED with
 * -EEXIST).
 *
 * @retval -ENOSPC, -EINVAL, -EEXIST (err tells why); taker.done() is not called
 */
int sa_ask(struct sa_client *c, const struct sa_query *q, const struct sa_taker *taker,
	uint64_t now, mad_handle *h, struct error *err);

#endif
