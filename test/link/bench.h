/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_LINK_BENCH_H
#define TEST_LINK_BENCH_H

/*
 * A port over rings whose other ends the test holds. The test writes and reads frames in hex. EAL
 * and ethdev are real, without hugepages. Addresses are those of the sample frames of rc-transport
 * 9: we are 02:00:00:00:00:02, 10.0.0.2/24 and fe80::2; the peer is 02:00:00:00:00:01, 10.0.0.1 and
 * fe80::1.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../wire/hex.h"
#include "link/link.h"

#define BENCH_QUEUES 2
#define BENCH_HZ     1000000 /* the test's clock counts microseconds */
#define FRAME_MAX    9000

/* rc-transport 9, "computed here" */
#define ROCEV2_ACK                                                                                 \
	"020000000002 020000000001 0800 4500003000004000401126bb0a0000010a000002"                  \
	"c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085"
#define ROCEV2_ACK_L3                                                                              \
	"4500003000004000401126bb0a0000010a000002"                                                 \
	"c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085"
#define ROCEV2_IPV6_ACK                                                                            \
	"020000000002 020000000001 86dd"                                                           \
	"60000000001c1140 fe800000000000000000000000000001 fe800000000000000000000000000002"       \
	"c12312b7001c0000 1100ffff0000045600000012 1f000007 9a185e68"
#define ROCEV1_ACK                                                                                 \
	"020000000002 020000000001 8915"                                                           \
	"6000000000141b40 fe800000000000000000000000000001 fe800000000000000000000000000002"       \
	"1100ffff0000045600000012 1f000007 4bee0997"

struct bench {
	struct link_config cfg;
	struct link *link;
	struct link_worker *worker[8];
	struct rte_ring *in[BENCH_QUEUES]; /* to the port */
	struct rte_ring *out[BENCH_QUEUES]; /* from it */
	unsigned int out_depth;
	struct rte_mempool *mp; /* for frames that the test injects */
	uint64_t now;
	struct packet *pkts[LINK_BURST]; /* of the last bench_poll() */
	unsigned int num_pkts;
};

/* EAL once per program. @return cmocka group result */
int bench_eal(void **state);
int bench_eal_cleanup(void **state);

/* A configuration with one port over rings; the test changes it before bench_open(). */
void bench_config(struct bench *b);
void bench_open(struct bench *b);
/* Also checks that no buffer is lost. */
void bench_close(struct bench *b);
/* cmocka set-up and tear-down: the default configuration, opened. */
int bench_setup(void **state);
int bench_teardown(void **state);

struct rte_mbuf *bench_mbuf(struct bench *b, const char *hex);
void bench_inject_mbuf(struct bench *b, unsigned int queue, struct rte_mbuf *m);
void bench_inject(struct bench *b, const char *hex);
/* Receive and flush on a worker; transport packets stay in b->pkts until bench_free(). */
unsigned int bench_poll(struct bench *b, unsigned int worker);
void bench_free(struct bench *b);
/* @return the next frame sent by queue 0, as hex; "" if none. The next call overwrites the text. */
const char *bench_sent(struct bench *b);
const char *bench_sent_on(struct bench *b, unsigned int queue);
/* Throw away what was sent. */
void bench_discard(struct bench *b);

/* Expect exactly these frames, in this order. */
void bench_expect(struct bench *b, const char *hex);
#define bench_expect_nothing(b) assert_string_equal(bench_sent(b), "")
/*
 * Expect this verdict, and no other, for the frame on worker 0. VERDICT_COUNT: the frame reaches
 * the engine.
 */
void bench_verdict(struct bench *b, const char *hex, enum verdict v);

/* @return the text without blanks */
const char *hex_compact(const char *hex);

#endif
