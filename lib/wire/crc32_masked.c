/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * crc32_masked(): CRC-32 of a packet with a masked head and eight bytes of ones before it
 * (rc-transport 9). crc32_fold.h explains the folding.
 */

#include <rte_common.h>

#include "wire/crc32.h"
#include "wire/crc32_kernels.h"

#define BLOCK 16
#define ONES  8 /* bytes 0xFF before the packet */

uint32_t
crc32_masked_portable(const uint8_t *p, const uint8_t *ones, uint32_t blocks, uint32_t len)
{
	return crc32_of_copy(crc32_portable, CRC_AFTER_ONES, p, len, ones, blocks * BLOCK - ONES);
}

#ifdef WIRE_CRC32_PCLMUL

#include "wire/crc32_fold.h"

static TARGET_PCLMUL __rte_always_inline __m128i
load_with_ones(const uint8_t *p, const uint8_t *ones)
{
	return _mm_or_si128(fold_load(p), fold_load(ones));
}

/* The eight bytes of ones, the first four cancelled by the initial register, and 8 packet bytes. */
static TARGET_PCLMUL __rte_always_inline __m128i
first_block(const uint8_t *p, const uint8_t *ones)
{
	__m128i v = _mm_or_si128(_mm_loadl_epi64((const __m128i *)(const void *)p),
		_mm_loadl_epi64((const __m128i *)(const void *)ones));

	return _mm_or_si128(_mm_slli_si128(v, ONES), _mm_set_epi32(0, 0, -1, 0));
}

TARGET_PCLMUL uint32_t
crc32_masked_pclmul(const uint8_t *p, const uint8_t *ones, uint32_t blocks, uint32_t len)
{
	__m128i x = first_block(p, ones);
	const uint8_t *payload = p + blocks * BLOCK - ONES;

	len -= blocks * BLOCK - ONES;
	for (p += ONES, ones += ONES; p < payload; p += BLOCK, ones += BLOCK)
		x = fold(x, K(FOLD_128), load_with_ones(p, ones));
	if (len < 64)
		return fold_finish(x, p, len);
	return finish_lanes(fold(x, K(FOLD_128), fold_load(p)), p, len);
}

#endif

#ifdef WIRE_CRC32_VPCLMUL

uint32_t
crc32_masked_vpclmul(const uint8_t *p, const uint8_t *ones, uint32_t blocks, uint32_t len)
{
	uint32_t head_len = blocks * BLOCK - ONES;

	if (len < head_len + 256)
		return crc32_masked_pclmul(p, ones, blocks, len);
	return crc32_vpclmul(crc32_masked_pclmul(p, ones, blocks, head_len), p + head_len,
		len - head_len);
}

#endif
