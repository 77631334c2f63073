/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rte_debug.h>

#include "base/number.h"
#include "table/value.h"

bool
text_u64(const char *text, uint64_t *out)
{
	return number_digits(text, strlen(text), UINT64_MAX, out);
}

bool
value_u64(const json_t *v, uint64_t *out)
{
	const char *text;

	if (json_is_integer(v)) {
		if (json_integer_value(v) < 0)
			return false;
		*out = (uint64_t)json_integer_value(v);
		return true;
	}
	text = json_string_value(v);
	return text != NULL && strncasecmp(text, "0x", 2) == 0 && text_u64(text, out);
}

json_t *
json_u64(uint64_t v)
{
	if (v <= INT64_MAX)
		return json_integer((json_int_t)v);
	return json_sprintf("0x%" PRIx64, v);
}

long
hex_decode(const char *text, size_t len, uint8_t *out, size_t size)
{
	unsigned int hi, lo;
	size_t i;

	RTE_ASSERT(text != NULL && (out != NULL || size == 0));
	if (len % 2 != 0 || len / 2 > size)
		return -1;
	for (i = 0; i < len / 2; i++) {
		hi = number_hex_digit(text[2 * i]);
		lo = number_hex_digit(text[2 * i + 1]);
		if (hi > 15 || lo > 15)
			return -1;
		out[i] = (uint8_t)(hi << 4 | lo);
	}
	return (long)i;
}

json_t *
json_hex(const uint8_t *data, size_t len)
{
	static const char digit[] = "0123456789abcdef";
	char *text = malloc(2 * len + 1);
	json_t *v;
	size_t i;

	if (text == NULL)
		return NULL;
	for (i = 0; i < len; i++) {
		text[2 * i] = digit[data[i] >> 4];
		text[2 * i + 1] = digit[data[i] & 15];
	}
	v = json_stringn_nocheck(text, 2 * len);
	free(text);
	return v;
}

json_t *
json_flags(const struct table_word *words, uint32_t value)
{
	json_t *list = json_array();

	for (; words->name != NULL; words++)
		if ((value & words->value) != 0)
			json_array_append_new(list, json_string(words->name));
	return list;
}

json_t *
json_word(const struct table_word *words, uint32_t value)
{
	for (; words->name != NULL; words++)
		if (words->value == value)
			return json_string(words->name);
	return json_sprintf("%" PRIu32, value);
}

/* Length of the longest prefix of at most size bytes that ends between two UTF-8 characters. */
static size_t
utf8_prefix(const char *text, size_t len, size_t size)
{
	if (len <= size)
		return len;
	while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
		size--;
	return size;
}

const char *
json_brief(const json_t *v, char *buf, size_t size)
{
	size_t len, room = size - 8;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		snprintf(buf, size, "an object");
		break;
	case JSON_ARRAY:
		snprintf(buf, size, "a list of %zu", json_array_size(v));
		break;
	case JSON_STRING:
		len = json_string_length(v);
		snprintf(buf, size, "\"%.*s%s\"", (int)utf8_prefix(json_string_value(v), len, room),
			json_string_value(v), len > room ? "..." : "");
		break;
	case JSON_INTEGER:
		snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		snprintf(buf, size, "%g", json_real_value(v));
		break;
	default:
		snprintf(buf, size, "%s",
			json_is_null(v) ? "null" : (json_is_true(v) ? "true" : "false"));
	}
	return buf;
}
