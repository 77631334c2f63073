/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_SEND_H
#define SVC_PERFTEST_SEND_H

/**
 * @file
 * Find out whether the client waits for an answer to each Send (ib_send_lat) or not
 * (ib_send_bw). It does not tell, but a client that waits is never more than one message ahead.
 *
 * The first message is answered when no other has followed it for a while, which makes the first
 * iteration of a latency test that much longer. After that each message is answered at once, until
 * the client is ahead for the first time; then answers end for good. A needless answer only waits
 * for a receive that the client never posts.
 */

#include <stdbool.h>
#include <stdint.h>

/** Most answers that may be unacknowledged. */
#define PERFTEST_UNACKNOWLEDGED 4

enum perftest_mode {
	PERFTEST_LEARNING,
	PERFTEST_LATENCY,
	PERFTEST_BANDWIDTH,
};

struct perftest_send {
	enum perftest_mode mode;
	uint64_t answered;
	uint64_t acknowledged; /**< answers that have completed; the caller counts them */
	bool seen; /**< the first message, at .first */
	uint64_t first;
};

/**
 * Decide whether to answer.
 *
 * @param received  messages since the start
 * @param begun     part of another message has arrived
 * @param patience  how long the first one must stand alone
 * @return true: answer the last message now
 */
bool perftest_send_answers(struct perftest_send *p, uint64_t received, bool begun, uint64_t now,
	uint64_t patience);

#endif
