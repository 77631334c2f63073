/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_RC_PEER_H
#define TEST_RC_PEER_H

/*
 * A scripted requester for one responder. The test sends literal request packets, and names the
 * expected answers in words ("ACK 202", "NAK-SEQ 203", "FIRST 267"), completions and events.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "rc/rc.h"
#include "wire/wire.h"

#define PEER_QPN  0x456
#define PEER_VA   0x100000000ull /* remote address of byte 0 of the region */
#define PEER_MEM  (1u << 20)
#define MTU       256
#define FIRST_PSN 201

struct peer_config {
	uint32_t psn; /* ePSN at start */
	uint32_t access; /* of the QP; 0: every remote right */
	uint8_t rd_atomic; /* max_dest_rd_atomic, 0: 4; 255: none */
	uint8_t rnr_timer; /* 0: 12 */
	uint32_t recv_wr; /* 0: 16 */
	uint32_t cq_depth; /* 0: 64 */
	bool ack_per_packet;
	bool flow_control;
	bool migreq;
	bool srq;
};

struct answer {
	char text[32];
	uint8_t opcode;
	uint8_t syndrome;
	uint32_t psn;
	uint32_t msn;
	uint64_t orig;
	uint32_t len;
	uint8_t data[MTU];
};

#define PEER_ANSWERS 512
#define PEER_EVENTS  32

struct peer {
	struct tx_sink sink; /* the first member: peer_sink_reserve() casts it to struct peer */
	unsigned int sink_room; /* packets the sink takes before it is full */
	uint8_t frame[4096];
	uint32_t frame_len;
	struct answer answers[PEER_ANSWERS];
	unsigned int answer_count;
	unsigned int answer_next;

	struct event events[PEER_EVENTS];
	unsigned int event_count;
	unsigned int event_next;

	struct peer_config config;
	struct mem *mem;
	struct timer_wheel *wheel;
	struct rc_dev *dev;
	struct rc_worker *w;
	uint32_t pd, recv_cq, send_cq, srqn, qpn;
	uint32_t key; /* of the region, all rights */
	uint8_t *bytes; /* its memory */
	struct packet pkt; /* the request being made */
};

extern uint8_t pattern[4096];

int peer_setup(void **state);
int peer_teardown(void **state);
struct peer *peer_create(const struct peer_config *config);
void peer_destroy(struct peer *p);
/* One more region over the same memory. */
uint32_t peer_register(struct peer *p, uint64_t va, uint32_t offset, uint32_t len, uint32_t access);
/* A type 2 window of the QP on the region; returns its key. */
uint32_t peer_window(struct peer *p, uint32_t at, uint32_t len, uint32_t access);
uint32_t peer_qp(struct peer *p, const struct qp_init_attr *init);
void peer_to_rtr(struct peer *p, uint32_t qpn); /* from RESET */
void peer_init_attr(const struct peer *p, struct qp_init_attr *init);

/* Requests. `at` is an offset into the region. */
struct packet *request(struct peer *p, uint8_t opcode, uint32_t psn);
enum verdict feed(struct peer *p);
enum verdict in_send(struct peer *p, uint8_t opcode, uint32_t psn, uint32_t len);
enum verdict in_write(struct peer *p, uint8_t opcode, uint32_t psn, uint32_t at, uint32_t dmalen,
	uint32_t len);
enum verdict in_read(struct peer *p, uint32_t psn, uint32_t at, uint32_t len);
enum verdict in_cmp_swap(struct peer *p, uint32_t psn, uint32_t at, uint64_t compare,
	uint64_t swap);
enum verdict in_fetch_add(struct peer *p, uint32_t psn, uint32_t at, uint64_t add);

void post(struct peer *p, uint64_t wr_id, uint32_t at, uint32_t len);
/* Let the responder send everything that is due. */
void run(struct peer *p);
unsigned int run_slice(struct peer *p, unsigned int budget);

/* Expect these answers and no others since the last expectation, in this order. */
void expect_answers(struct peer *p, const char *first, ...);
#define expect_tx(p, ...) expect_answers(p, __VA_ARGS__, NULL)
#define expect_silence(p) expect_answers(p, NULL)
void expect_wc(struct peer *p, uint64_t wr_id, enum wc_status status, struct wc *wc);
void expect_no_wc(struct peer *p);
void expect_event(struct peer *p, enum event_type type);
void expect_no_event(struct peer *p);

enum qp_state state_of(const struct peer *p);
uint32_t epsn_of(const struct peer *p);
struct rc_counters counters_of(const struct peer *p);
/* The i-th answer of the last expectation. */
const struct answer *answered(const struct peer *p, unsigned int i);

#endif
