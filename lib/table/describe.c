/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What rows say, in words for people, as JSON for programs that help them, and as JSON schema. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>

#include "table/value.h"

void
table_append(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	RTE_ASSERT(len < size);
	va_start(ap, fmt);
	vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
}

static void
append_word(char *buf, size_t size, const char *word)
{
	size_t len = strlen(buf);

	table_append(buf, size, "%s%s", len > 0 && buf[len - 1] != ' ' ? ", " : "", word);
}

void
table_append_words(char *buf, size_t size, const struct table_word *words)
{
	for (; words->name != NULL; words++)
		append_word(buf, size, words->name);
}

void
table_append_names(char *buf, size_t size, const struct table_row *rows)
{
	for (; rows->name != NULL; rows++)
		if (rows->type == TABLE_INCLUDE)
			table_append_names(buf, size, rows->fields);
		else
			append_word(buf, size, rows->name);
}

/* --- in words --- */

const char *
table_type_name(const struct table_row *row)
{
	static const char *const names[] = {
		[TABLE_UINT] = "integer",
		[TABLE_INT] = "integer",
		[TABLE_REAL] = "number",
		[TABLE_BOOL] = "boolean",
		[TABLE_STRING] = "string",
		[TABLE_CHARS] = "string",
		[TABLE_NAME] = "name",
		[TABLE_BYTES] = "hex",
		[TABLE_ENUM] = "enum",
		[TABLE_FLAGS] = "flags",
		[TABLE_OBJECT] = "object",
		[TABLE_LIST] = "list",
		[TABLE_MAP] = "map",
		[TABLE_MAPS] = "maps",
		[TABLE_COUNTS] = "counts",
		[TABLE_MEMBERS] = "counts",
	};

	return row->type == TABLE_FORM ? row->form->name : names[row->type];
}

uint64_t
table_largest(const struct table_row *row)
{
	RTE_ASSERT(row->type == TABLE_UINT);
	if (row->max != 0)
		return row->max;
	return row->size >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * row->size)) - 1;
}

static void
allowed_number(const struct table_row *row, char *buf, size_t size)
{
	const char *what = (row->flags & TABLE_POWER2) != 0 ? "power of two" : "integer";
	uint64_t max = table_largest(row);

	if (row->digits > 0)
		table_append(buf, size, "\"0x%" PRIx64 "\"..\"0x%" PRIx64 "\"", row->min, max);
	else if (max == UINT64_MAX)
		table_append(buf, size, "64-bit integer%s, \"0x...\" text beyond 2^63 - 1",
			row->min > 0 ? " from 1" : "");
	else
		table_append(buf, size, "%s %" PRIu64 "..%" PRIu64, what, row->min, max);
}

static void
allowed_list(const struct table_row *row, char *buf, size_t size)
{
	bool objects = (row->flags & TABLE_VALUES) == 0;

	table_append(buf, size, "%slist of %" PRIu64 "..%" PRIu64 "%s",
		(row->flags & TABLE_INLINE) != 0 ? "" : "an object, or a ", row->min, row->max,
		objects ? " objects, of " : "");
	if (objects)
		table_append_names(buf, size, row->fields);
}

