/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The flight recorder, and why a queue pair is in ERR. */

#include <errno.h>

#include "ctl/cm_args.h"
#include "ctl/methods.h"
#include "engine/verbs_trace.h"

/* --- steps as rows --- */

#define STEP(name, field, t, ...) ROW_NAMED(struct step_row, name, field, t, __VA_ARGS__)
#define STEP_NUMBER               0x1
#define STEP_EXPECTED             0x2

#define STEP_TIME STEP("time_us", time_us, TABLE_REAL, "since the oldest of these steps")

const struct table_row rows_qp_step[] = {
	STEP_TIME,
	STEP("step", step, TABLE_STRING, "received, sent, timeout, RNR wait over, modify or error"),
	STEP("psn", number, TABLE_UINT, "of the packet, or of the oldest request without an answer",
		.bit = STEP_NUMBER, .flags = TABLE_SECRET),
	STEP("expected_psn", expected, TABLE_UINT,
		"received: ePSN for a request, the oldest one without an answer for a response",
		.bit = STEP_EXPECTED, .flags = TABLE_SECRET),
	STEP("what", what, TABLE_STRING, "the packet's opcode, or what happened"),
	STEP("outcome", outcome, TABLE_STRING, "of a received packet: its verdict (stats_get)"),
	ROW_END,
};

static const struct table_row rows_cm_step[] = {
	STEP_TIME,
	STEP("step", step, TABLE_STRING, "opened, received, sent, timeout or ended"),
	STEP("local_id", number, TABLE_UINT, "communication ID of the message's sender",
		.bit = STEP_NUMBER, .flags = TABLE_SECRET),
	STEP("expected_id", expected, TABLE_UINT, "received: the peer's ID as known before",
		.bit = STEP_EXPECTED, .flags = TABLE_SECRET),
	STEP("what", what, TABLE_STRING, "the message, or what happened"),
	STEP("outcome", outcome, TABLE_STRING, "the connection's state after it"),
	ROW_END,
};

static const struct table_row rows_sa_step[] = {
	STEP_TIME,
	STEP("step", step, TABLE_STRING, "opened, received, sent, timeout or ended"),
	STEP("segment", number, TABLE_UINT, "of the packet", .bit = STEP_NUMBER),
	STEP("expected_segment", expected, TABLE_UINT,
		"received: the next in order; sent: the last that the peer has acknowledged",
		.bit = STEP_EXPECTED),
	STEP("what", what, TABLE_STRING, "the packet's method and kind, or what happened"),
	STEP("outcome", outcome, TABLE_STRING, "the session's state then (sa_sessions)"),
	ROW_END,
};

static void
fill_qp_step(struct rpc_call *call, struct step_row *row, const struct trace_step *s)
{
	char buf[RC_STEP_TEXT_MAX];

	row->present = (rc_step_has_psn(s) ? STEP_NUMBER : 0) |
		(rc_step_has_expected(s) ? STEP_EXPECTED : 0);
	row->step = rc_step_name(s->event);
	row->what = arena_printf(&call->arena, "%s", rc_step_what(s, buf));
	row->outcome = arena_printf(&call->arena, "%s", rc_step_outcome(s, buf));
}

static void
fill_cm_step(struct rpc_call *call, struct step_row *row, const struct trace_step *s)
{
	char buf[CM_STEP_TEXT_MAX];

	row->present = STEP_NUMBER | (s->event == CM_STEP_RECEIVED ? STEP_EXPECTED : 0);
	row->step = cm_step_name(s->event);
	row->what = arena_printf(&call->arena, "%s", cm_step_what(s, buf));
	row->outcome = cm_state_name(s->outcome);
}

static void
fill_sa_step(struct rpc_call *call, struct step_row *row, const struct trace_step *s)
{
	bool packet = s->event == MAD_STEP_RECEIVED || s->event == MAD_STEP_SENT;
	char buf[MAD_STEP_TEXT_MAX];

	row->present = packet ? STEP_NUMBER | STEP_EXPECTED : 0;
	row->step = mad_step_name(s->event);
	row->what = arena_printf(&call->arena, "%s", mad_step_what(s, buf));
	row->outcome = mad_state_name(s->outcome);
}

static const struct {
	void (*fill)(struct rpc_call *call, struct step_row *row, const struct trace_step *s);
} traced_kinds[ENGINE_TRACED_KINDS] = {
	[ENGINE_TRACED_QP] = { fill_qp_step },
	[ENGINE_TRACED_CONNECTION] = { fill_cm_step },
	[ENGINE_TRACED_SESSION] = { fill_sa_step },
};

static int
fill_steps(struct rpc_call *call, enum engine_traced kind, const struct engine_trace *t,
	struct table_list *steps)
{
	unsigned int i, n = trace_length(&t->steps);
	const struct trace_step *s;
	struct step_row *row;

	for (i = 0; i < n; i++) {
		s = trace_at(&t->steps, i);
		row = ADD(call, steps, struct step_row);
		if (row == NULL)
			return -ENOMEM;
		row->time_us = (double)s->time / 1000;
		row->number = s->number;
		row->expected = s->expected;
		traced_kinds[kind].fill(call, row, s);
	}
	return 0;
}

