/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The flight recorder. The steps of a QP that fails are copied to the control thread by a ring of
 * their own, before the event: few QPs are recorded, and events stay small.
 */

#include <errno.h>
#include <inttypes.h>

#include <rte_cycles.h>
#include <rte_ring_elem.h>

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

/* --- times --- */

static uint64_t
trace_ns(const struct engine *e, uint64_t cycles)
{
	return (uint64_t)((unsigned __int128)cycles * NS_PER_S / e->hz);
}

/* Turn TSC times into nanoseconds since the oldest step. */
static void
trace_times(const struct engine *e, struct engine_trace *t)
{
	unsigned int i, n = trace_length(&t->steps);
	uint64_t now = rte_get_tsc_cycles(), first, last;

	if (n == 0)
		return;
	first = trace_at(&t->steps, 0)->time;
	last = trace_at(&t->steps, n - 1)->time;
	t->age_ns = trace_ns(e, now > last ? now - last : 0);
	for (i = 0; i < n; i++)
		t->steps.step[i].time = trace_ns(e,
			t->steps.step[i].time > first ? t->steps.step[i].time - first : 0);
}

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

/* --- with an event --- */

void
traces_put(struct worker *w, struct event *ev)
{
	struct trace_record rec;

	if (ev->type != EVENT_QP_ERROR)
		return;
	ev->failure.trace = 0;
	if (ev->steps == NULL)
		return;
	rec.number = ++w->trace_number;
	rec.steps = *ev->steps;
	ev->steps = NULL;
	if (rte_ring_sp_enqueue_elem(w->traces, &rec, sizeof(rec)) == 0)
		ev->failure.trace = rec.number;
}

void
traces_take(struct engine *e, struct worker *w, struct event *ev)
{
	struct trace_record rec;

	if (ev->type != EVENT_QP_ERROR || ev->failure.trace == 0)
		return;
	/* an event that found its ring full has left its steps behind */
	do {
		if (rte_ring_sc_dequeue_elem(w->traces, &rec, sizeof(rec)) != 0) {
			ev->failure.trace = 0;
			return;
		}
	} while (rec.number != ev->failure.trace);
	ev->failure.trace = ++e->traces_taken;
	e->failed[e->traces_taken % TRACES_KEPT] = rec.steps;
}

bool
engine_event_trace(const struct engine *e, uint32_t number, struct engine_trace *trace)
{
	if (number == 0 || e->traces_taken - number >= TRACES_KEPT)
		return false;
	trace->steps = e->failed[number % TRACES_KEPT];
	trace_times(e, trace);
	return true;
}
