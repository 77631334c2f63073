/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_RC_PAIR_H
#define TEST_RC_PAIR_H

/*
 * Two channel adapters, a and b, joined by a wire in memory under a virtual clock (nanoseconds).
 * Every frame goes through path_finish() and wire_parse(), ICRC included. What a node sends is
 * told in words: "SEND First 201", "READ Response Only 267", "ATOMIC Acknowledge 274", "ACK 202",
 * "RNR 203", "NAK-SEQ 203".
 *
 * Nothing moves by itself: transmit() lets a node send, deliver() hands what it sent to the other,
 * exchange() does both ways until all is quiet. With .scripted b only listens, and the test
 * answers for it.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

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
	uint8_t retry_cnt; /* as given */
	uint8_t rnr_retry;
	uint8_t rd_atomic; /* 0: 4 */
	uint32_t send_wr; /* 0: 64 */
	uint32_t cq_depth; /* 0: 128 */
	unsigned int workers; /* that there may be, 0: 2 */
	uint32_t window; /* 0: 1024 */
	uint32_t ack_interval; /* 0: 64 */
	uint8_t min_ack_timeout;
	bool sig_all;
	bool ack_per_packet;
	bool flow_control;
	enum migreq migreq;
	bool scripted; /* b is played by the test */
	bool init_only; /* leave the QPs in RESET */
	enum encap encap; /* ENCAP_IB: without GRH */
	struct mem_grace grace; /* all NULL: immediate */
	struct rc_congestion congestion; /* .dcqcn false: off */
};

struct sent {
	char text[40];
	uint16_t port; /* that it left by, and comes in by */
	uint32_t len;
	uint8_t frame[4096 + PATH_HEADER_MAX + PATH_TRAILER_MAX + 64];
};

struct node {
	struct tx_sink sink; /* first: the sink is the node */
	struct pair *pair;
	struct node *peer;
	unsigned int room; /* packets the sink takes before it is full */
	const struct path *path; /* of the packet reserved */
	uint32_t reserved;
	struct sent *sent; /* all of it */
	unsigned int sent_count;
	unsigned int seen; /* those up to here were expected */
	unsigned int looked; /* where the last expectation began */
	unsigned int delivered; /* those up to here have left the wire */
	uint32_t lost[PAIR_LOST]; /* PSNs that will be lost, once each */
	unsigned int lost_count;
	unsigned int dead; /* bits of ports: whatever it sends by them is lost */

	struct mem *mem;
	struct timer_wheel *wheel;
	struct rc_dev *dev;
	struct rc_worker *w;
	uint32_t pd, send_cq, recv_cq, qpn;
	uint32_t key;
	uint64_t va;
	uint8_t *bytes;
	struct path back; /* scripted b: its path to a */
	struct event events[64];
	unsigned int event_count, event_next;
	unsigned int violations; /* told of */
	uint32_t violation_from; /* QPN, the last */
	enum verdict verdict; /* of the last packet it received */
};

struct pair {
	struct node a, b;
	struct pair_config config;
	uint64_t now;
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
/* The next packet of n with this PSN gets lost. */
void lose(struct node *n, uint32_t psn);
/* Time passes, timers fire. */
void pass(struct pair *p, uint64_t ns);

/* What n sent since the last expectation, all of it and in this order. */
void expect_sent(struct node *n, const char *first, ...);
#define expect_tx(n, ...) expect_sent(n, __VA_ARGS__, NULL)
#define expect_silence(n) expect_sent(n, NULL)
/* The next packets n sent are these, PSNs first to last; more may follow. */
void expect_run(struct node *n, const char *name, uint32_t first, uint32_t last);
/* The i-th packet of the last expectation. */
struct packet sent_packet(const struct node *n, unsigned int i);

/* --- b's part, played by the test --- */
enum verdict answer(struct pair *p, const struct wire_headers *h, const uint8_t *payload,
	uint32_t len);
enum verdict ack(struct pair *p, uint32_t psn); /* without credit information */
enum verdict ack_credits(struct pair *p, uint32_t psn, uint32_t msn, uint8_t code);
enum verdict nak(struct pair *p, uint8_t syndrome, uint32_t psn);
/* len bytes of the pattern, from byte `at` of b's memory */
enum verdict read_response(struct pair *p, uint8_t opcode, uint32_t psn, uint32_t at, uint32_t len);

/* --- work --- */

/* len bytes from the start of n's memory to (or from) the start of the peer's; signaled */
void post(struct node *n, enum wr_opcode opcode, uint64_t wr_id, uint32_t len);
void post_flags(struct node *n, enum wr_opcode opcode, uint64_t wr_id, uint32_t len,
	uint32_t flags);
void post_recv(struct node *n, uint64_t wr_id, uint32_t len);
/* The same work request, to be changed and posted by hand. */
void make_wr(struct node *n, struct send_wr *wr, struct sge *sge, enum wr_opcode opcode,
	uint64_t wr_id, uint32_t len);

struct wc expect_wc(struct node *n, uint64_t wr_id, enum wc_status status); /* send CQ */
struct wc expect_recv(struct node *n, uint64_t wr_id, enum wc_status status);
void expect_no_wc(struct node *n); /* on either CQ */
void expect_event(struct node *n, enum event_type type); /* COMM_EST, CQ_COMPLETION are skipped */
void expect_no_event(struct node *n);

/* --- setting up by hand --- */
void init_attr(const struct node *n, struct qp_init_attr *init);
struct qp_attr qp_attr_of(const struct node *n); /* everything a QP to the peer needs */
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

#endif
