/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * SA queries: started here, fetched page by page, forgotten when their client says so or does not
 * come back.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/json_record.h"
#include "ctl/methods.h"
#include "sa/json.h"

#define CONFIG_MAX  20000 /* records in a request: its line is bounded anyway */
#define WAIT_MAX_MS 60000

/* --- sa_query --- */

struct sa_query_args {
	struct ah_args ah; /* .dgid: to */
	uint32_t op;
	const char *record;
	uint8_t class_version;
	json_t *fields;
	json_t *records;
	uint64_t component_mask;
	uint32_t rid;
	uint32_t end_rid;
	uint64_t sm_key;
	uint64_t sa_key;
	uint64_t tid;
	uint8_t resp_time;
	uint16_t pkey_index;
	uint32_t timeout_ms;
	uint32_t worker;
};
#define SA_TO        (AH_LAST << 1)
#define SA_VERSION   (AH_LAST << 2)
#define SA_MASK      (AH_LAST << 3)
#define SA_RID       (AH_LAST << 4)
#define SA_END_RID   (AH_LAST << 5)
#define SA_SM_KEY    (AH_LAST << 6)
#define SA_WORKER    (AH_LAST << 7)
#define SA_RESP_TIME (AH_LAST << 8)
#define SA_TID       (AH_LAST << 9)

static const struct table_word words_op[] = {
	{ "get", SA_OP_GET },
	{ "table", SA_OP_TABLE },
	{ "bulk", SA_OP_BULK },
	{ "set", SA_OP_SET },
	{ "delete", SA_OP_DELETE },
	{ "config_add", SA_OP_CONFIG_ADD },
	{ "config_edit", SA_OP_CONFIG_EDIT },
	{ "config_delete", SA_OP_CONFIG_DELETE },
	{ NULL, 0 },
};

static const struct table_row query_params[] = {
	ROW(struct sa_query_args, op, TABLE_ENUM,
		"get: one record; table: all that match; bulk: the whole database; set and delete: one record; config_...: many, all or none. bulk and config_... are of class version 1",
		.def = SA_OP_TABLE, .words = words_op),
	ROW(struct sa_query_args, record, TABLE_STRING,
		"type of record by name (node, port, link, path, ...; NodeRecord) or attribute ID; required but for bulk",
		.max = 64),
	ROW(struct sa_query_args, fields, TABLE_MAP,
		"components by name: what a record must have to match, or what is set; a name that does not exist is answered with those that do"),
	{
		.name = "to",
		.type = TABLE_GID,
		.offset = offsetof(struct sa_query_args, ah.dgid),
		.size = sizeof(union gid),
		.bit = SA_TO,
		.def_text = "this appliance's own SA",
		.help = "address of the SA to ask",
	},
	AH_ROW(offsetof(struct sa_query_args, ah), port, TABLE_UINT, "local port to ask from",
		.bit = AH_PORT, .max = LINK_PORTS_MAX - 1, .def_text = "0"),
	{
		.name = "class_version",
		.type = TABLE_UINT,
		.offset = offsetof(struct sa_query_args, class_version),
		.size = 1,
		.min = 1,
		.max = 2,
		.bit = SA_VERSION,
		.def_text = "2; of bulk and config_... 1",
		.help = "1: IBA 1.0's SA and its multi-packet protocol; 2: today's, with RMPP",
	},
	ROW(struct sa_query_args, component_mask, TABLE_UINT,
		"components that count, in class version 2's numbering", .bit = SA_MASK,
		.def_text = "of the fields given"),
	ROW(struct sa_query_args, rid, TABLE_UINT,
		"class version 1: record identifier instead of fields", .bit = SA_RID),
	ROW(struct sa_query_args, end_rid, TABLE_UINT, "class version 1: the last of a range",
		.bit = SA_END_RID, .def_text = "rid"),
	ROW(struct sa_query_args, sm_key, TABLE_UINT, "makes a trusted requester", .bit = SA_SM_KEY,
		.def_text = "the own SA's, 0 to others"),
	ROW(struct sa_query_args, sa_key, TABLE_UINT,
		"class version 1: only what has changed since this token (sa_result tells it); 0: everything"),
	ROW(struct sa_query_args, records, TABLE_MAPS,
		"config_...: the records, components by name, rid as well", .min = 1,
		.max = CONFIG_MAX),
	ROW(struct sa_query_args, timeout_ms, TABLE_UINT, "give up after so many milliseconds",
		.max = 86400000, .def_text = "timeouts and retries of the protocol alone"),
	ROW(struct sa_query_args, resp_time, TABLE_UINT,
		"RespTimeValue of the SA asked: 4.096 us * 2^it to answer", .bit = SA_RESP_TIME,
		.max = 31, .def_text = "what its ClassPortInfo says, asked for once"),
	ROW(struct sa_query_args, pkey_index, TABLE_UINT, "P_Key to ask with",
		.max = PORT_PKEYS_MAX - 1),
	AH_ROW(offsetof(struct sa_query_args, ah), sgid_index, TABLE_UINT,
		"own address to ask from", .max = 255, .bit = AH_SGID_INDEX,
		.def_text = "the first that suits"),
	AH_ROW(offsetof(struct sa_query_args, ah), dlid, TABLE_UINT, "native IB: LID of the SA"),
	AH_ROW(offsetof(struct sa_query_args, ah), dmac, TABLE_MAC,
		.help = "MAC address of the next hop", .bit = AH_DMAC,
		.def_text = "found by ARP or IPv6 ND"),
	ROW(struct sa_query_args, worker, TABLE_UINT, "worker that asks; not with tid",
		.bit = SA_WORKER, .max = RC_WORKERS_MAX - 1, .def_text = "each in turn"),
	ROW(struct sa_query_args, tid, TABLE_UINT,
		"TransactionID: a change with the same one that is repeated at another appliance of a fleet, from the same address, has one effect. Others must not be able to guess it",
		.bit = SA_TID, .def_text = "a random one"),
	ROW_END,
};

