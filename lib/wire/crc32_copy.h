/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_CRC32_COPY_H
#define WIRE_CRC32_COPY_H

/*
 * Private to the CRC kernels: copy a payload and compute its CRC, reading its bytes once.
 * crc32_fold.h explains the folding.
 */

#include <stdint.h>
#include <string.h>

#include <rte_common.h>

#define BLOCK 16
/* clang-format off */
#define PADDING(len) (-(len) & 3)
/* clang-format on */
#define PADDED(len) (((len) + 3) & ~UINT32_C(3))

/* Copy the payload and add zeros up to a multiple of four bytes. */
static inline void
put_payload(uint8_t *to, const void *from, uint32_t len)
{
	if (len > 0)
		memcpy(to, from, len);
	memset(to + len, 0, PADDING(len));
}

#ifdef WIRE_CRC32_PCLMUL

#include "wire/crc32_fold.h"

static TARGET_PCLMUL __rte_always_inline __m128i
copy_block(uint8_t *to, const uint8_t *from)
{
	__m128i v = fold_load(from);

	_mm_storeu_si128((__m128i *)(void *)to, v);
	return v;
}

/* Fewer than 16 bytes and the padding: copy them, then fold the copy. */
static TARGET_PCLMUL __rte_noinline __rte_unused uint32_t
finish_odd(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	put_payload(to, from, len);
	return fold_finish(x, to, len + PADDING(len));
}

/* x: CRC state of all bytes before; any length may be left */
static TARGET_PCLMUL __rte_always_inline uint32_t
finish_copy(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	for (; len >= BLOCK; len -= BLOCK, to += BLOCK, from += BLOCK)
		x = fold(x, K(FOLD_128), copy_block(to, from));
	return len == 0 ? ~reduce(x) : finish_odd(x, to, from, len);
}

/* 128 bytes or more, in four lanes */
static TARGET_PCLMUL __rte_noinline __rte_unused uint32_t
copy_lanes(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	__m128i x1, x2, x3;

	x = fold(x, K(FOLD_128), copy_block(to, from));
	x1 = copy_block(to + 16, from + 16);
	x2 = copy_block(to + 32, from + 32);
	x3 = copy_block(to + 48, from + 48);
	for (to += 64, from += 64, len -= 64; len >= 64; to += 64, from += 64, len -= 64) {
		x = fold(x, K(FOLD_512), copy_block(to, from));
		x1 = fold(x1, K(FOLD_512), copy_block(to + 16, from + 16));
		x2 = fold(x2, K(FOLD_512), copy_block(to + 32, from + 32));
		x3 = fold(x3, K(FOLD_512), copy_block(to + 48, from + 48));
	}
	x = fold(x, K(FOLD_384), fold(x1, K(FOLD_256), fold(x2, K(FOLD_128), x3)));
	return finish_copy(x, to, from, len);
}

/* Copy the payload and add padding. @param x  CRC state of the head. @return CRC of the packet */
static TARGET_PCLMUL __rte_always_inline uint32_t
copy_pclmul(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (len >= 128)
		return copy_lanes(x, to, from, len);
	if (len >= 64) {
		x = fold(x, K(FOLD_128), copy_block(to, from));
		x = fold(x, K(FOLD_128), copy_block(to + 16, from + 16));
		x = fold(x, K(FOLD_128), copy_block(to + 32, from + 32));
		x = fold(x, K(FOLD_128), copy_block(to + 48, from + 48));
		to += 64, from += 64, len -= 64;
	}
	return finish_copy(x, to, from, len);
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

/* 256 bytes or more */
static TARGET_VPCLMUL __rte_noinline __rte_unused uint32_t
copy_lanes512(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	__m512i y, y1, y2, y3;

	y = onto(x, copy512(to, from));
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

static TARGET_VPCLMUL __rte_always_inline uint32_t
copy_vpclmul(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	__m512i y;

	if (len >= 256)
		return copy_lanes512(x, to, from, len);
	if (len < 64)
		return finish_copy(x, to, from, len);
	y = onto(x, copy512(to, from));
	for (to += 64, from += 64, len -= 64; len >= 64; to += 64, from += 64, len -= 64)
		y = fold512(y, K512(FOLD_512), copy512(to, from));
	return finish_copy(together(y), to, from, len);
}

#endif

#endif
