/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queries: the cheapest way to the records a template selects, taken in slices.
 */

#include <errno.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/select.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define FIRST_SLICE 256 /* records looked at before a request is put off */
#define SLICE       1024
#define RESTARTS    4 /* of a query for paths while the fabric changes */
#define RID_LAST    0xFFFFFFFFu

static unsigned int
data_offset(enum sa_version v)
{
	return v == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA;
}

/* --- the plan --- */

/* MCMember: a value whose selector is given is not compared as it is. */
static const struct {
	uint8_t sel_bit;
	uint8_t offset;
	bool (*satisfies)(enum selector s, uint8_t want, uint8_t have);
} mc_selectors[] = {
	{ MC_BIT_MTU_SEL, MC_OFF_MTU, satisfies_mtu },
	{ MC_BIT_RATE_SEL, MC_OFF_RATE, satisfies_rate },
	{ MC_BIT_LIFE_SEL, MC_OFF_LIFE, satisfies_life },
};
#define MC_SELECTORS (sizeof(mc_selectors) / sizeof(mc_selectors[0]))

static uint64_t
selector_bits(struct query *q, const struct query_spec *spec)
{
	uint64_t skip = 0;
	unsigned int i;

	if (spec->type->table != SA_TABLE_MCMEMBER)
		return 0;
	for (i = 0; i < MC_SELECTORS; i++) {
		uint64_t sel = SA_BIT(mc_selectors[i].sel_bit);

		if ((spec->mask & sel) == 0)
			continue;
		skip |= sel | sel << 1;
		if ((spec->mask & sel << 1) == 0)
			continue;
		q->selectors |= 1u << i;
		q->wanted[i] = spec->tmpl[mc_selectors[i].offset];
	}
	return skip;
}

static bool
selectors_hold(const struct query *q, const uint8_t *rec)
{
	unsigned int i;

	for (i = 0; i < MC_SELECTORS; i++)
		if ((q->selectors & 1u << i) != 0
			&& !mc_selectors[i].satisfies(q->wanted[i] >> 6, q->wanted[i] & 0x3F,
				rec[mc_selectors[i].offset] & 0x3F))
			return false;
	return true;
}

static void
plan_records(struct query *q, const struct query_spec *spec)
{
	const struct sa_record_type *t = spec->type;
	uint64_t mask = spec->mask & sa_mask_known(t), skip = selector_bits(q, spec);
	struct sa_access_path lead;
	bool led = mask != 0 && sa_access_path(t, spec->tmpl, mask, &lead);

	q->snapshot = fabric_version(q->w->fabric);
	q->first_rid = spec->first_rid;
	q->last_rid = spec->last_rid;
	q->plan = QUERY_RIDS;
	q->match_all = mask == 0;
	if (led && lead.index) {
		q->plan = QUERY_INDEX;
		q->key = lead.key;
		store_seek_index(&q->cursor, q->snapshot, lead.which, lead.key);
	} else if (led) {
		q->first_rid = lead.first_rid;
		q->last_rid = lead.last_rid;
		skip |= LID_MASK;
	}
	if (!q->match_all) {
		sa_match_compile(&q->match, t, spec->tmpl, mask, skip);
		q->match_all = q->match.first == q->match.end && q->selectors == 0;
	}
	if (q->plan == QUERY_INDEX)
		return;
	if (spec->nothing || (q->match_all && q->who.trusted && !q->get)) {
		q->plan = QUERY_WHOLE;
		return;
	}
	store_seek(&q->cursor, q->snapshot, t->table,
		q->first_rid == 0 ? 0 : store_rank(q->snapshot, t->table, q->first_rid));
}

/* Number of records of the table before and within the range of RIDs. */
static void
count_range(struct query *q)
{
	const struct store_version *v = q->snapshot;
	unsigned int table = q->type->table;
	uint64_t end = store_count(v, table);

	if (q->nothing)
		return;
	q->result->first = q->first_rid == 0 ? 0 : store_rank(v, table, q->first_rid);
	if (q->last_rid != RID_LAST)
		end = store_rank(v, table, q->last_rid + 1);
	q->result->count = end - q->result->first;
}

static uint16_t
plan_paths(struct query *q, const struct query_spec *spec)
{
	q->plan = QUERY_PATHS;
	return path_query_init(&q->path, q->w->config, q->w->fabric, spec->tmpl, spec->mask,
		spec->get);
}

static enum result_kind
kind_of(enum query_plan plan)
{
	switch (plan) {
	case QUERY_WHOLE:
		return RESULT_RANGE;
	case QUERY_PATHS:
		return RESULT_PATHS;
	case QUERY_BULK:
		return RESULT_BULK;
	default:
		return RESULT_RECORDS;
	}
}