static bool
query_given(const struct sa_query_args *a, uint32_t bit)
{
	return (a->ah.present & bit) != 0;
}

static bool
is_config_op(uint32_t op)
{
	return op >= SA_OP_CONFIG_ADD;
}

/* What there is, where a name is none. */
static int
no_such_record(struct rpc_call *call, const char *name)
{
	json_t *names = json_array();
	char list[200] = "";
	unsigned int i;

	for (i = 0; i < sa_num_record_types; i++) {
		json_array_append_new(names, json_string(sa_record_types[i].alias));
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			i > 0 ? ", " : "", sa_record_types[i].alias);
	}
	call->data = json_object();
	json_set(call->data, "records", names);
	if (name == NULL)
		return error_set(&call->err, EINVAL, "record: missing, allowed: %s", list);
	return error_set(&call->err, EINVAL, "record: got \"%.32s\", allowed: %s", name, list);
}

/* Values say for themselves what is wrong with them. */
static int
field_error(struct rpc_call *call, const struct sa_record_type *t, const char *unknown)
{
	return unknown == NULL ? -EINVAL
			       : no_such_field(call, unknown, t->name, json_field_names(t));
}

static int
query_fields(struct rpc_call *call, const struct sa_query_args *a, struct sa_query *q)
{
	const char *unknown;
	int rc = 0;

	if (a->fields != NULL && q->type == NULL)
		return error_set(&call->err, EINVAL, "fields: a bulk query has none");
	if (a->fields != NULL)
		rc = record_from_json(q->type, a->fields, q->tmpl, &q->mask, &unknown, &call->err);
	if (rc != 0)
		return field_error(call, q->type, unknown);
	if (query_given(a, SA_MASK))
		q->mask = a->component_mask;
	return 0;
}

static int
query_records(struct rpc_call *call, const struct sa_query_args *a, struct sa_query *q)
{
	size_t i, n = json_is_array(a->records) ? json_array_size(a->records) : 1;
	uint8_t *recs = arena_alloc(&call->arena, n * SA_RECORD_MAX);
	uint32_t *rids = arena_alloc(&call->arena, n * sizeof(*rids));
	const char *unknown;
	uint64_t mask, rid;
	json_t *v;

	if (recs == NULL || rids == NULL)
		return error_set(&call->err, ENOMEM, "records: out of memory");
	for (i = 0; i < n; i++) {
		v = json_is_array(a->records) ? json_array_get(a->records, i) : a->records;
		if (record_from_json(q->type, v, recs + i * SA_RECORD_MAX, &mask, &unknown,
			    &call->err) != 0)
			return field_error(call, q->type, unknown);
		rid = sa_rid(q->type, recs + i * SA_RECORD_MAX);
		if (json_object_get(v, "rid") != NULL &&
			(!value_u64(json_object_get(v, "rid"), &rid) || rid > UINT32_MAX))
			return error_set(&call->err, EINVAL,
				"records[%zu].rid: expected 32 bits, as a number or \"0x...\"", i);
		rids[i] = (uint32_t)rid;
	}
	q->records = recs;
	q->rids = rids;
	q->num_records = (uint32_t)n;
	return 0;
}

