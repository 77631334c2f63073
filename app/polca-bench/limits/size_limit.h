/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_SIZE_LIMIT_H
#define BENCH_SIZE_LIMIT_H

/**
 * @file
 * For --plot: the least time of a message of one size if one lcore does the work of both endpoints.
 * It is the sum of limits (limit.h) over the message's packets: packet I/O with the payload copied
 * into the buffer and its CRC, the check of that CRC, and the copy at the responder. Queue pairs,
 * headers, Acks and completions are not included.
 */

#include "options.h"

struct size_limit;

/** For messages of @p o of any size up to o->size. */
int size_limit_create(struct size_limit **made, const struct bench_options *o, struct error *err);
void size_limit_destroy(struct size_limit *l);
/** Takes about 60 ms. @return ns per message; 0: every measurement was interrupted */
double size_limit_measure(struct size_limit *l, uint32_t size);

#endif