const char *
table_allowed(const struct table_row *row, char *buf, size_t size)
{
	buf[0] = '\0';
	if (row->texts != NULL) {
		table_append(buf, size, "one of ");
		row->texts(buf, size);
		return buf;
	}
	switch (row->type) {
	case TABLE_UINT:
		allowed_number(row, buf, size);
		break;
	case TABLE_INT:
		table_append(buf, size, "integer %" PRId64 "..%" PRId64, row->min, row->max);
		break;
	case TABLE_REAL:
		table_append(buf, size, "number");
		if (row->max != 0)
			table_append(buf, size, " above %" PRIu64 ", at most %" PRIu64, row->min,
				row->max);
		break;
	case TABLE_BOOL:
		table_append(buf, size, "true or false");
		break;
	case TABLE_STRING:
		table_append(buf, size, "text of 1 to %" PRIu64 " bytes", row->max);
		break;
	case TABLE_CHARS:
		table_append(buf, size, "text of at most %zu bytes", row->size - 1);
		break;
	case TABLE_NAME:
		table_append(buf, size, "number, or text of 1 to %" PRIu64 " bytes", row->max);
		break;
	case TABLE_BYTES:
		table_append(buf, size, "up to %" PRIu64 " bytes as hex text", row->max);
		break;
	case TABLE_ENUM:
		table_append(buf, size, "one of ");
		table_append_words(buf, size, row->words);
		break;
	case TABLE_FLAGS:
		table_append(buf, size, "list of ");
		table_append_words(buf, size, row->words);
		break;
	case TABLE_FORM:
		table_append(buf, size, "%s", row->form->allowed);
		break;
	case TABLE_OBJECT:
		table_append(buf, size, "object of ");
		table_append_names(buf, size, row->fields);
		break;
	case TABLE_LIST:
		allowed_list(row, buf, size);
		break;
	case TABLE_MAP:
		table_append(buf, size, "object of NAME: VALUE");
		break;
	case TABLE_MAPS:
		table_append(buf, size,
			"an object, or a list of %" PRIu64 "..%" PRIu64 " objects, of NAME: VALUE",
			row->min, row->max);
		break;
	case TABLE_COUNTS:
	case TABLE_INCLUDE:
	case TABLE_MEMBERS:
		table_append(buf, size, "object of NAME: NUMBER");
		break;
	}
	return buf;
}

/* True for a value that is 0, false or empty when it is not given. */
static bool
may_be_zero(const struct table_row *row)
{
	if ((row->flags & TABLE_REQUIRED) != 0 || row->bit != 0 || row->min != 0)
		return false;
	return row->type == TABLE_UINT || row->type == TABLE_BOOL || row->type == TABLE_ENUM ||
		row->type == TABLE_FLAGS;
}

const char *
table_default(const struct table_row *row, char *buf, size_t size)
{
	const struct table_word *w;
	bool one = row->type == TABLE_ENUM;

	if (row->def_text != NULL)
		return row->def_text;
	if (row->def == 0 && !may_be_zero(row))
		return NULL;
	buf[0] = '\0';
	if (row->type == TABLE_BOOL)
		table_append(buf, size, row->def != 0 ? "true" : "false");
	else if (row->words == NULL)
		table_append(buf, size, "%" PRIu64, row->def);
	for (w = row->words; w != NULL && w->name != NULL; w++)
		if (one ? w->value == row->def : (w->value & row->def) != 0)
			append_word(buf, size, w->name);
	if (buf[0] == '\0')
		table_append(buf, size, "none");
	return buf;
}

/* --- for programs that help --- */

static json_t *
describe_words(const struct table_word *words)
{
	json_t *list = json_array();

	for (; words->name != NULL; words++)
		json_array_append_new(list, json_string(words->name));
	return list;
}

static json_t *
describe_row(const struct table_row *row, enum table_way way)
{
	json_t *v = json_object();
	const char *def = NULL;
	char buf[768];

	json_set(v, "name", json_string(row->name));
	json_set(v, "type", json_string(table_type_name(row)));
	json_set(v, "required", json_boolean((row->flags & TABLE_REQUIRED) != 0));
	if (way == TABLE_IN)
		def = table_default(row, buf, sizeof(buf));
	if (def != NULL)
		json_set(v, "default", json_string(def));
	json_set(v, "allowed", json_string(table_allowed(row, buf, sizeof(buf))));
	if (row->unit != NULL)
		json_set(v, "unit", json_string(row->unit));
	json_set(v, "help", json_string(row->help != NULL ? row->help : ""));
	if (row->words != NULL)
		json_set(v, "words", describe_words(row->words));
	if (row->fields != NULL && (row->flags & TABLE_VALUES) == 0)
		json_set(v, "fields", table_describe(row->fields, way));
	return v;
}

