/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_QUERY_H
#define SA_QUERY_H

/**
 * @file
 * A query on its way: planned once, then run in slices until it is answered.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "mad/mad.h"
#include "sa/access.h"
#include "sa/multi.h"
#include "sa/path.h"
#include "sa/record.h"
#include "sa/result.h"
#include "store/store.h"

struct sa_worker;

enum query_plan {
	QUERY_WHOLE, /**< a table or a range of RIDs as it is */
	QUERY_RIDS, /**< look at a range of RIDs */
	QUERY_INDEX, /**< look at the records of one key */
	QUERY_PATHS,
	QUERY_MULTI,
	QUERY_BULK,
};

struct query {
	TAILQ_ENTRY(query) link;
	struct sa_worker *w;
	mad_handle handle; /**< of a query that is answered later */
	uint8_t mad[MAD_LEN]; /**< its answer's header */
	const struct sa_record_type *type;
	enum sa_version version;
	bool get; /**< one record is wanted */
	bool nothing;
	uint64_t token; /**< of what is answered with nothing */
	enum query_plan plan;
	struct requester who;
	struct result *result; /**< of a table */
	const struct store_version *snapshot;
	bool held; /**< by the query itself */
	struct sa_match match;
	bool match_all;
	uint8_t selectors; /**< of MCMember: which of them count */
	uint8_t wanted[3];
	struct store_cursor cursor;
	uint64_t key;
	uint32_t first_rid;
	uint32_t last_rid;
	/* what a Get found */
	unsigned int found;
	const struct store_record *one;
	struct path_entry one_path;
	struct path_query path;
	struct multi_query multi;
	struct mad_body *body; /**< kept for .multi */
	unsigned int restarts; /**< because the fabric changed */
	uint16_t path_status; /**< why it could not begin again */
};
TAILQ_HEAD(query_list, query);

/** What to look for. */
struct query_spec {
	const struct sa_record_type *type;
	enum sa_version version;
	bool get;
	bool nothing; /**< answer no records, whatever there is: nothing is newer than .token */
	uint64_t token;
	bool multi; /**< GetMulti: .tmpl is the request's first data, .body the whole if it is longer */
	struct mad_body *body;
	bool bulk; /**< of bulk_tables, a bit each */
	uint16_t bulk_tables;
	const uint8_t *tmpl; /**< in the house's form */
	uint64_t mask; /**< version 2's numbering */
	uint32_t first_rid; /**< 0 and 0xFFFFFFFF: any */
	uint32_t last_rid;
};

/** Find the way to what is asked for (query_plan.c). @return a MAD status */
uint16_t query_plan(struct query *q, const struct query_spec *spec);
/** Is a record on that way one of those asked for, and may the requester see it? */
bool query_wants(const struct query *q, const struct store_record *r);

/**
 * Answer a request: at once if a slice is enough, else later.
 *
 * @param who  of the request. The reply's header is complete but for its status
 */
enum mad_outcome query_start(struct sa_worker *w, struct mad_request *req,
	const struct query_spec *spec, const struct requester *who);
/** Give up those under way; nobody is answered. */
void queries_drop(struct sa_worker *w);
/** Go on with those under way. @return what was used of the budget */
unsigned int queries_run(struct sa_worker *w, uint64_t now, unsigned int budget);

#endif
