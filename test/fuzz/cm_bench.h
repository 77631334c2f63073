/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_FUZZ_CM_BENCH_H
#define TEST_FUZZ_CM_BENCH_H

/*
 * One communication manager with its QPs, alone at 10.0.0.1: what it sends is kept and goes
 * nowhere, what it receives the script says. Its users do what .mood says, and abort when they are
 * told things out of turn. Time is virtual, nanoseconds.
 */

#include "cm/message.h"

#define MS      1000000ull
#define SENT    8 /* messages that are kept */
#define USERS   256
#define CONNS   24
#define SERVICE 0x0000000001061234ull /* RDMA-CM: a header in front of private data */
#define PLAIN   0x1000000000001234ull /* 16 of them */

/* high four bits of the mood: what users do */
#define MOOD_LATER      0xC0 /* request(): later */
#define MOOD_DISCONNECT 0xD0 /* established(): no more */
#define MOOD_UNPREPARED 0xE0 /* prepare() fails */
#define MOOD_REFUSE     0xF0 /* request(): no */

/* What a user of a connection has been told. */
struct user {
	bool taken, prepared, established, ended;
};

struct bench {
	struct tx_sink sink; /* first: the sink is the bench */
	uint64_t now;
	struct mem *mem;
	struct rc_dev *dev;
	struct timer_wheel *wheel;
	struct rc_worker *rc;
	struct mad_worker *mad;
	struct cm *cm;
	struct port_attr port;
	uint32_t pd, cq;
	bool stall; /* the sink takes nothing */
	uint8_t mood;
	struct user users[USERS];
	uint8_t packet[PATH_HEADER_MAX + 20 + MAD_LEN + PATH_TRAILER_MAX];
	uint8_t sent[SENT][MAD_LEN];
	unsigned int num_sent;
};
extern struct bench b;

/* Abort if not. */
void check(bool ok, const char *what);

/* 10.0.0.from to 10.0.0.to */
struct av av_from(uint8_t from, uint8_t to);
/* A MAD to QP1. */
void deliver(uint8_t from, const uint8_t *mad);

struct user *user_new(void);
void fill_param(struct cm_conn_param *p);
extern const struct cm_user user_ops;

void start(void);
void run(void);
/* Time goes on, timers fire when they are due. */
void pass(uint64_t until);
/* Nobody answers any more: all must come to its end by itself. */
void finish(void);

#endif
