/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connections between two or three nodes, perhaps with a hostile one. With some seeds all
 * connections go as planned; with others nodes crash at any message, paths fail, old messages are
 * delivered again, and a node floods or forges.
 */

#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"

#define AT_ONCE_STRICT 20
#define AT_ONCE        80

/* --- faults --- */

static void
cut_a_path(struct cm_script *sc)
{
	struct sim *s = sc->sim;
	unsigned int path = sim_below(s, CM_PATHS);

	for (unsigned int i = 0; i < s->nodes; i++)
		s->node[i].net.dead = 1u << path;
	sc->mend_at = s->now + sim_below(s, 300) * CM_MS;
	sim_trace(s, "path %u is cut", path);
}

static void
mend_paths(struct cm_script *sc)
{
	for (unsigned int i = 0; i < sc->sim->nodes; i++)
		sc->sim->node[i].net.dead = 0;
	sc->mend_at = UINT64_MAX;
}

/* Crash at a random time instead of at a message. */
static void
crash_one(struct cm_script *sc)
{
	struct cm_side *side = &sc->side[sim_below(sc->sim, sc->honest)];

	if (side->cm == NULL)
		return;
	sc->crashes_left--;
	cm_side_stop(side, true);
}

/* As if the hostile node had guessed keys of this side. */
static void
pause_hostile(struct cm_script *sc, struct cm_side *side)
{
	struct av av = cm_av(sc, side->node->id, sc->honest, 0);
	union gid addr = av.dgid;

	if (av.encap == ENCAP_IB && !av.grh) { /* a LID is ::lid */
		addr = (union gid){ .word = { 0, 0 } };
		put_be16(addr.raw + 14, av.dlid);
	}
	if (side->cm != NULL)
		cm_pause_peer(side->cm, &addr, sc->sim->now + 1 + sim_below(sc->sim, 100 * CM_MS));
}

static void
cm_scenario_disturb(struct cm_script *sc)
{
	struct sim *s = sc->sim;

	for (unsigned int i = 0; i < sc->honest; i++)
		if (s->now >= sc->side[i].paused_until)
			s->node[i].sink_empty = sc->side[i].sink_empty;
	if (s->now >= sc->mend_at)
		mend_paths(sc);
	else if (sc->cut_paths && sc->mend_at == UINT64_MAX && sc->connects > 0 &&
		sim_below(s, 50) == 0)
		cut_a_path(sc);
	if (sc->crashes_left > 0 && sim_below(s, 1000) == 0)
		crash_one(sc);
	if (sc->has_hostile && sim_below(s, 200) == 0)
		pause_hostile(sc, &sc->side[sim_below(s, sc->honest)]);
	/* a crash planned for a rare message might never come */
	if (sim_below(s, 50) == 0)
		cm_plan_crash(sc);
}

/* --- connects --- */

static void
connect_one(struct cm_script *sc, struct cm_side *side)
{
	struct sim *s = sc->sim;
	unsigned int to = sim_below(s, sc->dialog ? s->nodes : sc->honest);

	if (to == side->node->id)
		to = (to + 1) % sc->honest;
	cm_life_connect(sc, side->node->id, to);
}

static void
connect_some(struct cm_script *sc)
{
	struct sim *s = sc->sim;
	struct cm_side *side = &sc->side[sim_below(s, sc->honest)];
	unsigned int n = sim_below(s, 16) == 0 ? 1 + sim_below(s, 20) : 1;

	for (; n > 0 && sc->connects > 0; n--) {
		if (side->cm == NULL || sc->num_now >= (sc->strict ? AT_ONCE_STRICT : AT_ONCE))
			return;
		sc->connects--;
		connect_one(sc, side);
	}
}

/* --- the flood --- */

/* Start long transfers between all honest nodes before the flood. */
static void
start_steady(struct sim *s, void *arg)
{
	struct cm_script *sc = arg;

	for (unsigned int i = 0; i < sc->honest && s->guest != NULL; i++) {
		struct cm_life *l;
		unsigned int at = sc->num_lives;

		cm_life_connect(sc, i, (i + 1) % sc->honest);
		if (sc->num_lives == at)
			continue;
		l = sc->lives[at];
		l->steady = l->hello.plan == CM_PLAN_ACCEPT;
		l->pace = (sc->flood_to - sc->flood_from) / 4;
	}
}

