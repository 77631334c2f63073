/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_SIM_H
#define SIM_SIM_H

/**
 * @file Deterministic simulation: two nodes in one process with a virtual clock run lib/wire,
 * lib/mem and lib/rc under a random script. The same seed gives the same trace. sa_sim.h adds
 * subnet administration on QP1, cm_sim.h connections.
 *
 * sim.c runs the clock, network.c loses and damages frames, node.c is a channel adapter with its
 * memory, flow.c posts work, model.c is the reference model, scenario.c has the table of scenarios,
 * coverage.c checks that all seeds together reach every transition, NAK, status and verdict.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/timer_wheel.h"
#include "link/rx_template.h"
#include "mem/mem.h"
#include "rc/rc.h"
#include "wire/wire.h"

#define SIM_NODES     2
#define SIM_NODES_MAX 4 /* for scripts with a network of their own: cm_sim.h */
#ifndef SIM_ARENA
#define SIM_ARENA (12u << 20)
#endif
#define SIM_FRAME_MAX (PATH_HEADER_MAX + 80 + MTU_MAX + PATH_TRAILER_MAX)
#define SIM_SECOND    1000000000ull /* virtual time is in nanoseconds */

struct sim;
struct sim_node;

/** Agents on QP0 and QP1 of all nodes, in place of subnet administration. */
struct sim_guest {
	enum verdict (*receive)(struct sim_node *n, const struct packet *pkt);
	bool (*run)(struct sim_node *n); /**< one turn. @return more to do at once */
	uint64_t (*next)(const struct sim_node *n); /**< when a timer is due */
	/** A frame to QP0 or QP1 that a node sends, and whether the network loses it. */
	void (*sent)(struct sim_node *from, const struct packet *pkt, bool lost);
	void (*end)(struct sim *s); /**< check, and free everything */
	/* these may be NULL */
	/** The destination of a frame, if it is not the other one of two nodes. */
	struct sim_node *(*route)(struct sim_node *from, const uint8_t *frame);
	/** Set pkt's port from the frame. */
	void (*arrived)(struct sim_node *n, const uint8_t *frame, struct packet *pkt);
	void (*event)(struct sim_node *n, const struct event *ev);
};

/** Faults of the network in one direction; chances in 1/10000. */
struct sim_network {
	unsigned int lose;
	unsigned int duplicate;
	unsigned int reorder; /**< held back by up to .jitter */
	unsigned int corrupt; /**< one bit flipped */
	uint64_t delay;
	uint64_t jitter;
	bool cut; /**< all frames are lost */
	unsigned int dead; /**< bits of paths on which all frames are lost (migration.c) */
};

struct sim_sink {
	struct tx_sink sink;
	struct sim_node *node;
	const struct path *path;
	uint32_t len;
	uint8_t frame[SIM_FRAME_MAX];
};

struct sim_node {
	struct sim *sim;
	unsigned int id;
	struct allocator alloc;
	struct rng rng;
	struct rng rc_rng; /**< of QPNs */
	uint64_t same_qpns; /**< not 0: QPNs follow from it, the same after each restart */
	bool down; /**< the node receives nothing */
	struct mem *mem;
	struct rc_dev *dev;
	struct rc_worker *worker;
	struct timer_wheel *wheel;
	struct rc_worker *other; /**< a second worker, to which QPs may move (rehome.c); or NULL */
	struct timer_wheel *other_wheel;
	struct sim_sink tx;
	struct sim_network net; /**< of the frames it sends */
	unsigned int sink_empty; /**< chance in 1/10000 that reserve finds no packet */
	unsigned int burst; /**< rc_run() budget */
	union gid gid; /**< IPv4 */
	struct rx_template rx_template; /**< of its IPv4 address and its MAC on path 0 */
	union gid gid6; /**< IPv6, RoCEv1 and native IB */
	uint32_t pd;
	/** all memory for local and remote access, with guard bytes between areas */
	uint8_t *arena;
	uint8_t *model; /**< expected contents of the arena at the end */
	uint32_t arena_used;
	uint8_t last_frame[SIM_FRAME_MAX]; /**< last one sent, for forgers */
	uint32_t last_len;
	uint64_t received; /**< frames taken in */
	uint64_t verdicts[VERDICT_COUNT];
	uint64_t grace_delay; /**< duration of grace periods */
	uint64_t allocated; /**< number of blocks in use, for the leak check */
	struct sa_side *sa; /**< the SA or its client on QP1; NULL: none */
	uint64_t event_count[64]; /**< by event_type; Polca's own events from 32 on */
	uint32_t last_event_element[64];
};