json_t *
table_describe(const struct table_row *rows, enum table_way way)
{
	json_t *list = json_array(), *more;

	for (; rows->name != NULL; rows++) {
		if (rows->type == TABLE_INCLUDE) {
			more = table_describe(rows->fields, way);
			json_array_extend(list, more);
			json_decref(more);
		} else {
			json_array_append_new(list, describe_row(rows, way));
		}
	}
	return list;
}

/* Members as lines "a: help", or within a list or object as "a (help), c (object of d, e)". */
static void
print_members(FILE *f, const struct table_row *rows, const char *first, bool lines)
{
	const char *between = first, *help;
	bool objects;

	for (; rows->name != NULL; rows++, between = lines ? "\n" : ", ") {
		if (rows->type == TABLE_INCLUDE) {
			print_members(f, rows->fields, between, lines);
			continue;
		}
		fprintf(f, "%s%s", between, rows->type == TABLE_MEMBERS ? "counters" : rows->name);
		objects = rows->fields != NULL && (rows->flags & TABLE_VALUES) == 0;
		help = rows->help != NULL ? rows->help : "";
		if (!lines && help[0] == '\0' && !objects)
			continue;
		fprintf(f, "%s%s%s", lines ? ": " : " (", help,
			help[0] != '\0' && objects ? ": " : "");
		if (objects) {
			fprintf(f, "%s of ", table_type_name(rows));
			print_members(f, rows->fields, "", false);
		} else if (help[0] == '\0') {
			fputs(table_type_name(rows), f);
		}
		fputs(lines ? "" : ")", f);
	}
}

json_t *
table_summary(const struct table_row *rows)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	json_t *v;

	if (f == NULL)
		return NULL;
	print_members(f, rows, "", true);
	fclose(f);
	v = json_string(text);
	free(text);
	return v;
}

/* --- JSON schema, draft 7 --- */

static json_t *schema_of(const struct table_row *row, enum table_way way, const void *base);

/* An integer beyond 2^63 - 1 is text. */
static json_t *
schema_uint(const struct table_row *row)
{
	json_t *list = json_array();
	uint64_t n, max = table_largest(row);

	if (row->digits > 0 || max > INT64_MAX) {
		json_decref(list);
		return json_pack("{s:[s, s], s:s, s:i}", "type", "string", "integer", "pattern",
			"^0[xX][0-9A-Fa-f]{1,16}$", "minimum", 0);
	}
	for (n = 1; (row->flags & TABLE_POWER2) != 0 && n <= max; n *= 2)
		if (n >= row->min)
			json_array_append_new(list, json_integer((json_int_t)n));
	if (json_array_size(list) > 0)
		return json_pack("{s:o}", "enum", list);
	json_decref(list);
	return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)row->min,
		"maximum", (json_int_t)max);
}

/* True if encoding may leave the member out. */
static bool
may_be_left_out(const struct table_row *row)
{
	if ((row->flags & TABLE_NULL) != 0)
		return false;
	return row->bit != 0 || (row->flags & (TABLE_OPTIONAL | TABLE_NOTED | TABLE_SECRET)) != 0 ||
		(row->type == TABLE_UINT && (row->min > 0 || row->max != 0));
}

static void
add_members(const struct table_row *rows, enum table_way way, const void *base, json_t *properties,
	json_t *required, bool *others)
{
	for (; rows->name != NULL; rows++) {
		const void *at = base != NULL ? (const char *)base + rows->offset : NULL;

		if (rows->type == TABLE_INCLUDE) {
			add_members(rows->fields, way, at, properties,
				rows->bit == 0 ? required : NULL, others);
			continue;
		}
		if (rows->type == TABLE_MEMBERS) {
			*others = true;
			continue;
		}
		json_set(properties, rows->name, schema_of(rows, way, base));
		if (required == NULL)
			continue;
		if (way == TABLE_IN ? (rows->flags & TABLE_REQUIRED) != 0 : !may_be_left_out(rows))
			json_array_append_new(required, json_string(rows->name));
	}
}

