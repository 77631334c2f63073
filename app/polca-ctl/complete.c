/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completion of the word at the cursor. Commands, options and enum words come from the built-in
 * tables, and values such as QP numbers from the server.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "complete.h"
#include "methods.h"

/* The command line that is being completed. */
struct completer {
	const json_t *methods;
	const json_t *method;
	const char *name; /* of the RPC method that the command calls */
	const char *socket;
};

static unsigned int printed; /* number of candidates printed */
static bool wants_files;
static bool more_follows; /* "key=" is followed by its value, and a value in a list by a comma */

void
complete_candidate(const char *before, const char *word, const char *typed)
{
	size_t len = strlen(word);

	if (strncmp(word, typed, strlen(typed)) != 0)
		return;
	printf("%s%s\n", before, word);
	printed++;
	more_follows |= len > 0 && word[len - 1] == '=';
}

static void
candidate(const char *word, const char *typed)
{
	complete_candidate("", word, typed);
}

/* Print the next word of each method name that begins with the words typed. */
static void
complete_command(const json_t *methods, char **words, int num)
{
	char name[128], prefix[128] = "", last[128] = "";
	json_t *m;
	size_t i;
	int w;

	for (w = 0; w < num - 1; w++)
		snprintf(prefix + strlen(prefix), sizeof(prefix) - strlen(prefix), "%s_", words[w]);
	json_array_foreach(methods, i, m) {
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

	json_array_foreach(params, i, p) {
		snprintf(name, sizeof(name), "%s%s", prefix, method_text(p, "name"));
		candidate(option_of(name, option, sizeof(option)), typed);
		complete_options(json_object_get(p, "fields"), args_prefix(p), typed);
	}
}

static void complete_object(const struct completer *k, const json_t *param, const char *before,
	const char *typed);

/* Complete enum words, the last of a comma-separated list of flags, and values from the server. */
static void
complete_value(const struct completer *k, const json_t *param, const char *before,
	const char *typed)
{
	const char *type = method_text(param, "type"), *comma = strrchr(typed, ',');
	size_t i, len = comma != NULL ? (size_t)(comma + 1 - typed) : 0;
	char text[512];
	json_t *w;

	if (strcmp(method_text(param, "name"), "file") == 0) {
		wants_files = true;
		return;
	}
	if (strcmp(type, "object") == 0 || strcmp(type, "list") == 0) {
		complete_object(k, param, before, typed);
		return;
	}
	more_follows |= comma != NULL;
	if (strcmp(type, "boolean") == 0) {
		complete_candidate(before, "true", typed);
		complete_candidate(before, "false", typed);
	}
	json_array_foreach(json_object_get(param, "words"), i, w) {
		snprintf(text, sizeof(text), "%.*s%s", (int)len, typed, json_string_value(w));
		complete_candidate(before, text, typed);
	}
	complete_values(k->socket, k->name, method_text(param, "name"), before, typed);
}

/* Complete the last part of "key=5,len": a field's name with "=", or the field's value. */
static void
complete_object(const struct completer *k, const json_t *param, const char *before,
	const char *typed)
{
	const char *comma = strrchr(typed, ','), *part = comma != NULL ? comma + 1 : typed;
	const char *equals = strchr(part, '=');
	char front[512], text[80];
	json_t *field;
	size_t i;

	more_follows = true;
	snprintf(front, sizeof(front), "%s%.*s", before,
		(int)((equals != NULL ? equals + 1 : part) - typed), typed);
	json_array_foreach(json_object_get(param, "fields"), i, field) {
		snprintf(text, sizeof(text), "%s=", method_text(field, "name"));
		if (equals == NULL)
			complete_candidate(front, text, part);
		else if (strncmp(text, part, (size_t)(equals + 1 - part)) == 0)
			complete_value(k, field, front, equals + 1);
	}
}

/* --- words without option --- */

/* @return the parameter of the option "--name" or "-c"; NULL: the method has no such option */
static const json_t *
option_param(const json_t *method, const char *word)
{
	struct args_path path;
	json_t *p;
	size_t i;

	if (strncmp(word, "--", 2) == 0) {
		path = args_find(method, word + 2);
		return path.depth > 0 ? path.step[path.depth - 1] : NULL;
	}
	json_array_foreach(json_object_get(method, "params"), i, p) {
		if (word[0] == '-' && word[1] != '\0' && method_text(p, "short")[0] == word[1])
			return p;
	}
	return NULL;
}

/* True if the option's value is the next word. */
static bool
value_follows(const json_t *param, const char *word)
{
	if (param == NULL || strcmp(method_text(param, "type"), "boolean") == 0)
		return false;
	return word[1] == '-' ? strchr(word, '=') == NULL : word[2] == '\0';
}

/* The parameters given by the words before the cursor. */
struct typed_words {
	const char *plain[2]; /* the first two words without an option */
	int num_plain;
	const json_t *given[64]; /* parameters given by options */
	int num_given;
};

static void
read_typed(const json_t *method, char **words, int num, struct typed_words *t)
{
	const json_t *p;
	int i;

	for (i = 0; i < num - 1; i++) {
		if (words[i][0] == '-') {
			p = option_param(method, words[i]);
			if (p != NULL && t->num_given < 64)
				t->given[t->num_given++] = p;
			i += value_follows(p, words[i]);
			continue;
		}
		if (strchr(words[i], '=') != NULL)
			continue;
		if (t->num_plain < 2)
			t->plain[t->num_plain] = words[i];
		t->num_plain++;
	}
}

static bool
param_given(const struct typed_words *t, const json_t *p)
{
	int i;

	for (i = 0; i < t->num_given; i++)
		if (t->given[i] == p)
			return true;
	return false;
}

/* @return the n-th of the parameters that need no option and were not given by one */
static const json_t *
plain_param(const json_t *method, const struct typed_words *t, int n)
{
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(method, "params"), i, p) {
		if (args_takes_word(p) && !param_given(t, p) && n-- == 0)
			return p;
	}
	return NULL;
}

