/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_SMA_TRAP_FIXTURE_H
#define TEST_SMA_TRAP_FIXTURE_H

/*
 * Two managed ports without their agent: the test writes PortInfo, and records packets with their
 * time of sending. The clock is virtual, in nanoseconds.
 *
 * At first port 0 is Active with LID 5, port 1 with LID 6; both know the SM at LID 7 and have
 * SubnetTimeOut 10, which is 4.2 ms.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sma/private.h"
#include "wire/wire.h"

#define MS              1000000ull
#define BENCH_SENT_MAX  256
#define BENCH_FRAME_MAX (PATH_HEADER_MAX + 20 + MAD_LEN + PATH_TRAILER_MAX)
#define BENCH_SESSIONS  64

/* offsets of PortInfo, its codes (smp-sma 3) */
#define LID            16
#define MASTER_SM_LID  18
#define PORT_STATE     32
#define SUBNET_TIMEOUT 51
#define INIT           2
#define ARMED          3
#define ACTIVE         4

struct sent {
	uint64_t at;
	struct packet pkt; /* but for its payload, which is: */
	uint8_t mad[MAD_LEN];
	uint8_t frame[BENCH_FRAME_MAX]; /* from the Ethernet header on */
	uint32_t len;
};

struct bench {
	struct tx_sink sink; /* first: the sink is the bench */
	struct timer_wheel *wheel;
	struct mad_worker *mad;
	struct sma *sma;
	struct sma_port *p; /* 0 */
	struct port_attr attr;
	uint64_t now;
	unsigned int room; /* packets that the sink still accepts */
	const struct path *path;
	uint32_t reserved;
	struct sent sent[BENCH_SENT_MAX];
	unsigned int num_sent, seen;
};

/* 3 repeats at 1 s, 100 causes a second, 32 at once */
int bench_setup(void **state);
int bench_teardown(void **state);
void bench_limits(struct bench *b, const struct sma_limits *l);
/* Advance time: timers fire when they are due, packets are sent. */
void bench_pass(struct bench *b, uint64_t ns);
/* The next packet that was sent; fails if there is none. */
const struct sent *bench_next(struct bench *b);
void bench_expect_silence(struct bench *b);
/* Raise a link trap; different numbers are different causes. */
struct sma_trap *bench_raise(struct bench *b, uint16_t cause);
/* TrapRepress with this notice. */
void bench_repress(struct bench *b, const uint8_t *notice);
void bench_port_info(struct sma_port *p, unsigned int offset, uint16_t value);
void bench_port_state(struct sma_port *p, uint8_t state);

#endif
