/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_WRITE_H
#define SVC_PERFTEST_WRITE_H

/**
 * @file ib_write_lat: the two sides write to each other's memory in turn and poll the last byte,
 * which counts the Writes from 1 on, modulo 256. The server begins. The exchange does not contain
 * the size of the Writes, so the server's first Write sets every byte that may be the last one; the
 * client's first Write then shows the size.
 *
 * With -a the client goes through the powers of two and counts from 1 again for each, without a
 * message in between. So it must find a 1 at the end of each new size: up to PERFTEST_WRITE_FIRST
 * the first Write has set them, and the others are written as soon as the second size shows -a.
 *
 * These functions decide what to write; the caller writes it.
 */

#include <stdbool.h>
#include <stdint.h>

/** Least size of the client's memory, whatever the size of its Writes: its cycle buffer. */
#define PERFTEST_WRITE_FIRST 4096
/** With -a, the smallest size above it, and the largest. */
#define PERFTEST_WRITE_BEYOND  (2 * PERFTEST_WRITE_FIRST)
#define PERFTEST_WRITE_LARGEST (8u << 20)
/** How often the client describes its QP before it waits for the first Write. */
#define PERFTEST_WRITE_TOLD 4

struct perftest_write {
	bool begun;
	uint64_t writes; /**< the client's Writes answered */
	uint64_t bytes; /**< received with them */
	uint64_t size;
	uint64_t count; /**< the client's Writes of this size */
	unsigned int sizes; /**< number of sizes so far */
};

struct perftest_write_answer {
	uint64_t length;
	uint8_t last; /**< value of the last byte */
	bool prepare; /**< first write 1 at the end of all sizes from PERFTEST_WRITE_BEYOND on */
};

/**
 * Decide whether to answer, from @p writes and @p bytes received since the start; @p partial:
 * another Write has begun. A client that does not wait for an answer (ib_write_bw -b) gets no
 * further ones.
 * @retval true  write *a
 */
bool perftest_write_answers(struct perftest_write *p, uint64_t writes, uint64_t bytes, bool partial,
	struct perftest_write_answer *a);

#endif
