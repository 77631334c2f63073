/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_RC_PAIR_H
#define TEST_RC_PAIR_H

/*
 * Two channel adapters, a and b, joined by a wire in memory under a virtual clock (nanoseconds).
 * Every frame goes through path_finish() and wire_parse(), ICRC included. Tests name the packets
 * that a node sends in words: "SEND First 201", "READ Response Only 267", "ATOMIC Acknowledge 274",
 * "ACK 202", "RNR 203", "NAK-SEQ 203".
 *
 * Nothing moves by itself: transmit() lets a node send, deliver() gives its frames to the other
 * node, exchange() repeats both for both nodes until no frame is left. With .scripted, b sends
 * nothing, and the test sends answers in its place.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../wire/build.h"
#include "rc/rc.h"
#include "wire/wire.h"

#define PAIR_MEM  (1u << 20)
#define PAIR_SENT 1024
#define PAIR_LOST 32
#define FIRST_PSN 201

struct pair_config {
	uint32_t psn; /* both directions; 0: 201 */
	uint16_t pmtu; /* 0: 256 */
	uint8_t timeout; /* Local ACK Timeout, 0: 14 */
	bool no_timer; /* Local ACK Timeout 0 */
	uint8_t retry_cnt; /* 0 means 0 */
	uint8_t rnr_retry;
	uint8_t rd_atomic; /* 0: 4 */
	uint32_t send_wr; /* 0: 64 */
	uint32_t cq_depth; /* 0: 128 */
	uint32_t max_qp; /* 0: 64 */
	unsigned int workers; /* most workers of a device, 0: 2 */
	uint32_t window; /* 0: 1024 */
	uint32_t ack_interval; /* 0: 64 */
	uint8_t min_ack_timeout;
	bool sig_all;
	bool ack_per_packet;
	bool flow_control;
	enum migreq migreq;
	bool scripted; /* the test answers in place of b */
	bool init_only; /* leave the QPs in RESET */
	enum encap encap; /* ENCAP_IB: without GRH */
	struct mem_grace grace; /* all NULL: immediate */
	struct rc_congestion congestion; /* .dcqcn false: off */
};

struct sent {
	char text[40];
	uint16_t port; /* by which it left, and arrives */
	uint32_t len;
	uint8_t frame[4096 + PATH_HEADER_MAX + PATH_TRAILER_MAX + 64];
};

struct node {
	struct tx_sink sink; /* the first member: pair_reserve() casts it to struct node */
	struct pair *pair;
	struct node *peer;
	unsigned int room; /* packets the sink takes before it is full */
	const struct path *path; /* of the packet reserved */
	uint32_t reserved;
	struct sent *sent; /* all packets sent so far */
	unsigned int sent_count;
	unsigned int seen; /* packets before this one have been compared with expectations */
	unsigned int looked; /* first packet of the last expectation */
	unsigned int delivered; /* packets before this one have been delivered or lost */
	uint32_t lost[PAIR_LOST]; /* PSNs whose next packet will be lost */
	unsigned int lost_count;
	unsigned int dead; /* bits of ports: packets sent by these ports are lost */

	struct mem *mem;
	struct timer_wheel *wheel;
	struct rc_dev *dev;
	struct rc_worker *w;
	uint32_t pd, send_cq, recv_cq, qpn;
	uint32_t key;
	uint64_t va;
	uint8_t *bytes;
	struct path back; /* with .scripted: b's path to a */
	struct event events[64];
	unsigned int event_count, event_next;
	unsigned int violations; /* P_Key violations reported */
	uint32_t violation_from; /* source QPN of the last one */
	enum verdict verdict; /* of the last packet that the node received */
};

struct pair {
	struct node a, b;
	struct pair_config config;
	uint64_t now;
	uint8_t damage; /* bits of the ICRC that answer() inverts */
};

