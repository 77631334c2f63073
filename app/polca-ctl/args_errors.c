/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Messages about options and values that a command does not take, with the most similar option. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "args_private.h"
#include "base/nearest.h"

int
args_error(struct args_parser *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->why, a->size, fmt, ap);
	va_end(ap);
	return -1;
}

/*
 * Find the most similar option in a table and in its objects' fields. @param near  room for its
 * name
 */
static void
nearest_option(struct nearest *n, const json_t *table, const char *prefix, char near[64])
{
	char name[64], option[64];
	json_t *p;
	size_t i;

	json_array_foreach(table, i, p) {
		snprintf(name, sizeof(name), "%s%s", prefix, method_text(p, "name"));
		nearest_try(n, option_of(name, option, sizeof(option)));
		if (n->word == option) {
			snprintf(near, 64, "%s", option);
			n->word = near;
		}
		nearest_option(n, json_object_get(p, "fields"), args_prefix(p), near);
	}
}

int
args_no_such_option(struct args_parser *a, const char *option, const struct args_path *path)
{
	char words[128], typed[64], near[64];
	struct nearest n;
	size_t i;

	method_words(method_text(a->method, "name"), words, sizeof(words));
	if (path->depth > 0)
		return args_error(a,
			"%s could mean several fields: write it as FIELD=VALUE of the option it belongs to; see polca-ctl %s --help",
			option, words);
	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(option, "="), option);
	n = nearest_to(typed);
	nearest_option(&n, json_object_get(a->method, "params"), "", near);
	for (i = 0; args_globals[i] != NULL; i++)
		nearest_try(&n, args_globals[i]);
	if (n.word != NULL)
		return args_error(a,
			"%s is no option of \"%s\"; did you mean %s? See polca-ctl %s --help",
			option, words, n.word, words);
	return args_error(a, "%s is no option of \"%s\"; see polca-ctl %s --help", option, words,
		words);
}

/* Write "takes qp_num" or "takes no value": the values that need no option. */
static void
print_taken(const json_t *method, char *buf, size_t size)
{
	const char *name = args_map_param(method) != NULL ? "FIELD=VALUE" : NULL;
	json_t *p;
	size_t i;

	snprintf(buf, size, "takes");
	json_array_foreach(json_object_get(method, "params"), i, p) {
		if (args_takes_word(p))
			snprintf(buf + strlen(buf), size - strlen(buf), " %s%s",
				method_text(p, "name"), args_takes_words(p) ? "..." : "");
	}
	if (name != NULL)
		snprintf(buf + strlen(buf), size - strlen(buf), " %s...", name);
	if (strcmp(buf, "takes") == 0)
		snprintf(buf, size, "takes no value");
}

int
args_no_such_value(struct args_parser *a, const char *text)
{
	char words[128], taken[256], typed[64], near[64];
	struct nearest n;

	snprintf(typed, sizeof(typed), "--%s", text);
	n = nearest_to(typed);
	nearest_option(&n, json_object_get(a->method, "params"), "", near);
	method_words(method_text(a->method, "name"), words, sizeof(words));
	print_taken(a->method, taken, sizeof(taken));
	if (n.word != NULL)
		return args_error(a,
			"\"%s\" is one value too many; did you mean %s? See polca-ctl %s --help",
			text, n.word, words);
	return args_error(a,
		"\"%s\" is one value too many: \"%s\" %s, and options begin with --; see polca-ctl %s --help",
		text, words, taken, words);
}
