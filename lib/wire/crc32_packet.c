/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * CRC-32 of a packet: a head of which some bits count as ones, and a payload, which goes where it
 * belongs on the way, so that its bytes are read once. Folding as in crc32_fold.h.
 */

#include <string.h>

#include <rte_common.h>

#include "wire/crc32.h"
#include "wire/crc32_kernels.h"

#define BLOCK 16
#define PADDING(len) (-(len) & 3)

/* The payload, and zeros up to a multiple of four bytes. */
static inline void
put_payload(uint8_t *to, const void *from, uint32_t len)
{
	if (len > 0)
		memcpy(to, from, len);
	memset(to + len, 0, PADDING(len));
}

uint32_t
crc32_packet_portable(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len)
{
	uint8_t masked[CRC32_HEAD_MAX];
	uint32_t i, head_len = blocks * BLOCK, crc;

	for (i = 0; i < head_len; i++)
		masked[i] = (i < BLOCK ? head[i] & keep[i] : head[i]) | ones[i];
	put_payload(head + head_len, from, len);
	crc = crc32_portable(UINT32_MAX, masked, head_len); /* a register of zero */
	return crc32_portable(crc, head + head_len, len + PADDING(len));
}

#ifdef WIRE_CRC32_PCLMUL

#include "wire/crc32_fold.h"

static TARGET_PCLMUL __rte_always_inline __m128i
fold_head(const uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks)
{
	__m128i x = _mm_or_si128(_mm_and_si128(load(head), load(keep)), load(ones));
	uint32_t i;

	for (i = BLOCK; i < blocks * BLOCK; i += BLOCK)
		x = fold(x, K(FOLD_128), _mm_or_si128(load(head + i), load(ones + i)));
	return x;
}

static TARGET_PCLMUL __rte_always_inline __m128i
copy(uint8_t *to, const uint8_t *from)
{
	__m128i v = load(from);

	_mm_storeu_si128((__m128i *)(void *)to, v);
	return v;
}

/* Fewer than 16 bytes, and the padding; they are folded from where they went. */
static TARGET_PCLMUL __rte_noinline uint32_t
finish_odd(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	put_payload(to, from, len);
	return finish(x, to, len + PADDING(len));
}

/* x stands for everything before; what is left may have any length */
static TARGET_PCLMUL __rte_always_inline uint32_t
finish_copy(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	for (; len >= BLOCK; len -= BLOCK, to += BLOCK, from += BLOCK)
		x = fold(x, K(FOLD_128), copy(to, from));
	return len == 0 ? ~reduce(x) : finish_odd(x, to, from, len);
}

/* x stands for the head */
static TARGET_PCLMUL __rte_always_inline uint32_t
copy_pclmul(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	__m128i x1, x2, x3;

	if (len < 128)
		return finish_copy(x, to, from, len);
	x = fold(x, K(FOLD_128), copy(to, from));
	x1 = copy(to + 16, from + 16);
	x2 = copy(to + 32, from + 32);
	x3 = copy(to + 48, from + 48);
	for (to += 64, from += 64, len -= 64; len >= 64; to += 64, from += 64, len -= 64) {
		x = fold(x, K(FOLD_512), copy(to, from));
		x1 = fold(x1, K(FOLD_512), copy(to + 16, from + 16));
		x2 = fold(x2, K(FOLD_512), copy(to + 32, from + 32));
		x3 = fold(x3, K(FOLD_512), copy(to + 48, from + 48));
	}
	x = fold(x, K(FOLD_384), fold(x1, K(FOLD_256), fold(x2, K(FOLD_128), x3)));
	return finish_copy(x, to, from, len);
}

TARGET_PCLMUL uint32_t
crc32_packet_pclmul(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len)
{
	return copy_pclmul(fold_head(head, keep, ones, blocks), head + blocks * BLOCK, from, len);
}

/* The first two blocks, moved on to where the third one is. */
TARGET_PCLMUL void
crc32_state_pclmul(const uint8_t blocks[32], uint8_t state[16])
{
	__m128i x = move(fold(load(blocks), K(FOLD_128), load(blocks + 16)), K(FOLD_128));

	_mm_storeu_si128((__m128i *)(void *)state, x);
}

/* What varies is in the high half of the first block: that much is missing in the state. */
static TARGET_PCLMUL __rte_always_inline __m128i
head_after(const uint8_t state[16], uint64_t vary, uint64_t low, uint64_t high)
{
	__m128i more = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)vary), K(FOLD_256), 0x10);

	return _mm_xor_si128(_mm_xor_si128(load(state), more),
		_mm_set_epi64x((int64_t)high, (int64_t)low));
}

TARGET_PCLMUL uint32_t
crc32_after_pclmul(const uint8_t state[16], uint64_t vary, uint64_t low, uint64_t high,
	uint8_t *to, const void *from, uint32_t len)
{
	return copy_pclmul(head_after(state, vary, low, high), to, from, len);
}

#endif

#ifdef WIRE_CRC32_VPCLMUL

static TARGET_VPCLMUL __rte_always_inline __m512i
copy512(uint8_t *to, const uint8_t *from)
{
	__m512i v = load512(from);

	_mm512_storeu_si512(to, v);
	return v;
}

static TARGET_VPCLMUL __rte_always_inline uint32_t
copy_vpclmul(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	__m512i y, y1, y2, y3;

	if (len < 256)
		return finish_copy(x, to, from, len);
	/* the head moves ahead onto the first block */
	y = _mm512_xor_si512(copy512(to, from),
		_mm512_zextsi128_si512(move(x, K(FOLD_128))));
	y1 = copy512(to + 64, from + 64);
	y2 = copy512(to + 128, from + 128);
	y3 = copy512(to + 192, from + 192);
	for (to += 256, from += 256, len -= 256; len >= 256; to += 256, from += 256, len -= 256) {
		y = fold512(y, K512(FOLD_2048), copy512(to, from));
		y1 = fold512(y1, K512(FOLD_2048), copy512(to + 64, from + 64));
		y2 = fold512(y2, K512(FOLD_2048), copy512(to + 128, from + 128));
		y3 = fold512(y3, K512(FOLD_2048), copy512(to + 192, from + 192));
	}
	y = fold512(y, K512(FOLD_1536),
		fold512(y1, K512(FOLD_1024), fold512(y2, K512(FOLD_512), y3)));
	for (; len >= 64; to += 64, from += 64, len -= 64)
		y = fold512(y, K512(FOLD_512), copy512(to, from));
	return finish_copy(together(y), to, from, len);
}

TARGET_VPCLMUL uint32_t
crc32_packet_vpclmul(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len)
{
	return copy_vpclmul(fold_head(head, keep, ones, blocks), head + blocks * BLOCK, from, len);
}

TARGET_VPCLMUL uint32_t
crc32_after_vpclmul(const uint8_t state[16], uint64_t vary, uint64_t low, uint64_t high,
	uint8_t *to, const void *from, uint32_t len)
{
	return copy_vpclmul(head_after(state, vary, low, high), to, from, len);
}

#endif
