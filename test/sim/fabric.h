/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

/**
 * @file
 * Nodes around a switch, in virtual nanoseconds, where things take time: a packet takes its time on
 * a link, waits in a queue of the switch, which marks or drops, and costs a node's worker time to
 * take in or to send. The worker polls as the engine does: a burst of 32 in, timers, a budget of 64
 * out, and nothing else meanwhile.
 *
 * For what is about shares: congestion (congestion.c, test/perf/congestion_bench.c), bad peers
 * (crowd.c). sim.h's network is for what is about order and loss.
 */

#include "base/timer_wheel.h"
#include "mem/mem.h"
#include "rc/rc.h"
#include "wire/wire.h"

#define FABRIC_NODES  4
#define FABRIC_MEM    (1u << 20) /* of a node, all of it one region with all rights */
#define FABRIC_VA     0x100000000ull
#define FABRIC_BURST  32 /* packets a worker takes in at a time */
#define FABRIC_BUDGET 64 /* rc_run() */

struct fabric;

struct fabric_frame {
	uint64_t at; /**< when it is at the far end */
	uint32_t len;
	uint8_t *bytes;
};

/** Frames in the order they arrive. */
struct fabric_queue {
	struct fabric_frame *frame;
	uint32_t head, tail, size; /**< they count for ever; size is a power of two */
	uint64_t busy; /**< the link has sent all up to here */
};

/** What a link and the switch's queue before it do; .ns_per_kb 0: no time. */
struct fabric_link {
	uint32_t ns_per_kb; /**< 1024 bytes: 819 at 10 Gbit/s */
	uint32_t mark; /**< ECN: bytes waiting from which on CE is set; 0: never */
	uint32_t drop; /**< bytes waiting beyond which all is lost; 0: never */
};

struct fabric_node {
	struct tx_sink sink; /* first: the sink is the node */
	struct fabric *fabric;
	unsigned int id;
	struct mem *mem;
	struct rc_dev *dev;
	struct rc_worker *w;
	struct timer_wheel *wheel;
	uint8_t *bytes;
	uint32_t pd, key, cq;
	union gid gid;
	struct fabric_queue up; /**< to the switch */
	struct fabric_queue down; /**< and from it */
	struct fabric_link link; /**< both ways; marks and drops: towards the node */
	struct fabric_queue rx; /**< has come and waits for the worker */
	uint32_t rx_room; /**< before more is lost; 0: any */
	/* what the worker's work takes; 0: none */
	uint32_t packet_ns; /**< a packet in or out */
	uint32_t kb_ns; /**< 1024 bytes of payload in or out */
	uint64_t busy; /**< the worker is until then */
	/** Each turn of the worker, after what came in; may post work. */
	void (*turn)(struct fabric_node *n, uint64_t now);
	void *arg;
	bool mute; /**< turn() plays the node: what comes is thrown away */
	uint64_t wake; /**< when turn() wants to be called next */
	/* the packet reserved */
	const struct path *path;
	uint32_t reserved;
	uint8_t frame[PATH_HEADER_MAX + 80 + MTU_MAX + PATH_TRAILER_MAX];
	/* what became of frames towards the node */
	uint64_t marked, dropped, arrived;
	uint32_t queue_max; /**< bytes */
	uint64_t verdicts[VERDICT_COUNT];
};

struct fabric {
	uint64_t now;
	uint64_t delay; /**< of each link */
	struct fabric_node node[FABRIC_NODES];
	unsigned int nodes;
};

struct fabric *fabric_create(unsigned int nodes, const struct rc_limits *limits);
void fabric_destroy(struct fabric *f);
void fabric_run(struct fabric *f, uint64_t until);

/** A connected pair of QPs in RTS, PSNs from 0 on; without retries when they never end. */
struct fabric_qp {
	uint16_t pmtu;
	uint8_t timeout; /**< Local ACK Timeout */
	uint8_t rnr_timer;
	uint8_t rd_atomic;
	bool half; /**< only a's is made: b is played */
};
void fabric_connect(struct fabric_node *a, struct fabric_node *b, const struct fabric_qp *opt,
	uint32_t *qpn_a, uint32_t *qpn_b);
/** len bytes at the start of the one's memory to (or from) the start of the other's; unsignaled. */
int fabric_post(struct fabric_node *n, uint32_t qpn, const struct fabric_node *peer,
	enum wr_opcode opcode, uint32_t len);
int fabric_post_recv(struct fabric_node *n, uint32_t qpn, uint32_t len);
/** Send a packet that no QP of the node has made. */
void fabric_forge(struct fabric_node *n, const struct path *path, const struct wire_headers *h,
	uint32_t payload);
struct av fabric_av(const struct fabric_node *from, const struct fabric_node *to);
struct rc_qp_info fabric_info(const struct fabric_node *n, uint32_t qpn);

#endif
