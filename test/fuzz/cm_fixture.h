/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_FUZZ_CM_FIXTURE_H
#define TEST_FUZZ_CM_FIXTURE_H

/*
 * One communication manager with its QPs at 10.0.0.1. Its messages are kept but not delivered; the
 * fuzzer's input is what it receives. Its users act as .mood says, and abort() if their callbacks
 * come in a wrong order. Time is virtual, in nanoseconds.
 */

#include "cm/message.h"

#define MS      1000000ull
#define SENT    8 /* number of sent messages kept */
#define USERS   256
#define CONNS   24
#define SERVICE 0x0000000001061234ull /* an RDMA-CM service: private data begin with a header */
#define PLAIN   0x1000000000001234ull /* the first of 16 services without such a header */

/* high four bits of the mood: what users do */
#define MOOD_LATER      0xC0 /* request() decides later */
#define MOOD_DISCONNECT 0xD0 /* established() disconnects */
#define MOOD_UNPREPARED 0xE0 /* prepare() fails */
#define MOOD_REFUSE     0xF0 /* request() refuses */

/* The callbacks that a user of a connection has had. */
struct user {
	bool taken, prepared, established, ended;
};

struct bench {
	struct tx_sink
		sink; /* the first member: cm_fixture_sink_reserve() casts it to struct bench */
	uint64_t now;
	struct mem *mem;
	struct rc_dev *dev;
	struct timer_wheel *wheel;
	struct rc_worker *rc;
	struct mad_worker *mad;
	struct cm *cm;
	struct port_attr port;
	uint32_t pd, cq;
	bool stall; /* the sink is full */
	uint8_t mood;
	struct user users[USERS];
	uint8_t packet[PATH_HEADER_MAX + 20 + MAD_LEN + PATH_TRAILER_MAX];
	uint8_t sent[SENT][MAD_LEN];
	unsigned int num_sent;
};
extern struct bench b;

/* Abort if not. */
void check(bool ok, const char *what);

/* The address vector from 10.0.0.from to 10.0.0.to. */
struct av av_from(uint8_t from, uint8_t to);
/* Deliver a MAD to QP1. */
void deliver(uint8_t from, const uint8_t *mad);

struct user *user_new(void);
void fill_param(struct cm_conn_param *p);
extern const struct cm_user user_ops;

void start(void);
void run(void);
/* Advance the clock, and run timers when they are due. */
void pass(uint64_t until);
/* Deliver nothing any more: everything must end by itself. */
void finish(void);

#endif
