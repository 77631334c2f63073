/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/nearest.h"
#include "base/number.h"
#include "dest.h"
#include "methods.h"

struct parser {
	const json_t *method;
	json_t *params;
	char label[96]; /* of the value being parsed, as the user wrote it: "--sg-list length" */
	char *why;
	size_t size;
};

const char *const args_globals[] = { "--socket", "--json", "--wait", "--help", "--version", NULL };

static int
complain(struct parser *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->why, a->size, fmt, ap);
	va_end(ap);
	return -1;
}

/* --- which parameter --- */

static bool
begins(const char *name, const char *option, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (name[i] != (option[i] == '-' ? '_' : option[i]))
			return false;
	return true;
}

static bool
same_name(const char *name, const char *option, size_t len)
{
	return begins(name, option, len) && name[len] == '\0';
}

const char *
args_prefix(const json_t *object)
{
	return strncmp(method_text(object, "name"), "alt_", 4) == 0 ? "alt_" : "";
}

/* Parameters of this name at just this depth: path is the first found. @return how many */
static int
find_at(const json_t *table, const char *option, size_t len, int depth, int at,
	struct args_path *path)
{
	struct args_path deeper;
	size_t i, skip;
	json_t *p;
	int n, found = 0;

	json_array_foreach(table, i, p)
	{
		deeper = *path;
		deeper.step[at] = p;
		skip = strlen(args_prefix(p));
		if (depth == 0)
			n = same_name(method_text(p, "name"), option, len);
		else if (len < skip || !begins(args_prefix(p), option, skip))
			n = 0;
		else
			n = find_at(json_object_get(p, "fields"), option + skip, len - skip,
				depth - 1, at + 1, &deeper);
		if (n > 0 && found == 0) {
			if (depth == 0)
				deeper.depth = at + 1;
			*path = deeper;
		}
		found += n;
	}
	return found;
}

struct args_path
args_find(const json_t *method, const char *option)
{
	size_t len = strcspn(option, "=");
	struct args_path path = { .depth = 0 };
	int depth, found;

	for (depth = 0; depth < ARGS_DEPTH; depth++) {
		found = find_at(json_object_get(method, "params"), option, len, depth, 0, &path);
		path.ambiguous = found > 1;
		if (found > 0)
			break;
	}
	return path;
}

/* --- names in errors --- */

/* @param path  set to what follows the step. @return the step's parameter; NULL: none, or not the first item */
static const json_t *
label_step(const json_t *table, const char **path)
{
	size_t i, len = strcspn(*path, ".[");
	json_t *p;

	json_array_foreach(table, i, p)
	{
		if (strlen(method_text(p, "name")) != len ||
				strncmp(method_text(p, "name"), *path, len) != 0)
			continue;
		*path += len;
		if (strncmp(*path, "[0]", 3) == 0)
			*path += 3;
		if (**path == '[')
			return NULL;
		*path += **path == '.';
		return p;
	}
	return NULL;
}

/* A field: "--opcode" where that is plain, else with the option it belongs to: "--sg-list length". */
static const char *
label_field(const json_t *method, const json_t *object, const json_t *field, char *buf, size_t size)
{
	char name[64];
	struct args_path path;

	snprintf(name, sizeof(name), "%s%s", args_prefix(object), method_text(field, "name"));
	path = args_find(method, name);
	if (path.depth > 0 && !path.ambiguous && path.step[path.depth - 1] == field)
		return option_of(name, buf, size);
	option_of(method_text(object, "name"), buf, size);
	snprintf(buf + strlen(buf), size - strlen(buf), " %s", method_text(field, "name"));
	return buf;
}

const char *
args_label(const json_t *method, const char *path, char *buf, size_t size)
{
	const json_t *params = json_object_get(method, "params");
	const char *rest = path, *dest = "dest";
	const json_t *object = NULL, *p = label_step(params, &rest);

	/* ping and cm commands take the address as dest */
	if (p == NULL && strcmp(path, "dgid") == 0 && label_step(params, &dest) != NULL)
		path = "dest";
	while (p != NULL && *rest != '\0') {
		if (strcmp(method_text(p, "type"), "map") == 0)
			break; /* its words are NAME=VALUE */
		object = p;
		p = label_step(json_object_get(p, "fields"), &rest);
	}
	if (p == NULL)
		snprintf(buf, size, "%s", path);
	else if (*rest != '\0')
		snprintf(buf, size, "%s", rest);
	else if (object != NULL)
		label_field(method, object, p, buf, size);
	else if (args_takes_word(p))
		snprintf(buf, size, "%s", path);
	else
		option_of(method_text(p, "name"), buf, size);
	return buf;
}

