/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_CLIENT_H
#define SA_CLIENT_H

/**
 * @file
 * Subnet administration, the client: queries and changes by record type and component mask, in
 * either class version. On one worker; results are records in the house's form.
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
	SA_OP_MULTI, /**< version 2, GetMulti: asks by MultiPathRecord, brings PathRecords */
	SA_OP_CONFIG_ADD, /**< version 1, many records */
	SA_OP_CONFIG_DELETE,
	SA_OP_CONFIG_EDIT,
};

/** RespTimeValue: what the SA's ClassPortInfo says, which is asked for once and then known. */
#define SA_RESP_TIME_ASK 0xFF

/** What to ask, and of whom. */
struct sa_query {
	enum sa_op op;
	enum sa_version version;
	const struct sa_record_type *type; /**< not for SA_OP_BULK */
	struct mad_peer to;
	uint8_t resp_time; /**< of the SA, or SA_RESP_TIME_ASK */
	uint64_t sm_key;
	uint64_t sa_key; /**< version 1: change token; 0: all */
	uint64_t mask; /**< version 2's numbering, whatever the version asked in */
	uint8_t tmpl[SA_RECORD_MAX];
	bool by_rid; /**< version 1: RID or RID range instead of the template */
	uint32_t rid;
	uint32_t end_rid; /**< of a range */
	/** of SA_OP_CONFIG_*: records, each SA_RECORD_MAX bytes apart, kept by the caller until done */
	const uint8_t *records;
	const uint32_t *rids;
	uint32_t num_records;
	/** of SA_OP_MULTI: SGIDs, then DGIDs, 16 bytes each, as many as tmpl counts; kept alike */
	const uint8_t *gids;
};

/** Takes what comes; called on the worker. */
struct sa_taker {
	void *arg;
	/** One record of the answer, in order. @retval negative errno: end the query */
	int (*record)(void *arg, const struct sa_record_type *type, uint32_t rid,
		const uint8_t *rec);
	/** Exactly once. @param sa_key  version 1: the table's change token */
	void (*done)(void *arg, const struct mad_result *result, uint64_t sa_key);
	/** The SA's ClassPortInfo is here: the query goes on under this handle. May be NULL. */
	void (*moved)(void *arg, mad_handle h);
};

struct sa_client;
/** @param max  queries at one time */
struct sa_client *sa_client_create(struct mad_worker *mad, const struct allocator *alloc,
	unsigned int max);
void sa_client_destroy(struct sa_client *c);
/** RespTimeValues that SAs have announced; zero to begin with. */
#define SA_KNOWN_SLOTS 64
struct sa_known {
	uint64_t slot[SA_KNOWN_SLOTS];
};
/** Share what is known with the clients of other workers; without this each asks by itself. */
void sa_client_share(struct sa_client *c, struct sa_known *known);
/** EditModifier of add, delete, edit; without this 1, 2, 3 (sa-multipacket A6: UNCONFIRMED). */
void sa_client_edit_codes(struct sa_client *c, const uint8_t codes[3]);

/**
 * Start a query; with SA_RESP_TIME_ASK, of an SA that is not known, it begins with a
 * Get(ClassPortInfo).
 *
 * @retval -ENOSPC, -EINVAL (err says what); taker.done() is not called then
 */
int sa_ask(struct sa_client *c, const struct sa_query *q, const struct sa_taker *taker,
	uint64_t now, mad_handle *h, struct error *err);

#endif