/* @return JSON of the values a parameter may have, each with its fields; NULL: not known here */
static const char *
field_names_of(const char *param)
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

/* Print the fields of a record or attribute as "lid=": the value follows without a blank. */
static void
complete_field(const char *names, const char *name, const char *typed)
{
	json_t *all = json_loads(names, 0, NULL), *field;
	char text[80];
	size_t i;

	json_array_foreach(json_object_get(all, name), i, field) {
		snprintf(text, sizeof(text), "%s=", json_string_value(field));
		candidate(text, typed);
	}
	json_decref(all);
}

/* Complete a word without an option. @return false: its values are not known, complete options */
static bool
complete_plain(const struct completer *k, char **words, int num)
{
	struct typed_words t = { .plain = { "", "" } };
	const char *typed = words[num - 1], *name;
	const json_t *p;
	int r;

	if (typed[0] == '-')
		return false;
	read_typed(k->method, words, num, &t);
	p = plain_param(k->method, &t, t.num_plain);
	name = p != NULL ? method_text(p, "name") : "";
	if (field_names_of(name) != NULL) {
		complete_name(field_names_of(name), typed);
		return true;
	}
	if (p != NULL) {
		complete_value(k, p, "", typed);
		return printed > 0 || wants_files;
	}
	for (r = 0; r < 2 && r < t.num_plain; r++) {
		p = plain_param(k->method, &t, r);
		if (typed[0] != '\0' && p != NULL && field_names_of(method_text(p, "name")) != NULL)
			complete_field(field_names_of(method_text(p, "name")), t.plain[r], typed);
	}
	return false;
}

/* Complete "--option=VALUE" or the word after "--option". @return false: the word is no value */
static bool
complete_option_value(const struct completer *k, char **words, int num)
{
	const char *typed = words[num - 1], *equals = strchr(typed, '=');
	const json_t *p;
	char before[128];

	if (strncmp(typed, "--", 2) == 0 && equals != NULL) {
		p = option_param(k->method, typed);
		snprintf(before, sizeof(before), "%.*s", (int)(equals + 1 - typed), typed);
		if (p != NULL)
			complete_value(k, p, before, equals + 1);
		return true;
	}
	p = num >= 2 && words[num - 2][0] == '-' ? option_param(k->method, words[num - 2]) : NULL;
	if (p == NULL || !value_follows(p, words[num - 2]))
		return false;
	complete_value(k, p, "", typed);
	return true;
}

/* Complete the options that need no command. */
static void
complete_global(const char *typed, bool first)
{
	size_t i;

	if (first)
		candidate("help", typed);
	for (i = 0; first && typed[0] == '-' && args_globals[i] != NULL; i++)
		candidate(args_globals[i], typed);
	if (!first || typed[0] != '-')
		candidate("--help", typed);
}

static void
complete_line(const json_t *methods, char **words, int num, const char *socket)
{
	struct completer k = { .methods = methods, .socket = socket };
	bool help = num > 1 && strcmp(words[0], "help") == 0;
	const char *typed;
	int used;

	if (num == 0)
		return;
	words += help;
	num -= help;
	typed = words[num - 1];
	k.method = methods_match(methods, words, num - 1, &used);
	if (k.method == NULL || methods_prefix(methods, words, num - 1) == num - 1)
		complete_command(methods, words, num);
	if (help)
		return;
	if (k.method == NULL) {
		complete_global(typed, num == 1);
		return;
	}
	k.name = method_text(k.method,
		json_object_get(k.method, "command") != NULL ? "command" : "name");
	if (complete_option_value(&k, words + used, num - used) ||
		complete_plain(&k, words + used, num - used))
		return;
	complete_options(json_object_get(k.method, "params"), "", typed);
	candidate("--json", typed);
	candidate("--help", typed);
}

int
complete_print(const json_t *methods, char **words, int num, const char *socket)
{
	complete_line(methods, words, num, socket);
	if (wants_files)
		return COMPLETE_FILES;
	return more_follows ? COMPLETE_MORE : 0;
}
