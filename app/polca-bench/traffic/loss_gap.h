/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_LOSS_GAP_H
#define BENCH_LOSS_GAP_H

/**
 * @file
 * Choose lost packets, each with the same probability, by one random number per loss instead of per
 * packet.
 */

#include <math.h>
#include <stdint.h>

/**
 * The number of packets up to and including the next lost one. @param state  of the generator, not
 * 0; updated
 */
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
