/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Traps under loss, duplication, reordering and damage, while the port goes down and up, its LID,
 * its SM and the interval change, and the operator sends and represses traps.
 */

#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "trap_sim.h"

#define MS            1000000ull
#define M_KEY_PROTECT 2

/* --- causes --- */

static void
send_by_hand(struct trap_script *sc, uint16_t number, const uint8_t *notice)
{
	uint32_t id;

	sc->refused += sma_trap_send(sc->ca.sma, 0, number, notice, sc->sim->now, &id, NULL) < 0;
}

static void
any_notice(struct trap_script *sc)
{
	uint8_t notice[SMA_DATA_LEN];

	for (unsigned int i = 0; i < SMA_DATA_LEN; i++)
		notice[i] = (uint8_t)sim_rand(sc->sim);
	notice[4] |= 0x80; /* a trap number that the sheet does not define */
	send_by_hand(sc, 0, notice);
}

static void
bad_key(struct trap_script *sc)
{
	struct sim *s = sc->sim;
	struct sma_bad_key k = {
		.qkey = sim_below(s, 2),
		.key = sim_below(s, 4),
		.lid1 = 1,
		.lid2 = sc->ca_lid,
		.qp1 = sim_below(s, 8),
		.qp2 = 1,
	};

	sma_bad_key(sc->ca.sma, 0, &k, s->now);
}

static void
link_errors(struct trap_script *sc)
{
	sc->totals.link_errors += sim_below(sc->sim, 100);
	sc->totals.overruns += sim_below(sc->sim, 100);
	sma_port_totals(sc->ca.sma, 0, &sc->totals, sc->sim->now);
}

static void
cause(struct trap_script *sc)
{
	static const uint16_t numbers[] = { 129, 130, 131, 144, 145 };

	switch (sim_below(sc->sim, 5)) {
	case 0:
		send_by_hand(sc, numbers[sim_below(sc->sim, 5)], NULL);
		break;
	case 1:
		link_errors(sc);
		break;
	case 2:
		bad_key(sc);
		break;
	default:
		any_notice(sc);
		break;
	}
}

/* --- operator, link and subnet manager --- */

static void
operator_represses(struct trap_script *sc)
{
	struct trap_seen *t;

	if (sc->num_traps == 0)
		return;
	t = &sc->trap[sim_below(sc->sim, sc->num_traps)];
	if (t->state != SMA_TRAP_HELD && t->state != SMA_TRAP_SENT)
		return;
	t->repressed = true;
	if (sma_trap_repress(sc->ca.sma, t->id, sc->sim->now) != 0)
		sim_fail(sc->sim, "trap %u: cannot be repressed", t->id);
}

static void
trap_scenario_link_up(struct sim *s, void *arg)
{
	struct trap_script *sc = arg;

	if (s->guest != NULL)
		sma_link(sc->ca.sma, 0, true, s->now);
}

static void
trap_scenario_disturb(struct trap_script *sc)
{
	struct sim *s = sc->sim;

	switch (sim_below(s, 6)) {
	case 0:
		sc->sm_lid = (uint16_t)(0x100 + sim_below(s, 100));
		break;
	case 1:
		sc->ca_lid = (uint16_t)(0x200 + sim_below(s, 100));
		break;
	case 2:
		sc->subnet_timeout = (uint8_t)(4 + sim_below(s, 12));
		break;
	case 3:
		trap_sm_configure(sc, PORT_STATE_DOWN);
		break;
	case 4:
		sma_link(sc->ca.sma, 0, false, s->now);
		sim_at(s, s->now + sim_below(s, 50 * MS), trap_scenario_link_up, sc);
		break;
	default:
		operator_represses(sc);
		break;
	}
}

/* The SM configures the port, one step at a time, as its packets may be lost. */
static void
sweep(struct trap_script *sc)
{
	switch (sc->ca.state) {
	case PORT_STATE_INIT:
		trap_sm_configure(sc, PORT_STATE_ARMED);
		break;
	case PORT_STATE_ARMED:
		trap_sm_configure(sc, PORT_STATE_ACTIVE);
		break;
	case PORT_STATE_ACTIVE:
		trap_sm_configure(sc, 0);
		break;
	}
}

