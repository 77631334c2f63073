/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_version.h>

#include "base/log_level.h"
#include "base/verdict.h"
#include "ctl/event_log.h"
#include "ctl/methods.h"
#include "engine/verbs_mad.h"
#include "wire/crc32.h"

struct version_reply {
	const char *version;
	const char *dpdk;
	int pid;
	const char *crc32;
};

#define VERSION(field, t, ...) ROW(struct version_reply, field, t, __VA_ARGS__)

static const struct table_row version_get_results[] = {
	VERSION(version, TABLE_STRING, "of Polca"),
	VERSION(dpdk, TABLE_STRING, "version of DPDK"),
	VERSION(pid, TABLE_INT, "process number"),
	VERSION(crc32, TABLE_STRING,
		"how the ICRC is computed, chosen at start by what this CPU can do (portable, pclmul, vpclmul)"),
	ROW_END,
};

static int
version_get(struct rpc_call *call)
{
	struct version_reply *reply = call->reply;

	*reply = (struct version_reply){ POLCA_VERSION, rte_version(), getpid(), crc_kernel->name };
	return 0;
}

/* --- rpc_list --- */

struct rpc_list_args {
	const char *method;
	bool schema;
};

static const struct table_row rpc_list_params[] = {
	ROW(struct rpc_list_args, method, TABLE_STRING, "this method only", .max = 63,
		.def_text = "all"),
	ROW(struct rpc_list_args, schema, TABLE_BOOL,
		"the JSON schemas of parameters and result, too"),
	ROW_END,
};

static const struct table_row rpc_list_results[] = {
	{
		.name = "methods",
		.type = TABLE_MAPS,
		.size = sizeof(json_t *),
		.help = "list of area, name, help, params (list of name, type, required, default, allowed, unit, help, and where they apply words, fields), result, example, reads (it changes nothing: the monitoring socket has it); with schema also results (rows as params), params_schema, result_schema",
	},
	ROW_END,
};

static int
rpc_list(struct rpc_call *call)
{
	const struct rpc_list_args *a = call->args;
	json_t **reply = call->reply;

	if (a->method != NULL && rpc_find(a->method) == NULL)
		return error_set(&call->err, ENOENT, "method: there is none of that name");
	*reply = arena_json(&call->arena, rpc_describe(a->method, a->schema));
	return 0;
}

/* --- events --- */

struct events_args {
	uint32_t present;
	uint32_t max;
	uint32_t timeout_ms;
	uint64_t since;
};
#define EVENTS_SINCE 0x1

static const struct table_row events_params[] = {
	ROW(struct events_args, max, TABLE_UINT, "events in the reply at most", .min = 1,
		.max = 1000, .def = 100),
	ROW(struct events_args, since, TABLE_UINT, "from this number on: next of the reply before",
		.bit = EVENTS_SINCE, .def_text = "those that this connection has not read yet"),
	ROW(struct events_args, timeout_ms, TABLE_UINT, "wait so long for one", .max = 60000),
	ROW_END,
};

/* What an event is about: a member of its own for each kind of object. */
struct event_row {
	uint32_t present;
	uint64_t seq;
	const char *time;
	const char *event;
	uint32_t element;
	uint32_t port;
	const char *text;
	struct {
		const char *peer;
		uint32_t peer_qp, psn;
		const char *status, *verdict, *reason;
		uint32_t syndrome;
	} failure;
	struct sm_smp_row smp;
	struct table_list trace;
};
#define EVENT_OF_CQ     0x01
#define EVENT_OF_SRQ    0x02
#define EVENT_OF_QP     0x04
#define EVENT_OF_WORKER 0x08
#define EVENT_OF_SMP    0x10
#define EVENT_OF_PORT   0x20
#define EVENT_SMP_KEPT  0x40
#define EVENT_FAILURE   0x80

static uint32_t
event_object(enum event_type type)
{
	switch (type) {
	case EVENT_CQ_ERR:
	case EVENT_CQ_COMPLETION:
		return EVENT_OF_CQ;
	case EVENT_SRQ_LIMIT_REACHED:
		return EVENT_OF_SRQ;
	case EVENT_CONNECTION_MADE:
	case EVENT_CONNECTION_REFUSED:
	case EVENT_CONNECTION_ENDED:
	case EVENT_QP_ERROR:
	case EVENT_QP_FATAL:
	case EVENT_QP_REQ_ERR:
	case EVENT_QP_ACCESS_ERR:
	case EVENT_COMM_EST:
	case EVENT_SQ_DRAINED:
	case EVENT_PATH_MIG:
	case EVENT_PATH_MIG_ERR:
	case EVENT_QP_LAST_WQE_REACHED:
	case EVENT_RQ_EMPTY:
		return EVENT_OF_QP;
	case EVENT_WORKER_STALL:
		return EVENT_OF_WORKER;
	case EVENT_SM_SMP:
		return EVENT_OF_SMP;
	case EVENT_FLEET_LEADS:
	case EVENT_FLEET_FOLLOWS:
	case EVENT_FLEET_CONNECTED:
	case EVENT_FLEET_AWAY:
	case EVENT_FLEET_FULL:
	case EVENT_FLEET_ROOM:
	case EVENT_FLEET_REFUSED:
		return 0; /* of the appliance as a whole */
	default:
		return EVENT_OF_PORT;
	}
}

