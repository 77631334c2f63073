/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Our SA queries: a worker sends them and appends the records to memory that was mapped when the
 * query began (pages that are not touched cost nothing). It publishes the number of bytes filled,
 * and the control thread reads up to there. A query whose records do not fit ends with an error.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_cycles.h>

#include "engine/requests.h"
#include "engine/verbs_private.h"
#include "engine/verbs_sa.h"
#include "wire/wire.h"

/* A record in a query's memory; 8-byte aligned. */
struct query_entry {
	const struct sa_record_type *type;
	uint32_t rid;
	uint32_t spare;
	uint8_t bytes[];
};

struct query {
	struct request r;
	/* used by the control thread only */
	uint64_t page; /* number of the record after the last page read */
	uint64_t page_at; /* its offset in .buf */
	uint8_t *buf;
	size_t size;
	uint8_t *records_sent; /* a copy of the records of a Config request */
	size_t records_size;
	/* written by the worker until .r.done */
	uint64_t filled; /* bytes of .buf in use; stored with release */
	uint64_t records; /* number of records in .buf; relaxed */
	uint64_t ended;
	uint64_t sa_key;
};

static void
sa_query_unmap(struct request *r)
{
	const struct query *q = (const struct query *)r;

	if (q->buf != NULL)
		munmap(q->buf, q->size);
	if (q->records_sent != NULL)
		munmap(q->records_sent, q->records_size);
}

static const struct request_kind query_kind = {
	.size = sizeof(struct query),
	.num = ENGINE_SA_QUERIES,
	.forget_s = 300,
	.replace_s = 10,
	.full = "there are %u SA queries already: cancel one (sa_cancel) or wait",
	.release = sa_query_unmap,
};

/* --- on the worker --- */

static int
sa_query_take_record(void *arg, const struct sa_record_type *type, uint32_t rid, const uint8_t *rec)
{
	struct query *q = arg;
	struct query_entry *e = (struct query_entry *)(q->buf + q->filled);
	size_t size = sizeof(*e) + RTE_ALIGN_CEIL((size_t)type->len, 8);

	if (size > q->size - q->filled)
		return -ENOBUFS;
	e->type = type;
	e->rid = rid;
	memcpy(e->bytes, rec, type->len);
	__atomic_store_n(&q->records, q->records + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&q->filled, q->filled + size, __ATOMIC_RELEASE);
	wakeup_send(q->r.engine);
	return 0;
}

static void
query_take_end(void *arg, const struct mad_result *result, uint64_t sa_key)
{
	struct query *q = arg;
	struct engine *e = q->r.engine;

	q->r.result = *result;
	q->r.result.mad = NULL;
	q->sa_key = sa_key;
	q->ended = rte_get_tsc_cycles();
	/* after the store the control thread may give the place to the next request */
	__atomic_store_n(&q->r.done, 1, __ATOMIC_RELEASE);
	wakeup_send(e);
}

static void
query_take_handle(void *arg, mad_handle h)
{
	struct query *q = arg;

	q->r.handle = h;
}

struct ask_args {
	struct query *q;
	const struct sa_query *query;
	struct error *err;
};

static int
query_ask_here(struct worker *w, void *arg)
{
	const struct ask_args *a = arg;
	struct sa_taker taker = { a->q, sa_query_take_record, query_take_end, query_take_handle };

	return sa_ask(w->client, a->query, &taker, rte_get_tsc_cycles(), &a->q->r.handle, a->err);
}

struct look {
	const struct query *q;
	struct engine_sa_progress *p;
};

static int
query_session_here(struct worker *w, void *arg)
{
	const struct look *look = arg;
	struct mad_session_info info;

	if (!mad_session_get(w->mad, look->q->r.handle, rte_get_tsc_cycles(), &info))
		return -ENOENT;
	look->p->segment = info.segment;
	look->p->segments = info.segments;
	return 0;
}

/* --- the table of queries --- */

static struct query *
query_find(struct engine *e, uint32_t id, struct error *err)
{
	struct query *q = request_find(&e->queries, id);

	if (q == NULL)
		error_set(err, ENOENT, "query: there is no query %u (any more)", id);
	return q;
}

static void *
query_map(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem != MAP_FAILED ? mem : NULL;
}

/* Copy the records of a Config request, which must stay until the query ends. */
static int
query_keep_records(struct query *q, struct sa_query *query, struct error *err)
{
	size_t n = query->num_records, bytes = n * SA_RECORD_MAX, rids = n * sizeof(uint32_t);

	if (n == 0)
		return 0;
	q->records_size = bytes + rids;
	q->records_sent = query_map(q->records_size);
	if (q->records_sent == NULL)
		return error_set(err, ENOMEM, "no memory for %zu records", n);
	memcpy(q->records_sent, query->records, bytes);
	query->records = q->records_sent;
	if (query->rids != NULL) {
		memcpy(q->records_sent + bytes, query->rids, rids);
		query->rids = (const uint32_t *)(q->records_sent + bytes);
	}
	return 0;
}

static int
query_fill_peer(struct engine *e, const struct engine_sa_query *q, struct mad_peer *to,
	struct error *err)
{
	struct engine_ah ah = *q->ah;
	const struct port_attr *port;

	if (ah.port >= link_num_ports(e->link))
		return error_set(err, EINVAL, "port: got %u, there are %u, counted from 0", ah.port,
			link_num_ports(e->link));
	port = link_port_attr(e->link, ah.port);
	if (q->pkey_index >= port->num_pkeys)
		return error_set(err, EINVAL, "pkey_index: got %u, %s has 0..%u", q->pkey_index,
			port->name, port->num_pkeys - 1);
	if (q->own && port->ib)
		ah.dlid = port->lid;
	else if (q->own && ah.sgid_index < port->num_gids)
		ah.dgid = port->gid[ah.sgid_index].gid;
	to->qpn = QPN_GSI;
	to->qkey = MAD_QKEY;
	to->pkey = port->pkey[q->pkey_index];
	return ah_resolve(e, &ah, &to->av, &to->neighbour, err);
}

