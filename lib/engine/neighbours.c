/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Neighbours that nobody uses any more. From time to time, and more often while the table has many
 * entries, the control thread asks who uses which: queue pairs, connections, attempts to connect,
 * IDs of librdmacm's programs, and management sessions. It asks a few of them in each of its turns,
 * so that no worker waits long for it.
 */

#include <string.h>

#include "engine/connections.h"
#include "engine/neighbours.h"
#include "engine/verbs_cm.h"
#include "engine/verbs.h"
#include "link/link.h"

#define SEARCH_S 5u /* between two searches */
#define SLICE    64 /* queue pairs, or entries of a worker's table, in one turn */

enum search_step {
	SEARCH_QPS,
	SEARCH_CONNECTIONS,
	SEARCH_SESSIONS,
	SEARCH_END,
};

static void
use_path(struct link_neighbours_used *used, const struct cm_path *path)
{
	if (path->present)
		link_neighbour_use(used, path->neighbour);
}

static int
sessions_here(struct worker *w, void *arg)
{
	struct neighbour_search *s = arg;
	struct mad_session_info info;
	uint32_t cursor = (uint32_t)s->cursor;
	unsigned int n = 0;

	while (n++ < SLICE && mad_session_next(w->mad, &cursor, 0, &info))
		link_neighbour_use(&s->used, info.neighbour);
	s->cursor = cursor;
	return n <= SLICE;
}

/* @return true: all queue pairs were asked */
static bool
search_qps(struct engine *e, struct neighbour_search *s)
{
	struct rc_qp_info info;
	unsigned int n;

	for (n = 0; n < SLICE; n++) {
		if (!engine_qp_next(e, &s->cursor, &info))
			return true;
		link_neighbour_use(&s->used, info.attr.neighbour);
		link_neighbour_use(&s->used, info.attr.alt.neighbour);
	}
	return false;
}

static bool
search_connections(struct engine *e, struct neighbour_search *s)
{
	struct cm_info info;
	unsigned int n;

	for (n = 0; n < SLICE; n++) {
		if (!engine_cm_next(e, &s->cursor, &info))
			return true;
		use_path(&s->used, &info.path);
		use_path(&s->used, &info.alternate);
		use_path(&s->used, &info.proposed);
	}
	return false;
}

static bool
search_sessions(struct engine *e, struct neighbour_search *s)
{
	if (engine_call(e, s->worker, sessions_here, s) == 0)
		return false;
	s->cursor = 0;
	return ++s->worker == e->num_workers;
}

static void
search_begin(struct engine *e, struct neighbour_search *s)
{
	memset(s, 0, sizeof(*s));
	s->running = true;
	link_neighbours_search(e->link);
	/* now: when these are asked for at the end, one may have become a connection meanwhile */
	attempts_use_neighbours(e, &s->used);
	rdmacm_use_neighbours(e, &s->used);
}

void
neighbours_watch(struct engine *e, uint64_t now)
{
	static bool (*const steps[SEARCH_END])(struct engine *, struct neighbour_search *) = {
		[SEARCH_QPS] = search_qps,
		[SEARCH_CONNECTIONS] = search_connections,
		[SEARCH_SESSIONS] = search_sessions,
	};
	struct neighbour_search *s = &e->neighbour_search;

	if (!s->running) {
		if (s->regular == 0)
			s->regular = now + e->config.neighbours_idle_s * e->hz;
		if (now < s->next ||
			(now < s->regular &&
				!link_neighbours_due(e->link, e->config.neighbours_kept)))
			return;
		search_begin(e, s);
	}
	if (!steps[s->step](e, s))
		return;
	s->cursor = 0;
	if (++s->step < SEARCH_END)
		return;
	link_neighbours_forget(e->link, &s->used, e->config.neighbours_kept,
		e->config.neighbours_idle_s);
	s->running = false;
	s->next = now + SEARCH_S * e->hz;
	s->regular = now + RTE_MAX(e->config.neighbours_idle_s, SEARCH_S) * e->hz;
}
