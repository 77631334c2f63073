/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>
#include <string.h>

#include "sa_sim.h"

struct script *
script_create(struct sim *s)
{
	struct script *sc = calloc(1, sizeof(*sc));

	if (sc == NULL)
		abort();
	s->script = sc;
	sc->srq = RC_NO_SRQ;
	sc->step = 2000 + sim_below(s, 30000);
	sc->recv_ahead = 2 + sim_below(s, 24);
	sc->limit = s->now + 400 * SIM_SECOND;
	return sc;
}

void
script_nodes(struct sim *s)
{
	struct rc_limits limits = rc_limits_default;

	limits.max_qp = 64;
	limits.max_cq = 32;
	limits.max_srq = 4;
	limits.min_ack_timeout = 0;
	limits.window = 8 + sim_below(s, 200);
	limits.ack_interval = 1 + sim_below(s, 32);
	for (unsigned int i = 0; i < s->nodes; i++)
		sim_node_init(s, i, &limits);
}

struct conn *
script_connect(struct sim *s, const struct conn_options *opt)
{
	return s->script->conn[s->script->conns++] = conn_create(s, opt);
}

void
script_bad_network(struct sim *s, unsigned int worst)
{
	for (unsigned int i = 0; i < s->nodes; i++) {
		struct sim_network *net = &s->node[i].net;

		net->lose = sim_below(s, worst);
		net->duplicate = sim_below(s, worst);
		net->reorder = sim_below(s, worst);
		net->corrupt = sim_below(s, worst / 2 + 1);
		net->jitter = 1000 + sim_below(s, 100000);
		s->node[i].sink_empty = sim_below(s, 3) ? 0 : sim_below(s, 1000);
	}
}

void
script_allow(struct flow *f, uint32_t statuses)
{
	f->may_fail = true;
	f->ambiguous = true;
	f->allowed |= statuses;
}

static bool
script_all_done(struct sim *s)
{
	if (s->script->done)
		return true;
	if (s->script->act != NULL && !s->script->acted)
		return false;
	for (unsigned int i = 0; i < s->num_flows; i++)
		if (!flow_done(s->flows[i]))
			return false;
	return s->sa == NULL || sa_script_done(s->sa);
}

/* The users' turn: post, receive and poll, then schedule the next turn at a random time. */
static void
script_turn(struct sim *s, void *arg)
{
	struct script *sc = s->script;

	(void)arg;
	for (unsigned int i = 0; i < s->num_flows; i++) {
		struct flow *f = s->flows[i];

		if (!sc->no_recv) {
			unsigned int waiting = f->recvs - f->received;

			if (waiting < sc->recv_ahead)
				flow_post_recv(f, sc->recv_ahead - waiting);
			else if (sc->recv_ahead == 0 && waiting == 0 && sim_below(s, 3) == 0)
				flow_post_recv(f, 1 + sim_below(s, 2));
		}
		flow_post(f, sim_below(s, 8));
		if (!sc->no_poll)
			flow_poll(f);
	}
	if (!script_all_done(s))
		sim_at(s, s->now + sim_wait(s, sc->step), script_turn, NULL);
}

static void
script_act(struct sim *s, void *arg)
{
	(void)arg;
	s->script->acted = true;
	s->script->act(s);
}

static void
check_counters(struct sim *s)
{
	for (unsigned int i = 0; i < s->nodes; i++) {
		struct sim_node *n = &s->node[i];
		struct rc_counters rc = { 0 };
		uint64_t sum = 0;

		rc_worker_counters(n->worker, -1, &rc);
		for (unsigned int v = 0; v < VERDICT_COUNT; v++)
			sum += n->verdicts[v];
		if (sum != n->received)
			sim_fail(s, "node %u: %llu packets, verdicts sum to %llu", i,
				(unsigned long long)n->received, (unsigned long long)sum);
		if (n->other != NULL)
			rc_worker_counters(n->other, -1, &rc);
		if (rc.duplicate_request < n->verdicts[VERDICT_DUPLICATE_REQUEST])
			sim_fail(s, "node %u: duplicate_request counter behind its verdict", i);
	}
}

void
script_run(struct sim *s)
{
	struct script *sc = s->script;

	if (s->failed)
		return;
	sim_at(s, s->now, script_turn, NULL);
	if (sc->act != NULL)
		sim_at(s, sc->act_at, script_act, NULL);
	if (!sim_run(s, sc->limit, script_all_done) && !s->failed && !sc->may_time_out) {
		for (unsigned int i = 0; i < s->num_flows; i++)
			if (!flow_done(s->flows[i]))
				sim_fail(s,
					"flow from node %u: %u planned, %u posted, %u completed, "
					"%u receives posted, %u received when the time was up",
					s->flows[i]->from->id, s->flows[i]->ops,
					s->flows[i]->posted, s->flows[i]->completed,
					s->flows[i]->recvs, s->flows[i]->received);
		sim_fail(s, "nothing happens any more");
	}
	/* packets still in the network arrive at QPs that have finished */
	if (!s->failed)
		sim_run(s, s->now + SIM_SECOND / 100, NULL);
}

void
script_end(struct sim *s)
{
	struct script *sc = s->script;

	if (sc == NULL) /* the scenario has run on the nodes of lan.h */
		return;
	if (s->sa != NULL)
		sa_script_end(s);
	if (s->guest != NULL)
		s->guest->end(s);
	s->guest = NULL;
	if (!s->failed) {
		for (unsigned int i = 0; i < s->num_flows; i++)
			flow_settle(s->flows[i]);
		sim_check_memory(s);
	}
	if (!s->failed && sc->watch != NULL &&
		memcmp(sc->watch, s->node[1].arena + sc->watch_offset, sc->watch_len) != 0)
		sim_fail(s, "bytes changed after the region was gone");
	if (!s->failed)
		check_counters(s);
	for (unsigned int i = 0; i < sc->conns; i++)
		conn_destroy(sc->conn[i]);
	if (sc->srq != RC_NO_SRQ && rc_srq_destroy(s->node[1].worker, sc->srq, NULL) < 0)
		sim_fail(s, "srq_destroy failed");
	for (unsigned int i = 0; i < s->nodes; i++)
		sim_node_fini(&s->node[i]);
	free(sc->watch);
	free(sc);
}
