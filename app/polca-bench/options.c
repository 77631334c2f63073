/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Words to struct bench_options: -s 64, -s64, --size 64, --size=64, -ab. What is wrong is told as:
 * which option, what was got, what is allowed.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/nearest.h"
#include "base/number.h"
#include "options.h"

#define COLUMN      28 /* where explanations begin */
#define WIDTH       80 /* of a terminal, where help lines end */
#define SECONDS_MAX 1e6

static void *
field_of(struct bench_options *o, const struct option_row *row)
{
	return (char *)o + row->field;
}

/* How the user may have called it: "-s, --size". */
static const char *
called(const struct option_row *row, char *buf, size_t size)
{
	if (row->letter != 0)
		snprintf(buf, size, "-%c, --%s", row->letter, row->name);
	else
		snprintf(buf, size, "--%s", row->name);
	return buf;
}

static int
take_number(struct bench_options *o, const struct option_row *row, const char *text,
	struct error *err)
{
	char name[64];
	uint64_t v;

	if (!number_parse(text, &v) || v < row->min || v > row->max)
		return error_set(err, EINVAL, "%s: got \"%s\", allowed %lu..%lu (4096, 4K, 0x1000)",
			called(row, name, sizeof(name)), text, row->min, row->max);
	if (row->kind == OPTION_U64)
		*(uint64_t *)field_of(o, row) = v;
	else
		*(uint32_t *)field_of(o, row) = (uint32_t)v;
	return 0;
}

static int
take_seconds(struct bench_options *o, const struct option_row *row, const char *text,
	struct error *err)
{
	char name[64], *end;
	double v = strtod(text, &end);

	if (end == text || *end != '\0' || !(v > 0 && v <= SECONDS_MAX))
		return error_set(err, EINVAL, "%s: got \"%s\", allowed seconds above 0 up to %.0f",
			called(row, name, sizeof(name)), text, SECONDS_MAX);
	*(double *)field_of(o, row) = v;
	return 0;
}

static int
take_word(struct bench_options *o, const struct option_row *row, const char *text,
	struct error *err)
{
	char name[64], allowed[128] = "";
	uint32_t i;

	for (i = 0; row->words[i] != NULL; i++) {
		if (strcmp(text, row->words[i]) == 0) {
			*(uint32_t *)field_of(o, row) = i;
			return 0;
		}
		snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed), "%s%s",
			i > 0 ? ", " : "", row->words[i]);
	}
	return error_set(err, EINVAL, "%s: got \"%s\", allowed %s", called(row, name, sizeof(name)),
		text, allowed);
}

static int
take_value(struct bench_options *o, const struct option_row *row, const char *text,
	struct error *err)
{
	switch (row->kind) {
	case OPTION_U32:
	case OPTION_U64:
		return take_number(o, row, text, err);
	case OPTION_SECONDS:
		return take_seconds(o, row, text, err);
	case OPTION_WORD:
		return take_word(o, row, text, err);
	case OPTION_TEXT:
		*(const char **)field_of(o, row) = text;
		return 0;
	case OPTION_FLAG:
	case OPTION_NO:
	default:
		*(bool *)field_of(o, row) = row->kind == OPTION_FLAG;
		return 0;
	}
}

static const struct option_row *
by_name(const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < option_count; i++)
		if (strlen(option_rows[i].name) == len &&
			strncmp(option_rows[i].name, name, len) == 0)
			return &option_rows[i];
	return NULL;
}

static const struct option_row *
by_letter(char letter)
{
	unsigned int i;

	for (i = 0; i < option_count; i++)
		if (option_rows[i].letter == letter)
			return &option_rows[i];
	return NULL;
}

/* @param value  NULL: it would be the next word. @return words used, or negative */
static int
take_option(struct bench_options *o, struct parsed *p, const struct option_row *row,
	const char *value, const char *next, struct error *err)
{
	char name[64];
	int ret;

	p->given |= UINT64_C(1) << (row - option_rows);
	if (row->argument == NULL) {
		if (value != NULL)
			return error_set(err, EINVAL, "%s: takes no value, got \"%s\"",
				called(row, name, sizeof(name)), value);
		take_value(o, row, NULL, err);
		return 1;
	}
	ret = value != NULL ? 1 : 2;
	if (value == NULL)
		value = next;
	if (value == NULL || value[0] == '\0')
		return error_set(err, EINVAL, "%s: wants %s: %s", called(row, name, sizeof(name)),
			row->argument, row->help);
	return take_value(o, row, value, err) == 0 ? ret : -EINVAL;
}

