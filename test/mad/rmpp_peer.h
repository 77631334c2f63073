/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_MAD_RMPP_PEER_H
#define TEST_MAD_RMPP_PEER_H

/*
 * One worker with an agent of the SA, class version 2, and a peer played by the test, under a
 * virtual clock (nanoseconds). What the worker sends is described in words:
 *
 *   "DATA 1 First", "DATA 2", "DATA 3 Last", "DATA 1 First Last"
 *   "ACK 1 17"          SegmentNumber, NewWindowLast
 *   "STOP 1", "ABORT 120"
 *   "GetTable", "GetTableResp 0300", ...   without RMPP; status if there is one
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/timer_wheel.h"
#include "mad/mad.h"
#include "wire/bytes.h"
#include "wire/wire.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)

#define PEER_QPN  1u
#define PEER_SENT 4096
#define TID       UINT64_C(0x0123456789ABCDEF)

struct sent {
	char text[40];
	uint8_t mad[MAD_LEN];
};

struct rmpp_peer {
	struct tx_sink sink; /* first member: the sink is the peer */
	unsigned int room; /* packets that the sink still accepts */
	uint8_t packet[20 + MAD_LEN];
	struct sent sent[PEER_SENT];
	unsigned int sent_count;
	unsigned int seen; /* packets up to here were expected */
	unsigned int looked; /* where the last expectation began */

	struct timer_wheel *wheel;
	struct mad_worker *w;
	struct port_attr port;
	struct path path; /* the peer's packets to us */
	uint64_t now;
	uint64_t tid; /* of the packets the peer sends */
	struct mad_counters base; /* what counter() leaves out */

	/* the agent */
	enum mad_outcome outcome;
	uint16_t status; /* of a MAD_ANSWER */
	uint64_t length; /* of the answer */
	uint64_t gone_after; /* reading beyond this byte fails; 0: never */
	unsigned int requests;
	unsigned int releases;
	mad_handle handle; /* of the last request */
	uint64_t body_length;
	uint8_t body[64 * 1024];

	/* the taker */
	int refuse; /* what data() returns */
	uint64_t taken;
	uint8_t data[64 * 1024];
	unsigned int done;
	struct mad_result result;
	uint8_t result_mad[MAD_LEN];
};

struct rmpp_peer *rmpp_peer_create(const struct mad_limits *limits);
void rmpp_peer_destroy(struct rmpp_peer *p);
int rmpp_peer_setup(void **state);
int rmpp_peer_teardown(void **state);
/*
 * The peer acknowledges an answer, so its address is proven. Call it before the test proper: all
 * counts start again.
 */
void rmpp_peer_prove(struct rmpp_peer *p);

/* p->length bytes of the pattern */
struct mad_source rmpp_peer_source(struct rmpp_peer *p);

/* byte of the pattern at an offset of any data here */
static inline uint8_t
pattern_at(uint64_t offset)
{
	return (uint8_t)(offset * 7 + offset / 200);
}

/* --- the peer sends --- */

/* A MAD of class SubnAdm, class version 2, RMPP header zero. */
void make_mad(const struct rmpp_peer *p, uint8_t mad[MAD_LEN], uint8_t method);
/* The same with an RMPP header, Active. */
void make_rmpp(const struct rmpp_peer *p, uint8_t mad[MAD_LEN], uint8_t method, uint8_t type,
	uint8_t flags, uint8_t status, uint32_t segment, uint32_t length);
enum verdict in_mad(struct rmpp_peer *p, const uint8_t mad[MAD_LEN]);
/* The peer asks: GetTable. */
enum verdict in_get_table(struct rmpp_peer *p);
/* Of the given method, and what is due goes out. */
enum verdict in_ack(struct rmpp_peer *p, uint8_t method, uint32_t segment, uint32_t window_end);
enum verdict in_rmpp(struct rmpp_peer *p, uint8_t method, uint8_t type, uint8_t flags,
	uint8_t status, uint32_t segment, uint32_t length);
/* Segment n of total: 200 bytes of the pattern, `tail` in the last. */
enum verdict in_data(struct rmpp_peer *p, uint8_t method, uint32_t n, uint32_t total,
	uint32_t tail);

/* --- we send --- */
int call_table(struct rmpp_peer *p, mad_handle *h); /* GetTable */
int call_multi(struct rmpp_peer *p, uint64_t length); /* GetMulti, so many bytes of the pattern */

/* Time passes, timers fire, what is due is sent. */
void pass(struct rmpp_peer *p, uint64_t ns);
void run(struct rmpp_peer *p);

/* All packets sent since the last expectation, in this order. */
void expect_sent(struct rmpp_peer *p, const char *first, ...);
#define expect_tx(p, ...) expect_sent(p, __VA_ARGS__, NULL)
#define expect_silence(p) expect_sent(p, NULL)
/* The next packets are the middle segments first to last; more may follow. */
void expect_run(struct rmpp_peer *p, uint32_t first, uint32_t last);
void forget_sent(struct rmpp_peer *p);
/* The i-th MAD of the last expectation. */
const uint8_t *sent_mad(const struct rmpp_peer *p, unsigned int i);

#define counter(p, name)           (mad_worker_counters((p)->w)->name - (p)->base.name)
#define expect_counter(p, name, n) assert_int_equal(counter(p, name), n)
#define expect_abort(p, received, status, n)                                                       \
	assert_int_equal(mad_worker_aborts((p)->w, received, status), n)
/* Checks that only lingering sessions and no memory are left. */
void expect_idle(struct rmpp_peer *p);
/* The only session. */
struct mad_session_info session_of(const struct rmpp_peer *p);

#endif