/* A TID that is given decides which worker gets the answer, so that one has to ask. */
static unsigned int
query_worker(struct engine *e, const struct engine_sa_query *ask, const struct mad_peer *to)
{
	uint8_t mad[MAD_LEN] = {
		[MAD_OFF_CLASS] = MAD_CLASS_SUBN_ADM,
		[MAD_OFF_CLASS_VERSION] = (uint8_t)ask->query.version,
	};

	if (ask->worker >= 0)
		return (unsigned int)ask->worker;
	if (!ask->query.keep_tid)
		return e->queries.turn++ % e->num_workers;
	put_be64(mad + MAD_OFF_TID, ask->query.tid);
	return mad_call_worker(e->mad_hash_key, e->num_workers, to, mad);
}

int
engine_sa_query(struct engine *e, const struct engine_sa_query *ask, uint32_t *id,
	struct error *err)
{
	struct sa_query query = ask->query;
	struct ask_args args = { NULL, &query, err };
	struct query *q;
	int ret;

	if (ask->own && !engine_sa_enabled(e))
		return error_set(err, EINVAL,
			"this appliance serves no SA (sa.enabled): name another's address");
	if (ask->worker >= (int)e->num_workers)
		return error_set(err, EINVAL, "worker: got %d, there are %u, counted from 0",
			ask->worker, e->num_workers);
	if (ask->own && query.resp_time == SA_RESP_TIME_ASK)
		query.resp_time = e->config.mad.resp_time;
	ret = query_fill_peer(e, ask, &query.to, err);
	if (ret != 0)
		return ret;
	q = request_new(&e->queries, &query_kind, e, ask->monitoring, err);
	if (q == NULL)
		return -ENOSPC;
	q->size = e->config.sa.query_mb * (UINT64_C(1) << 20);
	q->buf = query_map(q->size);
	ret = q->buf != NULL ? query_keep_records(q, &query, err)
			     : error_set(err, ENOMEM, "no memory for the records of a query");
	if (ret == 0) {
		q->r.timeout = (uint64_t)ask->timeout_ms * (e->hz / 1000);
		args.q = q;
		ret = request_start(&q->r, query_worker(e, ask, &query.to), query_ask_here, &args);
	}
	if (ret != 0)
		request_forget(&e->queries, &q->r);
	else
		*id = request_id(&e->queries, &q->r);
	return ret;
}

/* --- progress and records --- */

int
engine_sa_progress(struct engine *e, uint32_t id, struct engine_sa_progress *p, struct error *err)
{
	struct look look = { NULL, p };
	struct query *q;

	engine_sa_watch(e);
	q = query_find(e, id, err);
	memset(p, 0, sizeof(*p));
	if (q == NULL)
		return -ENOENT;
	p->done = request_is_done(&q->r);
	p->monitoring = q->r.monitoring;
	p->bytes = __atomic_load_n(&q->filled, __ATOMIC_ACQUIRE);
	p->records = relaxed(&q->records);
	if (!p->done) {
		look.q = q;
		engine_call(e, q->r.worker, query_session_here, &look);
		p->elapsed_us = (rte_get_tsc_cycles() - q->r.started) / (e->hz / 1000000);
		return 0;
	}
	p->end = q->r.result.end;
	p->timed_out = q->r.timed_out;
	p->status = q->r.result.status;
	p->rmpp_status = q->r.result.rmpp_status;
	p->error = q->r.result.error;
	p->resent = q->r.result.resent;
	p->segment = p->segments = q->r.result.segments;
	p->sa_key = q->sa_key;
	p->elapsed_us = (q->ended - q->r.started) / (e->hz / 1000000);
	return 0;
}

static size_t
entry_size(const struct query_entry *entry)
{
	return sizeof(*entry) + RTE_ALIGN_CEIL((size_t)entry->type->len, 8);
}

/* Find record number n. Pages are read in order, so the search begins where the last page ended. */
static const struct query_entry *
entry_at(struct query *q, uint64_t n)
{
	uint64_t filled = __atomic_load_n(&q->filled, __ATOMIC_ACQUIRE);

	if (n < q->page)
		q->page = q->page_at = 0;
	for (; q->page_at < filled && q->page < n; q->page++)
		q->page_at += entry_size((const struct query_entry *)(q->buf + q->page_at));
	return q->page_at < filled ? (const struct query_entry *)(q->buf + q->page_at) : NULL;
}

bool
engine_sa_next(struct engine *e, uint32_t id, uint64_t *cursor, struct engine_sa_record *r)
{
	struct query *q = query_find(e, id, NULL);
	const struct query_entry *entry = q != NULL ? entry_at(q, *cursor) : NULL;

	if (entry == NULL)
		return false;
	r->type = entry->type;
	r->rid = entry->rid;
	r->bytes = entry->bytes;
	++*cursor;
	return true;
}

int
engine_sa_cancel(struct engine *e, uint32_t id, struct error *err)
{
	struct query *q = query_find(e, id, err);

	if (q == NULL)
		return -ENOENT;
	request_forget(&e->queries, &q->r);
	return 0;
}

void
engine_sa_watch(struct engine *e)
{
	sa_walks_watch(e);
	requests_watch(&e->queries);
}

bool
engine_sa_enabled(const struct engine *e)
{
	return e->sa != NULL;
}

uint64_t
engine_sa_key(const struct engine *e)
{
	return e->sa_own_key;
}