/* --- values --- */

static json_t *parse_value(struct parser *a, const json_t *param, const char *text);

/* 4096, 0x1000, 4K, 0x7f00+1K; beyond 2^63 - 1 as "0x..." text */
static json_t *
parse_integer(struct parser *a, const char *text)
{
	uint64_t v;

	if (!number_parse_sum(text, &v)) {
		complain(a, "%s: got \"%s\", wanted a number (4096, 0x1000, 4K) or a sum (0x7f00+1K)",
			a->label, text);
		return NULL;
	}
	return v <= INT64_MAX ? json_integer((json_int_t)v)
			      : json_sprintf("0x%llx", (unsigned long long)v);
}

static json_t *
parse_boolean(struct parser *a, const char *text)
{
	if (strcmp(text, "true") == 0 || strcmp(text, "yes") == 0 || strcmp(text, "1") == 0)
		return json_true();
	if (strcmp(text, "false") == 0 || strcmp(text, "no") == 0 || strcmp(text, "0") == 0)
		return json_false();
	complain(a, "%s: got \"%s\", wanted true or false", a->label, text);
	return NULL;
}

/* "A,B", or "A+B" where commas part fields */
static json_t *
parse_flags(const char *text)
{
	json_t *list = json_array();
	size_t len;

	while (*text != '\0') {
		len = strcspn(text, ",+");
		json_array_append_new(list, json_stringn(text, len));
		text += len + (text[len] != '\0');
	}
	return list;
}

static const json_t *
find_field(const json_t *fields, const char *name, size_t len)
{
	json_t *p;
	size_t i;

	json_array_foreach(fields, i, p)
	{
		if (same_name(method_text(p, "name"), name, len))
			return p;
	}
	return NULL;
}

/* @param name  bytes of the field's name at the beginning of text; len: it is not followed by "=" */
static int
no_such_field(struct parser *a, const json_t *param, const char *text, size_t len, size_t name)
{
	char typed[64], near[80] = "";
	struct nearest n;
	json_t *field;
	size_t i;

	snprintf(typed, sizeof(typed), "%.*s", (int)name, text);
	n = nearest_to(typed);
	json_array_foreach(json_object_get(param, "fields"), i, field)
		nearest_try(&n, method_text(field, "name"));
	if (name < len && n.word != NULL)
		snprintf(near, sizeof(near), "; did you mean \"%s\"?", n.word);
	return complain(a, "%s: got \"%.*s\", wanted FIELD=VALUE: %s%s", a->label, (int)len, text,
		method_text(param, "allowed"), near);
}

/* one "field=value" of an object */
static int
parse_field(struct parser *a, const json_t *param, json_t *obj, const char *text, size_t len)
{
	size_t name = strcspn(text, "=,"), label = strlen(a->label);
	const json_t *field = find_field(json_object_get(param, "fields"), text, name);
	char *value;
	json_t *v;

	if (name >= len || field == NULL)
		return no_such_field(a, param, text, len, name);
	value = strndup(text + name + 1, len - name - 1);
	snprintf(a->label + label, sizeof(a->label) - label, " %s", method_text(field, "name"));
	v = parse_value(a, field, value);
	a->label[label] = '\0';
	free(value);
	if (v == NULL)
		return -1;
	return json_object_set_new(obj, method_text(field, "name"), v);
}

/* "{...}" as JSON, or "key=1,length=4096" */
static json_t *
parse_object(struct parser *a, const json_t *param, const char *text)
{
	json_error_t error;
	json_t *obj;
	size_t len;

	if (*text == '{' || *text == '[') {
		obj = json_loads(text, 0, &error);
		if (obj == NULL)
			complain(a, "%s: this is no JSON: %s", a->label, error.text);
		return obj;
	}
	obj = json_object();
	while (*text != '\0') {
		len = strcspn(text, ",");
		if (parse_field(a, param, obj, text, len) != 0) {
			json_decref(obj);
			return NULL;
		}
		text += len + (text[len] != '\0');
	}
	return obj;
}

