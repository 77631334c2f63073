/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_SIZE_LIMIT_H
#define BENCH_SIZE_LIMIT_H

/**
 * @file
 * For --plot: what bounds a message of a size when one lcore does the work of both ends. It is the
 * sum of limits of limit.h over the message's packets: packet io with the payload copied into the
 * buffer with its CRC, the check of that CRC, and the copy at the other end. Queue pairs, headers,
 * Acks and completions are not in it.
 */

#include "options.h"

struct size_limit;

/** For messages of @p o, of any size up to o->size. */
int size_limit_create(struct size_limit **made, const struct bench_options *o, struct error *err);
void size_limit_destroy(struct size_limit *l);
/** Takes some 60 ms. @return ns a message; 0: nothing was measured without an interruption */
double size_limit_measure(struct size_limit *l, uint32_t size);

#endif
