/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The words after a command, as the parameters of its method. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args_private.h"
#include "dest.h"

const char *const args_globals[] = { "--socket", "--json", "--wait", "--help", "--version", NULL };

/* --- where a value goes --- */

/*
 * Return the object that param stands for inside obj, and create it if needed. Of a list, return
 * the last item.
 */
static json_t *
params_descend(json_t *obj, const json_t *param)
{
	const char *name = method_text(param, "name");
	json_t *v = json_object_get(obj, name);

	if (strcmp(method_text(param, "type"), "list") != 0) {
		if (v == NULL) {
			v = json_object();
			json_object_set_new(obj, name, v);
		}
		return v;
	}
	if (v == NULL) {
		v = json_array();
		json_object_set_new(obj, name, v);
	}
	if (json_array_size(v) == 0)
		json_array_append_new(v, json_object());
	return json_array_get(v, json_array_size(v) - 1);
}

/* Reject a name that is given twice, because one of its values would be lost. Takes over v. */
static int
params_add_to_map(struct args_parser *a, json_t *map, json_t *v)
{
	const char *name;
	json_t *value;
	int rc = 0;

	json_object_foreach(v, name, value) {
		if (json_object_get(map, name) != NULL)
			rc = args_error(a, "%s is given twice", name);
	}
	if (rc == 0)
		rc = json_object_update(map, v);
	json_decref(v);
	return rc;
}

/* True if the parameter, or the one that may replace it (see commands.c), was given. */
static bool
params_have(const struct args_parser *a, const json_t *param)
{
	return json_object_get(a->params, method_text(param, "name")) != NULL ||
		json_object_get(a->params, method_text(param, "instead")) != NULL;
}

/* @param label  the option or parameter name as the user wrote it, up to a "=" */
static int
params_store(struct args_parser *a, const struct args_path *path, const char *label,
	const char *text)
{
	const json_t *param = path->step[path->depth - 1];
	const char *name = method_text(param, "name"), *instead = method_text(param, "instead");
	json_t *list, *v, *obj = a->params;
	int i;

	snprintf(a->label, sizeof(a->label), "%.*s", (int)strcspn(label, "="), label);
	if (instead[0] != '\0')
		return dest_parse(text, obj, name, instead)
			? 0
			: args_error(a, "%s: got \"%s\", allowed: " DEST_ALLOWED, a->label, text);
	v = args_parse_value(a, param, text);
	if (v == NULL)
		return -1;
	for (i = 0; i < path->depth - 1; i++)
		obj = params_descend(obj, path->step[i]);
	list = json_object_get(obj, name);
	if (strcmp(method_text(param, "type"), "map") == 0 && list != NULL)
		return params_add_to_map(a, list, v);
	if (strcmp(method_text(param, "type"), "list") != 0 && !args_takes_words(param))
		return json_object_set_new(obj, name, v);
	if (list == NULL) {
		list = json_array();
		json_object_set_new(obj, name, list);
	}
	if (!json_is_array(v))
		return json_array_append_new(list, v);
	i = json_array_extend(list, v);
	json_decref(v);
	return i;
}

/* @return the number of words used, or -1 */
static int
args_take_option(struct args_parser *a, char **words, int num)
{
	const char *name = words[0] + 2, *value = strchr(name, '=');
	struct args_path path = args_find(a->method, name);
	bool negated = false, boolean;

	if (path.depth == 0 && strncmp(name, "no-", 3) == 0) {
		path = args_find(a->method, name + 3);
		negated = true;
	}
	if (path.depth == 0 || path.ambiguous)
		return args_no_such_option(a, words[0], &path);
	boolean = strcmp(method_text(path.step[path.depth - 1], "type"), "boolean") == 0;
	if (negated && (!boolean || value != NULL))
		return args_no_such_option(a, words[0], &(struct args_path){ .depth = 0 });
	if (value != NULL)
		return params_store(a, &path, words[0], value + 1) == 0 ? 1 : -1;
	if (boolean)
		return params_store(a, &path, words[0], negated ? "false" : "true") == 0 ? 1 : -1;
	if (num < 2)
		return args_error(a, "%s wants a value: %s", words[0],
			method_text(path.step[path.depth - 1], "allowed"));
	return params_store(a, &path, words[0], words[1]) == 0 ? 2 : -1;
}

