/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_LOSS_H
#define BENCH_LOSS_H

/**
 * @file
 * --loss: of the packets that come in at either end one of so many is lost, at random, in the same
 * places each time.
 */

#include "traffic/bench.h"

struct loss;

/** Between the ports of both ends and what they lead to; nothing is lost yet. */
struct loss *loss_create(const struct endpoint end[ROLES], uint32_t one_of, struct error *err);
void loss_destroy(struct loss *l);
/** From now on, or no more; while nobody turns the workers. */
void loss_set(struct loss *l, bool on);
/** Packets lost so far. */
uint64_t loss_count(const struct loss *l);

#endif