/* @return a MAD status */
static uint16_t
plan(struct query *q, const struct query_spec *spec)
{
	uint16_t status = MAD_STATUS_OK;

	if (spec->bulk) {
		q->plan = QUERY_BULK;
		q->snapshot = fabric_version(q->w->fabric);
	} else if (spec->type->attribute == SA_PATH) {
		status = plan_paths(q, spec);
	} else {
		plan_records(q, spec);
	}
	if (status != MAD_STATUS_OK || q->get)
		return status;
	q->result = result_new(q->w, kind_of(q->plan), q->type, q->version);
	if (q->result == NULL)
		return SA_STATUS_NO_RESOURCES;
	q->result->redact = !q->who.trusted;
	q->result->guid = get_be64(q->who.gid.raw + 8);
	q->result->tables = spec->bulk_tables;
	return MAD_STATUS_OK;
}

/* --- a slice --- */

static int
take_record(struct query *q, const struct store_record *r)
{
	if (q->get) {
		q->one = r;
		return ++q->found > 1 ? 1 : 0; /* more is too many already */
	}
	if (q->result->count >= q->w->config->max_results)
		return -ENOSPC;
	return result_add_record(q->result, r);
}

static bool
wanted(struct query *q, const struct store_record *r)
{
	if (!q->match_all && (!sa_match(&q->match, r->bytes) || !selectors_hold(q, r->bytes)))
		return false;
	return sa_visible(q->w->fabric, &q->who, q->type, r->bytes);
}

static int
step_records(struct query *q, unsigned int *budget)
{
	const struct store_record *r;
	uint64_t key = 0;
	int rc = 0;

	while (*budget > 0 && rc == 0) {
		r = store_next(&q->cursor, &key);
		if (r == NULL || (q->plan == QUERY_INDEX ? key != q->key : r->rid > q->last_rid))
			return 0;
		--*budget;
		q->w->counters.records_scanned++;
		if (wanted(q, r))
			rc = take_record(q, r);
	}
	if (rc == 0)
		return -EAGAIN;
	return rc > 0 ? 0 : rc;
}

static int
take_path(void *arg, const struct path_entry *e)
{
	struct query *q = arg;

	if (q->get) {
		q->one_path = *e;
		return ++q->found > 1 ? 1 : 0;
	}
	if (q->result->count >= q->w->config->max_results)
		return -ENOSPC;
	return result_add_path(q->result, e);
}

static int
step_paths(struct query *q, unsigned int *budget)
{
	struct path_query *p = &q->path;
	uint8_t tmpl[PR_LEN];
	int rc = path_query_step(p, q->w->fabric, &q->who, budget, take_path, q);

	if (rc != -ESTALE)
		return rc > 0 ? 0 : rc;
	/* the fabric is another one now: from the beginning */
	if (q->restarts++ == RESTARTS)
		return -ENOSPC;
	memcpy(tmpl, p->tmpl, sizeof(tmpl));
	q->found = 0;
	if (q->result != NULL)
		result_clear(q->result);
	q->path_status = path_query_init(p, q->w->config, q->w->fabric, tmpl, p->mask, q->get);
	return q->path_status != MAD_STATUS_OK ? -EPROTO : -EAGAIN;
}

/* @retval 0 done, -EAGAIN, or why it failed */
static int
step(struct query *q, unsigned int *budget)
{
	if (q->held && store_stale(q->snapshot)) {
		q->w->counters.stale++;
		return -ESTALE;
	}
	switch (q->plan) {
	case QUERY_PATHS:
		return step_paths(q, budget);
	case QUERY_WHOLE:
		count_range(q);
		return 0;
	case QUERY_BULK:
		return 0;
	default:
		return step_records(q, budget);
	}
}

/* --- the answer --- */

static void
query_free(struct query *q)
{
	struct sa_worker *w = q->w;

	if (q->result != NULL)
		result_free(q->result);
	if (q->held)
		store_unhold(w->reader, q->snapshot);
	TAILQ_INSERT_HEAD(&w->queries_free, q, link);
}

static uint16_t
answer_get(struct query *q, uint8_t *reply)
{
	uint8_t *data = reply + data_offset(q->version);
	uint8_t path[PR_LEN];

	if (q->found == 0)
		return SA_STATUS_NO_RECORDS;
	if (q->found > 1)
		return SA_STATUS_TOO_MANY;
	if (q->plan == QUERY_PATHS) {
		path_record(&q->path.common, &q->one_path, path);
		sa_encode(q->type, q->version, path, 0, data);
	} else {
		result_encode(q->type, q->version, q->one->bytes, q->one->rid, !q->who.trusted,
			get_be64(q->who.gid.raw + 8), data);
	}
	q->w->counters.records_sent++;
	return MAD_STATUS_OK;
}

/* The result goes to the transfer, with the version it needs. */
static uint16_t
answer_table(struct query *q, uint8_t *reply, struct mad_source *source)
{
	struct result *r = q->result;

	if (q->plan == QUERY_PATHS)
		r->common = q->path.common;
	else if (result_hold(r, q->snapshot) != 0)
		return SA_STATUS_NO_RESOURCES;
	if (q->version == SA_V2 && r->count > 0)
		put_be16(reply + SA2_OFF_ATTR_OFFSET, q->type->stride / 8);
	q->w->counters.records_sent += r->count;
	result_source(r, source);
	q->result = NULL;
	return MAD_STATUS_OK;
}

