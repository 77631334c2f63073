/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_EXCHANGE_H
#define SVC_PERFTEST_EXCHANGE_H

/**
 * @file
 * The server's side of what perftest exchanges beside the measured traffic: over TCP (a stream), or
 * over the first connection with -R (a message each).
 *
 * The client says something, the server answers in kind, and so on to the end: version (16 bytes),
 * cycle buffer and cache line size (4 bytes each), path MTU (2), then any number of queue pairs
 * (perftest_text.h) and reports of bandwidth (5 times 8 bytes), "done" over TCP. How often which
 * test says what differs; a server that answers everything suits them all. perftest's programs say
 * nowhere which of the eight they are.
 *
 * Pure: bytes in, bytes out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svc/perftest_text.h"

#define PERFTEST_PORT        18515
#define PERFTEST_VERSION     "6.06" /* that we are */
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
	PERFTEST_REPORT, /* four more numbers of one */
	PERFTEST_DONE,
};

struct perftest_exchange {
	enum perftest_step step;
	bool stream;
	unsigned int numbers; /**< of a report, still to come */
	uint16_t mtu; /**< in: ours, bytes; from PERFTEST_TALK on: the smaller of both */
	/**
	 * The peer's queue pair: make, find or note ours. A queue pair is told again and again.
	 * @return false: it cannot be
	 */
	bool (*dest)(void *arg, const struct perftest_dest *theirs, struct perftest_dest *ours);
	void *arg;
};

/** Is this how an exchange begins? */
bool perftest_is_version(const uint8_t *message, size_t len);
/** Is it older than what 6.06 talks to? */
bool perftest_is_old(const uint8_t *version);
/** Ours. @return PERFTEST_VERSION_LEN */
size_t perftest_version_write(uint8_t *message);
/** The largest path MTU up to @p bytes, as a digit. */
uint8_t perftest_mtu_digit(uint16_t bytes);
/** @return 0: none */
uint16_t perftest_mtu_bytes(uint8_t digit);

/** Stream: @return bytes of the message that comes first, 0: not all there yet, -1: nonsense */
int perftest_frame(const struct perftest_exchange *x, const uint8_t *bytes, size_t len);
/**
 * One message of the client's.
 * @param answer  room of PERFTEST_MESSAGE_MAX
 * @return bytes of the answer; negative: nonsense, or dest() said no
 */
int perftest_answer(struct perftest_exchange *x, const uint8_t *message, size_t len,
	uint8_t *answer);

#endif
