/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Convert the text of a value to JSON, by the type of its parameter. */

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "args_private.h"
#include "base/nearest.h"
#include "base/number.h"

/* 4096, 0x1000, 4K, 0x7f00+1K. Values above 2^63 - 1 become the text "0x...". */
static json_t *
parse_integer(struct args_parser *a, const char *text)
{
	uint64_t v;

	if (!number_parse_sum(text, &v)) {
		args_error(a,
			"%s: got \"%s\", wanted a number (4096, 0x1000, 4K) or a sum (0x7f00+1K); " NUMBER_SUFFIXES,
			a->label, text);
		return NULL;
	}
	return v <= INT64_MAX ? json_integer((json_int_t)v)
			      : json_sprintf("0x%llx", (unsigned long long)v);
}

static json_t *
parse_boolean(struct args_parser *a, const char *text)
{
	if (strcmp(text, "true") == 0 || strcmp(text, "yes") == 0 || strcmp(text, "1") == 0)
		return json_true();
	if (strcmp(text, "false") == 0 || strcmp(text, "no") == 0 || strcmp(text, "0") == 0)
		return json_false();
	args_error(a, "%s: got \"%s\", wanted true or false", a->label, text);
	return NULL;
}

/* "A,B"; "A+B" inside an object, where commas separate the fields */
static json_t *
parse_flag_list(const char *text)
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
object_field(const json_t *fields, const char *name, size_t len)
{
	json_t *p;
	size_t i;

	json_array_foreach(fields, i, p) {
		if (args_same_name(method_text(p, "name"), name, len))
			return p;
	}
	return NULL;
}

/*
 * @param len   length of this FIELD=VALUE
 * @param name  length of its field name; equals len if there is no "="
 */
static int
object_field_error(struct args_parser *a, const json_t *param, const char *text, size_t len,
	size_t name)
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
	return args_error(a, "%s: got \"%.*s\", wanted FIELD=VALUE: %s%s", a->label, (int)len, text,
		method_text(param, "allowed"), near);
}

/* Parse one "field=value" of an object. */
static int
parse_field(struct args_parser *a, const json_t *param, json_t *obj, const char *text, size_t len)
{
	size_t name = strcspn(text, "=,"), label = strlen(a->label);
	const json_t *field = object_field(json_object_get(param, "fields"), text, name);
	char *value;
	json_t *v;

	if (name >= len || field == NULL)
		return object_field_error(a, param, text, len, name);
	value = strndup(text + name + 1, len - name - 1);
	snprintf(a->label + label, sizeof(a->label) - label, " %s", method_text(field, "name"));
	v = args_parse_value(a, field, value);
	a->label[label] = '\0';
	free(value);
	if (v == NULL)
		return -1;
	return json_object_set_new(obj, method_text(field, "name"), v);
}

/* Parse "{...}" as JSON, or "key=1,length=4096". */
static json_t *
parse_object(struct args_parser *a, const json_t *param, const char *text)
{
	json_error_t error;
	json_t *obj;
	size_t len;

	if (*text == '{' || *text == '[') {
		obj = json_loads(text, 0, &error);
		if (obj == NULL)
			args_error(a, "%s: this is no JSON: %s", a->label, error.text);
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
size_t
args_name_length(const char *text)
{
	size_t len = 0;

	while (isalnum((unsigned char)text[len]) || text[len] == '_')
		len++;
	return text[len] == '=' ? len : 0;
}

/* JSON, or one NAME=VALUE; the server knows the names and what their values mean. */
static json_t *
parse_map(struct args_parser *a, const json_t *param, const char *text)
{
	size_t len = args_name_length(text);
	json_t *obj, *v;
	char *name;

	if (*text == '{' || *text == '[')
		return parse_object(a, param, text);
	if (len == 0) {
		args_error(a, "%s: got \"%s\", wanted NAME=VALUE or JSON", a->label, text);
		return NULL;
	}
	v = json_string(text + len + 1);
	if (v == NULL) {
		args_error(a, "%.*s: not UTF-8", (int)len, text);
		return NULL;
	}
	obj = json_object();
	name = strndup(text, len);
	json_object_set_new(obj, name, v);
	free(name);
	return obj;
}

json_t *
args_parse_value(struct args_parser *a, const json_t *param, const char *text)
{
	const char *type = method_text(param, "type");
	json_t *v;

	if (strcmp(type, "integer") == 0)
		return parse_integer(a, text);
	if (strcmp(type, "boolean") == 0)
		return parse_boolean(a, text);
	if (strcmp(type, "flags") == 0)
		return parse_flag_list(text);
	if (strcmp(type, "object") == 0 || strcmp(type, "list") == 0)
		return parse_object(a, param, text);
	if (strcmp(type, "map") == 0 || strcmp(type, "maps") == 0)
		return parse_map(a, param, text);
	v = json_string(text);
	if (v == NULL)
		args_error(a, "%s: not UTF-8", a->label);
	return v;
}
