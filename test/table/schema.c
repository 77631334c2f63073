/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "schema.h"

struct checker {
	char path[256];
	char *why;
	size_t size;
};

static bool accepts(struct checker *c, const json_t *schema, const json_t *v);

static bool
fault(const struct checker *c, const char *keyword)
{
	snprintf(c->why, c->size, "%s: %s", c->path, keyword);
	return false;
}

static bool
is_type(const char *type, const json_t *v)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "object",
		[JSON_ARRAY] = "array",
		[JSON_STRING] = "string",
		[JSON_INTEGER] = "integer",
		[JSON_REAL] = "number",
		[JSON_TRUE] = "boolean",
		[JSON_FALSE] = "boolean",
		[JSON_NULL] = "null",
	};

	return strcmp(type, names[json_typeof(v)]) == 0 ||
		(strcmp(type, "number") == 0 && json_is_integer(v));
}

static bool
has_type(const json_t *type, const json_t *v)
{
	const json_t *t;
	size_t i;

	if (type == NULL || json_is_string(type))
		return type == NULL || is_type(json_string_value(type), v);
	json_array_foreach((json_t *)(uintptr_t)type, i, t) {
		if (is_type(json_string_value(t), v))
			return true;
	}
	return false;
}

static bool
is_listed(const json_t *list, const json_t *v)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)list, i, one) {
		if (json_equal(one, v))
			return true;
	}
	return list == NULL;
}

static bool
matches(const json_t *pattern, const json_t *v)
{
	regex_t re;
	bool ok;

	if (pattern == NULL || !json_is_string(v))
		return true;
	if (regcomp(&re, json_string_value(pattern), REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	ok = regexec(&re, json_string_value(v), 0, NULL, 0) == 0;
	regfree(&re);
	return ok;
}

static bool
in_range(const json_t *schema, const char *least, const char *most, json_int_t n)
{
	const json_t *min = json_object_get(schema, least), *max = json_object_get(schema, most);

	return (min == NULL || n >= json_integer_value(min)) &&
		(max == NULL || n <= json_integer_value(max));
}

static bool
accepts_any(struct checker *c, const json_t *list, const json_t *v)
{
	const json_t *schema;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)list, i, schema) {
		if (accepts(c, schema, v))
			return true;
	}
	return list == NULL;
}

static bool
accepts_items(struct checker *c, const json_t *schema, const json_t *v)
{
	const json_t *items = json_object_get(schema, "items"), *item;
	size_t i, len = strlen(c->path);

	if (!in_range(schema, "minItems", "maxItems", (json_int_t)json_array_size(v)))
		return fault(c, "number of items");
	json_array_foreach((json_t *)(uintptr_t)v, i, item) {
		snprintf(c->path + len, sizeof(c->path) - len, "[%zu]", i);
		if (items != NULL && !accepts(c, items, item))
			return false;
		c->path[len] = '\0';
	}
	return true;
}

static bool
accepts_members(struct checker *c, const json_t *schema, const json_t *v)
{
	const json_t *properties = json_object_get(schema, "properties"), *name, *s;
	const json_t *others = json_object_get(schema, "additionalProperties");
	size_t i, len = strlen(c->path);
	const char *key;
	json_t *member;

	json_array_foreach(json_object_get(schema, "required"), i, name) {
		snprintf(c->path + len, sizeof(c->path) - len, ".%s", json_string_value(name));
		if (json_object_get(v, json_string_value(name)) == NULL)
			return fault(c, "required");
	}
	json_object_foreach((json_t *)(uintptr_t)v, key, member) {
		snprintf(c->path + len, sizeof(c->path) - len, ".%s", key);
		s = json_object_get(properties, key);
		if (s == NULL)
			s = others;
		if (json_is_false(s))
			return fault(c, "not in the schema");
		if (s != NULL && !accepts(c, s, member))
			return false;
	}
	c->path[len] = '\0';
	return true;
}

static bool
accepts(struct checker *c, const json_t *schema, const json_t *v)
{
	if (!has_type(json_object_get(schema, "type"), v))
		return fault(c, "type");
	if (!is_listed(json_object_get(schema, "enum"), v))
		return fault(c, "enum");
	if (!matches(json_object_get(schema, "pattern"), v))
		return fault(c, "pattern");
	if (json_is_integer(v) && !in_range(schema, "minimum", "maximum", json_integer_value(v)))
		return fault(c, "range");
	if (json_is_array(v) && !accepts_items(c, schema, v))
		return false;
	if (json_is_object(v) && !accepts_members(c, schema, v))
		return false;
	return accepts_any(c, json_object_get(schema, "anyOf"), v);
}

bool
schema_accepts(const json_t *schema, const json_t *v, char *why, size_t size)
{
	struct checker c = { .path = "result", .why = why, .size = size };

	return accepts(&c, schema, v);
}
