/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>

#include "ctl/counters.h"
#include "ctl/methods.h"

/* --- sa_sessions --- */

/* Numbers mean what the class version says; 0: both. */
static const struct {
	uint8_t version;
	uint8_t method;
	const char *name;
} method_names[] = {
	{ 0, MAD_GET, "Get" },
	{ 0, MAD_SET, "Set" },
	{ 0, MAD_REPORT, "Report" },
	{ SA_V1, SA1_INFORM, "Inform" },
	{ 0, SA_GET_TABLE, "GetTable" },
	{ SA_V1, SA1_GET_BULK, "GetBulk" },
	{ SA_V1, SA1_CONFIG, "Config" },
	{ SA_V2, SA2_GET_MULTI, "GetMulti" },
	{ SA_V2, SA2_DELETE, "Delete" },
};

/* Of the SA's methods and records their names, as the commands have them; of others the numbers. */
static json_t *
json_method(const struct mad_session_info *i)
{
	size_t m;

	for (m = 0; m < sizeof(method_names) / sizeof(method_names[0]); m++) {
		if (i->mgmt_class != MAD_CLASS_SUBN_ADM || i->method != method_names[m].method)
			continue;
		if (method_names[m].version == 0 || method_names[m].version == i->class_version)
			return json_string(method_names[m].name);
	}
	return json_sprintf("0x%02x", i->method);
}

static json_t *
json_attribute(const struct mad_session_info *i)
{
	const struct sa_record_type *t = sa_record_type(i->attribute);

	if (i->mgmt_class == MAD_CLASS_SUBN_ADM && t != NULL)
		return json_string(t->alias);
	return json_sprintf("0x%04x", i->attribute);
}

static json_t *
session_row(const struct engine_sa_session *s)
{
	const struct mad_session_info *i = &s->info;
	json_t *row = json_object();

	set_int(row, "worker", s->worker);
	set(row, "peer", json_gid(&i->gid));
	if (i->lid != 0)
		set_int(row, "lid", i->lid);
	set_int(row, "qp_num", i->qpn);
	set(row, "tid", json_sprintf("0x%016llx", (unsigned long long)i->tid));
	set_int(row, "mgmt_class", i->mgmt_class);
	set_int(row, "class_version", i->class_version);
	set(row, "method", json_method(i));
	set(row, "attribute", json_attribute(i));
	set(row, "role", json_string(i->requester ? "requester" : "responder"));
	set(row, "state", json_string(i->state));
	set_int(row, "segment", i->segment);
	set_int(row, "segments", i->segments);
	set_int(row, "window", i->window);
	set_int(row, "retries_left", i->retries_left);
	set_int(row, "age_ms", i->age / 1000);
	return row;
}

static int
sa_sessions(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	struct engine_sa_session s;
	uint64_t cursor = a->cursor;
	json_t *rows = json_array();

	while (json_array_size(rows) < a->max) {
		if (!engine_sa_session_next(call->e, &cursor, &s)) {
			set_page(call, "sessions", rows, false, 0);
			return 0;
		}
		json_array_append_new(rows, session_row(&s));
	}
	set_page(call, "sessions", rows, true, cursor);
	return 0;
}

/* --- sa_stats --- */

struct sa_stats_args {
	uint32_t present;
	uint32_t worker;
	bool per_worker;
	bool nonzero;
};
#define STATS_WORKER 0x1

static const struct table_row stats_params[] = {
	ROW(struct sa_stats_args, worker, TABLE_UINT, .bit = STATS_WORKER, .max = RC_WORKERS_MAX - 1,
		.def_text = "the sum of all", .help = "what this worker counted"),
	ROW(struct sa_stats_args, per_worker, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "each worker's share too, as workers"),
	ROW(struct sa_stats_args, nonzero, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "leave out counters that are 0"),
	ROW_END,
};

static json_t *
aborts(const uint64_t count[256])
{
	json_t *obj = json_object();
	unsigned int i;

	for (i = 0; i < 256; i++)
		if (count[i] != 0)
			set_int(obj, rmpp_status_name((uint8_t)i), count[i]);
	return obj;
}

