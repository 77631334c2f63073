/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

/**
 * @file
 * What all seeds together have reached. The run fails when something the code can do was never seen: a drop reason or other
 * verdict, a QP state transition, a NAK, a completion status, an asynchronous event, an opcode.
 */

#include <stdbool.h>
#include <stdint.h>

#include "rc/rc.h"
#include "wire/wire.h"

struct coverage {
	uint64_t verdict[VERDICT_COUNT];
	uint64_t transition[QPS_COUNT][QPS_COUNT];
	uint64_t syndrome[256]; /* by AETH, credits and RNR codes folded into the kind */
	uint64_t status[WC_STATUS_COUNT];
	uint64_t event[64];
	uint64_t opcode[256];
};

void coverage_packet(struct coverage *c, const struct packet *pkt);
void coverage_verdict(struct coverage *c, enum verdict v);
void coverage_transition(struct coverage *c, enum qp_state from, enum qp_state to);
void coverage_status(struct coverage *c, uint32_t status);
void coverage_event(struct coverage *c, enum event_type t);
void coverage_add(struct coverage *sum, const struct coverage *c);
/** Print what is missing. @return how many things are */
unsigned int coverage_report(const struct coverage *c, bool verbose);

#endif
