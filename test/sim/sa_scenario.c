/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Scripts of subnet administration; scenario.c has the table of scenarios. */

#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "sa_sim.h"

#define US 1000ull
#define MS 1000000ull

union gid
sa_gid(const struct sa_script *sc, unsigned int node)
{
	const struct sim_node *n = &sc->sim->node[node];

	return sc->encap == ENCAP_ROCEV2_IPV4 ? n->gid : n->gid6;
}

struct mad_peer
sa_peer(const struct sa_script *sc, unsigned int from)
{
	return (struct mad_peer){
		.av = { .encap = sc->encap, .sgid = sa_gid(sc, from), .dgid = sa_gid(sc, !from),
			.slid = SA_LID(from), .dlid = SA_LID(!from), .grh = sc->grh,
			.smac = { 2, 0, 0, 0, 0, (uint8_t)from },
			.dmac = { 2, 0, 0, 0, 0, (uint8_t)!from }, .vlan = PATH_NO_VLAN, },
		.qpn = 1, .qkey = MAD_QKEY, .pkey = 0xFFFF, .neighbour = PATH_NO_NEIGHBOUR,
	};
}

/* --- set-up --- */

static uint32_t
random_size(struct sim *s)
{
	switch (sim_below(s, 12)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
	case 3:
		return 2 + sim_below(s, 4);
	case 4:
		return 500 + sim_below(s, 1500);
	default:
		return 6 + sim_below(s, 300);
	}
}

static void
random_port(struct sa_script *sc, unsigned int node, uint8_t subnet_timeout)
{
	struct port_attr *p = &sc->side[node].port;

	p->up = true;
	p->ib = sc->encap == ENCAP_IB;
	p->active_mtu = 1024;
	p->mtu = 1500;
	p->vlan = PATH_NO_VLAN;
	p->subnet_timeout = subnet_timeout;
	p->gid[0].gid = sa_gid(sc, node);
	p->gid[0].type = sc->encap == ENCAP_IB ? GID_IB
		: sc->encap == ENCAP_ROCEV1    ? GID_ROCEV1
					       : GID_ROCEV2;
	p->num_gids = 1;
	p->pkey[0] = 0x8001;
	p->pkey[1] = 0xFFFF;
	p->num_pkeys = 2;
	p->lid = SA_LID(node);
	p->gid_prefix = UINT64_C(0xFE80000000000000);
}

static void
sa_scenario_random_limits(struct sa_script *sc)
{
	struct sim *s = sc->sim;
	/* the flight time is longer than the network may delay a packet */
	uint8_t flight = (uint8_t)(6 + sim_below(s, 8)), process = (uint8_t)(8 + sim_below(s, 8));
	uint8_t retries = sim_below(s, 3) ? 7 : (uint8_t)(5 + sim_below(s, 3));
	bool lsb = sim_below(s, 8) == 0;
	bool early = sim_below(s, 2) == 0;

	for (unsigned int i = 0; i < SIM_NODES; i++) {
		struct mad_limits *l = &sc->side[i].limits;

		*l = mad_limits_default;
		l->max_sessions = SA_SESSIONS;
		l->max_sessions_per_peer = SA_SESSIONS * 3 / 4;
		l->max_bytes = 4u << 20;
		l->max_bytes_per_peer = 2u << 20;
		l->v1_window = (uint16_t)(64 + sim_below(s, sim_below(s, 2) ? 200 : 1));
		l->rmpp_window = (uint16_t)(1 + sim_below(s, 64));
		l->rmpp_send_max = (uint16_t)(1 + sim_below(s, 128));
		l->retries = retries;
		l->resp_time = process;
		l->v1_flags_lsb = lsb;
		l->v1_early_resend = early;
		random_port(sc, i, flight);
		sc->side[i].store_latency = 10 * US + sim_below(s, 200 * US);
		sc->side[i].slice_budget = 1 + sim_below(s, 2000);
		sc->side[i].max_old_bytes = 64u << 20;
		sc->side[i].max_versions = 1024;
		sc->side[i].trust = sim_below(s, 2) ? SA_TRUST_ALL : SA_TRUST_KEY;
		sc->side[i].watched = sim_below(s, 3) != 0;
	}
}

