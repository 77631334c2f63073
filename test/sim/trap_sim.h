/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_TRAP_SIM_H
#define SIM_TRAP_SIM_H

/**
 * @file
 * Traps in the simulation: see smi_sim.h for who does what.
 */

#include "smi_sim.h"

#define TRAPS_MAX  512 /* of a seed */
#define TRAP_M_KEY UINT64_C(0x0123456789ABCDEF)

/** What is known of a trap, by its TID. */
struct trap_seen {
	uint64_t tid;
	uint32_t id; /**< 0: only its packets were seen as yet */
	uint8_t state; /**< enum sma_trap_state, as last looked at */
	uint64_t raised; /**< times its cause came up */
	uint8_t notice[SMA_DATA_LEN]; /**< as it was sent last */
	uint32_t sent;
	uint32_t arrived_whole; /**< of those sent: neither lost nor damaged */
	uint64_t last_sent;
	bool delivered; /**< the SM has it */
	bool repressed; /**< a TrapRepress has arrived, or the operator has said so */
	/* what the SM does about it */
	uint8_t manner;
	uint32_t heard; /**< times */
};

struct trap_script {
	struct sim *sim;
	struct smi_side ca;
	struct sma_limits limits;
	struct trap_seen trap[TRAPS_MAX];
	unsigned int num_traps;
	uint64_t interval; /**< between repeats, at least; before it changed; when that was */
	uint64_t interval_before, interval_since;
	uint64_t refused; /**< causes, by the rate or for want of a place */
	uint64_t unmatched; /**< TrapRepress that meant none */
	unsigned int causes; /**< still to be raised */
	unsigned int odd; /**< SMPs still to come that are no business of an agent's */
	uint64_t step;
	uint16_t sm_lid;
	uint16_t ca_lid;
	uint8_t subnet_timeout;
	struct sma_totals totals; /**< of the appliance, as told last */
};

/* --- trap_model.c --- */

/** A Trap leaves the appliance. */
void trap_model_sent(struct trap_script *sc, const struct packet *pkt, bool lost);
/** A Trap has come to the SM. @return the trap */
struct trap_seen *trap_model_delivered(struct trap_script *sc, const uint8_t *mad);
/** A TrapRepress has come to the agent and was taken. */
void trap_model_repress(struct trap_script *sc, const uint8_t *mad);
/** Look at all that the agent has: which state follows which, what it ends as. */
void trap_model_look(struct trap_script *sc);
/** @retval false  some are still pending */
bool trap_model_over(const struct trap_script *sc);
/** In the end. */
void trap_model_check(struct trap_script *sc);

/* --- trap_sm.c --- */

/** A frame for the SM. */
enum verdict trap_sm_receive(struct trap_script *sc, const struct packet *pkt);
/** Set(PortInfo): this state (0: no change), the LIDs, SubnetTimeOut. */
void trap_sm_configure(struct trap_script *sc, uint8_t state);
/** An SMP with something wrong in it, or for somebody else. */
void trap_sm_odd(struct trap_script *sc);

/* --- trap_scenario.c --- */

void trap_scenario(struct sim *s);

#endif
