/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_WRITE_H
#define SVC_PERFTEST_WRITE_H

/**
 * @file
 * ib_write_lat: each side writes to the other's memory, in turn, and looks at the last byte
 * there: it counts the Writes, from 1 on and modulo 256. The server begins. Nobody says of what
 * size they are, so that the first Write sets all bytes where the last one may be; the client's
 * show it.
 *
 * -a goes through the powers of two, counting from 1 anew for each, without a word in between.
 * The client finds its 1 of each new size ready: up to PERFTEST_WRITE_FIRST from the first Write,
 * beyond it put there as soon as the second size tells that there are more.
 *
 * Pure: what to write, not how.
 */

#include <stdbool.h>
#include <stdint.h>

/** Bytes that the client has at the address it told, whatever its size: its cycle buffer. */
#define PERFTEST_WRITE_FIRST 4096
/** -a: the smallest size beyond it, and the largest. */
#define PERFTEST_WRITE_BEYOND (2 * PERFTEST_WRITE_FIRST)
#define PERFTEST_WRITE_LARGEST (8u << 20)
/** How often the client tells its queue pair before it waits for the first Write. */
#define PERFTEST_WRITE_TOLD 4

struct perftest_write {
	bool begun;
	uint64_t writes; /**< of the client, answered */
	uint64_t bytes; /**< received with them */
	uint64_t size;
	uint64_t count; /**< of the client's Writes of this size */
	unsigned int sizes; /**< that there were */
};

struct perftest_write_answer {
	uint64_t length;
	uint8_t last; /**< value of the last byte */
	bool prepare; /**< first put 1 at the ends of all sizes from PERFTEST_WRITE_BEYOND on */
};

/**
 * Look what has come: @p writes and @p bytes since the start; @p partial: one more has begun. Who
 * does not wait for an answer (ib_write_bw -b) gets none any more.
 * @retval true  *a is to be written
 */
bool perftest_write_look(struct perftest_write *p, uint64_t writes, uint64_t bytes, bool partial,
	struct perftest_write_answer *a);

#endif
