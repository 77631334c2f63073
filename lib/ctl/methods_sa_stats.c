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
static const char *
method_name(struct rpc_call *call, const struct mad_session_info *i)
{
	size_t m;

	for (m = 0; m < sizeof(method_names) / sizeof(method_names[0]); m++) {
		if (i->mgmt_class != MAD_CLASS_SUBN_ADM || i->method != method_names[m].method)
			continue;
		if (method_names[m].version == 0 || method_names[m].version == i->class_version)
			return method_names[m].name;
	}
	return arena_printf(&call->arena, "0x%02x", i->method);
}

static const char *
attribute_name(struct rpc_call *call, const struct mad_session_info *i)
{
	const struct sa_record_type *t = sa_record_type(i->attribute);

	if (i->mgmt_class == MAD_CLASS_SUBN_ADM && t != NULL)
		return t->alias;
	return arena_printf(&call->arena, "0x%04x", i->attribute);
}

struct session_row {
	struct engine_sa_session s;
	const char *method;
	const char *attribute;
	const char *role;
	uint64_t age_ms;
};

#define SESSION(field, t, ...) ROW(struct session_row, field, t, __VA_ARGS__)
#define INFO(name, field, ...)                                                                     \
	ROW_NAMED(struct session_row, name, s.info.field, TABLE_UINT, __VA_ARGS__)

static const struct table_row session_rows[] = {
	ROW_NAMED(struct session_row, "worker", s.worker, TABLE_UINT),
	ROW_NAMED(struct session_row, "peer", s.info.gid, TABLE_GID),
	INFO("lid", lid, "native IB", .min = 1),
	INFO("qp_num", qpn),
	INFO("tid", tid, .digits = 16),
	INFO("mgmt_class", mgmt_class),
	INFO("class_version", class_version),
	SESSION(method, TABLE_STRING, "Get, GetTable, ...; a number where it is not the SA's"),
	SESSION(attribute, TABLE_STRING, "node, path, ...; a number where it is not the SA's"),
	SESSION(role, TABLE_STRING, "requester, responder"),
	ROW_NAMED(struct session_row, "state", s.info.state, TABLE_STRING),
	INFO("segment", segment, "last acknowledged or received in order"),
	INFO("segments", segments, "0: not known"),
	INFO("window", window),
	INFO("retries_left", retries_left),
	SESSION(age_ms, TABLE_UINT),
	ROW_END,
};

static const struct table_row sa_sessions_results[] = {
	PAGE_ROWS("sessions", struct session_row, session_rows),
	ROW_END,
};

static int
next_session(struct rpc_call *call, uint64_t *cursor, void *item)
{
	struct session_row *row = item;

	if (!engine_sa_session_next(call->e, cursor, &row->s))
		return 0;
	row->method = method_name(call, &row->s.info);
	row->attribute = attribute_name(call, &row->s.info);
	row->role = row->s.info.requester ? "requester" : "responder";
	row->age_ms = row->s.info.age / 1000;
	return 1;
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
	ROW(struct sa_stats_args, worker, TABLE_UINT, "what this worker counted",
		.bit = STATS_WORKER, .max = RC_WORKERS_MAX - 1, .def_text = "the sum of all"),
	ROW(struct sa_stats_args, per_worker, TABLE_BOOL, "each worker's share too, as workers"),
	ROW(struct sa_stats_args, nonzero, TABLE_BOOL, "leave out counters that are 0"),
	ROW_END,
};

struct sa_share {
	uint64_t sessions;
	json_t *mad;
	json_t *sa;
	json_t *aborts_sent;
	json_t *aborts_received;
	struct engine_sa_stats stats;
};

#define SHARE(name, field, t, ...) ROW_NAMED(struct sa_share, name, field, t, __VA_ARGS__)

static const struct table_row sa_share_rows[] = {
	SHARE("sessions", sessions, TABLE_UINT, "of all management classes, live now"),
	SHARE("mad", mad, TABLE_COUNTS,
		"sessions, segments, Acks, Resend requests, KeepAlives, timeouts, ..."),
	SHARE("sa", sa, TABLE_COUNTS,
		"requests by method, records, answers by status, changes, Reports"),
	SHARE("aborts_sent", aborts_sent, TABLE_COUNTS,
		"RMPP sessions that we ended by ABORT or STOP, by status"),
	SHARE("aborts_received", aborts_received, TABLE_COUNTS,
		"RMPP sessions that peers ended, by status"),
	SHARE("memory_used", stats.memory_used, TABLE_UINT, "bytes of sessions and requests"),
	SHARE("memory_total", stats.memory_total, TABLE_UINT, "bytes that there are for them"),
	ROW_END,
};

