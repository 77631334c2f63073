/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * getopt_long() finds the options, lib/table checks their values by the rows of options_table.c. An
 * error says which option, what was got and what is allowed.
 */

#include <errno.h>
#include <getopt.h>
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

/* What getopt_long() returns for an option: its letter, or a number beyond all letters. */
static int
option_code(unsigned int i)
{
	return option_rows[i].letter != 0 ? option_rows[i].letter : 256 + (int)i;
}

static const struct option_row *
option_of_code(int code)
{
	unsigned int i;

	for (i = 0; i < option_count; i++)
		if (option_code(i) == code)
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

static int
take_option(struct bench_options *o, const struct option_row *opt, const char *text,
	struct error *err)
{
	void *field = (char *)o + opt->row.offset;
	struct table_decoder d = { .arena = NULL };
	int ret = 0;
	json_t *v;

	option_called(opt, d.path, sizeof(d.path));
	if (opt->argument != NULL && text[0] == '\0')
		return error_set(err, EINVAL, "%s: wants %s: %s", d.path, opt->argument,
			opt->row.help);
	if (opt->row.type == TABLE_BOOL) {
		*(bool *)field = opt->row.def == 0;
	} else if (opt->row.type == TABLE_STRING) {
		*(const char **)field = text;
	} else {
		v = option_json(&opt->row, text);
		ret = table_decode_value(&d, &opt->row, v, o);
		json_decref(v);
	}
	return ret == 0 ? 0 : error_set(err, EINVAL, "%s", d.err.text);
}

/* @param word  with its "--", and perhaps with "=VALUE" */
static int
no_such_option(const char *word, struct error *err)
{
	int len = (int)strcspn(word, "=");
	char typed[NEAREST_MAX + 1];
	struct nearest near;
	unsigned int i;

	snprintf(typed, sizeof(typed), "%.*s", len - 2, word + 2);
	near = nearest_to(typed);
	for (i = 0; i < option_count; i++)
		nearest_try(&near, option_rows[i].row.name);
	if (near.word == NULL)
		return error_set(err, EINVAL, "there is no option %.*s", len, word);
	return error_set(err, EINVAL, "there is no option %.*s; did you mean --%s?", len, word,
		near.word);
}

/* getopt_long() could not take @p word: optopt is the option's code, or 0 if it knows none. */
static int
reject_option(const char *word, struct error *err)
{
	const struct option_row *opt = option_of_code(optopt);
	char name[64];

	if (optopt == 0)
		return no_such_option(word, err);
	if (opt == NULL)
		return error_set(err, EINVAL, "there is no option -%c", optopt);
	return error_set(err, EINVAL, "%s: takes no value, got \"%s\"",
		option_called(opt, name, sizeof(name)), strchr(word, '=') + 1);
}

static int
take_word(struct parsed *p, const char *word, struct error *err)
{
	if (p->words == WORDS_MAX)
		return error_set(err, EINVAL, "\"%s\": too many words", word);
	p->word[p->words++] = word;
	return 0;
}

/* @param code  what getopt_long() returned: 1 for a word that is no option */
static int
take_argument(struct bench_options *o, struct parsed *p, int code, const char *word,
	struct error *err)
{
	const struct option_row *opt = option_of_code(code == ':' ? optopt : code);

	if (opt != NULL) {
		p->given |= UINT64_C(1) << (opt - option_rows);
		return take_option(o, opt, code == ':' ? "" : optarg, err);
	}
	p->help |= code == 'h';
	p->version |= code == 'V';
	if (code == '?')
		return reject_option(word, err);
	return code == 1 ? take_word(p, optarg, err) : 0;
}

int
options_parse(struct bench_options *o, struct parsed *p, int argc, char **argv, struct error *err)
{
	struct option names[OPTIONS_MAX + 3] = { { "help", 0, NULL, 'h' },
		{ "version", 0, NULL, 'V' } };
	char letters[2 * OPTIONS_MAX + 8] = "-:hV"; /* words in order; ':' if a value is missing */
	const struct option_row *opt = option_rows;
	unsigned int i;
	int code, ret = 0;

	for (i = 0; i < option_count; i++, opt++) {
		names[i + 2] = (struct option){ opt->row.name, opt->argument != NULL, NULL,
			option_code(i) };
		if (opt->letter != 0)
			table_append(letters, sizeof(letters), "%c%s", opt->letter,
				opt->argument != NULL ? ":" : "");
	}
	*o = bench_options_default;
	*p = (struct parsed){ .words = 0 };
	optind = 0; /* begin anew */
	while (ret == 0 && (code = getopt_long(argc, argv, letters, names, NULL)) != -1)
		ret = take_argument(o, p, code, argv[optind - 1], err);
	for (; ret == 0 && optind < argc; optind++) /* those behind "--" */
		ret = take_word(p, argv[optind], err);
	return ret;
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
}
