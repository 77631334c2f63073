/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Model of a trap (smp-sma 5): it is sent until it is repressed or given up, not more often than
 * the interval allows, and never after a TrapRepress has arrived.
 */

#include <string.h>

#include "coverage.h"
#include "trap_sim.h"
#include "wire/bytes.h"

/* offsets in a notice (smp-sma 5) */
#define TYPE    0
#define NUMBER  4
#define DETAILS 10
#define LID     12

#define PORT_INFO_SM_LID         18
#define PORT_INFO_SUBNET_TIMEOUT 51

#define SETTLED 1000000 /* ns: after this time packets that waited for the sink have left */

static struct trap_seen *
find_tid(struct trap_script *sc, uint64_t tid)
{
	struct trap_seen *t;

	for (unsigned int i = 0; i < sc->num_traps; i++)
		if (sc->trap[i].tid == tid)
			return &sc->trap[i];
	if (sc->num_traps == TRAPS_MAX) {
		sim_fail(sc->sim, "more traps than were raised");
		return &sc->trap[0];
	}
	t = &sc->trap[sc->num_traps++];
	memset(t, 0, sizeof(*t));
	t->tid = tid;
	return t;
}

/* --- packets --- */

static uint64_t
least_interval(const struct trap_script *sc)
{
	if (sc->sim->now - sc->interval_since < SETTLED && sc->interval_before < sc->interval)
		return sc->interval_before;
	return sc->interval;
}

void
trap_model_sent(struct trap_script *sc, const struct packet *pkt, bool lost)
{
	struct trap_seen *t = find_tid(sc, get_be64(pkt->payload + MAD_OFF_TID));
	uint64_t now = sc->sim->now;

	if (pkt->dlid != get_be16(smi_port_info(&sc->ca) + PORT_INFO_SM_LID))
		sim_fail(sc->sim, "a Trap to LID %u", pkt->dlid);
	if (t->repressed)
		sim_fail(sc->sim, "trap 0x%llx is sent though it was repressed",
			(unsigned long long)t->tid);
	if (t->sent > 0 && now - t->last_sent < least_interval(sc))
		sim_fail(sc->sim, "trap 0x%llx is sent %llu ns after the last time",
			(unsigned long long)t->tid, (unsigned long long)(now - t->last_sent));
	if (t->sent > sc->limits.trap_retries)
		sim_fail(sc->sim, "trap 0x%llx is sent %u times", (unsigned long long)t->tid,
			t->sent + 1);
	memcpy(t->notice, pkt->payload + SMP_OFF_DATA, SMA_DATA_LEN);
	t->sent++;
	t->last_sent = now;
	t->arrived_whole += !lost;
}

struct trap_seen *
trap_model_delivered(struct trap_script *sc, const uint8_t *mad)
{
	struct trap_seen *t = find_tid(sc, get_be64(mad + MAD_OFF_TID));

	if (t->sent == 0)
		sim_fail(sc->sim, "a Trap that was never sent");
	t->delivered = true;
	t->heard++;
	return t;
}

/* --- repressed --- */

static bool
has_details(const uint8_t *notice)
{
	for (unsigned int i = DETAILS; i < SMA_DATA_LEN; i++)
		if (notice[i] != 0)
			return true;
	return false;
}

/* By the sheet: equal number and type, and equal details if present, except the port's own LID. */
static bool
is_meant(const struct trap_seen *t, const uint8_t *notice)
{
	uint16_t number = get_be16(notice + NUMBER);
	bool lid_counts = !(number >= 129 && number <= 131) && number != 144 && number != 145 &&
		number != 256;

	return t->sent > 0 && (t->notice[TYPE] & 0x7F) == (notice[TYPE] & 0x7F) &&
		get_be16(t->notice + NUMBER) == number &&
		(!has_details(notice) ||
			(memcmp(t->notice + LID + 2, notice + LID + 2, SMA_DATA_LEN - LID - 2) ==
					0 &&
				memcmp(t->notice + DETAILS, notice + DETAILS, 2) == 0 &&
				(!lid_counts || memcmp(t->notice + LID, notice + LID, 2) == 0)));
}

/* @return false if the agent has forgotten the trap */
static bool
is_kept(const struct trap_script *sc, const struct trap_seen *t)
{
	struct sma_trap_info info;
	uint32_t cursor = 0;

	while (sma_trap_next(sc->ca.sma, &cursor, sc->sim->now, &info))
		if (info.tid == t->tid)
			return true;
	return false;
}

void
trap_model_repress(struct trap_script *sc, const uint8_t *mad)
{
	bool known = false;

	for (unsigned int i = 0; i < sc->num_traps; i++) {
		struct trap_seen *t = &sc->trap[i];

		if (!is_meant(t, mad + SMP_OFF_DATA) || !is_kept(sc, t))
			continue;
		known = true;
		if (t->state != SMA_TRAP_GIVEN_UP)
			t->repressed = true;
	}
	sc->unmatched += !known;
}

/* --- states --- */

