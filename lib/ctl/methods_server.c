/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

#include "base/log_level.h"
#include "ctl/event_log.h"
#include "ctl/methods.h"
#include "engine/verbs_mad.h"
#include "wire/crc32.h"

static int
version_get(struct rpc_call *call)
{
	set(call->result, "version", json_string(POLCA_VERSION));
	set(call->result, "dpdk", json_string(rte_version()));
	set_int(call->result, "pid", (uint64_t)getpid());
	set(call->result, "crc32", json_string(crc32_kernel()));
	return 0;
}

/* --- rpc_list --- */

struct rpc_list_args {
	const char *method;
	bool schema;
};

static const struct table_row rpc_list_params[] = {
	ROW(struct rpc_list_args, method, TABLE_STRING, .max = 63, .def_text = "all",
		.help = "this method only"),
	ROW(struct rpc_list_args, schema, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "the JSON schemas of parameters and result, too"),
	ROW_END,
};

static int
rpc_list(struct rpc_call *call)
{
	const struct rpc_list_args *a = call->args;

	if (a->method != NULL && rpc_find(a->method) == NULL)
		return error_set(&call->err, ENOENT, "method: there is none of that name");
	set(call->result, "methods", rpc_describe(a->method, a->schema));
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
	ROW(struct events_args, max, TABLE_UINT, .flags = TABLE_DEFAULT, .min = 1, .max = 1000,
		.def = 100, .help = "events in the reply at most"),
	ROW(struct events_args, since, TABLE_UINT, .bit = EVENTS_SINCE,
		.def_text = "those that nobody has taken yet",
		.help = "from this number on, taking none from others: next of the reply before"),
	ROW(struct events_args, timeout_ms, TABLE_UINT, .flags = TABLE_DEFAULT, .max = 60000,
		.help = "wait so long for one"),
	ROW_END,
};

/* What an event's element is the number of. */
static const char *
element_name(enum event_type type)
{
	switch (type) {
	case EVENT_CQ_ERR:
	case EVENT_CQ_COMPLETION:
		return "cq";
	case EVENT_SRQ_ERR:
	case EVENT_SRQ_LIMIT_REACHED:
		return "srq";
	case EVENT_QP_FATAL:
	case EVENT_QP_REQ_ERR:
	case EVENT_QP_ACCESS_ERR:
	case EVENT_COMM_EST:
	case EVENT_SQ_DRAINED:
	case EVENT_PATH_MIG:
	case EVENT_PATH_MIG_ERR:
	case EVENT_QP_LAST_WQE_REACHED:
	case EVENT_RQ_EMPTY:
		return "qp_num";
	case EVENT_WORKER_STALL:
		return "worker";
	case EVENT_SM_SMP:
		return "smp";
	default:
		return "port";
	}
}

static json_t *
event_row(struct rpc_call *call, uint64_t seq, const struct event *ev)
{
	const struct engine_sm_smp *smp = NULL;
	json_t *row = json_object();

	set_int(row, "seq", seq);
	set(row, "event", json_string(event_type_name(ev->type)));
	set_int(row, element_name(ev->type), ev->element);
	if (ev->type == EVENT_SM_SMP)
		smp = engine_sm_find(call->e, ev->element);
	if (smp != NULL)
		set_sm_smp(row, smp);
	return row;
}

static int
events(struct rpc_call *call)
{
	const struct events_args *a = call->args;
	struct event_log *log = call->state->events;
	bool since = (a->present & EVENTS_SINCE) != 0;
	uint64_t end, seq, first;
	json_t *rows;

	event_log_fill(log, call->e);
	end = event_log_end(log);
	seq = since ? a->since : event_log_untaken(log);
	first = event_log_first(log);
	if (seq >= end && !waited(call, a->timeout_ms))
		return RPC_WAIT;
	set_int(call->result, "missed", seq < first ? first - (seq == 0 ? 1 : seq) : 0);
	if (seq < first)
		seq = first;
	rows = json_array();
	for (; seq < end && json_array_size(rows) < a->max; seq++)
		json_array_append_new(rows, event_row(call, seq, event_log_at(log, seq)));
	if (!since)
		event_log_taken(log, seq);
	set(call->result, "events", rows);
	set_int(call->result, "next", seq);
	set_int(call->result, "lost", event_log_lost(log));
	return 0;
}

/* --- logs --- */

static const struct table_word words_log_level[] = { LOG_LEVEL_WORDS, { NULL, 0 } };

struct log_args {
	const char *component;
	uint32_t level;
};

static const struct table_row log_set_params[] = {
	ROW(struct log_args, component, TABLE_STRING, .flags = TABLE_REQUIRED, .max = 127,
		.help = "log component, or a pattern as the shell has them: \"polca.*\""),
	ROW(struct log_args, level, TABLE_ENUM, .flags = TABLE_REQUIRED, .words = words_log_level,
		.help = "least urgent level that is still shown"),
	ROW_END,
};

static const struct table_row log_get_params[] = {
	ROW(struct log_args, component, TABLE_STRING, .max = 127, .def_text = "all",
		.help = "components whose name begins so"),
	ROW_END,
};

struct log_rows {
	const char *prefix; /* NULL: all */
	json_t *rows;
};

static bool
add_log_row(void *arg, const char *component, const char *level)
{
	struct log_rows *l = arg;
	json_t *row;

	if (l->prefix != NULL && strncmp(component, l->prefix, strlen(l->prefix)) != 0)
		return true;
	row = json_object();
	set(row, "component", json_string(component));
	set(row, "level", json_string(level));
	json_array_append_new(l->rows, row);
	return true;
}

static int
get_log_level(struct rpc_call *call)
{
	const struct log_args *a = call->args;
	struct log_rows l = { .prefix = a->component, .rows = json_array() };

	log_components(add_log_row, &l);
	set(call->result, "components", l.rows);
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
		"version: of Polca\ndpdk: version of DPDK\npid: process number\n"
		"crc32: how the ICRC is reckoned, chosen at start by what this CPU can do (portable, pclmul, vpclmul)",
		"polca-ctl version get" },
	{ "rpc_list", rpc_list, rpc_list_params, sizeof(struct rpc_list_args),
		"Describe the methods: what help, completion and the reference are made from.",
		"methods: list of area, name, help, params (list of name, type, required, default, allowed, help, and where they apply words, fields), result, example",
		"polca-ctl rpc list --method qp_create" },
	{ "events", events, events_params, sizeof(struct events_args),
		"Asynchronous events, oldest first. Without since each is given once, to whoever asks first.",
		"events: list of seq, event, and what it is about: qp_num, cq, srq, port or worker; SM_SMP: smp, and what sm_take says of it, notice and all, as long as it is kept\n"
		"next: pass it as since to go on from here\n"
		"missed: events older than the oldest that is still kept\n"
		"lost: events that found no room on their way, since start",
		"polca-ctl events --timeout-ms 1000" },
	{ "log_level_get", get_log_level, log_get_params, sizeof(struct log_args),
		"Log components and their levels.", "components: list of component, level",
		"polca-ctl log level get --component polca" },
	{ "log_level_set", set_log_level, log_set_params, sizeof(struct log_args),
		"Set how much log components say.", "",
		"polca-ctl log level set --component 'polca.*' --level debug" },
	{ NULL },
};
