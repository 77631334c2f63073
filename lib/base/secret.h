/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_SECRET_H
#define BASE_SECRET_H

/** @file Comparison of keys of several words; one of up to 64 bits is compared with ==. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** True if both are equal. The time it takes does not tell how many bytes of a guess are right. */
static inline bool
secret_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
	uint8_t differ = 0;

	for (size_t i = 0; i < len; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

#endif
