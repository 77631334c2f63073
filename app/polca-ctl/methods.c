/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "methods.h"

#define NAME_WORDS 4 /* words in a method's name at most */
#define NAME_MAX   128

json_t *
methods_load(struct connection *c, unsigned int timeout_ms)
{
	json_t *error = NULL, *result = NULL, *methods = NULL;

	if (c != NULL && connection_call(c, "rpc_list", NULL, timeout_ms, &result, &error) == 0)
		methods = json_incref(json_object_get(result, "methods"));
	json_decref(result);
	json_decref(error);
	if (methods == NULL)
		methods = json_loads(methods_built_in, 0, NULL);
	return methods;
}

json_t *
methods_find(const json_t *methods, const char *name)
{
	json_t *m;
	size_t i;

	json_array_foreach(methods, i, m) {
		if (strcmp(method_text(m, "name"), name) == 0)
			return m;
	}
	return NULL;
}

static void
join_words(char name[NAME_MAX], char **words, int num)
{
	int i;

	name[0] = '\0';
	for (i = 0; i < num; i++)
		snprintf(name + strlen(name), NAME_MAX - strlen(name), "%s%s", i > 0 ? "_" : "",
			words[i]);
	for (; *name != '\0'; name++)
		if (*name == '-')
			*name = '_';
}

json_t *
methods_match(const json_t *methods, char **words, int num, int *used)
{
	char name[NAME_MAX];
	json_t *m;

	/* the longest name wins */
	for (*used = num < NAME_WORDS ? num : NAME_WORDS; *used > 0; --*used) {
		join_words(name, words, *used);
		m = methods_find(methods, name);
		if (m != NULL)
			return m;
	}
	return NULL;
}

static bool
is_prefix_of_method(const json_t *methods, const char *name)
{
	size_t i, len = strlen(name);
	json_t *m;

	json_array_foreach(methods, i, m) {
		if (strncmp(method_text(m, "name"), name, len) == 0 &&
			method_text(m, "name")[len] == '_')
			return true;
	}
	return false;
}

int
methods_prefix(const json_t *methods, char **words, int num)
{
	char name[NAME_MAX];

	for (num = num < NAME_WORDS ? num : NAME_WORDS; num > 0; num--) {
		join_words(name, words, num);
		if (is_prefix_of_method(methods, name))
			break;
	}
	return num;
}

const char *
method_text(const json_t *obj, const char *key)
{
	const char *text = json_string_value(json_object_get(obj, key));

	return text != NULL ? text : "";
}

json_int_t
member_int(const json_t *obj, const char *key)
{
	return json_integer_value(json_object_get(obj, key));
}

json_int_t
member_int_or(const json_t *obj, const char *key, json_int_t def)
{
	return json_object_get(obj, key) != NULL ? member_int(obj, key) : def;
}

static const char *
translate(const char *prefix, const char *name, char to, char *buf, size_t size)
{
	char *c;

	snprintf(buf, size, "%s%s", prefix, name);
	for (c = buf; *c != '\0'; c++)
		if (*c == '_')
			*c = to;
	return buf;
}

const char *
method_words(const char *name, char *buf, size_t size)
{
	return translate("", name, ' ', buf, size);
}

const char *
option_of(const char *name, char *buf, size_t size)
{
	return translate("--", name, '-', buf, size);
}

int
first_sentence(const char *text)
{
	const char *stop = strstr(text, ". ");

	return stop != NULL ? (int)(stop + 1 - text) : (int)strlen(text);
}
