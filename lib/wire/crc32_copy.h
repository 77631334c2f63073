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
		x = fold(x, K(FOLD_128), fold_take(to, from, true));
	return len == 0 ? ~reduce(x) : finish_odd(x, to, from, len);
}

/* 128 bytes or more, in four lanes */
static TARGET_PCLMUL __rte_noinline __rte_unused uint32_t
copy_lanes(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint32_t done = len - len % 64;

	x = fold_lanes(fold(x, K(FOLD_128), fold_take(to, from, true)), to, from, len, true);
	return finish_copy(x, to + done, from + done, len % 64);
}

/* Copy the payload and add padding. @param x  CRC state of the head. @return CRC of the packet */
static TARGET_PCLMUL __rte_always_inline uint32_t
copy_pclmul(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (len >= 128)
		return copy_lanes(x, to, from, len);
	if (len >= 64) {
		x = fold_64(x, to, from, true);
		to += 64, from += 64, len -= 64;
	}
	return finish_copy(x, to, from, len);
}

#endif

#ifdef WIRE_CRC32_VPCLMUL

/* 256 bytes or more */
static TARGET_VPCLMUL __rte_noinline __rte_unused uint32_t
copy_lanes512(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	__m512i y = fold_lanes512(onto(x, fold_take512(to, from, true)), to, from, len, true);
	uint32_t done = len - len % 64;

	return finish_copy(together(y), to + done, from + done, len % 64);
}

static TARGET_VPCLMUL __rte_always_inline uint32_t
copy_vpclmul(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	__m512i y;

	if (len >= 256)
		return copy_lanes512(x, to, from, len);
	if (len < 64)
		return finish_copy(x, to, from, len);
	y = onto(x, fold_take512(to, from, true));
	for (to += 64, from += 64, len -= 64; len >= 64; to += 64, from += 64, len -= 64)
		y = fold512(y, K512(FOLD_512), fold_take512(to, from, true));
	return finish_copy(together(y), to, from, len);
}

#endif

#endif