static int
query_of_args(struct rpc_call *call, const struct sa_query_args *a, struct sa_query *q)
{
	bool v1 = a->op == SA_OP_BULK || is_config_op(a->op);

	q->op = (enum sa_op)a->op;
	q->version = query_given(a, SA_VERSION) ? (enum sa_version)a->class_version
		: v1                            ? SA_V1
						: SA_V2;
	if (q->op != SA_OP_BULK) {
		q->type = a->record != NULL ? sa_record_type_named(a->record) : NULL;
		if (q->type == NULL)
			return no_such_record(call, a->record);
	}
	if (is_config_op(a->op) != (a->records != NULL))
		return error_set(&call->err, EINVAL, "records: %s",
			a->records == NULL ? "missing: what to configure"
					   : "only config_... has them");
	if (query_given(a, SA_TID) && query_given(a, SA_WORKER))
		return error_set(&call->err, EINVAL,
			"worker: got %u, not allowed with tid, which decides the worker that asks",
			a->worker);
	q->keep_tid = query_given(a, SA_TID);
	q->tid = a->tid;
	q->resp_time = query_given(a, SA_RESP_TIME) ? a->resp_time : SA_RESP_TIME_ASK;
	q->sa_key = a->sa_key;
	q->by_rid = query_given(a, SA_RID);
	q->rid = a->rid;
	q->end_rid = query_given(a, SA_END_RID) ? a->end_rid : a->rid;
	if (a->records != NULL)
		return query_records(call, a, q);
	return query_fields(call, a, q);
}

/*
 * On the monitoring socket: reads of the own SA, without a key. It sees what a stranger sees, and
 * sends nothing to others.
 */
static int
query_may_be_asked(struct rpc_call *call, const struct sa_query_args *a)
{
	if (!call->monitoring)
		return 0;
	if (a->op != SA_OP_GET && a->op != SA_OP_TABLE && a->op != SA_OP_BULK)
		return error_set(&call->err, EPERM,
			"op: the monitoring socket has only get, table and bulk; use the control socket");
	if (query_given(a, SA_TO | AH_DMAC) || a->ah.dlid != 0)
		return error_set(&call->err, EPERM,
			"to: the monitoring socket asks this appliance's own SA only; use the control socket");
	if (query_given(a, SA_SM_KEY))
		return error_set(&call->err, EPERM,
			"sm_key: the monitoring socket asks as a stranger does, without a key; use the control socket");
	return 0;
}

/* The key of who asks for no other. */
static uint64_t
query_own_key(const struct rpc_call *call, bool own)
{
	return own && !call->monitoring ? engine_sa_key(call->e) : 0;
}

static const struct table_row sa_query_results[] = {
	NUMBER_ROW("query", "its number, for sa_result and sa_cancel"),
	ROW_END,
};

static int
sa_query(struct rpc_call *call)
{
	const struct sa_query_args *a = call->args;
	struct engine_ah ah = { .port = a->ah.port, .sgid_index = a->ah.sgid_index };
	struct engine_sa_query q = {
		.own = !query_given(a, SA_TO) && a->ah.dlid == 0,
		.ah = &ah,
		.pkey_index = a->pkey_index,
		.timeout_ms = a->timeout_ms,
		.worker = query_given(a, SA_WORKER) ? (int)a->worker : -1,
		.monitoring = call->monitoring,
	};
	struct number_args *reply = call->reply;
	int rc;

	rc = query_may_be_asked(call, a);
	if (rc == 0)
		rc = query_of_args(call, a, &q.query);
	if (rc == 0 && !q.own)
		rc = make_ah(call, &a->ah, a->ah.port, &ah);
	if (rc != 0)
		return rc;
	if (!q.own && !hop_known(call, &ah) && !waited(call, NEXT_HOP_WAIT_MS))
		return RPC_WAIT;
	q.query.sm_key = query_given(a, SA_SM_KEY) ? a->sm_key : query_own_key(call, q.own);
	return engine_sa_query(call->e, &q, &reply->number, &call->err);
}

/* --- sa_result --- */

struct sa_result_args {
	uint32_t query;
	uint64_t cursor;
	uint32_t max;
	uint32_t timeout_ms;
};

static const struct table_row result_params[] = {
	ROW(struct sa_result_args, query, TABLE_UINT, "number of the query",
		.flags = TABLE_REQUIRED),
	ROW(struct sa_result_args, cursor, TABLE_UINT,
		"where to go on: the cursor of the reply before; 0: from the first record"),
	ROW(struct sa_result_args, max, TABLE_UINT, "records in a reply; 0: only how it goes",
		.max = PAGE_MAX, .def = 100),
	ROW(struct sa_result_args, timeout_ms, TABLE_UINT,
		"wait so long for the query's end, or for a whole page of records",
		.max = WAIT_MAX_MS),
	ROW_END,
};

