/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

/**
 * @file
 * Numbers as people write them: 4096 and 0x1000 everywhere, on command lines also 4K, 1m and
 * 0x7f00+1K.
 */

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** The value of a hex digit; 16: it is none. */
static inline unsigned int
number_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a' + 10) : 16;
}

/**
 * Parse @p len characters as a number up to @p max: decimal or 0x..., without sign, blanks, octal
 * or suffix. All of them must belong to it.
 */
static inline bool
number_digits(const char *text, size_t len, uint64_t max, uint64_t *value)
{
	unsigned int base = 10, digit;
	uint64_t v = 0;
	size_t i = 0;

	if (len > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
		base = 16;
		i = 2;
	}
	if (len == 0)
		return false;
	for (; i < len; i++) {
		digit = number_hex_digit(text[i]);
		if (digit >= base || digit > max || v > (max - digit) / base)
			return false;
		v = v * base + digit;
	}
	*value = v;
	return true;
}

/** What number_parse() takes beyond digits, for help and errors. */
#define NUMBER_SUFFIXES "K, M or G behind a number stand for 2^10, 2^20 and 2^30: 4K is 4096"

/**
 * Parse a number with an optional suffix K, M or G (powers of 1024) in either case. All of @p text
 * must belong to it.
 *
 * @retval false  not a number, or more than 64 bits
 */
static inline bool
number_parse(const char *text, uint64_t *value)
{
	static const char suffixes[] = "KMG";
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	unsigned int shift = 0;
	unsigned long long v;
	const char *s;
	char *end;

	errno = 0;
	v = strtoull(text, &end, hex ? 16 : 10);
	if (*end != '\0' && end[1] == '\0') {
		s = strchr(suffixes, toupper((unsigned char)*end));
		if (s != NULL) {
			shift = 10 * (unsigned int)(s - suffixes + 1);
			end++;
		}
	}
	if (errno != 0 || *end != '\0' || !isxdigit((unsigned char)text[0]) ||
		v << shift >> shift != v)
		return false;
	*value = v << shift;
	return true;
}

/**
 * Parse a number or a sum of numbers joined by "+", such as an address and an offset:
 * 0x7f0000000000+4K.
 *
 * @retval false  a part is not a number, or the sum has more than 64 bits
 */
static inline bool
number_parse_sum(const char *text, uint64_t *value)
{
	uint64_t part, sum = 0;
	char buf[32]; /* longer than any number of 64 bits */
	size_t len;

	for (;;) {
		len = strcspn(text, "+");
		if (len >= sizeof(buf))
			return false;
		memcpy(buf, text, len);
		buf[len] = '\0';
		if (!number_parse(buf, &part) || __builtin_add_overflow(sum, part, &sum))
			return false;
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	*value = sum;
	return true;
}

#endif
