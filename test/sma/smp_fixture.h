/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_SMA_SMP_FIXTURE_H
#define TEST_SMA_SMP_FIXTURE_H

/*
 * The agent behind lib/mad's QP0: requests are passed in as packets, answers and traps are
 * recorded. The clock is virtual, in nanoseconds.
 *
 * A channel adapter with three ports. Numbers 1 and 2 (index 0 and 1) are managed, number 3 is not.
 * Port 1: 8 VLs, MTU 2048, 1x and 4x, SDR to QDR, FDR and EDR, a standby SM of priority 5, LID 5 of
 * SM 7 on SL 2. Port 2: one VL, MTU 4096, 4x, SDR, LID 6 of SM 7. Both links are up: Initialize.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sma/sma.h"
#include "wire/bytes.h"
#include "wire/wire.h"

#define SECOND 1000000000ull
#define MS     1000000ull

#define SILENT       (-1)
#define BENCH_PORTS  2
#define BENCH_EVENTS 64

/* methods, status (smp-sma 2) */
#define GET          0x01
#define SET          0x02
#define TRAP_REPRESS 0x07

/* PortInfo, by number (smp-sma 3) */
#define LID           16
#define MASTER_SM_LID 18
#define M_KEY_LEASE   26
#define PORT_STATE    32 /* low nibble */
#define PHYS_STATE    33 /* high nibble */
#define PROTECT       34 /* top two bits */

#define PORT1_GUID 0x0002C90300000101ull
#define PORT2_GUID 0x0002C90300000102ull

struct bench {
	struct tx_sink sink; /* first: the sink is the bench */
	struct timer_wheel *wheel;
	struct mad_worker *mad;
	struct sma *sma;
	struct port_attr attr[3];
	uint64_t now;
	const struct path *path;
	uint32_t reserved;
	uint8_t frame[PATH_HEADER_MAX + 20 + MAD_LEN + PATH_TRAILER_MAX];

	/* the next request */
	uint16_t port; /* index of the receiving port: 0 */
	uint8_t mgmt_class; /* 0x01 */
	uint64_t m_key;
	uint8_t mad_sent[MAD_LEN];

	/* result of the last request */
	enum verdict verdict;
	bool answered;
	struct packet reply; /* headers */
	uint8_t reply_mad[MAD_LEN];
	uint8_t *data; /* of reply_mad */

	unsigned int traps; /* sent so far */
	uint8_t trap_mad[MAD_LEN]; /* the last one */

	unsigned int applied[BENCH_PORTS]; /* calls so far */
	struct port_settings settings[BENCH_PORTS];
	struct port_settings before[BENCH_PORTS]; /* of the call before the last one */
	struct event event[BENCH_EVENTS];
	unsigned int num_events, seen_events;

	unsigned int to_sm; /* SMPs given to the SM so far, and the last one */
	uint16_t sm_port;
	uint16_t sm_slid;
	uint8_t sm_mad[MAD_LEN];
};

int bench_setup(void **state);
int bench_teardown(void **state);
/* The same with the test's own port configuration; call before bench_start(). */
struct bench *bench_create(void (*change)(struct sma_config *c, struct sma_port_config *port));
void bench_pass(struct bench *b, uint64_t ns);

/* @return status of the answer without its D bit, or SILENT; b->data has its data */
int ask(struct bench *b, uint8_t method, uint16_t attribute, uint32_t modifier,
	const uint8_t *data);
/* Build the request that the next ask() would send, and send it. */
uint8_t *make(struct bench *b, uint8_t method, uint16_t attribute, uint32_t modifier,
	const uint8_t *data);
int send_made(struct bench *b);
int get(struct bench *b, uint16_t attribute, uint32_t modifier);
int set(struct bench *b, uint16_t attribute, uint32_t modifier, const uint8_t *data);

/*
 * Get(PortInfo) of the receiving port, made ready for a Set that changes nothing: states 0,
 * violation counters not 0.
 */
void port_info(struct bench *b, uint8_t *info);
/* Set one byte, or a number of 16 bits, of it. @return status */
int set_byte(struct bench *b, unsigned int offset, uint8_t value);
int set_16(struct bench *b, unsigned int offset, uint16_t value);
int smp_set_state(struct bench *b, uint8_t state, uint8_t phys);
uint8_t state_of(struct bench *b);
uint8_t phys_of(struct bench *b);

void expect_event(struct bench *b, enum event_type type, uint32_t element);
void expect_no_event(struct bench *b);

/* Bits of big-endian bytes, bit by bit: nothing of the code under test. */
uint64_t bits_of(const uint8_t *bytes, unsigned int first, unsigned int n);
void bits_to(uint8_t *bytes, unsigned int first, unsigned int n, uint64_t value);

#endif