json_t *
table_schema(const struct table_row *rows, enum table_way way, const void *defaults)
{
	json_t *properties = json_object(), *required = json_array(), *obj;
	bool others = false;

	add_members(rows, way, defaults, properties, required, &others);
	obj = json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties,
		"additionalProperties",
		others ? json_pack("{s:[s, s]}", "type", "integer", "string") : json_false());
	if (json_array_size(required) > 0)
		json_object_set(obj, "required", required);
	json_decref(required);
	return obj;
}

static json_t *
schema_list(const struct table_row *row, enum table_way way)
{
	json_t *item, *s;

	if ((row->flags & TABLE_VALUES) != 0)
		item = schema_of(&row->fields[0], way, NULL);
	else
		item = table_schema(row->fields, way, row->init);
	if ((row->flags & TABLE_ONE_ALONE) != 0)
		item = json_pack("{s:[o, o]}", "anyOf", schema_of(&row->fields[0], way, NULL),
			item);
	s = json_pack("{s:s}", "type", "array");
	if (row->max != 0) {
		json_set_int(s, "minItems", row->min);
		json_set_int(s, "maxItems", row->max);
	}
	json_set(s, "items", item);
	return s;
}

static json_t *
schema_of_type(const struct table_row *row, enum table_way way, const void *base)
{
	switch (row->type) {
	case TABLE_UINT:
		return schema_uint(row);
	case TABLE_INT:
	case TABLE_REAL:
	case TABLE_BOOL:
	case TABLE_STRING:
		return json_pack("{s:s}", "type", table_type_name(row));
	case TABLE_CHARS:
		return json_pack("{s:s, s:I}", "type", "string", "maxLength",
			(json_int_t)(row->size - 1));
	case TABLE_NAME:
		return json_pack("{s:[s, s]}", "type", "string", "integer");
	case TABLE_BYTES:
		return json_pack("{s:s, s:s}", "type", "string", "pattern", "^([0-9A-Fa-f]{2})*$");
	case TABLE_ENUM:
		return json_pack("{s:o}", "enum", describe_words(row->words));
	case TABLE_FLAGS:
		return json_pack("{s:s, s:{s:o}}", "type", "array", "items", "enum",
			describe_words(row->words));
	case TABLE_FORM:
		return json_pack("{s:s, s:s}", "type", "string", "pattern", row->form->pattern);
	case TABLE_OBJECT:
		return table_schema(row->fields, way,
			base != NULL ? (const char *)base + row->offset : NULL);
	case TABLE_LIST:
		return schema_list(row, way);
	case TABLE_MAPS:
		return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "object");
	case TABLE_COUNTS:
		return json_pack("{s:s, s:{s:[s, s]}}", "type", "object", "additionalProperties",
			"type", "integer", "string");
	case TABLE_MAP:
	case TABLE_INCLUDE:
	case TABLE_MEMBERS:
		break;
	}
	return json_pack("{s:s}", "type", "object");
}

static json_t *
schema_of(const struct table_row *row, enum table_way way, const void *base)
{
	json_t *s = schema_of_type(row, way, base);

	if (way == TABLE_OUT && (row->flags & TABLE_NULL) != 0)
		s = json_pack("{s:[o, {s:s}]}", "anyOf", s, "type", "null");
	if (row->help != NULL)
		json_set(s, "description", json_string(row->help));
	if (base != NULL && (row->flags & TABLE_REQUIRED) == 0 && row->type != TABLE_OBJECT &&
		row->type != TABLE_LIST && !table_empty(row, base))
		json_set(s, "default", table_encode_value(row, base));
	return s;
}
