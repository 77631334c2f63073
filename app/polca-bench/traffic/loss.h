/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_LOSS_H
#define BENCH_LOSS_H

/**
 * @file
 * --loss: drop received packets of both endpoints at random, one of @p one_of, and the same ones in
 * each run.
 */

#include "traffic/bench.h"

struct loss;

/** Install the filters on the ports of both endpoints; they drop nothing yet. */
struct loss *loss_create(const struct endpoint end[ROLES], uint32_t one_of, struct error *err);
void loss_destroy(struct loss *l);
/** Turn the loss on or off. The workers must not run meanwhile. */
void loss_set(struct loss *l, bool on);
/** The number of packets lost so far. */
uint64_t loss_count(const struct loss *l);

#endif
