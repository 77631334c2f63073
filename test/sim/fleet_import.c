/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * An operator's import at an appliance that does not lead: the import's thread takes the steps of
 * lib/engine/sa_import_stage.c, and the store's thread does what concerns etcd, as in
 * lib/engine/sa_import_fleet.c. Parts are small, so that there are several.
 */

#include <errno.h>
#include <stdlib.h>

#include "engine/sa_import_stage.h"
#include "engine/store_forward.h"
#include "fleet_sim.h"

#define PART_MIN 200 /* bytes: a ServiceRecord */
#define PART_MAX 4000
#define PAUSE_MS 500

struct fleet_importer {
	struct fleet_node *node;
	struct fleet_op *op; /* NULL: there is no import */
	struct fiber *fiber;
	bool stop;
	/* what the store's thread is to do */
	int (*fn)(struct fleet *f, void *arg);
	void *fn_arg;
	int result;
	bool forward;
	bool waits; /* the request has no answer */
	struct import_request request;
};

/* --- the store's thread --- */

bool
fleet_importer_run(struct fleet_node *n, uint64_t lease_now)
{
	struct fleet_importer *i = n->importer;
	struct sa_write *w;

	if (i == NULL || (i->fn == NULL && !i->forward))
		return false;
	if (i->forward) {
		i->forward = false;
		w = &i->request.write;
		store_forward_batch(n->forward, &w, 1, lease_now);
	} else {
		i->result = i->fn(n->fleet, i->fn_arg);
		i->fn = NULL;
		fiber_wake(i->fiber, n->script->sim->now);
	}
	return true;
}

bool
fleet_importer_handed_back(struct fleet_node *n, const struct sa_write *write)
{
	struct fleet_importer *i = n->importer;

	if (i == NULL || write != &i->request.write)
		return false;
	i->waits = false;
	fiber_wake(i->fiber, n->script->sim->now);
	return true;
}

/* --- the import's thread --- */

static int
importer_call(void *arg, int (*fn)(struct fleet *f, void *arg), void *fn_arg)
{
	struct fleet_importer *i = arg;
	struct fleet_node *n = i->node;

	if (n->dead)
		return -ECANCELED;
	i->fn_arg = fn_arg;
	i->fn = fn;
	fiber_wake(n->writer, n->script->sim->now);
	while (i->fn != NULL && !n->dead)
		fiber_wait(UINT64_MAX);
	return n->dead ? -ECANCELED : i->result;
}

static bool
importer_stops(void *arg)
{
	const struct fleet_importer *i = arg;

	return i->stop || i->node->dead;
}

static bool
importer_pause(void *arg)
{
	struct fleet_importer *i = arg;
	struct sim *s = i->node->script->sim;
	uint64_t end = s->now + PAUSE_MS * SIM_MS;

	while (s->now < end && !importer_stops(i))
		fiber_wait(end);
	return !importer_stops(i);
}

static bool
importer_ask(void *arg)
{
	struct fleet_importer *i = arg;

	i->waits = i->forward = true;
	fiber_wake(i->node->writer, i->node->script->sim->now);
	while (i->waits && !importer_stops(i))
		fiber_wait(UINT64_MAX);
	return !i->waits;
}

static void
importer_main(void *arg)
{
	struct fleet_importer *i = arg;
	struct fleet_node *n = i->node;
	const struct import_thread thread = {
		.owner = fleet_name(n->fleet),
		.part_max = PART_MIN + sim_below(n->script->sim, PART_MAX - PART_MIN),
		.random = fleet_random,
		.call = importer_call,
		.pause = importer_pause,
		.stops = importer_stops,
		.ask = importer_ask,
		.arg = i,
	};
	struct sa_change *changes = fleet_op_changes(i->op);
	struct error err = { "" };
	int rc;

	rc = import_staged(&thread, &i->request, SA_REPLACE_NOTHING, changes, i->op->records, &err);
	free(changes);
	if (!n->dead)
		fleet_op_imported(n, i->op, rc, rc != -EINPROGRESS);
	i->op = NULL;
}

void
fleet_importer_begin(struct fleet_node *n, struct fleet_op *op)
{
	struct fleet_importer *i = n->importer;

	if (i == NULL)
		i = n->importer = calloc(1, sizeof(*i));
	if (i == NULL)
		abort();
	i->node = n;
	i->op = op;
	i->fiber = fiber_start(n->script->sim, importer_main, i, &n->dead);
}

/* --- its node --- */

bool
fleet_importer_works(const struct fleet_node *n)
{
	return n->importer != NULL && n->importer->op != NULL;
}

void
fleet_importer_stop(struct fleet_node *n)
{
	if (n->importer == NULL)
		return;
	n->importer->stop = true;
	if (n->importer->fn == NULL)
		fiber_wake(n->importer->fiber, n->script->sim->now);
}

void
fleet_importer_kill(struct fleet_node *n)
{
	while (n->importer != NULL && !fiber_ended(n->importer->fiber))
		fiber_resume(n->importer->fiber);
}