static void
look_at_flood(struct sim *s, void *arg)
{
	if (s->guest != NULL)
		cm_model_flood(arg);
}

static void
cm_scenario_flood(struct sim *s, void *arg)
{
	struct cm_script *sc = arg;

	if (s->guest == NULL || sc->flood_left == 0)
		return;
	cm_hostile_flood(sc);
	sim_at(s, s->now + sim_below(s, (uint32_t)CM_MS), cm_scenario_flood, sc);
}

static void
plan_flood(struct cm_script *sc)
{
	struct sim *s = sc->sim;

	sc->flood_from = s->now + 5 * sc->longest;
	sc->flood_to = sc->flood_from + 500 * CM_MS + 4 * sc->longest;
	sc->flood_left = 100 + sim_below(s, 1000);
	sc->flood_burst = 1 + sim_below(s, 30);
	sc->flood_spoofs = sim_below(s, 2);
	sim_at(s, s->now + 1, start_steady, sc);
	sim_at(s, sc->flood_from, look_at_flood, sc);
	sim_at(s, sc->flood_from + 1, cm_scenario_flood, sc);
	sim_at(s, sc->flood_to, look_at_flood, sc);
}

/* --- a turn of all users --- */

static bool
busy(const struct cm_script *sc)
{
	for (unsigned int i = 0; i < sc->num_now; i++)
		if (!sc->now[i]->ended &&
			(sc->now[i]->established || sc->now[i]->act_at > sc->sim->now))
			return true;
	return sc->connects > 0 || sc->hostile_left > 0;
}

static void
turn_of_side(struct cm_side *side)
{
	if (side->cm == NULL)
		return;
	cm_data_poll(side);
	cm_model_look(side);
}

static void
cm_scenario_turn(struct sim *s, void *arg)
{
	struct cm_script *sc = arg;
	uint64_t step = busy(sc) ? 2 * sc->step : 200 * CM_MS;

	if (s->guest == NULL)
		return;
	for (unsigned int i = 0; i < sc->honest; i++)
		turn_of_side(&sc->side[i]);
	for (unsigned int i = sc->num_now; i-- > 0;)
		if (i < sc->num_now)
			cm_life_step(sc->now[i]);
	if (sc->connects > 0)
		connect_some(sc);
	if (sc->hostile_left > 0) {
		sc->hostile_left--;
		cm_hostile_act(sc);
	}
	cm_scenario_disturb(sc);
	sim_at(s, s->now + 1 + sim_below(s, (uint32_t)step), cm_scenario_turn, sc);
}

/* --- the script --- */

static bool
cm_scenario_done(struct sim *s)
{
	const struct cm_script *sc = s->guest_arg;

	if (sc->connects > 0 || sc->hostile_left > 0 || sc->flood_left > 0 || sc->num_now > 0 ||
		s->now < sc->flood_to)
		return false;
	for (unsigned int i = 0; i < sc->honest; i++)
		if (sc->side[i].cm == NULL || mad_pending(sc->side[i].mad) ||
			cm_pending(sc->side[i].cm))
			return false;
	return true;
}

static void
cm_scenario_random_limits(struct cm_script *sc)
{
	struct sim *s = sc->sim;
	struct cm_limits *l = &sc->limits;
	uint64_t req, rep;

	*l = cm_limits_default;
	l->max_connections = l->max_connections_per_peer = CM_CONNECTIONS;
	l->max_half_open = 40;
	l->max_half_open_per_peer = sc->flood_from != 0 ? 20 : 40;
	l->max_listeners = 8;
	l->response_timeout = (uint8_t)(8 + sim_below(s, 6));
	l->packet_life = (uint8_t)(6 + sim_below(s, 5));
	l->ack_delay = (uint8_t)(6 + sim_below(s, 5));
	l->max_retries = (uint8_t)(sc->strict ? 11 + sim_below(s, 5) : sim_below(s, 16));
	l->send_mra = sim_below(s, 4) != 0;
	if (!sc->strict) {
		l->max_half_open = 2 + sim_below(s, 40);
		l->max_half_open_per_peer = 1 + sim_below(s, l->max_half_open);
		if (sim_below(s, 2) == 0) /* too few for those that are half open */
			l->max_connections = 8 + sim_below(s, CM_CONNECTIONS - 7);
		l->max_connections_per_peer = 8 + sim_below(s, CM_CONNECTIONS - 7);
	}
	req = 2 * cm_ms(l->packet_life) + cm_ms(l->response_timeout);
	rep = cm_ms(l->response_timeout);
	sc->longest = (l->max_retries + 1ull) * (req > rep ? req : rep) * CM_MS +
		cm_ms(cm_ack_timeout(l->packet_life, l->ack_delay)) * CM_MS;
}

