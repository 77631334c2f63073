/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_BITS_H
#define WIRE_BITS_H

/**
 * @file
 * Read and write numbers of 1 to 64 bits at any bit offset. Offsets count from the most significant
 * bit of the first byte, as in the standard's layouts. For fields that tables describe; per-packet
 * code uses bytes.h.
 */

#include <stdint.h>

/** @param offset  first bit. @param width  1..64 */
static inline uint64_t
get_bits(const uint8_t *p, unsigned int offset, unsigned int width)
{
	unsigned int skip = offset % 8, here;
	uint64_t value = 0;

	for (p += offset / 8; width > 0; skip = 0, width -= here) {
		here = 8 - skip < width ? 8 - skip : width;
		value = value << here | (*p++ >> (8 - skip - here) & ((1u << here) - 1));
	}
	return value;
}

/** Write the lowest @p width bits of @p value; other bits of the message do not change. */
static inline void
put_bits(uint8_t *p, unsigned int offset, unsigned int width, uint64_t value)
{
	unsigned int skip = offset % 8, here, shift, mask;

	for (p += offset / 8; width > 0; skip = 0, p++) {
		here = 8 - skip < width ? 8 - skip : width;
		shift = 8 - skip - here;
		mask = (1u << here) - 1;
		width -= here;
		*p = (uint8_t)((*p & ~(mask << shift)) | (value >> width & mask) << shift);
	}
}

#endif
