/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Selectors (sa-multipacket B10). MTU and life time codes are sorted by value, rate codes are not.
 */

#include "sa/select.h"

#define RATE_LAST 23

/* rate codes by Gb/s: 2.5, 5, 10, 14, 20, 25, 28, 30, 40, 50, 56, 60, 80, 100, ... 800 */
static const uint8_t rate_sorted[] = { 2, 5, 3, 11, 6, 15, 19, 4, 7, 20, 12, 8, 9, 16, 13, 10, 14,
	17, 18, 21, 22, 23 };

/* position of a code in rate_sorted, from 1; 0: unknown rate */
static const uint8_t rate_rank[RATE_LAST + 1] = {
	[2] = 1,
	[5] = 2,
	[3] = 3,
	[11] = 4,
	[6] = 5,
	[15] = 6,
	[19] = 7,
	[4] = 8,
	[7] = 9,
	[20] = 10,
	[12] = 11,
	[8] = 12,
	[9] = 13,
	[16] = 14,
	[13] = 15,
	[10] = 16,
	[14] = 17,
	[17] = 18,
	[18] = 19,
	[21] = 20,
	[22] = 21,
	[23] = 22,
};

/* [speed][width]: columns 1x, 2x, 4x, 8x, 12x */
static const uint8_t rate_table[][5] = {
	{ 2, 5, 3, 6, 4 }, /* SDR */
	{ 5, 3, 6, 7, 8 }, /* DDR */
	{ 3, 6, 7, 9, 10 }, /* QDR */
	{ 11, 19, 12, 13, 14 }, /* FDR */
	{ 15, 20, 16, 17, 18 }, /* EDR */
	{ 20, 16, 17, 21, 22 }, /* HDR */
	{ 16, 17, 21, 23, 0 }, /* NDR */
};

static uint8_t
rank_of(uint8_t code)
{
	return code <= RATE_LAST ? rate_rank[code] : 0;
}

bool
rate_known(uint8_t code)
{
	return rank_of(code) != 0;
}

uint8_t
rate_min(uint8_t a, uint8_t b)
{
	if (a == 0 || b == 0)
		return a | b;
	return rank_of(a) <= rank_of(b) ? a : b;
}

uint8_t
mtu_min(uint8_t a, uint8_t b)
{
	return a <= b ? a : b;
}

/* Number of the highest bit set; -1: none. */
static int
highest(uint8_t bits)
{
	return bits != 0 ? 31 - __builtin_clz(bits) : -1;
}

uint8_t
rate_of_link(uint8_t width, uint8_t speed, uint8_t ext)
{
	/* LinkWidthActive: 1 = 1x, 2 = 4x, 4 = 8x, 8 = 12x, 16 = 2x */
	static const uint8_t column[8] = { 0, 2, 3, 4, 1, 0, 0, 0 };
	int w = highest(width & 0x1F);
	int s = highest(ext) >= 0 ? 3 + highest(ext) : highest(speed & 0x7);

	if (w < 0 || s < 0)
		return 0;
	return rate_table[s][column[w]];
}

/*
 * Apply a selector to a value that may be lowered, on a scale from 1. @return the value to answer;
 * 0: not possible
 */
static unsigned int
lower_to(enum selector s, unsigned int want, unsigned int have)
{
	switch (s) {
	case SELECT_GREATER:
		return have > want ? have : 0;
	case SELECT_LESS:
		if (want <= 1)
			return 0;
		return have < want ? have : want - 1;
	case SELECT_EXACTLY:
		return want != 0 && have >= want ? want : 0;
	case SELECT_LARGEST:
	default:
		return have;
	}
}

bool
select_mtu(enum selector s, uint8_t want, uint8_t *have)
{
	*have = lower_to(s, want, *have);
	return *have != 0;
}

bool
select_rate(enum selector s, uint8_t want, uint8_t *have)
{
	unsigned int rank;

	if (s != SELECT_LARGEST && !rate_known(want))
		return false;
	rank = lower_to(s, rank_of(want), rank_of(*have));
	if (rank == 0)
		return false;
	*have = rate_sorted[rank - 1];
	return true;
}

bool
select_life(enum selector s, uint8_t want, uint8_t *have)
{
	switch (s) {
	case SELECT_GREATER:
		return *have > want;
	case SELECT_LESS:
		return *have < want;
	case SELECT_EXACTLY:
		if (*have > want)
			return false;
		*have = want;
		return true;
	case SELECT_LARGEST:
	default:
		return true;
	}
}

static bool
satisfies(enum selector s, unsigned int want, unsigned int have)
{
	switch (s) {
	case SELECT_GREATER:
		return have > want;
	case SELECT_LESS:
		return have < want;
	case SELECT_EXACTLY:
		return have == want;
	case SELECT_LARGEST:
	default:
		return true;
	}
}

bool
satisfies_mtu(enum selector s, uint8_t want, uint8_t have)
{
	return satisfies(s, want, have);
}

bool
satisfies_rate(enum selector s, uint8_t want, uint8_t have)
{
	return (s == SELECT_LARGEST || rate_known(want)) &&
		satisfies(s, rank_of(want), rank_of(have));
}

bool
satisfies_life(enum selector s, uint8_t want, uint8_t have)
{
	return satisfies(s, want, have);
}