/* Return the parameter of a one-letter option such as -c, or NULL. */
static const json_t *
short_param(const json_t *method, const char *word)
{
	json_t *p;
	size_t i;

	if (word[0] != '-' || word[1] == '-' || word[1] == '\0')
		return NULL;
	json_array_foreach(json_object_get(method, "params"), i, p) {
		if (method_text(p, "short")[0] == word[1])
			return p;
	}
	return NULL;
}

/*
 * "-c 5" and "-c5" mean "--count 5"; "-qc 5" means "-q -c 5". @return the number of words used, or
 * -1
 */
static int
args_take_short(struct args_parser *a, char **words, int num)
{
	const json_t *p = short_param(a->method, words[0]);
	struct args_path path = { .step = { p }, .depth = 1 };
	char option[64], rest[64], letter[] = { '-', words[0][1], '\0' };
	char *more[2] = { rest, num > 1 ? words[1] : NULL };

	if (strcmp(method_text(p, "type"), "boolean") == 0) {
		snprintf(rest, sizeof(rest), "-%s", words[0] + 2);
		if (params_store(a, &path, letter, "true") != 0)
			return -1;
		if (words[0][2] == '\0')
			return 1;
		if (short_param(a->method, rest) == NULL)
			return args_error(a, "%s: -%c takes no value", words[0], words[0][1]);
		return args_take_short(a, more, num > 1 ? 2 : 1);
	}
	if (words[0][2] != '\0')
		return params_store(a, &path, letter, words[0] + 2) == 0 ? 1 : -1;
	if (num < 2)
		return args_error(a, "%s, %s wants a value: %s", letter,
			option_of(method_text(p, "name"), option, sizeof(option)),
			method_text(p, "allowed"));
	return params_store(a, &path, letter, words[1]) == 0 ? 2 : -1;
}

/*
 * A value without an option goes to the first parameter that needs no option and has no value yet;
 * NAME=VALUE goes to the parameter of type map.
 */
static int
args_take_value(struct args_parser *a, const char *text)
{
	struct args_path path = { .depth = 1 };
	json_t *p;
	size_t i;

	path.step[0] = args_map_param(a->method);
	if (path.step[0] != NULL && args_name_length(text) > 0)
		return params_store(a, &path, text, text) == 0 ? 1 : -1;
	json_array_foreach(json_object_get(a->method, "params"), i, p) {
		if (!args_takes_word(p) || (params_have(a, p) && !args_takes_words(p)))
			continue;
		path.step[0] = p;
		return params_store(a, &path, method_text(p, "name"), text) == 0 ? 1 : -1;
	}
	if (text[0] == '-' && text[1] != '\0')
		return args_no_such_option(a, text, &(struct args_path){ .depth = 0 });
	return args_no_such_value(a, text);
}

static int
check_required(struct args_parser *a)
{
	char option[64], words[128];
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(a->method, "params"), i, p) {
		if (!json_is_true(json_object_get(p, "required")) || params_have(a, p))
			continue;
		method_words(method_text(a->method, "name"), words, sizeof(words));
		return args_error(a, "%s is missing: %s; see polca-ctl %s --help",
			option_of(method_text(p, "name"), option, sizeof(option)),
			method_text(p, "help"), words);
	}
	return 0;
}

json_t *
args_params(const json_t *method, char **words, int num, char *why, size_t size)
{
	struct args_parser a = {
		.method = method,
		.params = json_object(),
		.why = why,
		.size = size,
	};
	char **values = calloc((size_t)num + 1, sizeof(*values));
	int i, n, num_values = 0;

	why[0] = '\0';
	if (values == NULL)
		goto fail;
	/* options first, wherever they stand: what they say is not looked for among the values */
	for (i = 0; i < num; i += n) {
		n = 1;
		if (strncmp(words[i], "--", 2) == 0 && words[i][2] != '\0')
			n = args_take_option(&a, words + i, num - i);
		else if (short_param(method, words[i]) != NULL)
			n = args_take_short(&a, words + i, num - i);
		else
			values[num_values++] = words[i];
		if (n < 0)
			goto fail;
	}
	for (i = 0; i < num_values; i++)
		if (args_take_value(&a, values[i]) < 0)
			goto fail;
	if (check_required(&a) != 0)
		goto fail;
	free(values);
	return a.params;
fail:
	free(values);
	if (why[0] == '\0')
		snprintf(why, size, "out of memory");
	json_decref(a.params);
	return NULL;
}
