/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"
#include "fleet_sim.h"
#include "live_sim.h"
#include "sa_sim.h"
#include "trap_sim.h"

#define BIT(status) (1u << (status))

/* One to three connections with traffic in both directions. */
static void
plan_all(struct sim *s, const struct conn_options *fixed, unsigned int ops)
{
	unsigned int conns = 1 + sim_below(s, 2);

	for (unsigned int i = 0; i < conns; i++) {
		struct conn_options o = fixed ? *fixed : conn_options_random(s);
		struct conn *c = script_connect(s, &o);

		flow_plan(&c->flow[0], 1 + sim_below(s, ops), KINDS_ALL);
		if (sim_below(s, 2))
			flow_plan(&c->flow[1], sim_below(s, ops), KINDS_ALL);
	}
}

static void
calm(struct sim *s)
{
	script_create(s);
	script_nodes(s);
	for (unsigned int i = 0; i < SIM_NODES; i++)
		s->node[i].sink_empty = sim_below(s, 3) ? 0 : sim_below(s, 3000);
	plan_all(s, NULL, 60);
	script_run(s);
}

static void
loss(struct sim *s)
{
	unsigned int worst = sim_below(s, 2) ? 200 : 1200;

	script_create(s);
	script_nodes(s);
	script_bad_network(s, worst);
	plan_all(s, NULL, 60);
	if (worst > 200)
		for (unsigned int i = 0; i < s->num_flows; i++)
			script_allow(s->flows[i], BIT(WC_RETRY_EXC_ERR) | BIT(WC_WR_FLUSH_ERR));
	script_run(s);
}

/*
 * 20 Reads among 200 Writes at 10 % loss: the seven retries of retry_cnt are sufficient, as each
 * loss costs at most one (rc-transport 8).
 */
static void
conversation(struct sim *s)
{
	struct conn_options o;
	struct flow *f;

	script_create(s);
	script_nodes(s);
	o = conn_options_random(s);
	o.sq_depth = 220;
	f = &script_connect(s, &o)->flow[0];
	for (unsigned int i = 0; i < 20; i++) {
		flow_plan(f, sim_below(s, 11), KIND(WR_RDMA_WRITE));
		flow_plan(f, 1, KIND(WR_RDMA_READ));
		flow_plan(f, 11 * (i + 1) - f->ops, KIND(WR_RDMA_WRITE));
	}
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		s->node[i].net.lose = 1000;
		s->node[i].burst = 1; /* each packet is received and answered alone */
	}
	flow_post(f, f->ops);
	script_run(s);
}

/* rc-transport 4: PSNs wrap from 0xFFFFFF to 0 during traffic */
static void
wrap(struct sim *s)
{
	struct conn_options o;

	script_create(s);
	script_nodes(s);
	o = conn_options_random(s);
	o.psn[0] = psn_add(0, (uint32_t)-1 - sim_below(s, 60));
	o.psn[1] = psn_add(0, (uint32_t)-1 - sim_below(s, 60));
	script_bad_network(s, 200);
	plan_all(s, &o, 50);
	script_run(s);
}

static void
rnr(struct sim *s)
{
	struct conn_options o;

	script_create(s)->recv_ahead = 0;
	script_nodes(s);
	o = conn_options_random(s);
	if (sim_below(s, 16) == 0)
		o.min_rnr_timer = 0; /* 655.36 ms */
	o.flow_control = sim_below(s, 4) == 0;
	if (sim_below(s, 2))
		script_bad_network(s, 200);
	plan_all(s, &o, 30);
	script_run(s);
}

static void
rnr_exhausted(struct sim *s)
{
	struct conn_options o;
	struct conn *c;

	script_create(s)->no_recv = true;
	script_nodes(s);
	o = conn_options_random(s);
	o.rnr_retry = (uint8_t)sim_below(s, 4);
	o.flow_control = false;
	c = script_connect(s, &o);
	flow_plan(&c->flow[0], 8 + sim_below(s, 20), KINDS_ALL);
	flow_plan(&c->flow[0], 1, KIND(WR_SEND));
	flow_post_recv(&c->flow[0], sim_below(s, 3));
	script_allow(&c->flow[0], BIT(WC_RNR_RETRY_EXC_ERR));
	/* few receives: the flow fails unless it has few Sends */
	script_run(s);
}