struct pair *pair_create(const struct pair_config *config);
void pair_destroy(struct pair *p);
int pair_setup(void **state); /* a and b, retry counts 7 */
int scripted_setup(void **state); /* a and a scripted b, retry counts 7 */
int pair_teardown(void **state);

/* --- the wire --- */
unsigned int transmit(struct node *n);
void deliver(struct node *n);
void exchange(struct pair *p);
/* Lose the next packet of n with this PSN. */
void lose(struct node *n, uint32_t psn);
/* Advance the clock and run both nodes' timers. */
void pass(struct pair *p, uint64_t ns);

/* Expect these packets and no others from n since the last expectation, in this order. */
void expect_sent(struct node *n, const char *first, ...);
#define expect_tx(n, ...) expect_sent(n, __VA_ARGS__, NULL)
#define expect_silence(n) expect_sent(n, NULL)
/* Expect packets with PSNs first to last next; others may follow. */
void expect_run(struct node *n, const char *name, uint32_t first, uint32_t last);
/* The i-th packet of the last expectation. */
struct packet sent_packet(const struct node *n, unsigned int i);

/* --- the test answers in place of b --- */
enum verdict answer(struct pair *p, const struct wire_headers *h, const uint8_t *payload,
	uint32_t len);
enum verdict ack(struct pair *p, uint32_t psn); /* without credit information */
enum verdict ack_credits(struct pair *p, uint32_t psn, uint32_t msn, uint8_t code);
enum verdict nak(struct pair *p, uint8_t syndrome, uint32_t psn);
/* len bytes of the pattern, from byte `at` of b's memory */
enum verdict read_response(struct pair *p, uint8_t opcode, uint32_t psn, uint32_t at, uint32_t len);

/* --- work requests and completions --- */

/* Post a signaled request for len bytes at the start of n's memory and of the peer's. */
void post(struct node *n, enum wr_opcode opcode, uint64_t wr_id, uint32_t len);
void post_flags(struct node *n, enum wr_opcode opcode, uint64_t wr_id, uint32_t len,
	uint32_t flags);
void post_recv(struct node *n, uint64_t wr_id, uint32_t len);
/* Make the same work request, which the test changes and posts itself. */
void make_wr(struct node *n, struct send_wr *wr, struct sge *sge, enum wr_opcode opcode,
	uint64_t wr_id, uint32_t len);

struct wc expect_wc(struct node *n, uint64_t wr_id, enum wc_status status); /* send CQ */
struct wc expect_recv(struct node *n, uint64_t wr_id, enum wc_status status);
void expect_no_wc(struct node *n); /* on either CQ */
void expect_event(struct node *n, enum event_type type); /* COMM_EST, CQ_COMPLETION are skipped */
void expect_no_event(struct node *n);

/* --- for tests that set up their QPs themselves --- */
void init_attr(const struct node *n, struct qp_init_attr *init);
struct qp_attr qp_attr_of(const struct node *n); /* attributes of a QP connected to the peer */
/* a is 10.0.0.1 and LID 1, b 10.0.0.2 and LID 2; by port 1 10.0.1.1, LID 17, 10.0.1.2, LID 18 */
struct av av_of(const struct node *n, uint16_t port);
int modify_attr(struct node *n, const struct qp_attr *attr, uint32_t mask, struct error *err);
int modify(struct node *n, enum qp_state state, uint32_t mask, struct error *err);
void must_modify(struct node *n, enum qp_state state, uint32_t mask);
#define MASK_INIT (QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS)
#define MASK_RTR                                                                                   \
	(QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |       \
		QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER)
#define MASK_RTS                                                                                   \
	(QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |                 \
		QP_ATTR_SQ_PSN | QP_ATTR_MAX_QP_RD_ATOMIC)

struct rc_qp_info info_of(const struct node *n);
enum qp_state state_of(const struct node *n);
struct rc_counters counters_of(const struct node *n);

/* Settings of DCQCN. Tests of time change what they are about. */
extern const struct rc_congestion usual_congestion;

#endif
