/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What may stand where the cursor is, from the tables built in: it must come at once.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "help.h"
#include "methods.h"

static void
candidate(const char *word, const char *typed)
{
	if (strncmp(word, typed, strlen(typed)) == 0)
		printf("%s\n", word);
}

/* The word of each method name that stands after those typed. */
static void
complete_command(const json_t *methods, char **words, int num)
{
	char name[128], prefix[128] = "", last[128] = "";
	json_t *m;
	size_t i;
	int w;

	for (w = 0; w < num - 1; w++)
		snprintf(prefix + strlen(prefix), sizeof(prefix) - strlen(prefix), "%s_", words[w]);
	json_array_foreach(methods, i, m)
	{
		if (strncmp(method_text(m, "name"), prefix, strlen(prefix)) != 0)
			continue;
		snprintf(name, sizeof(name), "%s", method_text(m, "name") + strlen(prefix));
		name[strcspn(name, "_")] = '\0';
		if (strcmp(name, last) != 0)
			candidate(name, words[num - 1]);
		snprintf(last, sizeof(last), "%s", name);
	}
}

static void
complete_options(const json_t *params, const char *prefix, const char *typed)
{
	char name[64], option[64];
	json_t *p;
	size_t i;

	json_array_foreach(params, i, p)
	{
		snprintf(name, sizeof(name), "%s%s", prefix, method_text(p, "name"));
		candidate(option_of(name, option, sizeof(option)), typed);
		complete_options(json_object_get(p, "fields"), args_prefix(p), typed);
	}
}

/* Words of an enum; of flags the last of a comma list. */
static void
complete_value(const json_t *param, const char *typed)
{
	const char *comma = strrchr(typed, ',');
	size_t i, len = comma != NULL ? (size_t)(comma + 1 - typed) : 0;
	char text[512];
	json_t *w;

	if (strcmp(method_text(param, "type"), "boolean") == 0) {
		candidate("true", typed);
		candidate("false", typed);
	}
	json_array_foreach(json_object_get(param, "words"), i, w)
	{
		snprintf(text, sizeof(text), "%.*s%s", (int)len, typed, json_string_value(w));
		candidate(text, typed);
	}
}

/* --- words without option --- */

static bool
is_boolean(const json_t *method, const char *option)
{
	struct args_path path = args_find(method, option + 2);

	return path.depth > 0 &&
		strcmp(method_text(path.step[path.depth - 1], "type"), "boolean") == 0;
}

/*
 * The words without option among those typed before the last; what bash parts at "=" is none.
 *
 * @return how many; the first two in plain
 */
static int
plain_words(const json_t *method, char **words, int num, const char *plain[2])
{
	int i, n = 0;

	for (i = 0; i < num - 1; i++) {
		if (strncmp(words[i], "--", 2) == 0) {
			i += !is_boolean(method, words[i]);
			continue;
		}
		if (strcmp(words[i + 1], "=") == 0) {
			i += 2;
			continue;
		}
		if (strchr(words[i], '=') != NULL)
			continue;
		if (n < 2)
			plain[n] = words[i];
		n++;
	}
	return n;
}

/* The n-th parameter that needs no option. */
static const json_t *
required_param(const json_t *method, int n)
{
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(method, "params"), i, p)
	{
		if (json_is_true(json_object_get(p, "required")) && n-- == 0)
			return p;
	}
	return NULL;
}

/* Names, and the fields of each: what the parameter's value is one of. NULL: nothing that is known */
static const char *
names_of(const char *param)
{
	if (strcmp(param, "record") == 0)
		return records_built_in;
	return strcmp(param, "attribute") == 0 ? attributes_built_in : NULL;
}

static void
complete_name(const char *names, const char *typed)
{
	json_t *all = json_loads(names, 0, NULL), *fields;
	const char *name;

	json_object_foreach(all, name, fields)
		candidate(name, typed);
	json_decref(all);
}

/* "lid=": the value follows without a blank */
static void
complete_field(const char *names, const char *name, const char *typed)
{
	json_t *all = json_loads(names, 0, NULL), *field;
	char text[80];
	size_t i;

	json_array_foreach(json_object_get(all, name), i, field)
	{
		snprintf(text, sizeof(text), "%s=", json_string_value(field));
		candidate(text, typed);
	}
	json_decref(all);
}

/* What stands for itself, where this is known. @return was it? */
static bool
complete_plain(const json_t *method, char **words, int num)
{
	const char *plain[2] = { "", "" }, *typed = words[num - 1], *name;
	int n = plain_words(method, words, num, plain), r;
	const json_t *p = required_param(method, n);

	if (typed[0] == '-')
		return false;
	name = p != NULL ? method_text(p, "name") : "";
	if (strcmp(name, "file") == 0)
		return true; /* bash knows the files */
	if (names_of(name) != NULL) {
		complete_name(names_of(name), typed);
		return true;
	}
	if (p != NULL && json_object_get(p, "words") != NULL) {
		complete_value(p, typed);
		return true;
	}
	for (r = 0; r < 2 && r < n; r++) {
		p = required_param(method, r);
		if (typed[0] != '\0' && p != NULL && names_of(method_text(p, "name")) != NULL)
			complete_field(names_of(method_text(p, "name")), plain[r], typed);
	}
	return false;
}

void
complete(const json_t *methods, char **words, int num)
{
	const char *typed = num > 0 ? words[num - 1] : "";
	struct args_path path;
	json_t *method;
	int used;

	if (num == 0)
		return;
	method = methods_match(methods, words, num - 1, &used);
	if (method == NULL || methods_prefix(methods, words, num - 1) == num - 1)
		complete_command(methods, words, num);
	if (method == NULL) {
		candidate("--help", typed);
		return;
	}
	if (num >= 2 && strncmp(words[num - 2], "--", 2) == 0) {
		path = args_find(method, words[num - 2] + 2);
		if (path.depth > 0 && strcmp(method_text(path.step[path.depth - 1], "type"),
					      "boolean") != 0) {
			complete_value(path.step[path.depth - 1], typed);
			return;
		}
	}
	if (complete_plain(method, words + used, num - used))
		return;
	complete_options(json_object_get(method, "params"), "", typed);
	candidate("--json", typed);
	candidate("--help", typed);
}
