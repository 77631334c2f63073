/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The steps of a QP that fails come to the control thread by a ring of their own, before the event:
 * few QPs are recorded, and events stay small.
 */

#include <rte_cycles.h>
#include <rte_ring_elem.h>

#include "engine/verbs_trace.h"
#include "engine/worker.h"

/* --- times --- */

static uint64_t
trace_ns(const struct engine *e, uint64_t cycles)
{
	return (uint64_t)((unsigned __int128)cycles * NS_PER_S / e->hz);
}

void
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
