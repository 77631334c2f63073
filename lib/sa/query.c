/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Run queries in slices: the first one at once, without keeping anything, the following ones in
 * turns with other queries.
 */

#include <errno.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/server.h"
#include "wire/bytes.h"

#define FIRST_SLICE 256 /* records read before a request is queued */
#define SLICE       1024
#define RESTARTS    4 /* most restarts of a path query while the fabric changes */
#define RID_LAST    0xFFFFFFFFu

static unsigned int
data_offset(enum sa_version v)
{
	return v == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA;
}

/* --- a slice --- */

/* Set the result's range: the number of records before and within the range of RIDs. */
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

static int
query_take_record(struct query *q, const struct store_record *r)
{
	if (q->get) {
		q->one = r;
		return ++q->found > 1 ? 1 : 0; /* two are too many: stop */
	}
	if (q->result->count >= q->w->config->max_results)
		return -ENOSPC;
	return result_add_record(q->result, r);
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
		if (query_wants(q, r))
			rc = query_take_record(q, r);
	}
	if (rc == 0)
		return -EAGAIN;
	return rc > 0 ? 0 : rc;
}

static int
query_take_path(void *arg, const struct path_entry *e)
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
look_for_paths(struct query *q, unsigned int *budget)
{
	struct fabric *f = q->w->fabric;

	if (q->plan == QUERY_MULTI)
		return multi_step(&q->multi, &q->path, q->w->config, f, &q->who, budget,
			query_take_path, q, &q->path_status);
	return path_query_step(&q->path, f, &q->who, budget, query_take_path, q);
}

/* Start again because the fabric has changed. @return a MAD status */
static uint16_t
query_restart(struct query *q)
{
	uint8_t tmpl[PR_LEN];

	q->found = 0;
	if (q->result != NULL)
		result_clear(q->result);
	if (q->plan == QUERY_MULTI) {
		multi_rewind(&q->multi);
		return MAD_STATUS_OK;
	}
	memcpy(tmpl, q->path.tmpl, sizeof(tmpl));
	return path_query_init(&q->path, q->w->config, q->w->fabric, tmpl, q->path.mask, q->get);
}

static int
step_paths(struct query *q, unsigned int *budget)
{
	int rc;

	while ((rc = look_for_paths(q, budget)) == -ESTALE) {
		if (q->restarts++ == RESTARTS)
			return -ENOSPC;
		q->path_status = query_restart(q);
		if (q->path_status != MAD_STATUS_OK)
			return -EPROTO;
	}
	return rc > 0 ? 0 : rc;
}

/* @retval 0 done, -EAGAIN, or why it failed */
static int
query_step(struct query *q, unsigned int *budget)
{
	if (q->held && store_stale(q->snapshot)) {
		q->w->counters.stale++;
		return -ESTALE;
	}
	switch (q->plan) {
	case QUERY_PATHS:
	case QUERY_MULTI:
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

static uint16_t
query_answer_get(struct query *q, uint8_t *reply)
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
		result_encode(q->type, q->version, q->one->bytes, q->one->rid, q->who.sight,
			get_be64(q->who.gid.raw + 8), data);
	}
	q->w->counters.records_sent++;
	return MAD_STATUS_OK;
}

/* Pass the result, with the version it needs, to the transfer. */
static uint16_t
query_answer_table(struct query *q, uint8_t *reply, struct mad_source *source)
{
	struct result *r = q->result;

	if (r->kind == RESULT_PATHS)
		r->common = q->path.common;
	else if (result_hold(r, q->snapshot) != 0)
		return SA_STATUS_NO_RESOURCES;
	if (q->version == SA_V2 && r->count > 0)
		put_be16(reply + SA2_OFF_ATTR_OFFSET, q->type->stride / 8);
	if (q->plan == QUERY_MULTI) /* a MultiPathRecord asks, PathRecords answer */
		put_be16(reply + MAD_OFF_ATTRIBUTE, q->type->attribute);
	q->w->counters.records_sent += r->count;
	result_source(r, source);
	r->queued = NULL;
	q->result = NULL;
	return MAD_STATUS_OK;
}

static uint16_t
query_status(const struct query *q, int rc)
{
	if (rc == 0)
		return MAD_STATUS_OK;
	return rc == -EPROTO ? q->path_status : SA_STATUS_NO_RESOURCES;
}

/* Version 1: tell the state of the tables, so that a client can ask for changes since (A6). */
static void
put_token(const struct query *q, uint8_t *reply)
{
	uint64_t token;

	if (q->version != SA_V1 || q->snapshot == NULL)
		return;
	if (q->nothing)
		token = q->token;
	else if (q->plan == QUERY_BULK)
		token = sa_token_all(q->w->sa, q->snapshot);
	else
		token = sa_token(q->w->sa, q->snapshot, q->type->table, q->who.trusted);
	put_be64(reply + SA1_OFF_SA_KEY, token);
}

