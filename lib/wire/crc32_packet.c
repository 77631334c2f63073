/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* crc32_packet(): CRC-32 of a masked head and a payload that is copied behind it. */

#include "wire/crc32.h"
#include "wire/crc32_copy.h"
#include "wire/crc32_kernels.h"

uint32_t
crc32_packet_portable(uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks,
	const void *from, uint32_t len)
{
	uint8_t masked[CRC32_HEAD_MAX];
	uint32_t i, head_len = blocks * BLOCK, crc;

	for (i = 0; i < head_len; i++)
		masked[i] = (i < BLOCK ? head[i] & keep[i] : head[i]) | ones[i];
	put_payload(head + head_len, from, len);
	crc = crc32_portable(UINT32_MAX, masked, head_len); /* starts with the register at 0 */
	return crc32_portable(crc, head + head_len, len + PADDING(len));
}

#ifdef WIRE_CRC32_PCLMUL

static TARGET_PCLMUL __rte_always_inline __m128i
fold_packet_head(const uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks)
{
	__m128i x = _mm_or_si128(_mm_and_si128(fold_load(head), fold_load(keep)), fold_load(ones));
	uint32_t i;

	for (i = BLOCK; i < blocks * BLOCK; i += BLOCK)
		x = fold(x, K(FOLD_128), _mm_or_si128(fold_load(head + i), fold_load(ones + i)));
	return x;
}

TARGET_PCLMUL uint32_t
crc32_packet_pclmul(uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks,
	const void *from, uint32_t len)
{
	return copy_pclmul(fold_packet_head(head, keep, ones, blocks), head + blocks * BLOCK, from,
		len);
}

#endif

#ifdef WIRE_CRC32_VPCLMUL

TARGET_VPCLMUL uint32_t
crc32_packet_vpclmul(uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks,
	const void *from, uint32_t len)
{
	return copy_vpclmul(fold_packet_head(head, keep, ones, blocks), head + blocks * BLOCK, from,
		len);
}

#endif
