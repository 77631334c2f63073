/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_ROOFLINE_H
#define BENCH_ROOFLINE_H

/**
 * @file
 * --roofline: a run in rounds. Each round measures part of the traffic, then the skeleton, then the
 * limits of limit.h, so that all meet the same load of the machine. The result is the median of
 * each value over the rounds.
 */

#include "traffic/benchmark.h"

#define ROOFLINE_ROUNDS 9

struct roofline;

/** @param o  of the benchmark; the skeleton supports Sends of one packet, and Writes */
int roofline_create(struct roofline **made, const struct bench_options *o, struct error *err);
void roofline_destroy(struct roofline *rl);
/** Measure a round. @param traffic  the cost of the traffic's messages in this round */
void roofline_round(struct roofline *rl, const struct slice *traffic);
void roofline_report(const struct roofline *rl, struct report *r);

#endif