static void
scenario_cut_now(struct sim *s)
{
	unsigned int which = sim_below(s, 3);

	sim_trace(s, "network cut %u", which);
	for (unsigned int i = 0; i < SIM_NODES; i++)
		s->node[i].net.cut = which == 2 || which == i;
}

static void
scenario_cut(struct sim *s)
{
	struct script *sc = script_create(s);

	script_nodes(s);
	plan_all(s, NULL, 60);
	sc->act = scenario_cut_now;
	sc->act_at = s->now + sim_below(s, 400000);
	for (unsigned int i = 0; i < s->num_flows; i++)
		script_allow(s->flows[i], BIT(WC_RETRY_EXC_ERR) | BIT(WC_WR_FLUSH_ERR));
	script_run(s);
}

/*
 * seed 001: one request is wrong: earlier ones complete, it fails with its status, later ones are
 * flushed
 */
static void
scenario_fault(struct sim *s)
{
	enum op_fault kind = (enum op_fault)(1 + sim_below(s, FAULT_COUNT - 1));
	struct conn_options o;
	struct flow *f;

	script_create(s);
	script_nodes(s);
	o = conn_options_random(s);
	f = &script_connect(s, &o)->flow[0];
	flow_plan(f, 1 + sim_below(s, 40), KINDS_ALL);
	flow_fault(f, sim_below(s, f->ops), kind);
	if (sim_below(s, 2)) {
		script_bad_network(s, 200);
		script_allow(f,
			BIT(WC_RETRY_EXC_ERR)); /* if the NAK is lost: its sender is in ERR */
	}
	script_run(s);
}

/* The target's QP does not allow the operation, or accepts fewer Reads than are sent. */
static void
scenario_refused(struct sim *s)
{
	struct conn_options o;
	struct flow *f;

	script_create(s);
	script_nodes(s);
	o = conn_options_random(s);
	if (sim_below(s, 2)) {
		o.access = 0;
	} else {
		o.max_rd_atomic = 8;
		o.max_dest_rd_atomic = (uint8_t)sim_below(s, 2);
	}
	f = &script_connect(s, &o)->flow[0];
	flow_plan(f, 30, KINDS_ALL);
	script_allow(f, BIT(WC_REM_INV_REQ_ERR));
	script_run(s);
}

static void
destroy_now(struct sim *s)
{
	conn_destroy_qp(s->script->conn[0], sim_below(s, 2));
}

static void
scenario_destroy(struct sim *s)
{
	struct script *sc = script_create(s);

	script_nodes(s);
	script_bad_network(s, 200);
	plan_all(s, NULL, 60);
	sc->act = destroy_now;
	sc->act_at = s->now + sim_below(s, 400000);
	for (unsigned int i = 0; i < SIM_NODES; i++)
		script_allow(&sc->conn[0]->flow[i],
			BIT(WC_RETRY_EXC_ERR) | BIT(WC_WR_FLUSH_ERR) | BIT(WC_RNR_RETRY_EXC_ERR));
	script_run(s);
}

static void
scenario_watch(struct sim *s, uint32_t offset, uint32_t len)
{
	struct script *sc = s->script;

	sc->watch_offset = offset;
	sc->watch_len = len;
	sc->watch = malloc(len);
	memcpy(sc->watch, s->node[1].arena + offset, len);
}

static void
deregister_now(struct sim *s, void *arg)
{
	struct flow *f = &s->script->conn[0]->flow[0];
	struct error err = { 0 };
	int rc = mem_mr_deregister(s->node[1].mem, s->script->key, &err);

	(void)arg;
	if (rc == -EAGAIN)
		sim_at(s, s->now + 1000, deregister_now, NULL);
	else if (rc < 0)
		sim_fail(s, "deregister: %s", err.text);
	else if (s->script->key == f->once_key) /* no byte may be written after it has returned */
		scenario_watch(s, f->once, 8 * FLOW_MSG_MAX);
}

