/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_KEY_H
#define MEM_KEY_H

/**
 * @file
 * Keys of regions and windows (design.md rule 6).
 *
 * The upper 24 bits are a keyed permutation of {generation, table index}. The low 8 bits are keyed
 * too, or chosen by the consumer for type 2 windows. Each table index has a serial number that
 * counts the keys issued for it: the generation is its low bits, its high bits go into the key's
 * low 8. Serial and index together fill 32 bits, so an index issues each
 * of its keys once before it repeats one.
 *
 * The permutation is a four-round Feistel network over two 12-bit halves, one multiplication a
 * round. It hides table indices from peers and makes keys hard to guess. It is not a cipher: every
 * access also checks protection domain and rights.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"

#define KEY_ROUNDS         4
#define KEY_BITS           24 /* width of the permutation */
#define KEY_INDEX_BITS_MAX 22 /* leaves at least two bits of generation */

struct key_space {
	uint64_t mask[KEY_ROUNDS];
	uint64_t factor[KEY_ROUNDS]; /* odd */
	uint64_t low; /* secret that low_byte() mixes in */
	unsigned int index_bits;
};

/** @param entries  table size; at most 2^KEY_INDEX_BITS_MAX */
void key_space_init(struct key_space *k, const struct rng *rng, uint32_t entries);
/** Key number `serial` of a table index. */
uint32_t key_make(const struct key_space *k, uint32_t index, uint32_t serial);

static inline uint32_t
key_round(const struct key_space *k, unsigned int i, uint32_t half)
{
	return (uint32_t)(((half ^ k->mask[i]) * k->factor[i]) >> 52);
}

/** The permutation, 24 bits to 24 bits; @p back: its inverse. */
static inline uint32_t
key_permute(const struct key_space *k, uint32_t x, bool back)
{
	uint32_t left = x >> 12, right = x & 0xfff, tmp;
	unsigned int i;

	for (i = 0; i < KEY_ROUNDS; i++) {
		tmp = right;
		right = left ^ key_round(k, back ? KEY_ROUNDS - 1 - i : i, right);
		left = tmp;
	}
	return right << 12 | left; /* halves exchanged: the same rounds, backwards, undo it */
}

/**
 * Table index encoded in a key. The caller must check that the index is within the table and that
 * the entry holds this whole key: the key may be stale or invented.
 */
static inline uint32_t
key_index(const struct key_space *k, uint32_t key)
{
	return key_permute(k, key >> 8, true) & ((UINT32_C(1) << k->index_bits) - 1);
}

#endif