struct sa_worker {
	unsigned int worker;
	struct sa_share share;
};

static const struct table_row sa_worker_rows[] = {
	ROW(struct sa_worker, worker, TABLE_UINT),
	ROW_INCLUDE(struct sa_worker, share, sa_share_rows),
	ROW_END,
};

#define STORE(field) ROW(struct store_stats, field, TABLE_UINT)

static const struct table_row store_rows[] = {
	STORE(version),
	STORE(bytes),
	STORE(old_bytes),
	STORE(versions_held),
	STORE(versions_given_up),
	STORE(commits),
	STORE(ops),
	ROW_END,
};

struct sa_stats_reply {
	uint32_t present;
	bool enabled;
	struct sa_share share;
	struct table_list workers;
};
#define SA_ENABLED 0x1
#define SA_WORKERS 0x2

static const struct table_row sa_stats_results[] = {
	ROW(struct sa_stats_reply, enabled, TABLE_BOOL, "whether this appliance serves an SA"),
	ROW_INCLUDE(struct sa_stats_reply, share, sa_share_rows),
	ROW_NAMED(struct sa_stats_reply, "store", share.stats.store, TABLE_OBJECT,
		"where it serves an SA", .fields = store_rows, .bit = SA_ENABLED),
	ROW_LIST(struct sa_stats_reply, workers, struct sa_worker, sa_worker_rows,
		.bit = SA_WORKERS, .help = "with per_worker"),
	ROW_END,
};

static json_t *
json_aborts(struct rpc_call *call, const uint64_t count[256])
{
	struct counter_sink s = counter_sink(call, true);
	unsigned int i;

	for (i = 0; i < 256; i++)
		counter_take(&s, rmpp_status_name((uint8_t)i), NULL, count[i]);
	return s.obj;
}

static void
fill_sa_share(struct rpc_call *call, struct sa_share *share, int worker)
{
	const struct sa_stats_args *a = call->args;
	struct counter_sink mad = counter_sink(call, a->nonzero),
			    sa = counter_sink(call, a->nonzero);
	struct engine_sa_stats *s = &share->stats;
	uint64_t ended;

	engine_sa_stats(call->e, worker, s);
	counters_mad(&s->mad, counter_take, &mad);
	counters_sa(&s->sa, counter_take, &sa);
	/*
	 * the counters are read one after the other while workers count: an end may be seen first
	 */
	ended = s->mad.sessions_completed + s->mad.sessions_failed;
	share->sessions = s->mad.sessions_opened > ended ? s->mad.sessions_opened - ended : 0;
	share->mad = mad.obj;
	share->sa = sa.obj;
	share->aborts_sent = json_aborts(call, s->aborts_sent);
	share->aborts_received = json_aborts(call, s->aborts_received);
}

static int
sa_stats(struct rpc_call *call)
{
	const struct sa_stats_args *a = call->args;
	struct sa_stats_reply *reply = call->reply;
	bool one = (a->present & STATS_WORKER) != 0;
	struct sa_worker *row;
	unsigned int w;

	if (one && a->worker >= engine_workers(call->e))
		return error_set(&call->err, EINVAL, "worker: got %u, there are %u, counted from 0",
			a->worker, engine_workers(call->e));
	reply->enabled = engine_sa_enabled(call->e);
	reply->present = (reply->enabled ? SA_ENABLED : 0) | (a->per_worker ? SA_WORKERS : 0);
	fill_sa_share(call, &reply->share, one ? (int)a->worker : -1);
	for (w = 0; a->per_worker && w < engine_workers(call->e); w++) {
		row = ADD(call, &reply->workers, struct sa_worker);
		if (row == NULL)
			return -ENOMEM;
		row->worker = w;
		fill_sa_share(call, &row->share, (int)w);
	}
	return 0;
}

const struct rpc_method methods_sa_stats[] = {
	{ "sa_sessions", page_list, params_page, sizeof(struct page_args),
		"List sessions: transfers of many packets, and requests whose answer comes later.",
		"polca-ctl sa sessions", PAGES(sa_sessions_results, next_session) },
	{ "sa_stats", sa_stats, stats_params, sizeof(struct sa_stats_args),
		"Figures of management datagrams, of the SA and of its store.",
		"polca-ctl sa stats --nonzero", RESULTS(sa_stats_results, struct sa_stats_reply),
		.reads = true },
	{ NULL },
};
