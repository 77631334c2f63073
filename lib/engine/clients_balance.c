/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The choice of clients that move by themselves: from a worker that is nearly always busy to one
 * that is less than half as busy, one client a second. A busy worker never receives a client. Moved
 * is the most active client that had no more than half of the requests and completions of all
 * clients of its worker: a client that makes nearly all the work alone would take it along.
 *
 * Requests and completions are not load: a client with few large transfers may still take the load
 * along. If the higher load of both workers is not lower after its rest, its rests double.
 */

#include <errno.h>
#include <inttypes.h>

#include <rte_cycles.h>

#include "engine/clients_private.h"

#define BALANCE_SECONDS  1
#define BALANCE_LOOKS    2 /* that find a worker busy, in a row, before a client leaves it */
#define BALANCE_TRIES    8 /* most moves that may be refused in a look */
#define BALANCE_QPS      256 /* a client with more moves only by hand: that takes long */
#define BALANCE_REST     10 /* seconds, least time between two moves of a client */
#define BALANCE_REST_MAX 320

static uint64_t
worker_load(const struct engine *e, unsigned int worker)
{
	return relaxed(&e->worker[worker]->stats.load);
}

static uint64_t
client_activity(const struct verbs_client *c)
{
	return relaxed(&c->posted) + relaxed(&c->completed) - c->active_before;
}

static void
client_rest(struct verbs_client *c, uint64_t now, unsigned int seconds)
{
	c->rests_until = now + seconds * rte_get_tsc_hz();
}

/* At the end of a client's rest: has its move lowered the higher load of both workers? */
static void
client_judge_move(const struct engine *e, struct verbs_client *c, uint64_t now)
{
	const unsigned int rest = c->rest;
	uint64_t higher;

	if (!c->move_unjudged || now < c->rests_until)
		return;
	c->move_unjudged = false;
	higher = RTE_MAX(worker_load(e, c->moved_from), worker_load(e, c->worker));
	if (higher + REHOME_LOAD_ONE / 16 <= c->load_before) {
		c->rest = BALANCE_REST;
		return;
	}
	c->rest = RTE_MIN(2 * rest, (unsigned int)BALANCE_REST_MAX);
	client_rest(c, c->rests_until, c->rest - rest);
}

/* @return NULL: none is to leave */
static struct verbs_client *
client_to_move(const struct engine *e, unsigned int from, uint64_t now)
{
	struct verbs_client *c, *best = NULL;
	uint64_t all = 0, most = 0, activity;

	for (c = e->verbs_clients; c != NULL; c = c->next_client)
		if (c->worker == from)
			all += client_activity(c);
	for (c = e->verbs_clients; c != NULL; c = c->next_client) {
		activity = client_activity(c);
		if (c->worker != from || now < c->rests_until || c->use.qps > BALANCE_QPS ||
			activity <= most || activity > all - activity)
			continue;
		best = c;
		most = activity;
	}
	return best;
}

static void
client_has_left(struct verbs_client *c, unsigned int from, uint64_t load, uint64_t now)
{
	c->engine->busy_looks[from] = 0;
	c->moved_from = from;
	c->load_before = load;
	c->move_unjudged = true;
	c->rest = RTE_MAX(c->rest, (unsigned int)BALANCE_REST);
	client_rest(c, now, c->rest);
}

static void
client_cannot_leave(struct verbs_client *c, uint64_t now, const struct error *err)
{
	if (!c->stay_logged)
		ENGINE_LOG(INFO, "client %" PRIu64 " stays on busy worker %u: %s", c->id, c->worker,
			err->text);
	c->stay_logged = true;
	client_rest(c, now, BALANCE_REST);
}

/* @return true if a client has moved */
static bool
worker_relieve(struct engine *e, unsigned int from, unsigned int to, unsigned int *tries,
	uint64_t now)
{
	uint64_t load = worker_load(e, from);
	struct verbs_client *c;
	struct error err;
	int rc;

	while (*tries > 0 && (c = client_to_move(e, from, now)) != NULL) {
		(*tries)--;
		rc = engine_client_rehome(e, c->id, to, &err);
		if (rc == 0) {
			client_has_left(c, from, load, now);
			return true;
		}
		if (rc == -EBUSY) /* other queue pairs are moving: another look follows */
			return false;
		client_cannot_leave(c, now, &err);
	}
	return false;
}

/* @return the most loaded of the workers that are not yet tried, or -1 */
static int
busiest_worker(const struct engine *e, const bool *tried)
{
	unsigned int i;
	int busiest = -1;

	for (i = 0; i < e->num_workers; i++)
		if (!tried[i] && e->busy_looks[i] >= BALANCE_LOOKS &&
			(busiest < 0 || worker_load(e, i) > worker_load(e, (unsigned int)busiest)))
			busiest = (int)i;
	return busiest;
}

static void
workers_relieve(struct engine *e, uint64_t now)
{
	bool tried[LINK_WORKERS_MAX] = { false };
	unsigned int i, idle = 0, tries = BALANCE_TRIES;
	int busy;

	for (i = 1; i < e->num_workers; i++)
		if (worker_load(e, i) < worker_load(e, idle))
			idle = i;
	while ((busy = busiest_worker(e, tried)) >= 0 &&
		worker_load(e, idle) < worker_load(e, (unsigned int)busy) / 2 &&
		!worker_relieve(e, (unsigned int)busy, idle, &tries, now))
		tried[busy] = true;
}

void
clients_balance(struct engine *e, uint64_t now)
{
	struct verbs_client *c;
	unsigned int i;

	if (!e->config.rehome || e->num_workers < 2 || now < e->balance_next)
		return;
	e->balance_next = now + BALANCE_SECONDS * rte_get_tsc_hz();
	for (i = 0; i < e->num_workers; i++)
		if (!rehome_is_busy(worker_load(e, i)))
			e->busy_looks[i] = 0;
		else if (e->busy_looks[i] < BALANCE_LOOKS)
			e->busy_looks[i]++;
	for (c = e->verbs_clients; c != NULL; c = c->next_client)
		client_judge_move(e, c, now);
	workers_relieve(e, now);
	for (c = e->verbs_clients; c != NULL; c = c->next_client)
		c->active_before += client_activity(c);
}
