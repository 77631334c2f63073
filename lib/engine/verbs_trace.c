/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The flight recorder: recording on and off, and copies of the steps. */

#include <errno.h>
#include <inttypes.h>

#include "engine/verbs_private.h"
#include "engine/verbs_trace.h"

struct trace_args {
	uint64_t number;
	bool on;
	struct trace *copy;
	unsigned int switched;
};

/* --- one object --- */

static int
qp_switch_here(struct worker *w, void *arg)
{
	const struct trace_args *a = arg;

	return rc_qp_trace_switch(w->rc, (uint32_t)a->number, a->on);
}

static int
qp_copy_here(struct worker *w, void *arg)
{
	const struct trace_args *a = arg;

	return rc_qp_trace(w->rc, (uint32_t)a->number, a->copy);
}

static int
conn_switch_here(struct worker *w, void *arg)
{
	const struct trace_args *a = arg;

	return cm_trace_switch(w->cm, (cm_id)a->number, a->on);
}

static int
conn_copy_here(struct worker *w, void *arg)
{
	const struct trace_args *a = arg;

	return cm_trace(w->cm, (cm_id)a->number, a->copy);
}

/* --- all of a worker --- */

static int
qps_switch_here(struct worker *w, void *arg)
{
	struct trace_args *a = arg;

	a->switched += rc_trace_switch_all(w->rc, a->on);
	return 0;
}

static int
conns_switch_here(struct worker *w, void *arg)
{
	struct trace_args *a = arg;

	a->switched += cm_trace_switch_all(w->cm, a->on);
	return 0;
}

static int
sessions_switch_here(struct worker *w, void *arg)
{
	struct trace_args *a = arg;

	a->switched += mad_trace_switch(w->mad, a->on) == 0;
	return 0;
}

static int
session_copy_here(struct worker *w, void *arg)
{
	const struct trace_args *a = arg;

	return mad_trace(w->mad, a->number, a->copy);
}

static const struct traced_kind {
	const char *name;
	worker_fn one;
	worker_fn all;
	worker_fn copy;
} kinds[ENGINE_TRACED_KINDS] = {
	[ENGINE_TRACED_QP] = { "queue pair", qp_switch_here, qps_switch_here, qp_copy_here },
	[ENGINE_TRACED_CONNECTION] = { "connection", conn_switch_here, conns_switch_here,
		conn_copy_here },
	[ENGINE_TRACED_SESSION] = { "session", NULL, sessions_switch_here, session_copy_here },
};

static int
trace_call_owner(struct engine *e, enum engine_traced kind, worker_fn fn, struct trace_args *a,
	struct error *err)
{
	const char *name = kinds[kind].name;
	int rc;

	if (kind == ENGINE_TRACED_QP)
		rc = call_qp_owner(e, a->number, fn, a, err);
	else
		rc = engine_call(e, cm_worker_of(e->cm_hash_key, e->num_workers, (cm_id)a->number),
			fn, a);
	switch (rc) {
	case -ENOENT:
		return error_set(err, ENOENT, "there is no %s 0x%x", name, (uint32_t)a->number);
	case -ENOMEM:
		return error_set(err, ENOMEM, "no memory to record %s 0x%x", name,
			(uint32_t)a->number);
	case -ENODATA:
		return error_set(err, ENODATA, "%s 0x%x is not recorded: start it with trace_start",
			name, (uint32_t)a->number);
	default:
		return rc;
	}
}

int
engine_trace_switch(struct engine *e, enum engine_traced kind, uint32_t number, bool on,
	struct error *err)
{
	struct trace_args a = { .number = number, .on = on };

	if (kind == ENGINE_TRACED_SESSION)
		return error_set(err, EINVAL,
			"number: sessions are short, so they are recorded all or none");
	return trace_call_owner(e, kind, kinds[kind].one, &a, err);
}

unsigned int
engine_trace_switch_all(struct engine *e, enum engine_traced kind, bool on)
{
	struct trace_args a = { .on = on };
	unsigned int i;

	for (i = 0; i < e->num_workers; i++)
		engine_call(e, i, kinds[kind].all, &a);
	return a.switched;
}

/* --- copies --- */

int
engine_trace_get(struct engine *e, enum engine_traced kind, uint32_t number,
	struct engine_trace *trace, struct error *err)
{
	struct trace_args a = { .number = number, .copy = &trace->steps };
	int rc = trace_call_owner(e, kind, kinds[kind].copy, &a, err);

	if (rc == 0)
		trace_times(e, trace);
	return rc;
}

int
engine_session_trace(struct engine *e, uint64_t tid, struct engine_trace *trace, struct error *err)
{
	struct trace_args a = { .number = tid, .copy = &trace->steps };
	unsigned int i;
	int rc = -ENODATA;

	for (i = 0; i < e->num_workers && rc != 0; i++)
		rc = engine_call(e, i, session_copy_here, &a);
	if (rc == -ENODATA)
		return error_set(err, ENODATA,
			"sessions are not recorded: start it with trace_start");
	if (rc != 0)
		return error_set(err, ENOENT,
			"tid: no session 0x%016" PRIx64 " among those recorded last", tid);
	trace_times(e, trace);
	return 0;
}