struct sa_script *
sa_script_create(struct sim *s, uint32_t kinds, unsigned int queries)
{
	struct sa_script *sc = calloc(1, sizeof(*sc));

	if (sc == NULL)
		abort();
	script_create(s);
	script_nodes(s);
	s->sa = sc;
	sc->sim = s;
	sc->model = sa_model_create(s);
	sc->model->side = &sc->side[SA_SERVER];
	sc->encap = sim_below(s, 2) ? ENCAP_ROCEV2_IPV4 : (enum encap)sim_below(s, 4);
	sc->grh = sim_below(s, 2);
	sc->kinds = kinds;
	sc->versions = 6;
	sc->planned = 1 + sim_below(s, queries);
	sc->at_once = 1 + sim_below(s, 12);
	sc->step = 20 * US + sim_below(s, 500 * US);
	sc->limit = s->now + 4000 * SIM_SECOND;
	sc->batch_max = sim_below(s, 4) ? 40 : 1500;
	sc->main = sa_random_type(s);
	sc->main_records = random_size(s);
	for (unsigned int i = 0; i < SIM_NODES; i++)
		sa_side_init(&sc->side[i], s, i);
	sa_scenario_random_limits(sc);
	return sc;
}

/* Loss, duplication, reordering and damage; worst in 1/10000. */
static void
network(struct sa_script *sc, unsigned int worst)
{
	struct sim *s = sc->sim;

	for (unsigned int i = 0; i < SIM_NODES; i++) {
		struct sim_network *net = &s->node[i].net;

		net->lose = sim_below(s, worst / 2 + 1);
		net->corrupt = sim_below(s, worst / 2 + 1);
		net->duplicate = sim_below(s, worst + 1);
		net->reorder = sim_below(s, worst + 1);
		net->jitter = 1000 + sim_below(s, 100000);
		s->node[i].sink_empty = sim_below(s, 3) ? 0 : sim_below(s, 1000);
	}
	sc->light = worst <= 100;
}

/* --- queries and events --- */

static enum sa_ask
sa_scenario_random_kind(struct sa_script *sc)
{
	enum sa_ask kind;

	do {
		kind = (enum sa_ask)sim_below(sc->sim, SA_ASK_KINDS);
	} while (!(sc->kinds & SA_ASKS(kind)));
	return kind;
}

/* @return the next query: usually one that deletes what an earlier Set or join has added */
static struct sa_flow *
next_flow(struct sa_script *sc)
{
	for (struct sa_flow *f = sc->flows; f != NULL; f = f->next)
		if ((f->kind == SA_ASK_SERVICE || f->kind == SA_ASK_JOIN) && f->done &&
			!f->failed && !f->again) {
			f->again = true;
			if (f->executed > 0 && sim_below(sc->sim, 4) != 0)
				return sa_flow_undo(sc, f);
		}
	return sa_flow_create(sc, sa_scenario_random_kind(sc));
}

static void
ask_more(struct sa_script *sc)
{
	while (sc->planned > 0 && sc->under_way < sc->at_once && !sc->sim->failed) {
		struct sa_flow *f = next_flow(sc);

		if (!sa_flow_ask(f)) {
			sa_flow_free(f);
			return;
		}
		f->next = sc->flows;
		sc->flows = f;
		sc->planned--;
	}
}

/* The operator changes a record. */
static void
sim_sa_scenario_change(struct sim *s, void *arg)
{
	struct sa_script *sc = s->sa;
	struct sa_side *server = &sc->side[SA_SERVER];
	struct sa_change c[8];
	struct error err = { 0 };
	unsigned int n = 0;

	(void)arg;
	for (unsigned int i = 1 + sim_below(s, 8); i > 0 && !server->down; i--) {
		const struct sa_model_record *r = sa_model_any(sc->model, sc->main->table);
		bool remove = r != NULL && sim_below(s, 3) == 0;
		bool replace = r != NULL && sim_below(s, 2);
		uint32_t rid = remove || replace
			? r->rid
			: sa_nth_rid(sc->main, 1, sim_below(s, sc->main_records + 50));
		unsigned int k;

		for (k = 0; k < n && c[k].rid != rid; k++)
			;
		if (k < n || rid >> 16 >= SA_LID(0))
			continue;
		c[n] = (struct sa_change){ .type = sc->main, .remove = remove, .rid = rid };
		sa_random_record(s, sc->main, rid, c[n++].rec);
	}
	if (n > 0 && sa_change(server->sa, c, n, &err) < 0 && !sc->crashes)
		sim_fail(s, "sa_change: %s", err.text);
	if (--sc->churn > 0)
		sim_at(s, s->now + 1 + sim_below(s, (uint32_t)sc->churn_step),
			sim_sa_scenario_change, NULL);
}

static void
restart(struct sim *s, void *arg)
{
	struct sa_script *sc = s->sa;
	unsigned int which = sc->restart_of < SIM_NODES ? sc->restart_of : sim_below(s, SIM_NODES);

	(void)arg;
	if (which == SA_SERVER && sc->crashes && sim_below(s, 2)) {
		sc->model->crash = (enum sa_crash)(1 + sim_below(s, 3));
		sc->model->crash_after = sim_below(s, 3);
	} else {
		sa_side_restart(&sc->side[which], 1000 + sim_below(s, 5 * MS));
	}
	if (--sc->restarts > 0)
		sim_at(s, s->now + 1 + sim_below(s, 20 * MS), restart, NULL);
}