static void
trap_scenario_turn(struct sim *s, void *arg)
{
	struct trap_script *sc = arg;

	if (sc->causes > 0) {
		unsigned int burst = sim_below(s, 8) == 0 ? 1 + sim_below(s, 60) : 1;

		for (sc->causes--; burst > 0; burst--) {
			cause(sc);
			trap_model_look(sc); /* the next trap may use its place */
		}
		if (sim_below(s, 4) == 0)
			trap_scenario_disturb(sc);
		trap_model_look(sc);
	}
	if (sc->odd > 0 && sim_below(s, 2)) {
		sc->odd--;
		trap_sm_odd(sc);
	}
	if (sim_below(s, 4) == 0)
		sweep(sc);
	sim_at(s, s->now + 1 + sim_below(s, (uint32_t)(2 * sc->step)), trap_scenario_turn, sc);
}

/* --- on the nodes --- */

static enum verdict
trap_scenario_receive(struct sim_node *n, const struct packet *pkt)
{
	struct trap_script *sc = n->sim->guest_arg;
	enum verdict v;

	if (n->id == SMI_SM)
		return trap_sm_receive(sc, pkt);
	v = smi_side_receive(&sc->ca, pkt);
	if (v == VERDICT_DATAGRAM && pkt->payload[MAD_OFF_METHOD] == MAD_TRAP_REPRESS)
		trap_model_repress(sc, pkt->payload);
	trap_model_look(sc);
	return v;
}

static bool
trap_scenario_run(struct sim_node *n)
{
	struct trap_script *sc = n->sim->guest_arg;
	bool busy;

	if (n->id == SMI_SM)
		return false;
	busy = smi_side_run(&sc->ca);
	trap_model_look(sc);
	return busy;
}

static uint64_t
trap_scenario_next(const struct sim_node *n)
{
	struct trap_script *sc = n->sim->guest_arg;

	return n->id == SMI_SM ? UINT64_MAX : smi_side_next(&sc->ca);
}

static void
trap_scenario_sent(struct sim_node *from, const struct packet *pkt, bool lost)
{
	struct trap_script *sc = from->sim->guest_arg;

	if (from->id == SMI_SM)
		return;
	smi_check_sent(&sc->ca, pkt);
	if (pkt->payload[MAD_OFF_METHOD] == MAD_TRAP)
		trap_model_sent(sc, pkt, lost);
}

static void
trap_scenario_end(struct sim *s)
{
	struct trap_script *sc = s->guest_arg;

	if (!s->failed)
		trap_model_check(sc);
	smi_side_stop(&sc->ca);
	free(sc);
}

static const struct sim_guest guest = { trap_scenario_receive, trap_scenario_run,
	trap_scenario_next, trap_scenario_sent, trap_scenario_end };

/* --- the script --- */

static bool
trap_scenario_done(struct sim *s)
{
	const struct trap_script *sc = s->guest_arg;

	return sc->causes == 0 && sc->odd == 0 && trap_model_over(sc);
}

void
trap_scenario(struct sim *s)
{
	static const unsigned int worst[] = { 1, 100, 500, 1000, 2500 };
	struct trap_script *sc = calloc(1, sizeof(*sc));
	struct sma_port_config port = {
		.guid = SMI_GUID,
		.lid = SMI_CA_LID,
		.sm_lid = SMI_SM_LID,
		.m_key = TRAP_M_KEY,
		.m_key_protect = M_KEY_PROTECT,
	};

	if (sc == NULL)
		abort();
	script_create(s)->done = true;
	script_nodes(s);
	script_bad_network(s, worst[sim_below(s, 5)]);
	sc->sim = s;
	sc->ca_lid = SMI_CA_LID;
	sc->sm_lid = SMI_SM_LID;
	sc->subnet_timeout = (uint8_t)(4 + sim_below(s, 12));
	sc->causes = 20 + sim_below(s, 60);
	sc->odd = sim_below(s, 40);
	sc->step = 1 * MS + sim_below(s, 30 * MS);
	sc->limits = (struct sma_limits){
		.trap_interval_ms = 1 + sim_below(s, 50),
		.trap_retries = 1 + sim_below(s, 8),
		.trap_rate = 20 + sim_below(s, 2000),
		.trap_burst = 1 + sim_below(s, 40),
	};
	smi_side_start(&sc->ca, s, &port, &sc->limits);
	s->guest_arg = sc;
	s->guest = &guest;
	trap_model_look(sc);
	sim_at(s, s->now + 1, trap_scenario_turn, sc);
	for (unsigned int i = 0; i < 2; i++) { /* late packets may cause traps, too */
		if (!sim_run(s, s->now + 1000 * SIM_SECOND, trap_scenario_done))
			sim_fail(s, "a trap that never ends");
		sim_run(s, s->now + SIM_SECOND / 100, NULL);
	}
}