/* Length of the name in NAME=VALUE; 0: it is none. */
static size_t
name_in(const char *text)
{
	size_t len = 0;

	while (isalnum((unsigned char)text[len]) || text[len] == '_')
		len++;
	return text[len] == '=' ? len : 0;
}

/* JSON, or one NAME=VALUE; the server knows the names and what their values mean. */
static json_t *
parse_map(struct parser *a, const json_t *param, const char *text)
{
	size_t len = name_in(text);
	json_t *obj, *v;
	char *name;

	if (*text == '{' || *text == '[')
		return parse_object(a, param, text);
	if (len == 0) {
		complain(a, "%s: got \"%s\", wanted NAME=VALUE or JSON", a->label, text);
		return NULL;
	}
	v = json_string(text + len + 1);
	if (v == NULL) {
		complain(a, "%.*s: not UTF-8", (int)len, text);
		return NULL;
	}
	obj = json_object();
	name = strndup(text, len);
	json_object_set_new(obj, name, v);
	free(name);
	return obj;
}

static json_t *
parse_value(struct parser *a, const json_t *param, const char *text)
{
	const char *type = method_text(param, "type");
	json_t *v;

	if (strcmp(type, "integer") == 0)
		return parse_integer(a, text);
	if (strcmp(type, "boolean") == 0)
		return parse_boolean(a, text);
	if (strcmp(type, "flags") == 0)
		return parse_flags(text);
	if (strcmp(type, "object") == 0 || strcmp(type, "list") == 0)
		return parse_object(a, param, text);
	if (strcmp(type, "map") == 0 || strcmp(type, "maps") == 0)
		return parse_map(a, param, text);
	v = json_string(text);
	if (v == NULL)
		complain(a, "%s: not UTF-8", a->label);
	return v;
}

/* --- where it goes --- */

/* The object inside obj that param stands for: made if need be; of a list its last item. */
static json_t *
enter(json_t *obj, const json_t *param)
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

/* A name given twice would lose one of its values. Takes v. */
static int
add_to_map(struct parser *a, json_t *map, json_t *v)
{
	const char *name;
	json_t *value;
	int rc = 0;

	json_object_foreach(v, name, value)
	{
		if (json_object_get(map, name) != NULL)
			rc = complain(a, "%s is given twice", name);
	}
	if (rc == 0)
		rc = json_object_update(map, v);
	json_decref(v);
	return rc;
}

/* Is the parameter, or another in its place (commands.c), there already? */
static bool
has(const struct parser *a, const json_t *param)
{
	return json_object_get(a->params, method_text(param, "name")) != NULL ||
		json_object_get(a->params, method_text(param, "instead")) != NULL;
}

/* @param label  what the user wrote in front of the value, up to a "=" */
static int
store(struct parser *a, const struct args_path *path, const char *label, const char *text)
{
	const json_t *param = path->step[path->depth - 1];
	const char *name = method_text(param, "name"), *instead = method_text(param, "instead");
	json_t *list, *v, *obj = a->params;
	int i;

	snprintf(a->label, sizeof(a->label), "%.*s", (int)strcspn(label, "="), label);
	if (instead[0] != '\0')
		return dest_parse(text, obj, name, instead)
			? 0
			: complain(a, "%s: got \"%s\", allowed: " DEST_ALLOWED, a->label, text);
	v = parse_value(a, param, text);
	if (v == NULL)
		return -1;
	for (i = 0; i < path->depth - 1; i++)
		obj = enter(obj, path->step[i]);
	list = json_object_get(obj, name);
	if (strcmp(method_text(param, "type"), "map") == 0 && list != NULL)
		return add_to_map(a, list, v);
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

/* Options of a table, those of its objects' fields too. @param near  room for the nearest */
static void
nearest_option(struct nearest *n, const json_t *table, const char *prefix, char near[64])
{
	char name[64], option[64];
	json_t *p;
	size_t i;

	json_array_foreach(table, i, p)
	{
		snprintf(name, sizeof(name), "%s%s", prefix, method_text(p, "name"));
		nearest_try(n, option_of(name, option, sizeof(option)));
		if (n->word == option) {
			snprintf(near, 64, "%s", option);
			n->word = near;
		}
		nearest_option(n, json_object_get(p, "fields"), args_prefix(p), near);
	}
}

static int
no_such(struct parser *a, const char *option, const struct args_path *path)
{
	char words[128], typed[64], near[64];
	struct nearest n;
	size_t i;

	method_words(method_text(a->method, "name"), words, sizeof(words));
	if (path->depth > 0)
		return complain(a,
			"%s could mean several fields: write it as FIELD=VALUE of the option it belongs to; see polca-ctl %s --help",
			option, words);
	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(option, "="), option);
	n = nearest_to(typed);
	nearest_option(&n, json_object_get(a->method, "params"), "", near);
	for (i = 0; args_globals[i] != NULL; i++)
		nearest_try(&n, args_globals[i]);
	if (n.word != NULL)
		return complain(a, "%s is no option of \"%s\"; did you mean %s? See polca-ctl %s --help",
			option, words, n.word, words);
	return complain(a, "%s is no option of \"%s\"; see polca-ctl %s --help", option, words,
		words);
}

