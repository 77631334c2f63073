/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

/**
 * @file Scenarios, each of which has a row in the table of scenario.c. A scenario sets up
 * connections, planned operations, faults and the network. script_run() then posts, receives and
 * polls at random times until every flow is done, and checks the result.
 */

#include "flow.h"

#define SCRIPT_CONNS_MAX 4

struct script {
	struct conn *conn[SCRIPT_CONNS_MAX];
	unsigned int conns;
	uint64_t step; /**< mean time between turns of the user */
	/** number of receives kept posted; 0: the user posts one at random times */
	unsigned int recv_ahead;
	bool no_recv; /**< only the receives that the scenario has posted itself */
	bool no_poll;
	uint64_t limit; /**< virtual time */
	uint64_t act_at; /**< when .act is called */
	void (*act)(struct sim *s);
	bool acted;
	unsigned int left; /**< number of forged packets left */
	uint32_t watch_offset; /**< bytes of node 1 that must not change after .act */
	uint32_t watch_len;
	uint8_t *watch;
	uint32_t key; /**< region or window the scenario works on */
	uint32_t srq; /**< of node 1, destroyed at the end; or RC_NO_SRQ */
	unsigned int path; /**< in use (migration.c) */
	uint64_t served; /**< requests that node 1 had executed when .act was called */
	bool may_time_out;
	bool done; /**< set by scenarios that run by themselves */
};

struct scenario {
	const char *name;
	const char *what;
	void (*run)(struct sim *s);
	unsigned int weight; /**< how often a random seed picks it */
};

extern const struct scenario scenarios[];
extern const unsigned int num_scenarios;

/* script.c */
struct script *script_create(struct sim *s);
struct conn *script_connect(struct sim *s, const struct conn_options *opt);
/** Set nodes up with limits that suit the scenario. */
void script_nodes(struct sim *s);
/** A network with loss, duplication, reordering and damage, each up to @p worst in 1/10000. */
void script_bad_network(struct sim *s, unsigned int worst);
void script_allow(struct flow *f, uint32_t statuses);
/** Run to the end and check everything. */
void script_run(struct sim *s);
void script_end(struct sim *s);

/* lifecycle.c */
void scenario_states(struct sim *s);
void scenario_passive(struct sim *s);
void scenario_windows(struct sim *s);
void scenario_srq(struct sim *s);
void scenario_cq_overrun(struct sim *s);

/* congestion.c */
void scenario_congestion(struct sim *s);

/* crowd.c */
void scenario_crowd(struct sim *s);

/* rehome.c */
void scenario_rehome(struct sim *s);

/* month.c */
void scenario_month(struct sim *s);

/* migration.c */
void scenario_migration(struct sim *s);

/* forge.c */
/** Send @p to a frame like the last one sent to it, with a wrong field or at a wrong time. */
void forge(struct sim *s, struct sim_node *to);

#endif