static void
sa_scenario_turn(struct sim *s, void *arg)
{
	struct sa_script *sc = s->sa;

	(void)arg;
	ask_more(sc);
	if (sc->planned > 0)
		sim_at(s, s->now + sim_wait(s, sc->step), sa_scenario_turn, NULL);
}

bool
sa_script_done(const struct sa_script *sc)
{
	if (sc->planned > 0 || sc->under_way > 0 || sc->churn > 0 || sc->restarts > 0 ||
		sc->hostile > 0)
		return false;
	return sa_side_idle(&sc->side[SA_SERVER]) && sa_side_idle(&sc->side[SA_CLIENT]);
}

void
sa_script_start(struct sa_script *sc)
{
	struct sim *s = sc->sim;

	if (!sc->model->seeding)
		sa_fill(sc);
	for (unsigned int i = 0; i < SIM_NODES && !s->failed; i++)
		sa_side_start(&sc->side[i]);
	if (s->failed)
		return;
	sim_at(s, s->now, sa_scenario_turn, NULL);
	if (sc->churn > 0)
		sim_at(s, s->now + sim_below(s, (uint32_t)sc->churn_step), sim_sa_scenario_change,
			NULL);
	if (sc->restarts > 0)
		sim_at(s, s->now + sim_below(s, 5 * MS), restart, NULL);
	if (sc->hostile > 0)
		sa_hostile_start(sc);
}

static void
tell_what_hangs(struct sa_script *sc)
{
	for (unsigned int i = 0; i < SIM_NODES; i++)
		sa_side_check_idle(&sc->side[i]);
	sim_fail(sc->sim, "time is up: %u queries to be asked, %u under way", sc->planned,
		sc->under_way);
}

static bool
sa_scenario_all_done(struct sim *s)
{
	return sa_script_done(s->sa);
}

void
sa_script_finish(struct sa_script *sc)
{
	struct sim *s = sc->sim;

	if (!s->failed && !sim_run(s, sc->limit, sa_scenario_all_done) && !s->failed)
		tell_what_hangs(sc);
}

static void
sa_scenario_run(struct sa_script *sc)
{
	sa_script_start(sc);
	sa_script_finish(sc);
}

void
sa_script_end(struct sim *s)
{
	struct sa_script *sc = s->sa;

	if (!s->failed)
		sim_run(s, s->now + SIM_SECOND / 10, NULL); /* packets still in the network, */
	if (!s->failed)
		sim_run(s, sc->limit, sa_scenario_all_done); /* and sessions that they have begun */
	for (unsigned int i = 0; i < SIM_NODES; i++)
		sa_side_check_idle(&sc->side[i]);
	if (sc->light && !s->failed)
		coverage_light(s->coverage, sc->failed == 0);
	if (s->failed && sc->light)
		coverage_light(s->coverage, false);
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		sa_side_stop(&sc->side[i]);
		sc->side[i].node->sa = NULL;
	}
	while (sc->flows != NULL) {
		struct sa_flow *f = sc->flows;

		sc->flows = f->next;
		sa_watch_stop(sc->model, &f->watch);
		sa_flow_free(f);
	}
	sa_trace_free(&sc->trace);
	sa_model_destroy(sc->model);
	s->sa = NULL;
	free(sc);
}

/* --- the scripts --- */

void
sa_scenario_calm(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_ALL, 40);

	sc->strict = sc->light = true;
	sa_scenario_run(sc);
}

void
sa_scenario_loss(struct sim *s)
{
	static const unsigned int worst[] = { 100, 100, 500, 1000, 2000 };
	struct sa_script *sc = sa_script_create(s, SA_ASKS_ALL, 30);

	network(sc, worst[sim_below(s, 5)]);
	sa_scenario_run(sc);
}

void
sa_scenario_change(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_READ, 30);

	network(sc, sim_below(s, 2) ? 100 : 1000);
	sc->main_records += 100;
	sc->churn = 5 + sim_below(s, 60);
	sc->churn_step = 20 * US + sim_below(s, 300 * US);
	sa_scenario_run(sc);
}

void
sa_scenario_config(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_CONFIG | SA_ASKS(SA_ASK_TABLE), 20);

	network(sc, sim_below(s, 2) ? 100 : 2000);
	sc->batch_max = 3000;
	sa_scenario_run(sc);
}

void
sa_scenario_sets(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_SET | SA_ASKS(SA_ASK_TABLE), 60);

	network(sc, sim_below(s, 2) ? 100 : 1000);
	sc->side[SA_SERVER].refuse = sim_below(s, 2) ? 0 : sim_below(s, 2000);
	sa_scenario_run(sc);
}