int
fill_event_steps(struct rpc_call *call, uint32_t trace, struct table_list *steps)
{
	struct engine_trace t;

	if (!engine_event_trace(call->e, trace, &t))
		return 0;
	return fill_steps(call, ENGINE_TRACED_QP, &t, steps);
}

/* --- trace_start, trace_stop --- */

static const struct table_word words_traced[] = {
	{ "qp", ENGINE_TRACED_QP },
	{ "connection", ENGINE_TRACED_CONNECTION },
	{ "session", ENGINE_TRACED_SESSION },
	{ NULL, 0 },
};

struct trace_args {
	uint32_t present;
	uint32_t object;
	uint32_t number;
};
#define TRACE_ONE 0x1

static const struct table_row trace_params[] = {
	ROW(struct trace_args, object, TABLE_ENUM, "what to record", .flags = TABLE_REQUIRED,
		.words = words_traced),
	ROW(struct trace_args, number, TABLE_UINT,
		"its number: qp_num or connection; sessions are recorded all or none",
		.bit = TRACE_ONE, .def_text = "all of them, and those made later"),
	ROW_END,
};

struct trace_reply {
	uint32_t switched;
};

static const struct table_row trace_results[] = {
	ROW(struct trace_reply, switched, TABLE_UINT,
		"objects that are recorded now, or no more; of sessions: workers"),
	ROW_END,
};

static int
trace_switch(struct rpc_call *call, bool on)
{
	const struct trace_args *a = call->args;
	struct trace_reply *reply = call->reply;

	reply->switched = 1;
	if (a->present & TRACE_ONE)
		return engine_trace_switch(call->e, a->object, a->number, on, &call->err);
	reply->switched = engine_trace_switch_all(call->e, a->object, on);
	return 0;
}

static int
trace_start(struct rpc_call *call)
{
	return trace_switch(call, true);
}

static int
trace_stop(struct rpc_call *call)
{
	return trace_switch(call, false);
}

/* --- qp_trace, cm_trace, sa_trace --- */

struct steps_reply {
	double age_us;
	struct table_list steps;
};

#define AGE_ROW ROW(struct steps_reply, age_us, TABLE_REAL, "since the newest step")

static const struct table_row qp_trace_results[] = {
	AGE_ROW,
	ROW_LIST(struct steps_reply, steps, struct step_row, rows_qp_step,
		.help = "the last 64, oldest first"),
	ROW_END,
};

static const struct table_row cm_trace_results[] = {
	AGE_ROW,
	ROW_LIST(struct steps_reply, steps, struct step_row, rows_cm_step,
		.help = "the last 64, oldest first"),
	ROW_END,
};

static int
show_trace(struct rpc_call *call, enum engine_traced kind)
{
	const struct number_args *a = call->args;
	struct steps_reply *reply = call->reply;
	struct engine_trace t = { .age_ns = 0 };
	int rc = engine_trace_get(call->e, kind, a->number, &t, &call->err);

	if (rc != 0)
		return rc;
	reply->age_us = (double)t.age_ns / 1000;
	return fill_steps(call, kind, &t, &reply->steps);
}

static int
qp_trace(struct rpc_call *call)
{
	return show_trace(call, ENGINE_TRACED_QP);
}

static int
cm_trace_method(struct rpc_call *call)
{
	return show_trace(call, ENGINE_TRACED_CONNECTION);
}

struct session_args {
	uint64_t tid;
};

static const struct table_row session_params[] = {
	ROW(struct session_args, tid, TABLE_UINT,
		"TID of the session (sa_sessions), also of one that has ended",
		.flags = TABLE_REQUIRED),
	ROW_END,
};

static const struct table_row sa_trace_results[] = {
	AGE_ROW,
	ROW_LIST(struct steps_reply, steps, struct step_row, rows_sa_step,
		.help = "the last 64, oldest first"),
	ROW_END,
};

static int
sa_trace(struct rpc_call *call)
{
	const struct session_args *a = call->args;
	struct steps_reply *reply = call->reply;
	struct engine_trace t = { .age_ns = 0 };
	int rc = engine_session_trace(call->e, a->tid, &t, &call->err);

	if (rc != 0)
		return rc;
	reply->age_us = (double)t.age_ns / 1000;
	return fill_steps(call, ENGINE_TRACED_SESSION, &t, &reply->steps);
}

static const struct table_row qp_params[] = {
	NUMBER_ROW("qp_num", "the queue pair", .flags = TABLE_REQUIRED, .max = 0xffffff),
	ROW_END,
};

static const struct table_row connection_params[] = {
	NUMBER_ROW("connection", "the connection: number of cm_connect or cm_list",
		.flags = TABLE_REQUIRED, .min = 1),
	ROW_END,
};

/* --- qp_explain --- */

struct explain_reply {
	uint32_t qp_num;
	uint32_t qp_state;
	const char *reason;
	const char *received;
	const char *expected;
	const char *rule;
	const char *status;
	const char *peer;
	const char *check_next;
	struct table_list steps;
};

