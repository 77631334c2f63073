/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_BITS_H
#define WIRE_BITS_H

/**
 * @file
 * Numbers of any width at any bit of a message, as the standard's layouts tell them: counted from
 * the most significant bit of the first byte on, up to 64 bits wide. What tables describe goes
 * through these; on a packet's path bytes.h is.
 */

#include <stdint.h>

/** @param offset  bits before it; @param width  1..64 */
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

/** Bits around it stay as they are; of @p value the lowest @p width count. */
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
