/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queue pairs move between two workers of their node (design.md rule 1), in every state, at random
 * times, under loss, duplication, reordering and damage. The model checks them as in other
 * scenarios. test/engine/test_rehome.c tests the messages of a move, and packets that arrive during
 * it.
 */

#include <errno.h>

#include "coverage.h"
#include "script.h"

#define BIT(status) (1u << (status))

/* n->worker becomes the QP's worker. */
static void
rehome_swap_workers(struct sim_node *n)
{
	struct rc_worker *worker = n->worker;
	struct timer_wheel *wheel = n->wheel;

	n->worker = n->other;
	n->wheel = n->other_wheel;
	n->other = worker;
	n->other_wheel = wheel;
}

static void
rehome_move(struct sim *s, unsigned int node)
{
	struct conn *c = s->script->conn[0];
	struct sim_node *n = &s->node[node];
	enum qp_state state;
	int owner, ret;

	if (c->destroyed[node])
		return;
	state = conn_state(c, node);
	owner = rc_owner(n->dev, c->qpn[node]);
	ret = rc_qp_export(n->worker, c->qpn[node], !owner, NULL);
	sim_trace(s, "node %u: move in %s: %d", node, qp_state_name(state), ret);
	if (ret == -EAGAIN) /* the CQ was not polled: all fences are in use */
		return;
	if (ret != 0)
		sim_fail(s, "node %u: export failed", node);
	s->coverage->rehomed[state]++;
	rehome_swap_workers(n);
	if (rc_qp_import(n->worker, c->qpn[node], (unsigned int)owner) < 0)
		sim_fail(s, "node %u: import failed", node);
	if (rc_pending(n->other) || rc_worker_qps(n->other) != 0 ||
		timer_wheel_run(n->other_wheel, s->now) != 0)
		sim_fail(s, "node %u: something stays on worker %d", node, owner);
}

static void
move_again(struct sim *s, void *arg)
{
	struct script *sc = s->script;
	struct conn *c = sc->conn[0];

	(void)arg;
	rehome_move(s, sim_below(s, 2));
	if (sc->left-- == 0 || (flow_done(&c->flow[0]) && flow_done(&c->flow[1])))
		return;
	/* sometimes several moves between two polls of the CQ */
	sim_at(s, s->now + (sim_below(s, 3) == 0 ? 1 : sim_below(s, 60000)), move_again, NULL);
}

static void
end_in(struct sim *s, enum qp_state to)
{
	struct conn *c = s->script->conn[0];
	unsigned int node = sim_below(s, 2);
	struct qp_attr a = { .qp_state = to };

	if (conn_modify(c, node, &a, QP_ATTR_STATE) < 0)
		sim_fail(s, "modify to %s failed", qp_state_name(to));
	if (to == QPS_RESET)
		c->flow[node].gone = true;
	rehome_move(s, node);
	rehome_move(s, node);
}

static void
rehome_error_now(struct sim *s)
{
	end_in(s, QPS_ERR);
}

static void
rehome_reset_now(struct sim *s)
{
	end_in(s, QPS_RESET);
}

static void
rehome_resume(struct sim *s, void *arg)
{
	struct conn *c = s->script->conn[0];
	unsigned int node = arg != NULL;
	struct qp_attr a = { .qp_state = QPS_RTS };

	if (conn_state(c, node) != QPS_SQD)
		return;
	rehome_move(s, node);
	if (conn_modify(c, node, &a, QP_ATTR_STATE) < 0)
		sim_fail(s, "SQD to RTS failed");
}

static void
rehome_drain_now(struct sim *s)
{
	struct conn *c = s->script->conn[0];
	unsigned int node = sim_below(s, 2);
	struct qp_attr a = { .qp_state = QPS_SQD };

	if (conn_state(c, node) != QPS_RTS || conn_modify(c, node, &a, QP_ATTR_STATE) < 0)
		return;
	rehome_move(s, node);
	sim_at(s, s->now + sim_below(s, 1000000), rehome_resume, node ? (void *)1 : NULL);
}

void
scenario_rehome(struct sim *s)
{
	static void (*const acts[])(
		struct sim * s) = { NULL, rehome_drain_now, rehome_error_now, rehome_reset_now };
	struct script *sc = script_create(s);
	unsigned int which = sim_below(s, 4);
	struct conn_options o;
	struct conn *c;

	s->two_workers = true;
	script_nodes(s);
	o = conn_options_random(s);
	o.stay_init = true;
	c = script_connect(s, &o);
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		rehome_move(s, i);
		conn_to_rtr(c, i);
		rehome_move(s, i);
		conn_to_rts(c, i);
	}
	if (sim_below(s, 4) != 0)
		script_bad_network(s, 500);
	flow_plan(&c->flow[0], 20 + sim_below(s, 60), KINDS_ALL);
	flow_plan(&c->flow[1], sim_below(s, 60), KINDS_ALL);
	sc->act = acts[which];
	sc->act_at = s->now + sim_below(s, 300000);
	for (unsigned int i = 0; i < SIM_NODES && which >= 2; i++)
		script_allow(&c->flow[i],
			BIT(WC_RETRY_EXC_ERR) | BIT(WC_WR_FLUSH_ERR) | BIT(WC_RNR_RETRY_EXC_ERR));
	sc->left = 1 + sim_below(s, 200);
	sim_at(s, s->now + sim_below(s, 50000), move_again, NULL);
	script_run(s);
}