#define EXPLAIN(field, t, ...) ROW(struct explain_reply, field, t, __VA_ARGS__)

static const struct table_row explain_results[] = {
	EXPLAIN(qp_num, TABLE_UINT),
	EXPLAIN(qp_state, TABLE_ENUM, .words = words_qp_state),
	EXPLAIN(reason, TABLE_STRING, "in a word; none: nothing has failed since its last RESET"),
	EXPLAIN(received, TABLE_STRING, "what happened: the packet or work request, and its fault",
		.flags = TABLE_SECRET),
	EXPLAIN(expected, TABLE_STRING, "what should have come in its place",
		.flags = TABLE_SECRET),
	EXPLAIN(rule, TABLE_STRING,
		"which applies: section of docs/spec, and row of docs/conformance.md"),
	EXPLAIN(status, TABLE_STRING, "of the work request that failed", .flags = TABLE_OPTIONAL),
	EXPLAIN(peer, TABLE_STRING, "its address and queue pair", .flags = TABLE_OPTIONAL),
	EXPLAIN(check_next, TABLE_STRING, "where to look for the cause"),
	ROW_LIST(struct explain_reply, steps, struct step_row, rows_qp_step,
		.help = "the last ones, if they are recorded", .flags = TABLE_OPTIONAL),
	ROW_END,
};

static void
explain_failure(struct rpc_call *call, struct explain_reply *reply, const struct qp_failure *f)
{
	const struct qp_failure_info *info = &qp_failure_infos[f->reason];
	char buf[QP_EXPLAIN_MAX], peer[GID_STRLEN];

	reply->reason = info->name;
	reply->received = arena_printf(&call->arena, "%s", qp_failure_received(f, buf));
	reply->expected = arena_printf(&call->arena, "%s", qp_failure_expected(f, buf));
	reply->rule = info->rule;
	reply->check_next = info->check;
	if (f->status != 0)
		reply->status = wc_status_name(f->status);
	if (f->dlid != 0)
		reply->peer = arena_printf(&call->arena, "lid:%u QP 0x%x", f->dlid, f->peer_qpn);
	else if (f->peer_qpn != 0)
		reply->peer = arena_printf(&call->arena, "%s QP 0x%x", gid_print(&f->peer, peer),
			f->peer_qpn);
}

static int
qp_explain(struct rpc_call *call)
{
	const struct number_args *a = call->args;
	struct explain_reply *reply = call->reply;
	struct engine_trace t = { .age_ns = 0 };
	struct rc_qp_info info;
	int rc = engine_qp_query(call->e, a->number, &info, &call->err);

	if (rc != 0)
		return rc;
	reply->qp_num = info.qpn;
	reply->qp_state = info.attr.qp_state;
	explain_failure(call, reply, &info.failure);
	if (engine_trace_get(call->e, ENGINE_TRACED_QP, a->number, &t, NULL) != 0)
		return 0;
	return fill_steps(call, ENGINE_TRACED_QP, &t, &reply->steps);
}

const struct rpc_method methods_trace[] = {
	{ "trace_start", trace_start, trace_params, sizeof(struct trace_args),
		"Record the last 64 steps of a queue pair or connection, or of all, or of the last 256 management sessions of each worker: packets, timers and changes of state. A recorded queue pair is a little slower, others are not.",
		"polca-ctl trace start qp 17", RESULTS(trace_results, struct trace_reply) },
	{ "trace_stop", trace_stop, trace_params, sizeof(struct trace_args),
		"Stop recording, and forget the steps.", "polca-ctl trace stop qp",
		RESULTS(trace_results, struct trace_reply) },
	{ NULL },
};

const struct rpc_method methods_qp_trace[] = {
	{ "qp_trace", qp_trace, qp_params, sizeof(struct number_args),
		"The last steps of a queue pair that is recorded.", "polca-ctl qp trace 17",
		RESULTS(qp_trace_results, struct steps_reply), .reads = true },
	{ "qp_explain", qp_explain, qp_params, sizeof(struct number_args),
		"Why a queue pair is in ERR, in words: what was received, what was expected, which rule applies, and what to check next. With its last steps, if they are recorded.",
		"polca-ctl qp explain 17", RESULTS(explain_results, struct explain_reply),
		.reads = true },
	{ NULL },
};

const struct rpc_method methods_cm_trace[] = {
	{ "cm_trace", cm_trace_method, connection_params, sizeof(struct number_args),
		"The last steps of a connection that is recorded.", "polca-ctl cm trace 4711",
		RESULTS(cm_trace_results, struct steps_reply), .reads = true },
	{ NULL },
};

const struct rpc_method methods_sa_trace[] = {
	{ "sa_trace", sa_trace, session_params, sizeof(struct session_args),
		"The last steps of a management session, if sessions are recorded.",
		"polca-ctl sa trace 0x1234", RESULTS(sa_trace_results, struct steps_reply),
		.reads = true },
	{ NULL },
};