enum mode {
	MODE_STRICT,
	MODE_FLOOD,
	MODE_CRASHES,
	MODE_HOSTILE,
	MODE_ALL,
};

static void
random_mode(struct cm_script *sc, enum mode mode)
{
	struct sim *s = sc->sim;

	sc->honest = 2 + sim_below(s, 2);
	sc->connects = 100 + sim_below(s, 500);
	sc->strict = mode <= MODE_FLOOD;
	sc->has_hostile = mode != MODE_STRICT && mode != MODE_CRASHES;
	sc->dialog = mode >= MODE_HOSTILE;
	sc->crashes_left = mode == MODE_CRASHES || mode == MODE_ALL ? 50 + sim_below(s, 150) : 0;
	sc->hostile_left = sc->dialog ? 1000 + sim_below(s, 4000) : sc->has_hostile ? 300 : 0;
	sc->late = !sc->strict && sim_below(s, 2);
	sc->cut_paths = !sc->strict && sim_below(s, 2);
	sc->lossless = mode == MODE_STRICT && sim_below(s, 2);
	sc->flood_from = mode == MODE_FLOOD; /* plan_flood() sets the time */
}

static void
cm_scenario_start(struct cm_script *sc)
{
	struct sim *s = sc->sim;
	struct rc_limits limits = rc_limits_default;

	limits.max_qp = CM_PLACES;
	limits.max_cq = 4;
	limits.max_srq = 1;
	limits.min_ack_timeout = 0;
	limits.quarantine = 0;
	s->nodes = sc->honest + sc->has_hostile;
	for (unsigned int i = 0; i < s->nodes; i++)
		sim_node_init(s, i, &limits);
	script_bad_network(s, sc->strict ? 1 + sim_below(s, 200) : 1 + sim_below(s, 2000));
	for (unsigned int i = 0; i < s->nodes && sc->lossless; i++) {
		struct sim_network *net = &s->node[i].net;

		net->lose = net->duplicate = net->reorder = net->corrupt = 0;
		s->node[i].sink_empty = 0;
	}
	for (unsigned int i = 0; i < sc->honest; i++) {
		struct cm_side *side = &sc->side[i];

		side->script = sc;
		side->node = &s->node[i];
		side->guid = UINT64_C(0x0200000000000010) + 0x100 * i;
		side->sink_empty = s->node[i].sink_empty;
		side->qpns = sim_below(s, 2) ? sim_rand(s) | 1 : 0;
		s->node[i].same_qpns = side->qpns;
		cm_side_start(side);
	}
}

void
cm_scenario(struct sim *s)
{
	static const enum encap encaps[] = { ENCAP_ROCEV2_IPV4, ENCAP_ROCEV2_IPV6, ENCAP_ROCEV1,
		ENCAP_IB, ENCAP_IB };
	static const enum mode modes[] = { MODE_STRICT, MODE_FLOOD, MODE_CRASHES, MODE_CRASHES,
		MODE_HOSTILE, MODE_ALL, MODE_ALL };
	struct cm_script *sc = calloc(1, sizeof(*sc));

	if (sc == NULL)
		abort();
	script_create(s)->done = true;
	sc->sim = s;
	sc->encap = encaps[sim_below(s, 5)];
	sc->grh = sc->encap == ENCAP_IB && sim_below(s, 2);
	sc->step = 20 * CM_US + sim_below(s, 2 * CM_MS);
	sc->mend_at = UINT64_MAX;
	cm_plan_crash(sc);
	random_mode(sc, modes[sim_below(s, 7)]);
	cm_scenario_random_limits(sc);
	cm_scenario_start(sc);
	s->guest_arg = sc;
	s->guest = &cm_guest;
	if (sc->flood_from != 0)
		plan_flood(sc);
	sim_at(s, s->now + 1, cm_scenario_turn, sc);
	if (!sim_run(s, s->now + 20000 * SIM_SECOND, cm_scenario_done))
		sim_fail(s, "connections that never end");
	if (!s->failed)
		cm_model_end(sc);
}
