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

#include <math.h>

#include "bench.h"

struct loss;

/** Between the ports of both ends and what they lead to; nothing is lost yet. */
struct loss *loss_create(const struct end end[ROLES], uint32_t one_of, struct error *err);
void loss_destroy(struct loss *l);
/** From now on, or no more; while nobody turns the workers. */
void loss_set(struct loss *l, bool on);
/** Packets lost so far. */
uint64_t loss_count(const struct loss *l);

/** Packets until the next one to be lost, itself counted. @param state  not 0, changes */
static inline uint64_t
loss_gap(uint64_t *state, uint32_t one_of)
{
	double u;

	if (one_of <= 1)
		return 1;
	/* xorshift64* */
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	u = (double)((*state * UINT64_C(2685821657736338717) >> 11) + 1) / 9007199254740992.0;
	return 1 + (uint64_t)(log(u) / log1p(-1.0 / one_of));
}

#endif
