/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A client moves to another worker (clients_move.h): the control thread's part.
 */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "engine/clients_move.h"
#include "engine/placement.h"

static int
client_move_start_here(struct worker *w, void *arg)
{
	struct client_move *m = arg;

	return rehome_offer_client(w, m->to, m->err);
}

static void
client_move_list(struct client_move *m)
{
	const struct verbs_client *c = m->client;
	uint32_t *qpns = m->numbers, *srqns = qpns + c->use.qps, *cqns = srqns + c->use.srqs;
	struct rc_group *g = &m->group;
	uint32_t slot, qp;

	*g = (struct rc_group){ .qpns = qpns, .srqns = srqns, .cqns = cqns };
	g->share = &m->client->share;
	for (slot = 0; slot < c->segment.geometry.num_queues; slot++) {
		if (c->queue[slot] == NULL)
			continue;
		if (c->queue[slot]->is_srq) {
			srqns[g->num_srqs++] = c->queue[slot]->number;
			continue;
		}
		qp = c->queue[slot]->number & m->slot_mask;
		m->coming[qp / 64] |= UINT64_C(1) << qp % 64;
		qpns[g->num_qps++] = c->queue[slot]->number;
	}
	for (slot = 0; slot < c->limits.max_cq; slot++)
		if (c->cq[slot] != NULL)
			cqns[g->num_cqs++] = c->cq[slot]->cqn;
	m->made = cqns + c->use.cqs;
	RTE_ASSERT(
		g->num_qps == c->use.qps && g->num_srqs == c->use.srqs && g->num_cqs == c->use.cqs);
}

/* On the new worker's NUMA node. */
static int
client_move_reserve_rings(struct client_move *m, struct error *err)
{
	struct engine *e = m->client->engine;
	rte_cpuset_t before = placement_enter(e->worker[m->to]->lcore);
	uint32_t i;
	int rc = 0;

	for (i = 0; i < m->group.num_cqs && rc >= 0; i++) {
		rc = rc_cq_reserve_move(e->dev, m->group.cqns[i], m->from, m->to, err);
		if (rc == 1)
			m->made[m->num_made++] = m->group.cqns[i];
	}
	placement_leave(&before);
	return RTE_MIN(rc, 0);
}

/* The client stays. Its worker polls the CQs. */
static int
client_move_free_rings_here(struct worker *w, void *arg)
{
	struct client_move *m = arg;

	while (m->num_made > 0)
		rc_cq_unreserve(w->dev, m->made[--m->num_made], m->to);
	return 0;
}

static int
client_move_reserve(struct client_move *m, struct error *err)
{
	const struct verbs_client *c = m->client;
	struct engine *e = c->engine;
	size_t numbers = (size_t)c->use.qps + c->use.srqs + 2 * c->use.cqs;
	int rc;

	m->slot_mask = e->config.limits.max_qp - 1; /* a power of two */
	m->numbers = calloc(numbers + 1, sizeof(m->numbers[0]));
	m->coming = calloc(m->slot_mask / 64 + 1, sizeof(m->coming[0]));
	rc = client_turns_reserve(e->worker[m->to], &m->looks, &m->num_looks);
	if (rc != 0 || m->numbers == NULL || m->coming == NULL)
		return error_set(err, ENOMEM, "no memory for the move of client %" PRIu64, c->id);
	client_move_list(m);
	return client_move_reserve_rings(m, err);
}

static int
client_move_run(struct client_move *m)
{
	struct engine *e = m->client->engine;
	unsigned int us = 10;
	int rc;

	e->client_move = m;
	rc = engine_call(e, m->from, client_move_start_here, m);
	while (rc == 0 && __atomic_load_n(&m->done, __ATOMIC_ACQUIRE) == 0) {
		if (e->running)
			grace_pause(&us);
		else
			qp_move_without_workers(e);
	}
	e->client_move = NULL;
	if (rc == 0)
		rc = m->result;
	if (rc == 0)
		m->client->worker = m->to;
	return rc;
}

static int
client_move(struct verbs_client *c, unsigned int to, struct error *err)
{
	struct client_move *m = calloc(1, sizeof(*m));
	int rc;

	if (m == NULL)
		return error_set(err, ENOMEM, "no memory for the move of client %" PRIu64, c->id);
	*m = (struct client_move){ .client = c, .from = c->worker, .to = to, .err = err };
	rc = client_move_reserve(m, err);
	if (rc == 0)
		rc = client_wake_prepare(c->engine->worker[to], c, err);
	if (rc == 0) {
		rc = client_move_run(m);
		if (rc != 0)
			client_wake_leave(c->engine->worker[to], c);
	}
	if (rc != 0 && m->num_made > 0)
		engine_call(c->engine, m->from, client_move_free_rings_here, m);
	free(m->looks);
	free(m->coming);
	free(m->numbers);
	free(m);
	return rc;
}

static struct verbs_client *
client_with_id(const struct engine *e, uint64_t id)
{
	struct verbs_client *c = e->verbs_clients;

	while (c != NULL && c->id != id)
		c = c->next_client;
	return c;
}

int
engine_client_rehome(struct engine *e, uint64_t id, unsigned int worker, struct error *err)
{
	struct verbs_client *c = client_with_id(e, id);
	int rc = choose_worker(e, (int)RTE_MIN(worker, (unsigned int)INT_MAX), err);

	if (rc < 0)
		return rc;
	if (c == NULL)
		return error_set(err, ENOENT, "client: there is none with the number %" PRIu64, id);
	return c->worker == worker ? 0 : client_move(c, worker, err);
}
