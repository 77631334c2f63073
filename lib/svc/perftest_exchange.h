/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_EXCHANGE_H
#define SVC_PERFTEST_EXCHANGE_H

/**
 * @file The server's side of perftest's parameter exchange: over TCP (a stream), or with -R over
 * the first connection (one Send per message).
 *
 * The client sends a message and the server answers with one of the same kind, until the end:
 * version (16 bytes), cycle buffer and cache line size (4 bytes each), path MTU (2), then any
 * number of QPs (perftest_text.h) and bandwidth reports (5 times 8 bytes), and over TCP "done". The
 * number and order depend on the test, but a server that answers everything works with all. The
 * messages do not say which of the eight programs the client is.
 *
 * The functions only transform bytes; they do no I/O.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svc/perftest_text.h"

#define PERFTEST_PORT        18515
#define PERFTEST_VERSION     "6.06" /* the version that we report */
#define PERFTEST_VERSION_LEN 16
#define PERFTEST_MESSAGE_MAX PERFTEST_TEXT
#define PERFTEST_WORD        4
#define PERFTEST_NUMBER      8 /* bytes of one number of a report */
#define PERFTEST_NUMBERS     5 /* size, iterations, peak, average, message rate */
#define PERFTEST_MTU_LEN     2 /* a digit, as ibv_mtu counts, and a zero byte */
#define PERFTEST_DONE_TEXT   "done"

enum perftest_step {
	PERFTEST_VERSION_STEP,
	PERFTEST_CYCLE_BUFFER,
	PERFTEST_CACHE_LINE,
	PERFTEST_MTU,
	PERFTEST_TALK, /* queue pairs and reports */
	PERFTEST_REPORT, /* the other four numbers of a report */
	PERFTEST_DONE,
};

struct perftest_exchange {
	enum perftest_step step;
	bool stream;
	unsigned int numbers; /**< numbers of a report still to come */
	uint16_t mtu; /**< in: ours, bytes; from PERFTEST_TALK on: the smaller of both */
	/**
	 * The peer's queue pair: make, find or note ours. A queue pair is told again and again.
	 * @return 0, -EAGAIN: not known yet, or another negative errno: it cannot be
	 */
	int (*dest)(void *arg, const struct perftest_dest *theirs, struct perftest_dest *ours);
	void *arg;
};

/** True if the message is a version, with which an exchange begins. */
bool perftest_is_version(const uint8_t *message, size_t len);
/** True for a version that is too old for 6.06. */
bool perftest_is_old(const uint8_t *version);
/** Write our version. @return PERFTEST_VERSION_LEN */
size_t perftest_version_write(uint8_t *message);
/** The largest path MTU up to @p bytes, as a digit. */
uint8_t perftest_mtu_digit(uint16_t bytes);
/** @return 0: none */
uint16_t perftest_mtu_bytes(uint8_t digit);

/** Stream: @return length of the first message; 0: not complete yet; -1: invalid */
int perftest_frame(const struct perftest_exchange *x, const uint8_t *bytes, size_t len);
/**
 * Answer a message of the client.
 * @param answer  room for PERFTEST_MESSAGE_MAX bytes
 * @return length of the answer; 0: not known yet, so call again with the same message; negative:
 *         the message is invalid, or dest() refused it
 */
int perftest_answer(struct perftest_exchange *x, const uint8_t *message, size_t len,
	uint8_t *answer);

#endif
