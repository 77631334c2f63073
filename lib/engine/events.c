/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Asynchronous events. Each worker has an SPSC ring to the control thread, which merges them by
 * time with the events that it raises itself. An event that finds its ring full is lost and
 * counted: an event only reports a change, and the state itself can always be queried.
 */

#include <string.h>

#include <rte_cycles.h>
#include <rte_ring_elem.h>

#include "engine/worker.h"

void
events_put(void *worker, const struct event *ev)
{
	struct worker *w = worker;
	struct event_record rec = { *ev, w->last };

	traces_put(w, &rec.event);
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
	struct event ev = { .element = news->port, .gid = news->gid };

	if (news->what == LINK_NEIGHBOUR_KNOWN) { /* the control thread may wait for it */
		wakeup_send(((struct worker *)worker)->engine);
		return;
	}
	ev.type = types[news->what];
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
