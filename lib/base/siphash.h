/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

/**
 * @file
 * SipHash-1-3 over whole words: a keyed hash for tables whose keys come from the network.
 * Without the secret an attacker cannot choose keys that collide in one bucket.
 */

#include <stddef.h>
#include <stdint.h>

#define SIP_ROTL(x, n) ((x) << (n) | (x) >> (64 - (n)))

static inline void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = SIP_ROTL(v[1], 13) ^ v[0];
	v[0] = SIP_ROTL(v[0], 32);
	v[2] += v[3];
	v[3] = SIP_ROTL(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = SIP_ROTL(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = SIP_ROTL(v[1], 17) ^ v[2];
	v[2] = SIP_ROTL(v[2], 32);
}

/** @param n  words; the same for all keys of a table, since the length is not hashed */
static inline uint64_t
siphash_words(uint64_t secret, const uint64_t *word, size_t n)
{
	uint64_t v[4] = {
		secret ^ UINT64_C(0x736f6d6570736575),
		~secret ^ UINT64_C(0x646f72616e646f6d),
		secret ^ UINT64_C(0x6c7967656e657261),
		~secret ^ UINT64_C(0x7465646279746573),
	};
	size_t i;

	for (i = 0; i < n; i++) {
		v[3] ^= word[i];
		sip_round(v);
		v[0] ^= word[i];
	}
	v[2] ^= 0xFF;
	for (i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
