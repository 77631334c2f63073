/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

/**
 * @file What all seeds together have reached. A run fails if the simulation never reached the
 * common case of a received frame, a verdict, a QP state transition, a NAK, a completion status, an
 * asynchronous event, an opcode; a session state transition, a flag or type of either multi-packet
 * protocol, a MAD status, an RMPP status, or an end of a query.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"
#include "mad/mad.h"
#include "mad/session.h"
#include "rc/rc.h"
#include "wire/wire.h"

struct coverage {
	uint64_t by_template; /* frames received in the common case (rx_template.h) */
	uint64_t verdict[VERDICT_COUNT];
	uint64_t transition[QPS_COUNT][QPS_COUNT];
	uint64_t syndrome[256]; /* by AETH syndrome without credit and RNR timer codes */
	uint64_t status[WC_STATUS_COUNT];
	uint64_t event[64];
	uint64_t opcode[256];
	/* version 1 as responder, requester; RMPP as responder, requester */
	uint64_t mad_state[4][MAD_STATE_COUNT][MAD_STATE_COUNT];
	uint64_t v1_flag[256];
	uint64_t rmpp_type[256];
	uint64_t rmpp_flags[8];
	uint64_t rmpp_status[256];
	uint64_t mad_status[0x20];
	uint64_t sa_status[256];
	uint64_t mad_method[3][256]; /* by class version */
	uint64_t mad_end[MAD_END_COUNT];
	uint64_t port_state[5][5]; /* by enum port_state */
	uint64_t trap[5][5]; /* by enum sma_trap_state */
	uint64_t cm_state[CM_STATES][CM_STATES]; /* IDLE: no connection */
	uint64_t cm_step[CM_STATES][CM_MESSAGES];
	uint64_t cm_end[CM_END_COUNT];
	uint64_t cm_sent[CM_MESSAGES];
	uint64_t cm_received[CM_MESSAGES];
	uint64_t cm_rej_sent[CM_REASONS];
	uint64_t cm_rej_received[CM_REASONS];
	uint64_t cm_counter[CM_COUNTER_COUNT];
	uint64_t cm_apr[CM_APR_INVALID_SL + 1];
	uint64_t cm_crash[2][CM_MESSAGES]; /* when one was sent, received */
	uint64_t cm_by_data;
	uint64_t rehomed[QPS_COUNT]; /* moves of QPs, by state */
	uint64_t light; /* seeds of SA scripts with at most 1 % loss */
	uint64_t light_failed; /* those with a query that did not complete */
};

void coverage_packet(struct coverage *c, const struct packet *pkt);
void coverage_verdict(struct coverage *c, enum verdict v);
void coverage_transition(struct coverage *c, enum qp_state from, enum qp_state to);
void coverage_status(struct coverage *c, uint32_t status);
void coverage_event(struct coverage *c, enum event_type t);
/** A MAD that one of the nodes sent. @param flags  FragmentFlag in the default order */
void coverage_mad(struct coverage *c, const uint8_t *mad, uint8_t flags);
uint8_t coverage_mad_state_of(const char *name);
void coverage_mad_state(struct coverage *c, unsigned int group, uint8_t from, uint8_t to);
void coverage_mad_end(struct coverage *c, enum mad_end end);
void coverage_port_state(struct coverage *c, uint8_t from, uint8_t to);
void coverage_trap(struct coverage *c, uint8_t from, uint8_t to);
void coverage_cm_state(struct coverage *c, uint8_t from, uint8_t to);
/** A message arrived for a connection in this state. */
void coverage_cm_step(struct coverage *c, uint8_t state, enum cm_message type);
void coverage_cm_end(struct coverage *c, enum cm_end end);
void coverage_cm_counters(struct coverage *c, const struct cm_counters *counters);
void coverage_cm_apr(struct coverage *c, uint8_t status);
void coverage_cm_crash(struct coverage *c, enum cm_message type, bool received);
void coverage_cm_by_data(struct coverage *c);
void coverage_light(struct coverage *c, bool completed);
void coverage_add(struct coverage *sum, const struct coverage *c);
/** Report @p what if its count is 0. @return 1 in this case, else 0 */
unsigned int coverage_missing(uint64_t count, bool verbose, const char *what, const char *name);
/** Report missing states of ports and traps. */
unsigned int coverage_report_smi(const struct coverage *c, bool verbose);
/** The communication manager. */
unsigned int coverage_report_rehome(const struct coverage *c, bool verbose);
unsigned int coverage_report_cm(const struct coverage *c, bool verbose);
/** Check that queries of seeds with little loss complete. @return 1: too few do */
unsigned int coverage_report_light(const struct coverage *c, bool verbose);
/** Print everything that was not reached. @return its number */
unsigned int coverage_report(const struct coverage *c, bool verbose);

#endif
