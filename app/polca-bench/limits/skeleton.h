/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_SKELETON_H
#define BENCH_SKELETON_H

/**
 * @file
 * The skeleton: the least work that a correct RC data path can do, as a reference. It does headers,
 * ICRC, PSN, bounds, copy, work request, completion and Ack, for one kind of packet, without loss,
 * reordering or control plane. Any time that Polca needs beyond it is the price of the rest of the
 * standard, or waste.
 */

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "peers/bench_link.h"

#define SKELETON_QPS       64 /* a power of two */
#define SKELETON_QUEUE     1024 /* work requests of a queue */
#define SKELETON_CQ        64 /* completions kept per QP */
#define SKELETON_BURST     32
#define SKELETON_TURN      16 /* packets that a QP sends before it is the next one's turn */
#define SKELETON_WRITE_KEY 2
/* the values that Polca is compared with */
#define SKELETON_WINDOW    32
#define SKELETON_ACK_EVERY 16

struct skeleton_config {
	bool write; /**< RDMA Writes; else Sends of one packet */
	uint32_t size; /**< bytes of a message */
	uint32_t mtu;
	uint32_t qps;
	uint32_t window; /**< most unacknowledged packets of a QP */
	uint32_t ack_every; /**< packets per Ack, where the requester asks for one */
	uint32_t footprint;
	bool icrc;
};

/* RoCEv2 over IPv4 */
struct skeleton_headers {
	struct rte_ether_hdr ether;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
	uint8_t opcode, flags;
	uint16_t pkey;
	uint32_t qpn, psn;
} __attribute__((packed, aligned(2)));

struct skeleton_reth {
	uint64_t va;
	uint32_t rkey, length;
} __attribute__((packed, aligned(2)));

#define SKELETON_SEND_ONLY    0x04
#define SKELETON_WRITE_FIRST  0x06
#define SKELETON_WRITE_MIDDLE 0x07
#define SKELETON_WRITE_LAST   0x08
#define SKELETON_WRITE_ONLY   0x0A
#define SKELETON_ACK          0x11

struct skeleton_wqe {
	uint64_t wr_id, addr, remote_addr;
	uint32_t length, lkey, rkey, psn;
};

struct skeleton_cqe {
	uint64_t wr_id;
	uint32_t opcode, length, qpn, status;
	uint64_t reserved[5]; /* the size of Polca's completions */
};

struct skeleton_mr {
	uint8_t *base;
	uint64_t length;
};

struct skeleton_qp {
	uint32_t psn; /**< next to send, or expected */
	uint32_t una; /**< oldest unacknowledged PSN */
	uint32_t head, next, tail; /**< posted, being sent, oldest not completed */
	uint32_t msn;
	uint32_t unacked; /**< packets since the last Ack */
	uint32_t completions;
	/* the message being sent or received */
	uint32_t left;
	uint64_t at, remote_at;
	bool begun;
	struct skeleton_wqe *wqe;
	struct skeleton_cqe *cqe;
	struct skeleton_headers header;
} __rte_cache_aligned;

/** The requester or the responder. */
struct skeleton_endpoint {
	struct skeleton_config config;
	enum bench_role role;
	uint16_t ethdev;
	struct rte_mempool *pool;
	struct skeleton_qp *qp;
	struct skeleton_mr mr[4]; /**< index is the key */
	uint8_t *memory;
	uint32_t turn; /**< the QP that sends next */
	uint64_t offset; /**< of the next message to post */
	uint64_t messages; /**< completed, or received */
	uint64_t packets;
	uint64_t bad; /**< unexpected packets: must stay 0 */
	uint64_t busy; /**< TSC cycles of iterations that found work */
};

/** @param device  an ethdev that is not yet configured */
int skeleton_create(struct skeleton_endpoint *s, const struct skeleton_config *config,
	enum bench_role role, const char *device, struct error *err);
void skeleton_destroy(struct skeleton_endpoint *s);
/** Fill the send queues. */
void skeleton_start(struct skeleton_endpoint *s);

/** Run the requester or the responder once. @return packets received and sent */
unsigned int skeleton_request(struct skeleton_endpoint *s);
unsigned int skeleton_respond(struct skeleton_endpoint *s);

/* --- skeleton.c, for both roles --- */

void skeleton_post(struct skeleton_endpoint *s, struct skeleton_qp *qp);
/**
 * Complete the headers, copy the payload after them, and append the ICRC. @return length of the
 * frame
 */
uint32_t skeleton_finish(const struct skeleton_endpoint *s, struct skeleton_headers *h,
	uint32_t extension, const void *payload, uint32_t length);
/** @param ip_length  of the packet with its ICRC */
bool skeleton_icrc_ok(const struct skeleton_headers *h, uint32_t ip_length);

static inline struct skeleton_wqe *
skeleton_wqe(const struct skeleton_qp *qp, uint32_t index)
{
	return &qp->wqe[index % SKELETON_QUEUE];
}

static inline struct skeleton_cqe *
skeleton_complete(struct skeleton_qp *qp)
{
	return &qp->cqe[qp->completions++ % SKELETON_CQ];
}

static inline bool
skeleton_inside(const struct skeleton_mr *mr, uint64_t addr, uint64_t length)
{
	return addr <= mr->length && length <= mr->length - addr;
}

#endif