/* @return words used, or -1 */
static int
take_option(struct parser *a, char **words, int num)
{
	const char *name = words[0] + 2, *value = strchr(name, '=');
	struct args_path path = args_find(a->method, name);
	bool negated = false, boolean;

	if (path.depth == 0 && strncmp(name, "no-", 3) == 0) {
		path = args_find(a->method, name + 3);
		negated = true;
	}
	if (path.depth == 0 || path.ambiguous)
		return no_such(a, words[0], &path);
	boolean = strcmp(method_text(path.step[path.depth - 1], "type"), "boolean") == 0;
	if (negated && (!boolean || value != NULL))
		return no_such(a, words[0], &(struct args_path){ .depth = 0 });
	if (value != NULL)
		return store(a, &path, words[0], value + 1) == 0 ? 1 : -1;
	if (boolean)
		return store(a, &path, words[0], negated ? "false" : "true") == 0 ? 1 : -1;
	if (num < 2)
		return complain(a, "%s wants a value: %s", words[0],
			method_text(path.step[path.depth - 1], "allowed"));
	return store(a, &path, words[0], words[1]) == 0 ? 2 : -1;
}

/* Those of one letter, as commands that people know from elsewhere have them. */
static const json_t *
short_param(const json_t *method, const char *word)
{
	json_t *p;
	size_t i;

	if (word[0] != '-' || word[1] == '-' || word[1] == '\0')
		return NULL;
	json_array_foreach(json_object_get(method, "params"), i, p)
	{
		if (method_text(p, "short")[0] == word[1])
			return p;
	}
	return NULL;
}

/* "-c 5" and "-c5" are "--count 5"; "-qc 5" is "-q -c 5". @return words used, or -1 */
static int
take_short(struct parser *a, char **words, int num)
{
	const json_t *p = short_param(a->method, words[0]);
	struct args_path path = { .step = { p }, .depth = 1 };
	char option[64], rest[64], letter[] = { '-', words[0][1], '\0' };
	char *more[2] = { rest, num > 1 ? words[1] : NULL };

	if (strcmp(method_text(p, "type"), "boolean") == 0) {
		snprintf(rest, sizeof(rest), "-%s", words[0] + 2);
		if (store(a, &path, letter, "true") != 0)
			return -1;
		if (words[0][2] == '\0')
			return 1;
		if (short_param(a->method, rest) == NULL)
			return complain(a, "%s: -%c takes no value", words[0], words[0][1]);
		return take_short(a, more, num > 1 ? 2 : 1);
	}
	if (words[0][2] != '\0')
		return store(a, &path, letter, words[0] + 2) == 0 ? 1 : -1;
	if (num < 2)
		return complain(a, "%s, %s wants a value: %s", letter,
			option_of(method_text(p, "name"), option, sizeof(option)),
			method_text(p, "allowed"));
	return store(a, &path, letter, words[1]) == 0 ? 2 : -1;
}

/* The parameter that NAME=VALUE words belong to: the first that is a map. */
static const json_t *
map_param(const json_t *method)
{
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(method, "params"), i, p)
	{
		if (strcmp(method_text(p, "type"), "map") == 0)
			return p;
	}
	return NULL;
}

