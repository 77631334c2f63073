/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_LIVE_SIM_H
#define SIM_LIVE_SIM_H

/**
 * @file
 * Endport liveness in the simulation: lib/live on QP1 of both nodes (struct sim_guest), which send
 * each other all kinds of requests over RC's network.
 */

#include "live/live.h"
#include "script.h"

#define LIVE_ECHO_MAX 150000u /* bytes */

struct live_script;

struct live_node {
	struct live_script *script;
	struct sim_node *node;
	struct mad_worker *mad;
	struct live *live;
	struct port_attr port;
	uint64_t clock_due; /**< when its clock is set again */
};

/** A request, until its answer has been checked. */
struct live_flow {
	struct live_script *script;
	struct live_flow *next;
	unsigned int from, index;
	struct live_request req;
	uint8_t *body; /**< 8 bytes and the data */
	uint8_t *got; /**< received bytes of a stream */
	uint64_t len, size;
	uint64_t asked;
	bool done, ok;
};

struct live_script {
	struct sim *sim;
	struct live_node node[SIM_NODES];
	struct mad_limits mad_limits;
	struct live_limits limits;
	struct live_cpu cpu[LIVE_CPUS_MAX];
	unsigned int num_cpus;
	char cpu_text[LIVE_CPUS_MAX * 64]; /**< description of the CPUs for ibsysstat */
	enum encap encap;
	bool grh;
	bool clock; /**< the server's clock is set */
	uint32_t midnight; /**< ms since midnight at time 0 */
	struct live_flow *flows;
	unsigned int planned, asked, under_way, at_once;
	uint64_t step;
	bool strict; /**< every request must be answered */
	bool lenient; /**< packets with any source address are forged: answers are not checked */
};

/** Nodes with random limits, nothing started. */
struct live_script *live_script_create(struct sim *s);
/** Start both agents as the simulation's guests. */
void live_script_start(struct live_script *ls);
/** One request of a random kind from a node. */
void live_script_ask(struct live_script *ls, unsigned int from, enum live_mode mode);
/** Run until all requests have ended and all memory is freed. */
void live_script_finish(struct live_script *ls);
struct mad_peer live_peer(const struct live_script *ls, unsigned int from);

void scenario_echo(struct sim *s);

#endif
