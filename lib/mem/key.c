/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "mem/key.h"

void
key_space_init(struct key_space *k, const struct rng *rng, uint32_t entries)
{
	unsigned int i;

	for (i = 0; i < KEY_ROUNDS; i++) {
		k->mask[i] = rng_u64(rng);
		k->factor[i] = rng_u64(rng) | 1;
	}
	k->low = rng_u64(rng);
	k->index_bits = 0;
	while (UINT32_C(1) << k->index_bits < entries)
		k->index_bits++;
}

/* The low byte: a bijection of the wrap count that differs for each value of the upper bits. */
static uint32_t
low_byte(const struct key_space *k, uint32_t upper, uint32_t wrap)
{
	uint64_t h = upper ^ k->low;

	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	h ^= h >> 31;
	return (wrap * (uint32_t)(h | 1) + (uint32_t)(h >> 32)) & 0xff;
}

uint32_t
key_make(const struct key_space *k, uint32_t index, uint32_t serial)
{
	uint32_t upper = key_permute(k, (serial << k->index_bits | index) & 0xffffff, false);
	uint32_t wrap = serial >> (KEY_BITS - k->index_bits);

	return upper << 8 | low_byte(k, upper, wrap);
}