static const struct table_row cancel_params[] = {
	ROW(struct sa_result_args, query, TABLE_UINT, "number of the query",
		.flags = TABLE_REQUIRED),
	ROW_END,
};

/* One word for how it ended: the status' name where there is one. */
static const char *
status_word(const struct engine_sa_progress *p)
{
	if (p->timed_out)
		return "TIMEOUT";
	switch (p->end) {
	case MAD_END_STATUS:
		return mad_status_name(p->status);
	case MAD_END_ABORTED:
		return rmpp_status_name(p->rmpp_status);
	case MAD_END_REFUSED:
		return p->error == -ENOBUFS ? "RESULT_TOO_LARGE" : "REFUSED";
	default:
		return mad_end_name(p->end);
	}
}

/* What a status means to who asked, and what to do. */
static const struct {
	uint16_t status;
	const char *text;
} statuses[] = {
	{ MAD_STATUS_BUSY, "the SA is busy: try again" },
	{ MAD_STATUS_BAD_VERSION, "no SA is there, or it does not speak this class version" },
	{ MAD_STATUS_BAD_METHOD, "the SA does not know this method" },
	{ MAD_STATUS_BAD_METHOD_ATTR, "the SA does not do this with such records" },
	{ MAD_STATUS_INVALID_FIELD, "a field has a value that cannot be here" },
	{ SA_STATUS_NO_RESOURCES, "the SA has met a bound of its own: try again, or ask for less" },
	{ SA_STATUS_REQ_INVALID,
		"the SA takes no such request: the record is there already, something is missing, or (class version 1) sm_key is not the SA's" },
	{ SA_STATUS_NO_RECORDS, "no record matches" },
	{ SA_STATUS_TOO_MANY,
		"several records match, and get wants one: give more fields, or ask for the table" },
	{ SA_STATUS_INVALID_GID, "a GID is not known to the SA" },
	{ SA_STATUS_INSUFFICIENT, "the SA wants more fields" },
	{ SA_STATUS_DENIED, "not permitted: is sm_key the SA's?" },
};

static const char *
explain_status(uint16_t status)
{
	size_t i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i].status == status)
			return statuses[i].text;
	return "the SA answered with a status";
}

static const char *
explain(const struct engine_sa_progress *p)
{
	static const char *const words[MAD_END_COUNT] = {
		[MAD_END_TIMEOUT] = "no answer, retries included: is an SA at that address?",
		[MAD_END_ABORTED] = "the SA ended the transfer",
		[MAD_END_PROTOCOL] = "the SA broke the protocol",
		[MAD_END_REFUSED] = "our own side could not take the answer",
		[MAD_END_CANCELLED] = "cancelled",
	};

	if (p->timed_out)
		return "timeout_ms has passed";
	if (p->end == MAD_END_REFUSED && p->error == -ENOBUFS)
		return "more records than sa.query_mb has room for: ask for fewer, or raise it";
	if (p->end == MAD_END_REFUSED && p->error == -EEXIST)
		return SA_TID_IN_USE;
	return p->end == MAD_END_STATUS ? explain_status(p->status) : words[p->end];
}

struct sa_result_reply {
	uint32_t present;
	uint32_t query;
	struct engine_sa_progress progress;
	const char *state;
	uint32_t percent;
	const char *status;
	const char *message;
	const char *end;
	json_t *records;
	uint64_t cursor;
};
#define SA_DONE      0x1
#define SA_OK        0x2
#define SA_FAILED    0x4
#define SA_SEGMENTED 0x8
#define SA_MORE      0x10 /* records may follow */

#define RESULT(field, t, ...) ROW(struct sa_result_reply, field, t, __VA_ARGS__)
#define PROGRESS(name, field, ...)                                                                 \
	ROW_NAMED(struct sa_result_reply, name, progress.field, TABLE_UINT, __VA_ARGS__)

