/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * argp finds the options, lib/table checks their values by the rows of options_table.c. An error
 * says which option, what was got and what is allowed.
 */

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/nearest.h"
#include "base/number.h"
#include "options.h"
#include "table/value.h"

#define COLUMN      28 /* where explanations begin */
#define WIDTH       80 /* of a terminal, where help lines end */
#define OPTIONS_MAX 64 /* bits of .given */

/* The command line as far as argp has read it. */
struct reading {
	struct bench_options *options;
	struct parsed *parsed;
	struct error *err;
	int ret; /* negative: err says why */
};

/* argp's key of an option: its letter, or a number beyond all letters. */
static int
option_key(unsigned int i)
{
	return option_rows[i].letter != 0 ? option_rows[i].letter : 256 + (int)i;
}

static const struct option_row *
option_of_key(int key)
{
	unsigned int i;

	for (i = 0; i < option_count; i++)
		if (option_key(i) == key)
			return &option_rows[i];
	return NULL;
}

/* Both ways to write an option: "-s, --size". */
static const char *
option_called(const struct option_row *opt, char *buf, size_t size)
{
	buf[0] = '\0';
	if (opt->letter != 0)
		table_append(buf, size, "-%c, ", opt->letter);
	table_append(buf, size, "--%s", opt->row.name);
	return buf;
}

/* The text as JSON, which is what lib/table decodes. */
static json_t *
option_json(const struct table_row *row, const char *text)
{
	json_t *v = NULL;
	double seconds;
	uint64_t n;
	char *end;

	if (row->type == TABLE_UINT && number_parse(text, &n))
		return json_u64(n);
	seconds = strtod(text, &end);
	if (row->type == TABLE_REAL && end != text && *end == '\0')
		v = json_real(seconds); /* NULL if it is no finite number */
	return v != NULL ? v : json_string(text);
}

/* An option that takes no value got one, or one that takes a value got none. */
static int
reject_option(const struct option_row *opt, const char *value, struct error *err)
{
	char name[64];

	option_called(opt, name, sizeof(name));
	if (opt->argument == NULL)
		return error_set(err, EINVAL, "%s: takes no value, got \"%s\"", name, value);
	return error_set(err, EINVAL, "%s: wants %s: %s", name, opt->argument, opt->row.help);
}

static int
take_option(struct bench_options *o, const struct option_row *opt, const char *text,
	struct error *err)
{
	void *field = (char *)o + opt->row.offset;
	struct table_decoder d = { .arena = NULL };
	uint64_t n;
	int ret = 0;
	json_t *v;

	if (opt->argument != NULL && text[0] == '\0')
		return reject_option(opt, NULL, err);
	option_called(opt, d.path, sizeof(d.path));
	if (opt->row.type == TABLE_BOOL) {
		*(bool *)field = opt->row.def == 0;
	} else if (opt->row.type == TABLE_STRING) {
		*(const char **)field = text;
	} else {
		v = option_json(&opt->row, text);
		ret = table_decode_value(&d, &opt->row, v, o);
		json_decref(v);
	}
	if (ret == 0)
		return 0;
	return error_set(err, EINVAL, "%s%s", d.err.text,
		opt->row.type == TABLE_UINT && !number_parse(text, &n) ? "; " NUMBER_SUFFIXES : "");
}

/* @param word  without its "--" */
static int
check_long(const char *word, struct error *err)
{
	int len = (int)strcspn(word, "=");
	bool has_value = word[len] == '=';
	char typed[NEAREST_MAX + 1];
	struct nearest near;
	unsigned int i;

	snprintf(typed, sizeof(typed), "%.*s", len, word);
	near = nearest_to(typed);
	for (i = 0; i < option_count; i++) {
		if (strcmp(option_rows[i].row.name, typed) != 0)
			nearest_try(&near, option_rows[i].row.name);
		else if (has_value == (option_rows[i].argument != NULL))
			return 0;
		else
			return reject_option(&option_rows[i], word + len + 1, err);
	}
	if (near.word == NULL)
		return error_set(err, EINVAL, "there is no option --%.*s", len, word);
	return error_set(err, EINVAL, "there is no option --%.*s; did you mean --%s?", len, word,
		near.word);
}

/* @param letters  without their "-"; the rest behind one that takes a value is the value */
static int
check_letters(const char *letters, struct error *err)
{
	const struct option_row *opt;

	for (; *letters != '\0'; letters++) {
		opt = option_of_key(*letters);
		if (opt == NULL)
			return error_set(err, EINVAL, "there is no option -%c", *letters);
		if (opt->argument != NULL)
			return letters[1] != '\0' ? 0 : reject_option(opt, NULL, err);
	}
	return 0;
}

static int
check_word(const char *word, struct error *err)
{
	if (word == NULL || word[0] != '-')
		return 0;
	return word[1] == '-' ? check_long(word + 2, err) : check_letters(word + 1, err);
}

static int
take_word(struct parsed *p, const char *word, struct error *err)
{
	if (p->words == WORDS_MAX)
		return error_set(err, EINVAL, "\"%s\": too many words", word);
	p->word[p->words++] = word;
	return 0;
}

static error_t
read_argument(int key, char *arg, struct argp_state *state)
{
	const struct option_row *opt = option_of_key(key);
	char **next = &state->argv[state->next];
	struct reading *r = state->input;

	if (opt != NULL) {
		r->parsed->given |= UINT64_C(1) << (opt - option_rows);
		r->ret = take_option(r->options, opt, arg, r->err);
	} else if (key == ARGP_KEY_ARG) {
		r->ret = take_word(r->parsed, arg, r->err);
	} else {
		/* argp does not say what it rejects: the word before, or one of several letters */
		if (key == ARGP_KEY_ERROR && r->ret == 0 && check_word(next[-1], r->err) == 0)
			check_word(next[0], r->err);
		return ARGP_ERR_UNKNOWN;
	}
	return -r->ret;
}

int
options_parse(struct bench_options *o, struct parsed *p, int argc, char **argv, struct error *err)
{
	struct argp_option options[OPTIONS_MAX + 1] = { 0 };
	const struct argp argp = { .options = options, .parser = read_argument };
	struct reading r = { .options = o, .parsed = p, .err = err };
	unsigned int i;

	for (i = 0; i < option_count; i++)
		options[i] = (struct argp_option){ .name = option_rows[i].row.name,
			.key = option_key(i),
			.arg = option_rows[i].argument };
	*o = bench_options_default;
	*p = (struct parsed){ .words = 0 };
	return -argp_parse(&argp, argc, argv, ARGP_SILENT, NULL, &r);
}

int
options_allowed(const struct parsed *p, const char *command, unsigned int takes, struct error *err)
{
	char name[64];
	unsigned int i;

	for (i = 0; i < option_count; i++)
		if ((p->given >> i & 1) != 0 && (option_rows[i].groups & takes) == 0)
			return error_set(err, EINVAL, "%s: is no option of %s",
				option_called(&option_rows[i], name, sizeof(name)), command);
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
	const struct option_row *opt;
	char name[64];
	unsigned int i;
	int at;

	for (i = 0; i < option_count; i++) {
		opt = &option_rows[i];
		if ((opt->groups & takes) == 0)
			continue;
		option_called(opt, name, sizeof(name));
		at = printf("%*s%s %s", opt->letter != 0 ? 2 : 6, "", name,
			opt->argument != NULL ? opt->argument : "");
		if (at > COLUMN)
			at = printf("\n") - 1;
		options_explain(at, opt->row.help);
	}
	printf("\n" NUMBER_SUFFIXES ".\n");
}
