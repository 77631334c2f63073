/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TABLE_VALUE_H
#define TABLE_VALUE_H

/**
 * @file
 * Values that JSON itself has no type for: 64-bit numbers, bytes, flags.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "table/table.h"

/** Parse decimal digits or "0x..."; the whole text must be a number. */
bool text_u64(const char *text, uint64_t *out);
/** An integer >= 0, or text "0x...": numbers beyond 2^63 - 1 fit no JSON integer of ours. */
bool value_u64(const json_t *v, uint64_t *out);
/** A JSON integer, or "0x..." text beyond 2^63 - 1. */
json_t *json_u64(uint64_t v);

/** @return bytes stored, or -1 when @p text is not whole bytes in hex */
long hex_decode(const char *text, size_t len, uint8_t *out, size_t size);
json_t *json_hex(const uint8_t *data, size_t len);

/** List of the words whose bits are set. */
json_t *json_flags(const struct table_word *words, uint32_t value);
/** The word of a value; the number itself as text when there is none. */
json_t *json_word(const struct table_word *words, uint32_t value);

/** A value in a few characters, for error messages; always valid UTF-8. @return buf */
const char *json_brief(const json_t *v, char *buf, size_t size);

/** json_object_set_new() that takes a missing value for out of memory. */
static inline void
json_set(json_t *obj, const char *key, json_t *value)
{
	if (json_object_set_new(obj, key, value) != 0)
		json_object_clear(obj); /* out of memory: an empty answer rather than half of one */
}

static inline void
json_set_int(json_t *obj, const char *key, uint64_t value)
{
	json_set(obj, key, json_u64(value));
}

#endif