/* "-s", "-s64", "-ab" */
static int
take_letters(struct bench_options *o, struct parsed *p, const char *word, const char *next,
	struct error *err)
{
	const struct option_row *row;
	int ret = 1;

	for (word++; *word != '\0' && ret == 1; word++) {
		row = by_letter(*word);
		if (row == NULL)
			return error_set(err, EINVAL, "there is no option -%c", *word);
		if (row->argument != NULL)
			return take_option(o, p, row, word[1] != '\0' ? word + 1 : NULL, next, err);
		ret = take_option(o, p, row, NULL, NULL, err);
	}
	return ret;
}

/* @param len  of the option, which may go on with "=VALUE" */
static int
no_such_option(const char *word, size_t len, struct error *err)
{
	char typed[NEAREST_MAX + 1];
	struct nearest near;
	unsigned int i;

	snprintf(typed, sizeof(typed), "%.*s", (int)len - 2, word + 2);
	near = nearest_to(typed);
	for (i = 0; i < option_count; i++)
		if (option_rows[i].name != NULL)
			nearest_try(&near, option_rows[i].name);
	if (near.word != NULL)
		return error_set(err, EINVAL, "there is no option %.*s; did you mean --%s?",
			(int)len, word, near.word);
	return error_set(err, EINVAL, "there is no option %.*s", (int)len, word);
}

static int
take(struct bench_options *o, struct parsed *p, const char *word, const char *next,
	struct error *err)
{
	size_t len = strcspn(word, "=");
	const struct option_row *row;

	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		p->help = true;
		return 1;
	}
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
		p->version = true;
		return 1;
	}
	if (word[0] != '-' || word[1] == '\0') {
		if (p->words == WORDS_MAX)
			return error_set(err, EINVAL, "\"%s\": too many words", word);
		p->word[p->words++] = word;
		return 1;
	}
	if (word[1] != '-')
		return take_letters(o, p, word, next, err);
	row = by_name(word + 2, len - 2);
	if (row == NULL)
		return no_such_option(word, len, err);
	return take_option(o, p, row, word[len] == '=' ? word + len + 1 : NULL, next, err);
}

int
options_parse(struct bench_options *o, struct parsed *p, int argc, char **argv, struct error *err)
{
	int i, n;

	*o = bench_options_default;
	*p = (struct parsed){ .words = 0 };
	for (i = 1; i < argc; i += n) {
		n = take(o, p, argv[i], i + 1 < argc ? argv[i + 1] : NULL, err);
		if (n < 0)
			return n;
	}
	return 0;
}

int
options_allowed(const struct parsed *p, const char *command, unsigned int takes, struct error *err)
{
	char name[64];
	unsigned int i;

	for (i = 0; i < option_count; i++)
		if ((p->given >> i & 1) != 0 && (option_rows[i].groups & takes) == 0)
			return error_set(err, EINVAL, "%s: is no option of %s",
				called(&option_rows[i], name, sizeof(name)), command);
	return 0;
}

void
options_explain(int at, const char *text)
{
	int len;

	printf("%*s", RTE_MAX(COLUMN - at, 0), "");
	for (at = COLUMN; *text != '\0'; text += len + (text[len] == ' ')) {
		len = (int)strcspn(text, " ");
		if (at > COLUMN && at + 1 + len >= WIDTH)
			at = printf("\n%*s", COLUMN, "") - 1;
		at += printf("%s%.*s", at > COLUMN ? " " : "", len, text);
	}
	printf("\n");
}

void
options_help(unsigned int takes)
{
	const struct option_row *row;
	unsigned int i;
	int at;

	for (i = 0; i < option_count; i++) {
		row = &option_rows[i];
		if ((row->groups & takes) == 0)
			continue;
		at = row->letter != 0 ? printf("  -%c, --%s", row->letter, row->name)
				      : printf("      --%s", row->name);
		if (row->argument != NULL)
			at += printf(" %s", row->argument);
		if (at >= COLUMN)
			at = printf("\n") - 1;
		options_explain(at, row->help);
	}
}
