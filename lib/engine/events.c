/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Asynchronous events. Each worker has an SPSC ring to the control thread, which merges them by
 * time with the events that it raises itself. An event that finds its ring full is lost and
 * counted: an event only reports a change, and the state itself can always be queried.
 */

#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_ring_elem.h>

#include "engine/verbs.h"
#include "engine/worker.h"

void
events_put(void *worker, const struct event *ev)
{
	struct worker *w = worker;
	struct event_record rec = { *ev, w->last };

	if (rte_ring_sp_enqueue_elem(w->events, &rec, sizeof(rec)) != 0)
		w->stats.events_lost++;
	wakeup_send(w->engine);
}

void
events_put_link(void *worker, const struct link_news *news)
{
	static const enum event_type types[] = {
		[LINK_NEIGHBOUR_MOVED] = EVENT_NEIGHBOUR_MOVED,
		[LINK_NEIGHBOUR_LOST] = EVENT_NEIGHBOUR_LOST,
		[LINK_ADDRESS_CONFLICT] = EVENT_ADDRESS_CONFLICT,
	};
	struct event ev = { .type = types[news->what], .element = news->port, .gid = news->gid };

	memcpy(ev.mac, news->mac, sizeof(ev.mac));
	events_put(worker, &ev);
}

void
events_put_control(struct engine *e, const struct event *ev)
{
	struct event_record *rec;

	if (e->control_tail - e->control_head == CONTROL_EVENTS) {
		e->control_lost++;
		return;
	}
	rec = &e->control_event[e->control_tail++ % CONTROL_EVENTS];
	rec->event = *ev;
	rec->time = rte_get_tsc_cycles();
	wakeup_send(e);
}

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
	if (from != NULL)
		from->has_staged = false;
	else
		e->control_head++;
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
	return got;
}