/** An event: a frame arrives, or a script acts. */
struct sim_event {
	uint64_t at;
	uint64_t order; /**< breaks ties: first scheduled, first run */
	struct sim_node *node; /**< frame for it, or NULL */
	uint8_t *frame;
	uint32_t len;
	void (*fn)(struct sim *s, void *arg);
	void *arg;
};

struct sim {
	uint64_t seed;
	uint64_t rng[2];
	uint64_t now;
	struct sim_node node[SIM_NODES_MAX];
	unsigned int nodes; /**< of them */
	struct sim_event *heap;
	unsigned int heap_count;
	unsigned int heap_size;
	uint64_t order;
	uint64_t trace; /**< hash of all trace lines */
	bool verbose;
	bool two_workers; /**< of each node; before script_nodes() */
	bool record; /**< every QP's last steps, printed at a failure; before script_nodes() */
	bool failed;
	char why[512]; /**< first failure */
	struct coverage *coverage;
	struct script *script; /**< state of the scenario */
	struct sa_script *sa; /**< of scenarios with subnet administration */
	const struct sim_guest *guest; /**< or NULL */
	void *guest_arg;
	struct flow *flows[16];
	unsigned int num_flows;
};

/* sim.c */
struct sim *sim_create(uint64_t seed, struct coverage *coverage, bool verbose);
void sim_destroy(struct sim *s);
uint64_t sim_rand(struct sim *s);
uint32_t sim_below(struct sim *s, uint32_t n); /* 0..n-1 */
/** A random wait: 1..2*mean. */
uint64_t sim_wait(struct sim *s, uint64_t mean);
bool sim_chance(struct sim *s, unsigned int per_10000);
void sim_at(struct sim *s, uint64_t at, void (*fn)(struct sim *s, void *arg), void *arg);
void sim_deliver(struct sim *s, struct sim_node *to, uint64_t at, const uint8_t *frame,
	uint32_t len);
/** Run until no event is left, done() returns true, or time is over. @retval false time is over */
bool sim_run(struct sim *s, uint64_t until, bool (*done)(struct sim *s));
/** Record a failure; the first one counts. */
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Trace bytes, for events that are too frequent to be formatted as text. */
void sim_trace_bytes(struct sim *s, const void *bytes, size_t len);

/* network.c */
void sim_network_send(struct sim_node *from, const uint8_t *frame, uint32_t len);
/** Parse a frame; its Ethernet header decides the encapsulation. */
bool sim_parse(const uint8_t *frame, uint32_t len, struct packet *pkt, enum verdict *why);

/* node.c */
void sim_node_init(struct sim *s, unsigned int id, const struct rc_limits *limits);
void sim_node_fini(struct sim_node *n);
void sim_node_receive(struct sim_node *n, const uint8_t *frame, uint32_t len);
/** Allocate an area of the arena with guard bytes on both sides. @return its offset */
uint32_t sim_arena(struct sim_node *n, uint32_t len);
/** Register an area as region. Addresses are arena offsets + SIM_VA. @return the key */
uint32_t sim_register(struct sim_node *n, uint32_t offset, uint32_t len, uint32_t access);
#define SIM_VA 0x100000000ull

#endif
