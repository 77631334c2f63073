/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_FNV_H
#define BASE_FNV_H

/**
 * @file
 * FNV-1a: a sum of bytes that tells different ones apart, but not those of somebody who wants equal
 * sums.
 */

#include <stddef.h>
#include <stdint.h>

#define FNV_START UINT64_C(0xcbf29ce484222325) /**< the sum of no bytes */

/** The sum, continued by bytes. */
static inline uint64_t
fnv_add(uint64_t sum, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	size_t i;

	for (i = 0; i < len; i++)
		sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
	return sum;
}

#endif
