/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_LAN_H
#define SIM_LAN_H

/**
 * @file
 * Nodes connected by a switch, with realistic times in virtual nanoseconds: a packet takes time on
 * a link, waits in a queue of the switch, which marks or drops, and costs the node's worker time to
 * receive or send. The worker polls like the engine: it receives a burst of LAN_BURST, runs timers,
 * and sends with a budget of LAN_BUDGET.
 *
 * Used to test shares of bandwidth: congestion (congestion.c, test/perf/congestion_bench.c),
 * hostile peers (crowd.c). The network of sim.h is for tests of order and loss.
 */

#include "../wire/build.h"
#include "base/timer_wheel.h"
#include "mem/mem.h"
#include "rc/rc.h"
#include "wire/wire.h"

#define LAN_NODES  4
#define LAN_MEM    (1u << 20) /* memory of a node, one region with all rights */
#define LAN_VA     0x100000000ull
#define LAN_BURST  32 /* packets that a worker receives per turn */
#define LAN_BUDGET 32 /* budget of rc_run() per turn */

struct lan;

struct lan_frame {
	uint64_t at; /**< when it arrives at the other end */
	uint32_t len;
	uint8_t *bytes;
};

/** Frames in the order they arrive. */
struct lan_queue {
	struct lan_frame *frame;
	uint32_t head, tail,
		size; /**< head and tail are never reduced modulo size, a power of two */
	uint64_t busy; /**< when the link has sent all queued frames */
};

/** A link, and the switch's queue for it. .ns_per_kb 0: infinitely fast. */
struct lan_link {
	uint32_t ns_per_kb; /**< time of 1024 bytes: 819 at 10 Gbit/s */
	uint32_t mark; /**< ECN: CE is set while at least this many bytes wait; 0: never */
	uint32_t drop; /**< frames beyond this many waiting bytes are lost; 0: never */
};

struct lan_node {
	struct tx_sink sink; /* the first member: lan_reserve() casts it to struct lan_node */
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
	struct lan_queue down; /**< from the switch */
	struct lan_link link; /**< in both directions; marks and drops only towards the node */
	struct lan_queue rx; /**< received frames that wait for the worker */
	uint32_t rx_room; /**< most frames in rx, others are lost; 0: no limit */
	/* costs of the worker; 0: none */
	uint32_t packet_ns; /**< time to receive or send a packet */
	uint32_t kb_ns; /**< time for 1024 bytes of payload */
	uint64_t busy; /**< the worker is busy until then */
	/** Called in each turn of the worker after receiving; may post work. */
	void (*turn)(struct lan_node *n, uint64_t now);
	void *arg;
	bool mute; /**< turn() acts as the node; received frames are dropped */
	uint64_t wake; /**< when turn() wants to be called next */
	/* the packet reserved */
	const struct path *path;
	uint32_t reserved;
	uint8_t frame[PATH_HEADER_MAX + 80 + MTU_MAX + PATH_TRAILER_MAX];
	/* counters of frames towards the node */
	uint64_t marked, dropped, arrived;
	uint32_t queue_max; /**< bytes */
	uint64_t verdicts[VERDICT_COUNT];
};

struct lan {
	uint64_t now;
	uint64_t delay; /**< propagation delay of each link */
	struct lan_node node[LAN_NODES];
	unsigned int nodes;
};

struct lan *lan_create(unsigned int nodes, const struct rc_limits *limits);
void lan_destroy(struct lan *f);
void lan_run(struct lan *f, uint64_t until);

/** A pair of QPs connected in RTS with PSNs from 0 on. */
struct lan_qp {
	uint16_t pmtu;
	uint8_t timeout; /**< Local ACK Timeout */
	uint8_t rnr_timer;
	uint8_t rd_atomic;
	bool half; /**< create only a's QP: the test acts as b */
};
void lan_connect(struct lan_node *a, struct lan_node *b, const struct lan_qp *opt, uint32_t *qpn_a,
	uint32_t *qpn_b);
/** Bring a QP from any state to RTS, with PSNs from 0 on. */
void lan_reconnect(struct lan_node *n, uint32_t qpn, const struct lan_node *peer, uint32_t peer_qpn,
	const struct lan_qp *opt);
/** Post an unsignaled request for len bytes at the start of both nodes' memory. */
int lan_post(struct lan_node *n, uint32_t qpn, const struct lan_node *peer, enum wr_opcode opcode,
	uint32_t len);
int lan_post_recv(struct lan_node *n, uint32_t qpn, uint32_t len);
/** Send a packet that no QP has made. */
void lan_forge(struct lan_node *n, const struct path *path, const struct wire_headers *h,
	uint32_t payload);
struct av lan_av(const struct lan_node *from, const struct lan_node *to);
struct rc_qp_info lan_info(const struct lan_node *n, uint32_t qpn);

#endif