static enum mad_outcome
query_finish(struct query *q, int rc, uint8_t *reply, struct mad_source *source)
{
	uint16_t status = query_status(q, rc);

	if (status == MAD_STATUS_OK) {
		put_token(q, reply);
		status = q->get ? query_answer_get(q, reply) : query_answer_table(q, reply, source);
	}
	query_release(q);
	if (status != MAD_STATUS_OK)
		return sa_refuse(q->w, reply, status);
	return q->get ? MAD_ANSWER : MAD_STREAM;
}

static void
query_init(struct query *q, struct sa_worker *w, const struct query_spec *spec,
	const struct requester *who, mad_handle handle)
{
	q->w = w;
	q->handle = handle;
	q->give_way.origin = give_way_origin(w->give_way, who);
	q->queued = false;
	q->type = spec->type;
	q->version = spec->version;
	q->get = spec->get;
	q->nothing = spec->nothing;
	q->token = spec->token;
	q->who = *who;
	q->result = NULL;
	q->body = NULL;
	q->snapshot = NULL;
	q->held = false;
	q->selectors = 0;
	q->found = 0;
	q->restarts = 0;
}

/* Strangers leave an eighth of the places to others, and one of theirs may give way to another. */
static bool
query_has_place(const struct query *fresh)
{
	struct sa_worker *w = fresh->w;
	bool limited = sa_is_limited(&fresh->who) &&
		w->queries_of_strangers >= sa_share_of_strangers(w->config->max_queries);

	if (!limited && !TAILQ_EMPTY(&w->queries_free))
		return true;
	if (give_way_for_query(fresh))
		return true;
	if (limited) {
		w->counters.strangers_busy++;
		limit_peer_note(&w->limited.strangers_busy, fresh->who.gid.raw);
	}
	return false;
}

/* Queue the query. @return a MAD status */
static uint16_t
query_put_off(struct query *fresh, struct mad_request *req)
{
	struct sa_worker *w = fresh->w;
	struct query *q;

	if (!query_has_place(fresh) || mad_later(req) == 0)
		return SA_STATUS_NO_RESOURCES;
	q = TAILQ_FIRST(&w->queries_free);
	if (fresh->snapshot != NULL) {
		if (store_hold(w->reader, fresh->snapshot) != 0)
			return SA_STATUS_NO_RESOURCES;
		fresh->held = true;
	}
	TAILQ_REMOVE(&w->queries_free, q, link);
	*q = *fresh;
	if (q->plan == QUERY_MULTI && q->multi.body != NULL) {
		q->body = q->multi.body;
		req->take_body = true;
	}
	q->handle = req->handle;
	if (q->result != NULL)
		q->result->queued = q;
	give_way_query_queued(q);
	memcpy(q->mad, req->reply, MAD_LEN);
	TAILQ_INSERT_TAIL(&w->queries_running, q, link);
	return MAD_STATUS_OK;
}

enum mad_outcome
query_start(struct sa_worker *w, struct mad_request *req, const struct query_spec *spec,
	const struct requester *who)
{
	struct query *q = &w->fresh;
	unsigned int budget = FIRST_SLICE;
	uint16_t status;
	int rc;

	query_init(q, w, spec, who, req->handle);
	status = query_plan(q, spec);
	if (status == MAD_STATUS_OK) {
		rc = query_step(q, &budget);
		if (rc != -EAGAIN)
			return query_finish(q, rc, req->reply, &req->source);
		status = query_put_off(q, req);
		if (status == MAD_STATUS_OK)
			return MAD_LATER;
	}
	query_release(q);
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
		query_release(q);
	}
}

static void
query_answer_later(struct query *q, int rc, uint64_t now)
{
	struct sa_worker *w = q->w;
	struct mad_source source;
	uint8_t reply[MAD_LEN];
	mad_handle h = q->handle;

	memcpy(reply, q->mad, MAD_LEN);
	/* if the request has ended, these drop the answer and release the source */
	if (query_finish(q, rc, reply, &source) == MAD_STREAM)
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
		rc = query_step(q, &left);
		/* a query that examined no record still counts */
		used += left < slice ? slice - left : 1;
		if (rc == -EAGAIN) {
			TAILQ_INSERT_TAIL(&w->queries_running, q, link);
			continue;
		}
		query_answer_later(q, rc, now);
		TAILQ_INSERT_HEAD(&w->queries_free, q, link);
	}
	return used;
}
