/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Sessions and statistics of management datagrams of all classes, of the SA and of its store.
 */

#include <string.h>

#include <rte_cycles.h>

#include "engine/verbs_private.h"

static int
session_next_here(struct worker *w, void *arg)
{
	struct walk *walk = arg;
	struct engine_sa_session *s = walk->out;

	s->worker = w->id;
	return mad_session_next(w->mad, &walk->cursor, rte_get_tsc_cycles(), &s->info);
}

bool
engine_sa_session_next(struct engine *e, uint64_t *cursor, struct engine_sa_session *s)
{
	if (!walk_workers(e, cursor, session_next_here, s))
		return false;
	s->info.age /= RTE_MAX(e->hz / 1000000, 1u);
	return true;
}

static void
add_worker(const struct worker *w, struct engine_sa_stats *s)
{
	uint64_t used, total;
	unsigned int i;

	for (i = 0; i < 256; i++) {
		s->aborts_sent[i] += mad_worker_aborts(w->mad, 0, (uint8_t)i);
		s->aborts_received[i] += mad_worker_aborts(w->mad, 1, (uint8_t)i);
	}
	mad_worker_memory(w->mad, &used, &total);
	s->memory_used += used;
	s->memory_total += total;
}

void
engine_sa_stats(const struct engine *e, int worker, struct engine_sa_stats *s)
{
	unsigned int i;

	memset(s, 0, sizeof(*s));
	engine_mad_counters(e, worker, &s->mad);
	engine_sa_counters(e, worker, &s->sa);
	for (i = 0; i < e->num_workers; i++)
		if (worker < 0 || (unsigned int)worker == i)
			add_worker(e->worker[i], s);
	if (e->store != NULL)
		store_stats(e->store, &s->store);
}

bool
engine_fleet_status(struct engine *e, struct fleet_status *status)
{
	memset(status, 0, sizeof(*status));
	if (e->fleet == NULL)
		return false;
	fleet_status(e->fleet, status);
	return true;
}

int
engine_fleet_accept(struct engine *e, struct error *err)
{
	if (e->fleet == NULL)
		return error_set(err, ENOENT, "this appliance belongs to no fleet");
	return fleet_accept_empty(e->fleet, err);
}
