/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_TRAP_SIM_H
#define SIM_TRAP_SIM_H

/**
 * @file
 * Traps in the simulation; smi_sim.h describes the files.
 */

#include "smi_sim.h"

#define TRAPS_MAX  512 /* most traps of a seed */
#define TRAP_M_KEY UINT64_C(0x0123456789ABCDEF)

/** A trap, identified by its TID. */
struct trap_seen {
	uint64_t tid;
	uint32_t id; /**< 0: only packets of the trap were seen so far */
	uint8_t state; /**< enum sma_trap_state at the last check */
	uint64_t raised; /**< number of times that its cause occurred */
	uint8_t notice[SMA_DATA_LEN]; /**< as last sent */
	uint32_t sent;
	uint32_t arrived_whole; /**< number of packets neither lost nor damaged */
	uint64_t last_sent;
	bool delivered; /**< the SM has received it */
	bool repressed; /**< a TrapRepress has arrived, or the operator has repressed it */
	/* the SM's reaction */
	uint8_t manner;
	uint32_t heard; /**< number of times that the SM received it */
};

struct trap_script {
	struct sim *sim;
	struct smi_side ca;
	struct sma_limits limits;
	struct trap_seen trap[TRAPS_MAX];
	unsigned int num_traps;
	uint64_t interval; /**< least time between repeats; its old value; when it changed */
	uint64_t interval_before, interval_since;
	uint64_t refused; /**< causes without a trap, due to the rate limit or to no free place */
	uint64_t unmatched; /**< TrapRepresses that match no trap */
	unsigned int causes; /**< number of causes left */
	unsigned int odd; /**< number of odd SMPs left (trap_sm_odd()) */
	uint64_t step;
	uint16_t sm_lid;
	uint16_t ca_lid;
	uint8_t subnet_timeout;
	struct sma_totals totals; /**< last totals of the appliance */
};

/* --- trap_model.c --- */

/** The appliance sends a Trap. */
void trap_model_sent(struct trap_script *sc, const struct packet *pkt, bool lost);
/** The SM receives a Trap. @return the trap */
struct trap_seen *trap_model_delivered(struct trap_script *sc, const uint8_t *mad);
/** The agent has accepted a TrapRepress. */
void trap_model_repress(struct trap_script *sc, const uint8_t *mad);
/** Check the agent's traps: changes of state, and how each ends. */
void trap_model_look(struct trap_script *sc);
/** @retval false  some are still pending */
bool trap_model_over(const struct trap_script *sc);
/** Check all traps at the end. */
void trap_model_check(struct trap_script *sc);

/* --- trap_sm.c --- */

/** The SM receives a packet. */
enum verdict trap_sm_receive(struct trap_script *sc, const struct packet *pkt);
/** Send Set(PortInfo) with this state (0: no change), the LIDs and SubnetTimeOut. */
void trap_sm_configure(struct trap_script *sc, uint8_t state);
/** Send an SMP with a wrong field, or for another node. */
void trap_sm_odd(struct trap_script *sc);

/* --- trap_scenario.c --- */

void trap_scenario(struct sim *s);

#endif
