/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_UTF8_H
#define BASE_UTF8_H

/**
 * @file
 * UTF-8 (RFC 3629), for text that comes from others: a file, the wire, the control socket.
 */

#include <stddef.h>
#include <stdint.h>

/**
 * Length of the character at @p p, of which @p left bytes (at least 1) may be read.
 *
 * @return 1 to 4; 0: no character of UTF-8 begins here, or it is cut off
 */
static inline unsigned int
utf8_length(const uint8_t *p, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int i, n = 0;
	uint32_t c;

	if (p[0] < 0x80)
		return 1;
	if ((p[0] & 0xE0) == 0xC0)
		n = 2;
	else if ((p[0] & 0xF0) == 0xE0)
		n = 3;
	else if ((p[0] & 0xF8) == 0xF0)
		n = 4;
	if (n == 0 || n > left)
		return 0;
	c = p[0] & (0x7Fu >> n);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3F);
	}
	return c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) ? 0 : n;
}

#endif
