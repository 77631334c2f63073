/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

/**
 * @file Scenarios: a row each in the table of scenario.c. A scenario sets connections, plans,
 * faults and the network up; script_run() then posts, receives and polls at random moments until
 * every flow is done, and checks.
 */

#include "flow.h"

#define SCRIPT_CONNS_MAX 4

struct script {
	struct conn *conn[SCRIPT_CONNS_MAX];
	unsigned int conns;
	uint64_t step; /**< mean time between turns of the user */
	/** receives kept posted; 0: the user is lazy and posts one now and then */
	unsigned int recv_ahead;
	bool no_recv; /**< none beyond what the scenario posted itself */
	bool no_poll;
	uint64_t limit; /**< virtual time */
	uint64_t act_at; /**< when .act happens */
	void (*act)(struct sim *s);
	bool acted;
	unsigned int left; /**< forged packets still to come */
	uint32_t watch_offset; /**< bytes of node 1 that must not change after .act */
	uint32_t watch_len;
	uint8_t *watch;
	uint32_t key; /**< region or window the scenario works on */
	uint32_t srq; /**< of node 1, destroyed at the end; or RC_NO_SRQ */
	unsigned int path; /**< in use (migration.c) */
	uint64_t served; /**< requests node 1 had executed when .act happened */
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
/** The network a bad day has. */
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

/* migration.c */
void scenario_migration(struct sim *s);

/* forge.c */
/** Send @p to a frame like the last one it was sent, with something wrong or untimely in it. */
void forge(struct sim *s, struct sim_node *to);

#endif
