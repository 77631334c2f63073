/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_ROOFLINE_H
#define BENCH_ROOFLINE_H

/**
 * @file
 * --roofline: a run in rounds; each has a part of the traffic, then the skeleton and the limits of
 * limit.h, so that all of them see the same mood of the machine. What is told is the median over
 * the rounds of each ratio.
 */

#include "traffic/benchmark.h"

#define ROOFLINE_ROUNDS 9

struct roofline;

/** For the scene's options; the skeleton does Sends of one packet, and Writes. */
int roofline_create(struct roofline **rl, const struct bench_options *o, struct error *err);
void roofline_destroy(struct roofline *rl);
/** After a part of the traffic: what its messages cost each role. */
void roofline_round(struct roofline *rl, const struct slice *traffic);
void roofline_tell(const struct roofline *rl, struct report *r);

#endif