static void
trap_model_change(struct trap_script *sc, struct trap_seen *t, const struct sma_trap_info *info)
{
	static const bool legal[5][5] = {
		[SMA_TRAP_FREE] = { [SMA_TRAP_HELD] = true, [SMA_TRAP_SENT] = true },
		[SMA_TRAP_HELD] = { [SMA_TRAP_SENT] = true, [SMA_TRAP_REPRESSED] = true },
		[SMA_TRAP_SENT] = { [SMA_TRAP_HELD] = true, [SMA_TRAP_REPRESSED] = true,
			[SMA_TRAP_GIVEN_UP] = true, },
	};
	uint8_t from = t->state, to = info->state;

	if (to > SMA_TRAP_GIVEN_UP || !legal[from][to])
		sim_fail(sc->sim, "trap %u: %s became %s", info->id, sma_trap_state_name(from),
			sma_trap_state_name(to));
	else
		coverage_trap(sc->sim->coverage, from, to);
	if (to == SMA_TRAP_GIVEN_UP && t->repressed)
		sim_fail(sc->sim, "trap %u: given up though it was repressed", info->id);
	if (to == SMA_TRAP_REPRESSED && !t->repressed)
		sim_fail(sc->sim, "trap %u: nobody repressed it", info->id);
	sim_trace(sc->sim, "trap %u (%u): %s -> %s, sent %u", info->id, info->number,
		sma_trap_state_name(from), sma_trap_state_name(to), info->sent);
	t->state = to;
}

/* smp-sma 5: at least 4.096 us * 2^SubnetTimeOut, or the configured interval */
static void
look_at_interval(struct trap_script *sc)
{
	uint8_t code = smi_port_info(&sc->ca)[PORT_INFO_SUBNET_TIMEOUT] & 0x1F;
	uint64_t interval = UINT64_C(4096) << code, ours = sc->limits.trap_interval_ms * 1000000ull;

	if (interval < ours)
		interval = ours;
	if (interval == sc->interval)
		return;
	sc->interval_before = sc->interval;
	sc->interval = interval;
	sc->interval_since = sc->sim->now;
}

void
trap_model_look(struct trap_script *sc)
{
	struct sma_trap_info info;
	uint32_t cursor = 0;

	look_at_interval(sc);
	while (sma_trap_next(sc->ca.sma, &cursor, sc->sim->now, &info)) {
		struct trap_seen *t = find_tid(sc, info.tid);

		t->id = info.id;
		t->raised = info.raised;
		if (t->sent != info.sent)
			sim_fail(sc->sim, "trap %u: sent %u times, it says %u", info.id, t->sent,
				info.sent);
		if (t->repressed && info.state == SMA_TRAP_SENT)
			sim_fail(sc->sim, "trap %u goes on though it was repressed", info.id);
		if (t->state != info.state)
			trap_model_change(sc, t, &info);
	}
}

bool
trap_model_over(const struct trap_script *sc)
{
	for (unsigned int i = 0; i < sc->num_traps; i++)
		if (sc->trap[i].state == SMA_TRAP_HELD || sc->trap[i].state == SMA_TRAP_SENT)
			return false;
	return true;
}

/* --- the end --- */

static void
check_one(struct trap_script *sc, const struct trap_seen *t)
{
	if (t->id == 0)
		sim_fail(sc->sim, "packets of a trap that is not there");
	if (t->state == SMA_TRAP_GIVEN_UP && t->sent != sc->limits.trap_retries + 1)
		sim_fail(sc->sim, "trap %u: given up after it was sent %u times", t->id, t->sent);
	if (t->arrived_whole > 0 && !t->delivered)
		sim_fail(sc->sim, "trap %u: sent, not lost, and the SM does not have it", t->id);
	if (t->delivered && t->arrived_whole == 0)
		sim_fail(sc->sim, "trap %u: always lost, and the SM has it", t->id);
}

static void
trap_model_expect(struct trap_script *sc, const char *what, uint64_t counter, uint64_t count)
{
	if (counter != count)
		sim_fail(sc->sim, "%s is %llu, %llu were counted", what,
			(unsigned long long)counter, (unsigned long long)count);
}

void
trap_model_check(struct trap_script *sc)
{
	const struct sma_counters *c = sma_counters(sc->ca.sma, 0);
	uint64_t sent = 0, raised = 0, repressed = 0, given_up = 0;

	for (unsigned int i = 0; i < sc->num_traps; i++) {
		check_one(sc, &sc->trap[i]);
		sent += sc->trap[i].sent;
		raised += sc->trap[i].raised;
		repressed += sc->trap[i].state == SMA_TRAP_REPRESSED;
		given_up += sc->trap[i].state == SMA_TRAP_GIVEN_UP;
	}
	if (!trap_model_over(sc))
		sim_fail(sc->sim, "a trap that never ends");
	if (c->traps_limited < sc->refused)
		sim_fail(sc->sim, "traps_limited is less than what was refused");
	trap_model_expect(sc, "traps_sent", c->traps_sent, sent);
	trap_model_expect(sc, "traps_raised", c->traps_raised, raised + c->traps_limited);
	trap_model_expect(sc, "traps_repressed", c->traps_repressed, repressed);
	trap_model_expect(sc, "traps_given_up", c->traps_given_up, given_up);
	trap_model_expect(sc, "repress_unmatched", c->repress_unmatched, sc->unmatched);
}