bool
args_takes_word(const json_t *p)
{
	return json_is_true(json_object_get(p, "required")) ||
		json_is_true(json_object_get(p, "plain"));
}

bool
args_takes_words(const json_t *p)
{
	return strcmp(method_text(p, "type"), "words") == 0;
}

/* "takes qp_num" or "takes no value": the values that need no option */
static void
print_taken(const json_t *method, char *buf, size_t size)
{
	const char *name = map_param(method) != NULL ? "FIELD=VALUE" : NULL;
	json_t *p;
	size_t i;

	snprintf(buf, size, "takes");
	json_array_foreach(json_object_get(method, "params"), i, p)
	{
		if (args_takes_word(p))
			snprintf(buf + strlen(buf), size - strlen(buf), " %s%s",
				method_text(p, "name"), args_takes_words(p) ? "..." : "");
	}
	if (name != NULL)
		snprintf(buf + strlen(buf), size - strlen(buf), " %s...", name);
	if (strcmp(buf, "takes") == 0)
		snprintf(buf, size, "takes no value");
}

/* A word that no parameter takes: an option without its dashes, or one value too many */
static int
no_such_value(struct parser *a, const char *text)
{
	char words[128], taken[256], typed[64], near[64];
	struct nearest n;

	snprintf(typed, sizeof(typed), "--%s", text);
	n = nearest_to(typed);
	nearest_option(&n, json_object_get(a->method, "params"), "", near);
	method_words(method_text(a->method, "name"), words, sizeof(words));
	print_taken(a->method, taken, sizeof(taken));
	if (n.word != NULL)
		return complain(a, "\"%s\" is one value too many; did you mean %s? See polca-ctl %s --help",
			text, n.word, words);
	return complain(a, "\"%s\" is one value too many: \"%s\" %s, and options begin with --; see polca-ctl %s --help",
		text, words, taken, words);
}

/*
 * A value without option belongs to the first parameter of that sort that has none; NAME=VALUE to
 * the map.
 */
static int
take_value(struct parser *a, const char *text)
{
	struct args_path path = { .depth = 1 };
	json_t *p;
	size_t i;

	path.step[0] = map_param(a->method);
	if (path.step[0] != NULL && name_in(text) > 0)
		return store(a, &path, text, text) == 0 ? 1 : -1;
	json_array_foreach(json_object_get(a->method, "params"), i, p)
	{
		if (!args_takes_word(p) || (has(a, p) && !args_takes_words(p)))
			continue;
		path.step[0] = p;
		return store(a, &path, method_text(p, "name"), text) == 0 ? 1 : -1;
	}
	if (text[0] == '-' && text[1] != '\0')
		return no_such(a, text, &(struct args_path){ .depth = 0 });
	return no_such_value(a, text);
}

static int
check_required(struct parser *a)
{
	char option[64], words[128];
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(a->method, "params"), i, p)
	{
		if (!json_is_true(json_object_get(p, "required")) || has(a, p))
			continue;
		method_words(method_text(a->method, "name"), words, sizeof(words));
		return complain(a, "%s is missing: %s; see polca-ctl %s --help",
			option_of(method_text(p, "name"), option, sizeof(option)),
			method_text(p, "help"), words);
	}
	return 0;
}

json_t *
args_params(const json_t *method, char **words, int num, char *why, size_t size)
{
	struct parser a = { .method = method, .params = json_object(), .why = why, .size = size };
	char **values = calloc((size_t)num + 1, sizeof(*values));
	int i, n, num_values = 0;

	why[0] = '\0';
	if (values == NULL)
		goto fail;
	/* options first, wherever they stand: what they say is not looked for among the values */
	for (i = 0; i < num; i += n) {
		n = 1;
		if (strncmp(words[i], "--", 2) == 0 && words[i][2] != '\0')
			n = take_option(&a, words + i, num - i);
		else if (short_param(method, words[i]) != NULL)
			n = take_short(&a, words + i, num - i);
		else
			values[num_values++] = words[i];
		if (n < 0)
			goto fail;
	}
	for (i = 0; i < num_values; i++)
		if (take_value(&a, values[i]) < 0)
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
