/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_LAN_H
#define SIM_LAN_H

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

#define LAN_NODES  4
#define LAN_MEM    (1u << 20) /* of a node, all of it one region with all rights */
#define LAN_VA     0x100000000ull
#define LAN_BURST  32 /* packets a worker takes in at a time */
#define LAN_BUDGET 32 /* rc_run() */

struct lan;

struct lan_frame {
	uint64_t at; /**< when it is at the far end */
	uint32_t len;
	uint8_t *bytes;
};

/** Frames in the order they arrive. */
struct lan_queue {
	struct lan_frame *frame;
	uint32_t head, tail, size; /**< they count for ever; size is a power of two */
	uint64_t busy; /**< the link has sent all up to here */
};

/** What a link and the switch's queue before it do; .ns_per_kb 0: no time. */
struct lan_link {
	uint32_t ns_per_kb; /**< 1024 bytes: 819 at 10 Gbit/s */
	uint32_t mark; /**< ECN: bytes waiting from which on CE is set; 0: never */
	uint32_t drop; /**< bytes waiting beyond which all is lost; 0: never */
};

struct lan_node {
	struct tx_sink sink; /* first: the sink is the node */
	struct lan *lan;
	unsigned int id;
	struct mem *mem;
	struct rc_dev *dev;
	struct rc_worker *w;
	struct timer_wheel *wheel;
	uint8_t *bytes;
	uint32_t pd, key, cq;
	union gid gid;
	struct lan_queue up; /**< to the switch */
	struct lan_queue down; /**< and from it */
	struct lan_link link; /**< both ways; marks and drops: towards the node */
	struct lan_queue rx; /**< has come and waits for the worker */
	uint32_t rx_room; /**< before more is lost; 0: any */
	/* what the worker's work takes; 0: none */
	uint32_t packet_ns; /**< a packet in or out */
	uint32_t kb_ns; /**< 1024 bytes of payload in or out */
	uint64_t busy; /**< the worker is until then */
	/** Each turn of the worker, after what came in; may post work. */
	void (*turn)(struct lan_node *n, uint64_t now);
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

struct lan {
	uint64_t now;
	uint64_t delay; /**< of each link */
	struct lan_node node[LAN_NODES];
	unsigned int nodes;
};

struct lan *lan_create(unsigned int nodes, const struct rc_limits *limits);
void lan_destroy(struct lan *f);
void lan_run(struct lan *f, uint64_t until);

/** A connected pair of QPs in RTS, PSNs from 0 on; without retries when they never end. */
struct lan_qp {
	uint16_t pmtu;
	uint8_t timeout; /**< Local ACK Timeout */
	uint8_t rnr_timer;
	uint8_t rd_atomic;
	bool half; /**< only a's is made: b is played */
};
void lan_connect(struct lan_node *a, struct lan_node *b, const struct lan_qp *opt, uint32_t *qpn_a,
	uint32_t *qpn_b);
/** From any state to RTS again, from PSN 0 on. */
void lan_reconnect(struct lan_node *n, uint32_t qpn, const struct lan_node *peer, uint32_t peer_qpn,
	const struct lan_qp *opt);
/** len bytes at the start of the one's memory to (or from) the start of the other's; unsignaled. */
int lan_post(struct lan_node *n, uint32_t qpn, const struct lan_node *peer, enum wr_opcode opcode,
	uint32_t len);
int lan_post_recv(struct lan_node *n, uint32_t qpn, uint32_t len);
/** Send a packet that no QP of the node has made. */
void lan_forge(struct lan_node *n, const struct path *path, const struct wire_headers *h,
	uint32_t payload);
struct av lan_av(const struct lan_node *from, const struct lan_node *to);
struct rc_qp_info lan_info(const struct lan_node *n, uint32_t qpn);

#endif