#define ABOUT(name, of, ...)                                                                       \
	ROW_NAMED(struct event_row, name, element, TABLE_UINT, .bit = of, __VA_ARGS__)

#define FAILURE(field, t, ...)                                                                     \
	ROW_NAMED(struct event_row, #field, failure.field, t, .bit = EVENT_FAILURE, __VA_ARGS__)

static const struct table_row event_rows[] = {
	ROW(struct event_row, seq, TABLE_UINT),
	ROW(struct event_row, time, TABLE_STRING, "UTC"),
	ROW(struct event_row, event, TABLE_STRING),
	ABOUT("qp_num", EVENT_OF_QP,
		.help = "this, or one of the next five: what it is about, unless it is FLEET_..."),
	ABOUT("cq", EVENT_OF_CQ),
	ABOUT("srq", EVENT_OF_SRQ),
	ROW(struct event_row, port, TABLE_UINT, .bit = EVENT_OF_PORT, .help = "also of QP_ERROR"),
	ABOUT("worker", EVENT_OF_WORKER),
	ABOUT("smp", EVENT_OF_SMP,
		.help = "SM_SMP: with what sm_take says of it, as long as it is kept"),
	ROW(struct event_row, text, TABLE_STRING, "what happened, as it is logged"),
	FAILURE(peer, TABLE_STRING, .help = "QP_ERROR: who the peer is, and why the QP failed"),
	FAILURE(peer_qp, TABLE_UINT),
	FAILURE(psn, TABLE_UINT),
	FAILURE(status, TABLE_STRING, .flags = TABLE_OPTIONAL, .help = "of the completion"),
	FAILURE(verdict, TABLE_STRING, .flags = TABLE_OPTIONAL, .help = "of the packet"),
	FAILURE(syndrome, TABLE_UINT, .flags = TABLE_OPTIONAL, .help = "of the NAK"),
	FAILURE(reason, TABLE_STRING, .help = "as qp_explain has it"),
	ROW_LIST(struct event_row, trace, struct step_row, rows_qp_step, .flags = TABLE_OPTIONAL,
		.help = "QP_ERROR: its last steps, if they were recorded (trace_start); kept of the last 64 that failed"),
	{
		.name = "",
		.type = TABLE_INCLUDE,
		.offset = offsetof(struct event_row, smp),
		.fields = rows_sm_smp,
		.bit = EVENT_SMP_KEPT,
		.flags = TABLE_SECRET,
	},
	ROW_END,
};

struct events_reply {
	struct table_list events;
	uint64_t next;
	uint64_t missed;
	uint64_t lost;
};

#define EVENTS(field, ...) ROW(struct events_reply, field, TABLE_UINT, __VA_ARGS__)

static const struct table_row events_results[] = {
	ROW_LIST(struct events_reply, events, struct event_row, event_rows),
	EVENTS(next, "pass it as since to go on from here"),
	EVENTS(missed,
		"events that this reader will not see: no longer kept, or lost on their way"),
	EVENTS(lost, "events that found no room on their way, since start"),
	ROW_END,
};

static const char *
event_time(struct arena *a, uint64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	char date[32];
	struct tm tm;

	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
	return arena_printf(a, "%s.%03uZ", date, (unsigned int)(ns / 1000000 % 1000));
}

static void
fill_failure(struct rpc_call *call, struct event_row *row, const struct qp_failure *f)
{
	char peer[GID_STRLEN];

	row->present |= EVENT_FAILURE | EVENT_OF_PORT;
	row->failure.peer = f->dlid != 0
		? arena_printf(&call->arena, "lid:%u", f->dlid)
		: arena_printf(&call->arena, "%s", gid_print(&f->peer, peer));
	row->failure.peer_qp = f->peer_qpn;
	row->port = f->port;
	row->failure.psn = f->psn;
	row->failure.syndrome = f->syndrome;
	row->failure.reason = qp_failure_infos[f->reason].name;
	if (f->status != 0)
		row->failure.status = wc_status_name(f->status);
	if (f->verdict < VERDICT_COUNT)
		row->failure.verdict = verdict_infos[f->verdict].name;
}

static int
add_event(struct rpc_call *call, uint64_t seq, const struct event *ev)
{
	struct events_reply *reply = call->reply;
	struct event_row *row = ADD(call, &reply->events, struct event_row);
	const struct engine_sm_smp *smp = NULL;
	char text[EVENT_TEXT_MAX];

	if (row == NULL)
		return -ENOMEM;
	row->present = event_object(ev->type);
	row->seq = seq;
	row->event = event_type_name(ev->type);
	row->element = row->port = ev->element;
	row->time = event_time(&call->arena, ev->time);
	engine_event_text(call->e, ev, text, sizeof(text));
	row->text = arena_printf(&call->arena, "%s", text);
	if (ev->type == EVENT_QP_ERROR)
		fill_failure(call, row, &ev->failure);
	if (ev->type == EVENT_QP_ERROR &&
		fill_event_steps(call, ev->failure.trace, &row->trace) != 0)
		return -ENOMEM;
	if (ev->type == EVENT_SM_SMP)
		smp = engine_sm_find(call->e, ev->element);
	if (smp == NULL)
		return 0;
	row->present |= EVENT_SMP_KEPT;
	row->smp.info = *smp;
	return fill_sm_smp(call, &row->smp);
}

static int
events(struct rpc_call *call)
{
	const struct events_args *a = call->args;
	struct events_reply *reply = call->reply;
	struct event_log *log = call->state->events;
	bool since = (a->present & EVENTS_SINCE) != 0;
	const struct event *ev;
	uint64_t end, seq, first;

	event_log_fill(log, call->e);
	end = event_log_end(log);
	seq = since ? a->since : *call->next_event;
	if (seq == 0) /* events are numbered from 1 */
		seq = 1;
	first = event_log_first(log);
	if (seq >= end && !waited(call, a->timeout_ms))
		return RPC_WAIT;
	reply->missed = seq < first ? first - seq : 0;
	if (seq < first)
		seq = first;
	for (; seq < end && reply->events.num < a->max; seq++) {
		ev = event_log_at(log, seq);
		if (ev == NULL)
			reply->missed++;
		else if (add_event(call, seq, ev) != 0)
			return -ENOMEM;
	}
	if (!since)
		*call->next_event = seq;
	reply->next = seq;
	reply->lost = event_log_lost(log);
	return 0;
}

/* --- logs --- */

static const struct table_word words_log_level[] = { LOG_LEVEL_WORDS, { NULL, 0 } };

struct log_args {
	const char *component;
	uint32_t level;
};

static const struct table_row log_set_params[] = {
	ROW(struct log_args, component, TABLE_STRING,
		"log component, or a pattern as the shell has them: \"polca.*\"",
		.flags = TABLE_REQUIRED, .max = 127),
	ROW(struct log_args, level, TABLE_ENUM, "least urgent level that is still shown",
		.flags = TABLE_REQUIRED, .words = words_log_level),
	ROW_END,
};

static const struct table_row log_get_params[] = {
	ROW(struct log_args, component, TABLE_STRING, "components whose name begins so", .max = 127,
		.def_text = "all"),
	ROW_END,
};

struct log_row {
	const char *component;
	const char *level;
};

static const struct table_row log_rows[] = {
	ROW(struct log_row, component, TABLE_STRING),
	ROW(struct log_row, level, TABLE_STRING),
	ROW_END,
};

struct log_reply {
	struct table_list components;
};

static const struct table_row log_level_get_results[] = {
	ROW_LIST(struct log_reply, components, struct log_row, log_rows),
	ROW_END,
};

static bool
add_log_row(void *arg, const char *component, const char *level)
{
	struct rpc_call *call = arg;
	const struct log_args *a = call->args;
	struct log_reply *reply = call->reply;
	struct log_row *row;

	if (a->component != NULL && strncmp(component, a->component, strlen(a->component)) != 0)
		return true;
	row = ADD(call, &reply->components, struct log_row);
	if (row == NULL)
		return false;
	row->component = arena_printf(&call->arena, "%s", component);
	row->level = arena_printf(&call->arena, "%s", level);
	return true;
}

static int
get_log_level(struct rpc_call *call)
{
	log_components(add_log_row, call);
	return 0;
}

static int
set_log_level(struct rpc_call *call)
{
	const struct log_args *a = call->args;
	struct error err;

	if (log_level_set(a->component, a->level, &err) != 0)
		return error_set(&call->err, EINVAL, "component: %.240s", err.text);
	return 0;
}

const struct rpc_method methods_server[] = {
	{ "version_get", version_get, params_none, 0, "Which server this is.",
		"polca-ctl version get", RESULTS(version_get_results, struct version_reply),
		.reads = true },
	{ "rpc_list", rpc_list, rpc_list_params, sizeof(struct rpc_list_args),
		"Describe the methods: what help, completion and the reference are made from.",
		"polca-ctl rpc list --method qp_create", RESULTS(rpc_list_results, json_t *),
		.reads = true },
	{ "events", events, events_params, sizeof(struct events_args),
		"Asynchronous events, oldest first. Every reader gets them all; what it has missed is counted.",
		"polca-ctl events --timeout-ms 1000", RESULTS(events_results, struct events_reply),
		.reads = true },
	{ "log_level_get", get_log_level, log_get_params, sizeof(struct log_args),
		"Log components and their levels.", "polca-ctl log level get --component polca",
		RESULTS(log_level_get_results, struct log_reply), .reads = true },
	{ "log_level_set", set_log_level, log_set_params, sizeof(struct log_args),
		"Set how much log components say.",
		"polca-ctl log level set --component 'polca.*' --level debug" },
	{ NULL },
};
