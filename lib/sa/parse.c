/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Parse components, the fields of SA records, from the text of import files and RPCs. A text that
 * is rejected leaves the record unchanged.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "sa/text.h"
#include "table/value.h"

#define GOT               "%s: got \"%.40s%s\", allowed: "
#define GOT_ARGS(f, text) (f)->name, text, strlen(text) > 40 ? "..." : ""

static uint64_t
field_max(const struct sa_field *f)
{
	return f->bits >= 64 ? UINT64_MAX : (1ull << f->bits) - 1;
}

static int
refuse_number(const struct sa_field *f, const char *text, struct error *err)
{
	uint64_t max = field_max(f);

	return error_set(err, EINVAL, GOT "0 to %" PRIu64 ", or 0x0 to 0x%" PRIx64,
		GOT_ARGS(f, text), max, max);
}

static int
refuse_word(const struct sa_field *f, const char *text, struct error *err)
{
	bool flags = f->kind == SA_FLAGS_WORD, numeric = sa_words_numeric(f->words);
	char list[160] = "";

	table_append_words(list, sizeof(list), f->words);
	return error_set(err, EINVAL, GOT "%s%s, or %s up to 0x%" PRIx64, GOT_ARGS(f, text), list,
		flags ? " joined by +" : "", numeric ? "a code as 0x0" : "a number", field_max(f));
}

static bool
parse_one_word(const struct sa_field *f, const char *text, size_t len, uint64_t *value)
{
	const struct table_word *word = table_find_word(f->words, text, len);

	if (word != NULL) {
		*value = word->value;
		return true;
	}
	/* "10" as a rate is 10 Gb/s and not code 10: codes of such words are hexadecimal */
	if (sa_words_numeric(f->words) && (len < 3 || (text[1] | 0x20) != 'x'))
		return false;
	return number_digits(text, len, field_max(f), value);
}

static int
parse_word(const struct sa_field *f, uint8_t *rec, const char *text, struct error *err)
{
	uint64_t value;

	if (!parse_one_word(f, text, strlen(text), &value))
		return refuse_word(f, text, err);
	sa_put(f, rec, value);
	return 0;
}

/* Words or numbers joined by "+", as link widths and join states have them: their bits are or-ed. */
static int
parse_flags(const struct sa_field *f, uint8_t *rec, const char *text, struct error *err)
{
	uint64_t value = 0, one;

	for (const char *at = text;;) {
		size_t len = strcspn(at, "+");

		if (!parse_one_word(f, at, len, &one))
			return refuse_word(f, text, err);
		value |= one;
		if (at[len] == '\0')
			break;
		at += len + 1;
	}
	sa_put(f, rec, value);
	return 0;
}

static int
parse_number(const struct sa_field *f, uint8_t *rec, const char *text, struct error *err)
{
	uint64_t value;

	if (!number_digits(text, strlen(text), field_max(f), &value))
		return refuse_number(f, text, err);
	sa_put(f, rec, value);
	return 0;
}

static int
sa_parse_gid(const struct sa_field *f, uint8_t *rec, const char *text, struct error *err)
{
	uint8_t gid[16];

	if (inet_pton(AF_INET6, text, gid) != 1)
		return error_set(err, EINVAL, GOT "a GID in IPv6 notation, like fe80::2:c903:0:1",
			GOT_ARGS(f, text));
	memcpy(rec + f->offset / 8, gid, sizeof(gid));
	return 0;
}

/* Read one byte of a text; \xNN and \\ are escapes. @return characters read, 0: wrong escape */
static unsigned int
text_byte(const char *at, uint8_t *byte)
{
	*byte = (uint8_t)at[0];
	if (at[0] != '\\')
		return 1;
	if (at[1] == '\\')
		return 2;
	return at[1] == 'x' && hex_decode(at + 2, strnlen(at + 2, 2), byte, 1) == 1 ? 4 : 0;
}

static int
parse_text(const struct sa_field *f, uint8_t *rec, const char *text, struct error *err)
{
	uint8_t bytes[SA_TEXT_BYTES] = { 0 };
	unsigned int max = f->bits / 8, len = 0, n;

	for (const char *at = text; *at != '\0'; at += n, len++) {
		n = len < max ? text_byte(at, &bytes[len]) : 0;
		if (n == 0)
			return error_set(err, EINVAL,
				GOT "up to %u bytes of text, \\xNN for others, \\\\ for \\",
				GOT_ARGS(f, text), max);
	}
	memcpy(rec + f->offset / 8, bytes, max);
	return 0;
}

static int
parse_bytes(const struct sa_field *f, uint8_t *rec, const char *text, struct error *err)
{
	uint8_t bytes[SA_TEXT_BYTES] = { 0 };
	unsigned int max = f->bits / 8;
	const char *hex = text;

	if (hex[0] == '0' && (hex[1] | 0x20) == 'x')
		hex += 2;
	if (hex_decode(hex, strlen(hex), bytes, max) < 0)
		return error_set(err, EINVAL, GOT "up to %u bytes, two hex digits each",
			GOT_ARGS(f, text), max);
	memcpy(rec + f->offset / 8, bytes, max);
	return 0;
}

/* Parse a list of numbers; missing ones become 0. */
static int
parse_list(const struct sa_field *list, uint8_t *rec, const char *text, struct error *err)
{
	uint64_t values[SA_LIST_MAX] = { 0 };
	struct sa_field f = sa_element(list, 0);
	unsigned int n = 0;

	for (const char *at = text;; n++) {
		size_t len = strcspn(at, ",");

		if (n == list->count || !number_digits(at, len, field_max(&f), &values[n]))
			return error_set(err, EINVAL,
				GOT "up to %u numbers from 0 to 0x%" PRIx64 " with commas between",
				GOT_ARGS(list, text), list->count, field_max(&f));
		if (at[len] == '\0')
			break;
		at += len + 1;
	}
	for (unsigned int i = 0; i < list->count; i++) {
		f = sa_element(list, i);
		sa_put(&f, rec, values[i]);
	}
	return 0;
}

int
sa_parse(const struct sa_field *f, uint8_t *rec, const char *text, struct error *err)
{
	switch (f->kind) {
	case SA_WORD:
		return parse_word(f, rec, text, err);
	case SA_FLAGS_WORD:
		return parse_flags(f, rec, text, err);
	case SA_GID:
		return sa_parse_gid(f, rec, text, err);
	case SA_TEXT:
		return parse_text(f, rec, text, err);
	case SA_BYTES:
		return parse_bytes(f, rec, text, err);
	case SA_DEC_LIST:
	case SA_HEX_LIST:
		return parse_list(f, rec, text, err);
	case SA_RESERVED:
		return error_set(err, EINVAL, "a reserved component has no value");
	default:
		return parse_number(f, rec, text, err);
	}
}