static void
deregister_act(struct sim *s)
{
	deregister_now(s, NULL);
}

static void
scenario_deregister(struct sim *s)
{
	struct script *sc = script_create(s);
	struct conn_options o;
	struct flow *f;

	script_nodes(s);
	script_bad_network(s, 100);
	o = conn_options_random(s);
	f = &script_connect(s, &o)->flow[0];
	flow_plan(f, 60, KINDS_ALL);
	sc->key = sim_below(s, 2) ? f->once_key : f->konst_key;
	sc->act = deregister_act;
	sc->act_at = s->now + sim_below(s, 400000);
	script_allow(f, BIT(WC_REM_ACCESS_ERR) | BIT(WC_RETRY_EXC_ERR));
	script_run(s);
}

static void
hostile_now(struct sim *s, void *arg)
{
	struct script *sc = s->script;

	(void)arg;
	forge(s, &s->node[sim_below(s, 2)]);
	if (--sc->left > 0)
		sim_at(s, s->now + sim_below(s, 10000), hostile_now, NULL);
	else
		sc->done = true;
}

/*
 * A third party sends forged packets. QPs may fail, but no byte outside their writable areas
 * changes, and counters stay consistent.
 */
static void
hostile(struct sim *s)
{
	struct script *sc = script_create(s);

	script_nodes(s);
	plan_all(s, NULL, 90);
	sc->step = 20000;
	sc->left = 500;
	for (unsigned int i = 0; i < s->num_flows; i++)
		s->flows[i]->lenient = true;
	sim_at(s, s->now + 20000, hostile_now, NULL);
	script_run(s);
}

/* For the test of what is printed at a failure */
static void
failing(struct sim *s)
{
	scenario_fault(s);
	sim_fail(s, "on purpose");
}

