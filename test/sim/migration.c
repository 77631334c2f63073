/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Path migration (seed 001): during traffic the path in use fails, or a user asks for migration,
 * several times. Every message completes once, by the other path. Both paths share a wire; byte 4
 * of the source MAC distinguishes them.
 */

#include "script.h"

#define BIT(status) (1u << (status))

static struct av
migration_path_of(const struct conn *c, unsigned int node, uint8_t path)
{
	const struct sim_node *n = &c->sim->node[node], *peer = &c->sim->node[!node];
	bool ipv4 = c->opt.encap == ENCAP_ROCEV2_IPV4;
	struct av av = {
		.encap = c->opt.encap,
		.sgid = ipv4 ? n->gid : n->gid6,
		.dgid = ipv4 ? peer->gid : peer->gid6,
		.slid = (uint16_t)(1 + node + 16 * path),
		.dlid = (uint16_t)(1 + !node + 16 * path),
		.grh = c->opt.rq_depth & 1, /* as conn_to_rtr() */
		.smac = { 2, 0, 0, 0, path, (uint8_t)node },
		.dmac = { 2, 0, 0, 0, path, (uint8_t)!node },
		.vlan = PATH_NO_VLAN,
	};

	av.sgid.raw[14] ^= path;
	av.dgid.raw[14] ^= path;
	return av;
}

static void
migration_rearm(struct conn *c, uint8_t path, bool wrong)
{
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		struct qp_attr a = {
			.alt.av = migration_path_of(c, i, path),
			.alt.neighbour = PATH_NO_NEIGHBOUR,
			.alt.pkey = 0xFFFF,
			.alt.timeout = c->opt.timeout,
			.path_mig_state = MIG_REARM,
		};

		if (wrong && i == 1) {
			a.alt.av.dgid.raw[13] ^= 1;
			a.alt.av.dlid += 100;
		}
		if (conn_modify(c, i, &a, QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE) < 0)
			sim_fail(c->sim, "REARM failed");
	}
}

static bool
both_are(struct conn *c, enum mig_state state)
{
	struct rc_qp_info info;

	for (unsigned int i = 0; i < SIM_NODES; i++) {
		if (rc_qp_query(c->sim->node[i].worker, c->qpn[i], &info) < 0 ||
			info.attr.qp_state != QPS_RTS || info.attr.path_mig_state != state)
			return false;
	}
	return true;
}

/* One or both directions of the path in use fail, or a user asks for migration. */
static void
trouble(struct sim *s, struct conn *c)
{
	struct qp_attr a = { .path_mig_state = MIG_MIGRATED };
	unsigned int which = sim_below(s, 4);

	sim_trace(s, "path %u: trouble %u", s->script->path, which);
	if (which == 3 && conn_modify(c, sim_below(s, 2), &a, QP_ATTR_PATH_MIG_STATE) < 0)
		sim_fail(s, "MIGRATED failed");
	for (unsigned int i = 0; i < SIM_NODES && which < 3; i++)
		if (which == 2 || which == i)
			s->node[i].net.dead = 1u << s->script->path;
}

/* When both are ARMED, cause a migration. Then the old path works again, as the next alternate. */
static void
migration_watch(struct sim *s, void *arg)
{
	struct script *sc = s->script;
	struct conn *c = sc->conn[0];

	(void)arg;
	if (flow_done(&c->flow[0]) && flow_done(&c->flow[1]))
		return;
	if (!sc->acted && both_are(c, MIG_ARMED)) {
		sc->acted = true;
		trouble(s, c);
	} else if (sc->acted && both_are(c, MIG_MIGRATED)) {
		if (--sc->left == 0)
			return;
		s->node[0].net.dead = s->node[1].net.dead = 0;
		migration_rearm(c, sc->path, false);
		sc->path = !sc->path;
		sc->acted = false;
	}
	sim_at(s, s->now + 1 + sim_below(s, 100000), migration_watch, NULL);
}

static void
migration_check(struct sim *s)
{
	uint64_t moved[SIM_NODES];

	for (unsigned int i = 0; i < SIM_NODES; i++) {
		struct rc_counters sum = { 0 };

		rc_worker_counters(s->node[i].worker, -1, &sum);
		moved[i] = sum.path_migrations;
		if (moved[i] != s->node[i].event_count[EVENT_PATH_MIG])
			sim_fail(s, "node %u: %llu migrations, %llu events", i,
				(unsigned long long)moved[i],
				(unsigned long long)s->node[i].event_count[EVENT_PATH_MIG]);
	}
	/* after the last message the peer of a QP that migrates does not follow */
	if (moved[0] > moved[1] + 1 || moved[1] > moved[0] + 1)
		sim_fail(s, "one end migrates without the other");
}

void
scenario_migration(struct sim *s)
{
	struct script *sc = script_create(s);
	bool wrong = sim_below(s, 8) == 0;
	struct conn_options o;
	struct conn *c;

	script_nodes(s);
	o = conn_options_random(s);
	if (sim_below(s, 2))
		script_bad_network(s, 200);
	else
		o.retry_cnt = (uint8_t)(2 + sim_below(s, 6));
	c = script_connect(s, &o);
	flow_plan(&c->flow[0], 20 + sim_below(s, 60), KINDS_ALL);
	flow_plan(&c->flow[1], sim_below(s, 60), KINDS_ALL);
	migration_rearm(c, 1, wrong);
	sc->left = wrong ? 1 : 1 + sim_below(s, 4);
	for (unsigned int i = 0; i < SIM_NODES && wrong; i++)
		script_allow(&c->flow[i], BIT(WC_RETRY_EXC_ERR) | BIT(WC_WR_FLUSH_ERR));
	sim_at(s, s->now + sim_below(s, 200000), migration_watch, NULL);
	script_run(s);
	if (!s->failed && !wrong)
		migration_check(s);
}
