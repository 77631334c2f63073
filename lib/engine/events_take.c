/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The control thread takes the events: merged by time, the oldest first, logged and counted. */

#include <time.h>

#include <rte_cycles.h>
#include <rte_ring_elem.h>

#include "engine/verbs.h"
#include "engine/worker.h"

/* The oldest event of a worker; it is dequeued and kept until it is the oldest of all. */
static const struct event_record *
events_head(struct worker *w)
{
	if (!w->has_staged)
		w->has_staged =
			rte_ring_sc_dequeue_elem(w->events, &w->staged, sizeof(w->staged)) == 0;
	return w->has_staged ? &w->staged : NULL;
}

/* The time of day at a time of the TSC, in nanoseconds since 1970. */
static uint64_t
events_wall_clock(const struct engine *e, uint64_t tsc)
{
	uint64_t now = rte_get_tsc_cycles(), ago = now > tsc ? now - tsc : 0;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec - ago / e->hz * NS_PER_S -
		ago % e->hz * NS_PER_S / e->hz;
}

static bool
events_take_oldest(struct engine *e, struct event *ev)
{
	const struct event_record *best = NULL, *rec;
	struct worker *from = NULL;
	unsigned int i;

	if (e->control_head != e->control_tail)
		best = &e->control_event[e->control_head % CONTROL_EVENTS];
	for (i = 0; i < e->num_workers; i++) {
		rec = events_head(e->worker[i]);
		if (rec != NULL && (best == NULL || rec->time < best->time)) {
			best = rec;
			from = e->worker[i];
		}
	}
	if (best == NULL)
		return false;
	*ev = best->event;
	ev->time = events_wall_clock(e, best->time);
	if (from != NULL) {
		from->has_staged = false;
		traces_take(e, from, ev);
	} else {
		e->control_head++;
	}
	return true;
}

unsigned int
engine_events(struct engine *e, struct event *ev, unsigned int n, uint64_t *lost)
{
	uint64_t total = e->control_lost;
	unsigned int i, got = 0;

	while (got < n && events_take_oldest(e, &ev[got])) {
		events_log(e, &ev[got]);
		clients_event(e, &ev[got]);
		key_guessers_count(e, &ev[got++]);
	}
	for (i = 0; i < e->num_workers; i++)
		total += relaxed(&e->worker[i]->stats.events_lost);
	if (lost != NULL)
		*lost = total;
	RTE_ASSERT(got <= n);
	return got;
}