static const struct table_row sa_result_results[] = {
	RESULT(query, TABLE_UINT, "its number"),
	RESULT(state, TABLE_STRING, "running or done"),
	PROGRESS("received", records, "records that have come"),
	PROGRESS("segment", segment, "packets of the answer received in order"),
	PROGRESS("segments", segments, "packets in all; 0: not known"),
	RESULT(percent, TABLE_UINT, "of segments, where they are known", .bit = SA_SEGMENTED),
	PROGRESS("elapsed_us", elapsed_us, "from the first request to the end, or until now"),
	RESULT(status, TABLE_STRING,
		"once done: OK, a status of the SA (NO_RECORDS, TOO_MANY_RECORDS, ...) or of the transfer (TIMEOUT, ...)",
		.bit = SA_DONE),
	PROGRESS("sa_key", sa_key, "once done well: change token of class version 1", .bit = SA_OK),
	RESULT(message, TABLE_STRING, "what the status means, where it is not OK",
		.bit = SA_FAILED),
	RESULT(end, TABLE_STRING, "once done: how the transfer ended", .bit = SA_DONE),
	PROGRESS("mad_status", status, "once done: the answer's status, where it is not 0",
		.bit = SA_DONE, .min = 1, .digits = 4),
	PROGRESS("rmpp_status", rmpp_status, "once done: RMPP's, where it is not 0", .bit = SA_DONE,
		.min = 1),
	PROGRESS("resent", resent, "once done: packets sent again", .bit = SA_DONE),
	RECORDS_ROW(struct sa_result_reply),
	RESULT(cursor, TABLE_UINT,
		"pass it to get the records that follow; null: there are none and none will come",
		.flags = TABLE_NULL, .bit = SA_MORE),
	ROW_END,
};

/* How a query goes. The monitoring socket knows its own queries only: others may have keys. */
static int
query_progress(struct rpc_call *call, uint32_t query, struct engine_sa_progress *p)
{
	int rc = engine_sa_progress(call->e, query, p, &call->err);

	if (rc == 0 && call->monitoring && !p->monitoring)
		return error_set(&call->err, ENOENT,
			"query: there is no query %u of the monitoring socket (any more)", query);
	return rc;
}

static void
fill_progress(struct sa_result_reply *r)
{
	const struct engine_sa_progress *p = &r->progress;
	bool ok = p->end == MAD_END_OK && !p->timed_out;

	r->state = p->done ? "done" : "running";
	r->percent = 100;
	if (p->segments > 0)
		r->present |= SA_SEGMENTED;
	if (p->segments > 0 && !p->done)
		r->percent = (uint32_t)((uint64_t)p->segment * 100 / p->segments);
	if (!p->done)
		return;
	r->present |= SA_DONE | (ok ? SA_OK : SA_FAILED);
	r->status = ok ? "OK" : status_word(p);
	r->message = ok ? NULL : explain(p);
	r->end = mad_end_name(p->end);
}

static int
sa_result(struct rpc_call *call)
{
	const struct sa_result_args *a = call->args;
	struct sa_result_reply *reply = call->reply;
	const struct engine_sa_progress *p = &reply->progress;
	struct engine_sa_record rec;
	uint64_t cursor = a->cursor;
	int rc;

	rc = query_progress(call, a->query, &reply->progress);
	if (rc != 0)
		return rc;
	if (!p->done && p->records < a->cursor + (a->max > 0 ? a->max : 1) &&
		!waited(call, a->timeout_ms))
		return RPC_WAIT;
	reply->query = a->query;
	reply->records = arena_json(&call->arena, json_array());
	while (json_array_size(reply->records) < a->max &&
		engine_sa_next(call->e, a->query, &cursor, &rec))
		json_array_append_new(reply->records, json_record(rec.type, rec.rid, rec.bytes));
	fill_progress(reply);
	reply->cursor = cursor;
	if (!p->done || cursor < p->records)
		reply->present |= SA_MORE;
	return 0;
}

static int
sa_cancel(struct rpc_call *call)
{
	const struct sa_result_args *a = call->args;
	struct engine_sa_progress p;
	int rc = query_progress(call, a->query, &p);

	return rc != 0 ? rc : engine_sa_cancel(call->e, a->query, &call->err);
}

const struct rpc_method methods_sa[] = {
	{ "sa_query", sa_query, query_params, sizeof(struct sa_query_args),
		"Ask a subnet administrator, this appliance's own or another. The reply comes at once; sa_result brings the records. On the monitoring socket only get, table and bulk of the own SA, without a key: what a stranger sees.",
		"polca-ctl sa query --op table --record path sgid=fe80::1 dgid=fe80::2",
		RESULTS(sa_query_results, struct number_args), .reads = true },
	{ "sa_result", sa_result, result_params, sizeof(struct sa_result_args),
		"How a query goes, and records that it brought, page by page. What it brought is kept until sa_cancel, or until nobody has asked for five minutes.",
		"polca-ctl sa result 33 --timeout-ms 1000",
		RESULTS(sa_result_results, struct sa_result_reply), .reads = true },
	{ "sa_cancel", sa_cancel, cancel_params, sizeof(struct sa_result_args),
		"End a query, if it still runs, and forget what it brought.",
		"polca-ctl sa cancel 33", .reads = true },
	{ NULL },
};