static uint16_t
status_of(const struct query *q, int rc)
{
	if (rc == 0)
		return MAD_STATUS_OK;
	return rc == -EPROTO ? q->path_status : SA_STATUS_NO_RESOURCES;
}

/* Version 1 says how new the answer is (A6). */
static void
put_token(const struct query *q, uint8_t *reply)
{
	if (q->version == SA_V1 && q->snapshot != NULL)
		put_be64(reply + SA1_OFF_SA_KEY,
			q->plan == QUERY_BULK
				? sa_token_all(q->w->sa, q->snapshot)
				: sa_token(q->w->sa, q->snapshot, q->type->table));
}

static enum mad_outcome
finish(struct query *q, int rc, uint8_t *reply, struct mad_source *source)
{
	uint16_t status = status_of(q, rc);
	struct sa_worker *w = q->w;
	bool get = q->get;

	if (status == MAD_STATUS_OK) {
		put_token(q, reply);
		status = get ? answer_get(q, reply) : answer_table(q, reply, source);
	}
	query_free(q);
	if (status != MAD_STATUS_OK)
		return sa_refuse(w, reply, status);
	return get ? MAD_ANSWER : MAD_STREAM;
}

static void
query_init(struct query *q, const struct query_spec *spec, const struct requester *who)
{
	q->type = spec->type;
	q->version = spec->version;
	q->get = spec->get;
	q->nothing = spec->nothing;
	q->who = *who;
	q->result = NULL;
	q->snapshot = NULL;
	q->held = false;
	q->selectors = 0;
	q->found = 0;
	q->restarts = 0;
}

/* Keep it for later. @return a MAD status */
static uint16_t
put_off(struct query *q, struct mad_request *req)
{
	struct sa_worker *w = q->w;

	if (q->snapshot != NULL) {
		if (store_hold(w->reader, q->snapshot) != 0)
			return SA_STATUS_NO_RESOURCES;
		q->held = true;
	}
	q->handle = req->handle;
	memcpy(q->mad, req->reply, MAD_LEN);
	TAILQ_INSERT_TAIL(&w->queries_running, q, link);
	return MAD_STATUS_OK;
}

enum mad_outcome
query_start(struct sa_worker *w, struct mad_request *req, const struct query_spec *spec,
	const struct requester *who)
{
	struct query *q = TAILQ_FIRST(&w->queries_free);
	unsigned int budget = FIRST_SLICE;
	uint16_t status;
	int rc;

	if (q == NULL)
		return sa_refuse(w, req->reply, SA_STATUS_NO_RESOURCES);
	TAILQ_REMOVE(&w->queries_free, q, link);
	query_init(q, spec, who);
	status = plan(q, spec);
	if (status == MAD_STATUS_OK) {
		rc = step(q, &budget);
		if (rc != -EAGAIN)
			return finish(q, rc, req->reply, &req->source);
		status = put_off(q, req);
		if (status == MAD_STATUS_OK)
			return MAD_LATER;
	}
	query_free(q);
	return sa_refuse(w, req->reply, status);
}

void
queries_drop(struct sa_worker *w)
{
	struct query *q;

	if (w->queries == NULL)
		return;
	while ((q = TAILQ_FIRST(&w->queries_running)) != NULL) {
		TAILQ_REMOVE(&w->queries_running, q, link);
		query_free(q);
	}
}

static void
answer_later(struct query *q, int rc, uint64_t now)
{
	struct sa_worker *w = q->w;
	struct mad_source source;
	uint8_t reply[MAD_LEN];
	mad_handle h = q->handle;

	/* an answer that nobody waits for any more is dropped, and its source released */
	memcpy(reply, q->mad, MAD_LEN);
	if (finish(q, rc, reply, &source) == MAD_STREAM)
		mad_stream(w->mad, h, reply, &source, now);
	else
		mad_answer(w->mad, h, reply, now);
}

unsigned int
queries_run(struct sa_worker *w, uint64_t now, unsigned int budget)
{
	unsigned int used = 0, slice, left;
	struct query *q;
	int rc;

	while (used < budget && (q = TAILQ_FIRST(&w->queries_running)) != NULL) {
		TAILQ_REMOVE(&w->queries_running, q, link);
		slice = left = budget - used < SLICE ? budget - used : SLICE;
		rc = step(q, &left);
		/* one that looked at nothing has used its turn all the same */
		used += left < slice ? slice - left : 1;
		if (rc == -EAGAIN)
			TAILQ_INSERT_TAIL(&w->queries_running, q, link);
		else
			answer_later(q, rc, now);
	}
	return used;
}
