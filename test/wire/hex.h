/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_WIRE_HEX_H
#define TEST_WIRE_HEX_H

/* Bytes from hexadecimal text. Characters that are not hexadecimal digits are skipped. */

#include <assert.h>
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* @return number of bytes written to out, which has room for max */
static inline size_t
hex_bytes(const char *hex, uint8_t *out, size_t max)
{
	size_t digits = 0;

	for (; *hex != '\0'; hex++) {
		char digit[2] = { *hex, '\0' };

		if (!isxdigit((unsigned char)*hex))
			continue;
		assert(digits / 2 < max);
		out[digits / 2] =
			(digits & 1 ? out[digits / 2] << 4 : 0) | (uint8_t)strtoul(digit, NULL, 16);
		digits++;
	}
	assert(digits % 2 == 0);
	return digits / 2;
}

#endif