const struct scenario scenarios[] = {
	{ "failing", "fails, to show what a failure prints; only by name", failing, 0 },
	{ "calm", "lossless, both directions", calm, 2 },
	{ "loss", "loss, duplication, reordering, damage", loss, 4 },
	{ "conversation", "20 Reads and 200 Writes at 10 % loss; run only by name", conversation,
		0 },
	{ "wrap", "PSNs cross 0xFFFFFF", wrap, 2 },
	{ "rnr", "receives are posted late", rnr, 2 },
	{ "rnr_exhausted", "receives are not posted", rnr_exhausted, 1 },
	{ "cut", "the network fails", scenario_cut, 1 },
	{ "migration", "paths fail in turn, connections migrate", scenario_migration, 2 },
	{ "fault", "one request is wrong", scenario_fault, 4 },
	{ "refused", "the responder does not allow the operation", scenario_refused, 1 },
	{ "destroy", "a QP with outstanding requests is destroyed", scenario_destroy, 1 },
	{ "deregister", "a region is deregistered during traffic", scenario_deregister, 1 },
	{ "hostile", "forged and mangled packets", hostile, 5 },
	{ "states", "modify through every transition under traffic", scenario_states, 2 },
	{ "passive", "requests reach a QP that is still in RTR", scenario_passive, 1 },
	{ "windows", "bind, use, invalidate, use again", scenario_windows, 2 },
	{ "srq", "shared receive queue, limit and last WQE", scenario_srq, 1 },
	{ "cq_overrun", "completion queues are not polled", scenario_cq_overrun, 1 },
	{ "rehome", "queue pairs move between two workers, in every state", scenario_rehome, 2 },
	{ "sa_calm", "SA: all kinds of queries, lossless", sa_scenario_calm, 2 },
	{ "sa_loss", "SA: loss, duplication, reordering, damage up to 20 %", sa_scenario_loss, 4 },
	{ "sa_change", "SA: the database changes during transfers", sa_scenario_change, 2 },
	{ "sa_config", "SA: Configs large and small", sa_scenario_config, 2 },
	{ "sa_sets", "SA: services, multicast groups, subscriptions and Reports", sa_scenario_sets,
		2 },
	{ "sa_restart", "SA: either side restarts, the server crashes at any commit",
		sa_scenario_restart, 2 },
	{ "sa_slow", "SA: long queries, KeepAlives", sa_scenario_slow, 2 },
	{ "sa_scarce", "SA: too few sessions, versions and bytes", sa_scenario_scarce, 2 },
	{ "sa_hostile", "SA: a hostile peer beside one that behaves", sa_scenario_hostile, 3 },
	{ "sa_with_rc", "SA and RC at once", sa_scenario_with_rc, 1 },
	{ "sa_cut", "SA: the network fails", sa_scenario_cut, 1 },
	{ "sa_big", "SA: tables of 10,000 to 100,000 records", sa_scenario_big, 1 },
	{ "sa_million", "SA: a table of 1,000,000 records; only by name", sa_scenario_million, 0 },
	{ "traps", "traps of a port: loss, its SM, LID and state change, repressed or given up",
		trap_scenario, 3 },
	{ "echo",
		"liveness: echoes of many packets and whatever else can be asked, loss up to 20 %",
		scenario_echo, 3 },
	{ "cm", "connections: loss, crashes of either side, a hostile peer, floods of requests",
		cm_scenario, 10 },
	{ "month", "30 days: counters wrap, leases end, the wall clock is set back; only by name",
		scenario_month, 0 },
	{ "fleet", "appliances on one etcd: killed, cut off, etcd's leader lost; only by name",
		fleet_scenario, 0 },
	{ "fleet_scale", "what a change costs a fleet, by counts; only by name",
		fleet_scenario_scale, 0 },
	{ "fleet_no_fence", "fails: etcd ignores who leads; only by name", fleet_scenario_no_fence,
		0 },
	{ "fleet_not_durable", "fails: etcd forgets what it has acknowledged; only by name",
		fleet_scenario_not_durable, 0 },
	{ "fleet_twice", "fails: etcd does not see that a request was executed; only by name",
		fleet_scenario_twice, 0 },
	{ "fleet_import_twice", "fails: etcd does not see that an import was made; only by name",
		fleet_scenario_import_twice, 0 },
	{ "fleet_half", "fails: etcd executes a part of a transaction; only by name",
		fleet_scenario_half, 0 },
	{ "fleet_stage_stays", "fails: what is staged outlives its lease; only by name",
		fleet_scenario_stage_stays, 0 },
	{ "fleet_member_stays", "fails: a member's key outlives its lease; only by name",
		fleet_scenario_member_stays, 0 },
	{ "fleet_member_hidden", "fails: etcd does not list a member; only by name",
		fleet_scenario_member_hidden, 0 },
	{ "fleet_wrong_key", "fails: etcd writes records over others; only by name",
		fleet_scenario_wrong_key, 0 },
	{ "fleet_notice_lost", "fails: etcd forgets notices; only by name",
		fleet_scenario_notice_lost, 0 },
	{ "fleet_notice_goes", "fails: notices end with the lease of the appliance; only by name",
		fleet_scenario_notice_goes, 0 },
	{ "fleet_watch_gap", "fails: a watch lacks an event; only by name",
		fleet_scenario_watch_gap, 0 },
	{ "fleet_early_answer", "fails: an answer comes before its records; only by name",
		fleet_scenario_early_answer, 0 },
	{ "fleet_two_leads", "fails: etcd's clock runs twice as fast; only by name",
		fleet_scenario_two_leads, 0 },
	{ "fleet_copy_gap", "fails: the disk loses a record; only by name", fleet_scenario_copy_gap,
		0 },
	{ "congestion", "two senders, one link: DCQCN and without; only by name",
		scenario_congestion, 0 },
	{ "crowd",
		"one worker, many peers, one of them slow, hostile or retransmitting for ever; only by name",
		scenario_crowd, 0 },
};

const unsigned int num_scenarios = sizeof(scenarios) / sizeof(scenarios[0]);