static void
set_share(struct rpc_call *call, json_t *obj, int worker, struct engine_sa_stats *s)
{
	const struct sa_stats_args *a = call->args;
	struct counter_sink mad = { json_object(), a->nonzero }, sa = { json_object(), a->nonzero };
	uint64_t ended;

	engine_sa_stats(call->e, worker, s);
	counters_mad(&s->mad, counter_take, &mad);
	counters_sa(&s->sa, counter_take, &sa);
	/* the counters are read one after the other while workers count: an end may be seen first */
	ended = s->mad.sessions_completed + s->mad.sessions_failed;
	set_int(obj, "sessions", s->mad.sessions_opened > ended ? s->mad.sessions_opened - ended : 0);
	set(obj, "mad", mad.obj);
	set(obj, "sa", sa.obj);
	set(obj, "aborts_sent", aborts(s->aborts_sent));
	set(obj, "aborts_received", aborts(s->aborts_received));
	set_int(obj, "memory_used", s->memory_used);
	set_int(obj, "memory_total", s->memory_total);
}

static json_t *
json_store(const struct store_stats *s)
{
	json_t *obj = json_object();

	set_int(obj, "version", s->version);
	set_int(obj, "bytes", s->bytes);
	set_int(obj, "old_bytes", s->old_bytes);
	set_int(obj, "versions_held", s->versions_held);
	set_int(obj, "versions_given_up", s->versions_given_up);
	set_int(obj, "commits", s->commits);
	set_int(obj, "ops", s->ops);
	return obj;
}

static int
sa_stats(struct rpc_call *call)
{
	const struct sa_stats_args *a = call->args;
	bool one = (a->present & STATS_WORKER) != 0;
	struct engine_sa_stats s;
	json_t *row, *rows;
	unsigned int w;

	if (one && a->worker >= engine_workers(call->e))
		return error_set(&call->err, EINVAL, "worker: got %u, there are %u, counted from 0",
			a->worker, engine_workers(call->e));
	set(call->result, "enabled", json_boolean(engine_sa_enabled(call->e)));
	set_share(call, call->result, one ? (int)a->worker : -1, &s);
	if (engine_sa_enabled(call->e))
		set(call->result, "store", json_store(&s.store));
	if (!a->per_worker)
		return 0;
	rows = json_array();
	for (w = 0; w < engine_workers(call->e); w++) {
		row = json_object();
		set_int(row, "worker", w);
		set_share(call, row, (int)w, &s);
		json_array_append_new(rows, row);
	}
	set(call->result, "workers", rows);
	return 0;
}

const struct rpc_method methods_sa_stats[] = {
	{ "sa_sessions", sa_sessions, params_page, sizeof(struct page_args),
		"List sessions: transfers of many packets, and requests whose answer comes later.",
		"sessions: list of worker, peer, lid (native IB), qp_num, tid, mgmt_class, class_version, method (Get, GetTable, ...) and attribute (node, path, ...; numbers where they are not the SA's), role (requester, responder), state, segment (last acknowledged or received in order), segments (0: not known), window, retries_left, age_ms" PAGE_RESULT,
		"polca-ctl sa sessions" },
	{ "sa_stats", sa_stats, stats_params, sizeof(struct sa_stats_args),
		"Figures of management datagrams, of the SA and of its store.",
		"enabled: whether this appliance serves an SA\n"
		"sessions: live now\n"
		"mad: object: sessions, segments, Acks, Resend requests, KeepAlives, timeouts, ...\n"
		"sa: object: requests by method, records, answers by status, changes, Reports\n"
		"aborts_sent, aborts_received: RMPP sessions ended by ABORT or STOP, by status\n"
		"memory_used, memory_total: bytes of sessions and requests\n"
		"store: version, bytes, old_bytes, versions_held, versions_given_up, commits, ops\n"
		"workers: with per_worker: list of worker and all of these but enabled and store",
		"polca-ctl sa stats --nonzero" },
	{ NULL },
};
