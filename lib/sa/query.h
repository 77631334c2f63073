/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_QUERY_H
#define SA_QUERY_H

/**
 * @file
 * A query in progress: planned once, then run in slices until it is answered.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "mad/mad.h"
#include "sa/access.h"
#include "sa/give_way.h"
#include "sa/multi.h"
#include "sa/path.h"
#include "sa/record.h"
#include "sa/result.h"
#include "store/store.h"

struct sa_worker;

enum query_plan {
	QUERY_WHOLE, /**< a whole table or range of RIDs, no record is examined */
	QUERY_RIDS, /**< examine a range of RIDs */
	QUERY_INDEX, /**< examine the records with one index key */
	QUERY_PATHS,
	QUERY_MULTI,
	QUERY_BULK,
};

struct query {
	TAILQ_ENTRY(query) link;
	struct sa_worker *w;
	mad_handle handle; /**< 0: of a Get that has no session yet */
	uint8_t mad[MAD_LEN]; /**< header of its answer */
	const struct sa_record_type *type;
	enum sa_version version;
	bool get; /**< Get: exactly one record must match */
	bool nothing; /**< answer without records: nothing is newer than .token */
	uint64_t token; /**< SA_Key of that answer */
	enum query_plan plan;
	struct requester who;
	struct give_way_item give_way;
	bool queued; /**< it was put off, and .give_way is linked */
	struct result *result; /**< NULL for a Get */
	const struct store_version *snapshot;
	bool held; /**< the query holds .snapshot */
	struct sa_match match;
	bool match_all;
	uint8_t selectors; /**< MCMember: bit i: mc_selectors[i] counts */
	uint8_t wanted[3];
	struct store_cursor cursor;
	uint64_t key;
	uint32_t first_rid;
	uint32_t last_rid;
	/* result of a Get */
	unsigned int found;
	const struct store_record *one;
	struct path_entry one_path;
	struct path_query path;
	struct multi_query multi;
	struct mad_body *body; /**< the request of .multi */
	unsigned int restarts; /**< restarts because the fabric changed */
	uint16_t path_status; /**< status if a restart failed */
};
TAILQ_HEAD(query_list, query);

/** What a request asks for. */
struct query_spec {
	const struct sa_record_type *type;
	enum sa_version version;
	bool get;
	bool nothing; /**< answer without records: nothing is newer than .token */
	uint64_t token;
	bool multi; /**< GetMulti: .tmpl is its first data; .body all of it, if it is longer */
	struct mad_body *body;
	bool bulk; /**< GetBulk of .bulk_tables, a bit each */
	uint16_t bulk_tables;
	const uint8_t *tmpl; /**< in stored form */
	uint64_t mask; /**< in version 2's numbering */
	uint32_t first_rid; /**< 0 and 0xFFFFFFFF: all */
	uint32_t last_rid;
};

/** Choose how to find the records (query_plan.c). @return a MAD status */
uint16_t query_plan(struct query *q, const struct query_spec *spec);
/** True if the record matches the query and the requester may see it. */
bool query_wants(const struct query *q, const struct store_record *r);

/**
 * Answer a request at once if one slice is enough, else later.
 *
 * @param who  the requester. The reply's header must be complete except for its status
 */
enum mad_outcome query_start(struct sa_worker *w, struct mad_request *req,
	const struct query_spec *spec, const struct requester *who);
/** query_end.c: release what the query holds. */
void query_release(struct query *q);
/** End a query that was put off; its request has ended. */
void query_abandon(struct query *q);
/** Abandon all queries without answers. */
void queries_drop(struct sa_worker *w);
/** Continue queued queries. @return how much of the budget was used */
unsigned int queries_run(struct sa_worker *w, uint64_t now, unsigned int budget);

#endif