void
sa_scenario_restart(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_ALL, 40);

	network(sc, 100);
	sc->light = false;
	sc->crashes = sim_below(s, 4) != 0;
	sc->restarts = 1 + sim_below(s, 4);
	sc->restart_of = sim_below(s, 3);
	sc->churn = sim_below(s, 2) ? 0 : 20;
	sc->churn_step = 500 * US;
	sa_scenario_run(sc);
}

/* Answers take longer than the requester's timeout, so the server sends KeepAlives. */
void
sa_scenario_slow(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS(SA_ASK_TEMPLATE) | SA_ASKS_SET, 8);
	struct sa_side *server = &sc->side[SA_SERVER];
	uint64_t process = 4096ull << server->limits.resp_time;

	sc->main_records += 50 + sim_below(s, 600);
	server->slice = process / 2 + sim_below(s, (uint32_t)process * 4);
	server->slice_budget = 5 + sim_below(s, 100);
	server->node->burst = 1 + sim_below(s, 4);
	server->store_latency = sim_below(s, 2) ? process * 6 : process / 4 + 1;
	sc->versions = sim_below(s, 2) ? 2 : 6;
	network(sc, 100);
	sc->light = false;
	sa_scenario_run(sc);
}

/* Limits are so small that some queries do not fit: they get an error status, no wrong answer. */
void
sa_scenario_scarce(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_ALL, 60);
	struct sa_side *server = &sc->side[SA_SERVER];

	sc->at_once = 40;
	sc->scarce = true;
	sc->main_records += 500;
	server->limits.max_sessions = 4 + sim_below(s, 8);
	server->limits.max_sessions_per_peer = server->limits.max_sessions;
	server->limits.max_bytes = 16u << 10;
	server->limits.max_bytes_per_peer = 16u << 10;
	server->max_versions = 1 + sim_below(s, 4);
	server->max_old_bytes = 1 + sim_below(s, 200000);
	server->refuse = 500;
	sc->churn = 100;
	sc->churn_step = 100 * US;
	network(sc, 100);
	sc->light = false;
	sa_scenario_run(sc);
}

void
sa_scenario_hostile(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_ALL & ~SA_ASKS(SA_ASK_SUBSCRIBE), 30);

	sc->strict = true;
	sc->side[SA_SERVER].limits.max_sessions_per_peer = SA_SESSIONS / 3;
	sc->side[SA_CLIENT].limits.rmpp_total_ms = 500;
	sc->hostile = 200 + sim_below(s, 600);
	sc->hostile_step = 2 * US + sim_below(s, 40 * US);
	sa_scenario_run(sc);
}

/* SA and RC traffic at once on the same wire. */
void
sa_scenario_with_rc(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_READ, 10);
	struct conn_options o = conn_options_random(s);
	struct conn *c;

	network(sc, 100);
	c = script_connect(s, &o);
	flow_plan(&c->flow[0], 1 + sim_below(s, 40), KINDS_ALL);
	sa_script_start(sc);
	script_run(s);
}

static void
sa_scenario_cut_now(struct sim *s, void *arg)
{
	unsigned int which = sim_below(s, 3);

	(void)arg;
	sim_trace(s, "network cut %u", which);
	for (unsigned int i = 0; i < SIM_NODES; i++)
		s->node[i].net.cut = which == 2 || which == i;
}

/* The network fails during transfers: every session ends after all its retries. */
void
sa_scenario_cut(struct sim *s)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS_ALL, 20);

	sc->main_records += 200;
	sc->at_once = 20;
	sc->step = 20 * US;
	sim_at(s, s->now + sim_below(s, 600 * US), sa_scenario_cut_now, NULL);
	sa_scenario_run(sc);
}

static void
big(struct sim *s, uint32_t records, unsigned int queries)
{
	struct sa_script *sc = sa_script_create(s, SA_ASKS(SA_ASK_TABLE), queries);

	sc->main = sa_record_type(sim_below(s, 2) ? SA_PORT_INFO : SA_PKEY_TABLE);
	sc->main_records = records;
	sc->at_once = 2;
	sc->churn = 10;
	sc->churn_step = 2 * MS;
	for (unsigned int i = 0; i < SIM_NODES; i++)
		sc->side[i].watched = false;
	network(sc, 100);
	sa_scenario_run(sc);
}

void
sa_scenario_big(struct sim *s)
{
	big(s, 10000 + sim_below(s, sim_below(s, 4) ? 10000 : 90000), 2);
}

void
sa_scenario_million(struct sim *s)
{
	big(s, 1000000, 1);
}
