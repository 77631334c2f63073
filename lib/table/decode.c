/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* From JSON to a structure. What a value may be, and what a rejection says of it, is in its row. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <rte_debug.h>

#include "base/field.h"
#include "base/nearest.h"
#include "table/check.h"
#include "table/value.h"

/* --- rejecting: where, what was got, what is allowed --- */

static void
suggest(struct table_error *e, const struct nearest *n)
{
	if (n->word != NULL)
		table_append(e->text, sizeof(e->text), "; did you mean %s?", n->word);
}

static int
report_error(struct table_decoder *d)
{
	if (d->on_error != NULL)
		d->on_error(d);
	return -EINVAL;
}

/* @param got  NULL: the member is missing */
static int
reject_value(struct table_decoder *d, const struct table_row *row, const json_t *got)
{
	struct table_error *e = &d->err;
	const struct table_word *w;
	struct nearest n;

	snprintf(e->member, sizeof(e->member), "%s", d->path[0] != '\0' ? d->path : row->name);
	if (got == NULL)
		snprintf(e->got, sizeof(e->got), "nothing");
	else if (row->flags & TABLE_SECRET)
		snprintf(e->got, sizeof(e->got), "a value that is not shown");
	else
		json_brief(got, e->got, sizeof(e->got));
	table_allowed(row, e->allowed, sizeof(e->allowed));
	e->text[0] = '\0';
	table_append(e->text, sizeof(e->text), "%s: %s%s, allowed: %s", e->member,
		got != NULL ? "got " : "missing", got != NULL ? e->got : "", e->allowed);
	if (row->words != NULL && json_is_string(got)) {
		n = nearest_to(json_string_value(got));
		for (w = row->words; w->name != NULL; w++)
			nearest_try(&n, w->name);
		suggest(e, &n);
	}
	return report_error(d);
}

static void
try_names(struct nearest *n, const struct table_row *rows)
{
	for (; rows->name != NULL; rows++)
		if (rows->type == TABLE_INCLUDE)
			try_names(n, rows->fields);
		else
			nearest_try(n, rows->name);
}

static int
reject_name(struct table_decoder *d, const struct table_row *rows, const char *name)
{
	struct table_error *e = &d->err;
	struct nearest n = nearest_to(name);
	json_t *v = json_string(name);
	char brief[48];

	json_brief(v, brief, sizeof(brief));
	json_decref(v);
	memset(e, 0, sizeof(*e));
	table_append(e->member, sizeof(e->member), "%s%s%.*s", d->path,
		d->path[0] != '\0' ? "." : "", (int)strlen(brief) - 2, brief + 1);
	if (rows->name == NULL)
		snprintf(e->allowed, sizeof(e->allowed), "none");
	else
		table_append_names(e->allowed, sizeof(e->allowed), rows);
	table_append(e->text, sizeof(e->text), "%s: unknown name, allowed: %s", e->member,
		e->allowed);
	try_names(&n, rows);
	suggest(e, &n);
	return report_error(d);
}

/* --- single values --- */

static int
decode_uint(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	uint64_t u;

	if (!value_u64(v, &u) || u < row->min || u > table_largest(row) ||
		((row->flags & TABLE_POWER2) != 0 && (u & (u - 1)) != 0))
		return reject_value(d, row, v);
	field_store(field, row->size, u);
	return 0;
}

static int
decode_int(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	json_int_t i = json_integer_value(v);

	if (!json_is_integer(v) || i < (int64_t)row->min || i > (int64_t)row->max)
		return reject_value(d, row, v);
	field_store(field, row->size, (uint64_t)i);
	return 0;
}

static int
decode_real(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	double r = json_number_value(v);

	if (!json_is_number(v) || r <= (double)row->min || (row->max != 0 && r > (double)row->max))
		return reject_value(d, row, v);
	*(double *)field = r;
	return 0;
}

static int
decode_bool(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	if (!json_is_boolean(v))
		return reject_value(d, row, v);
	*(bool *)field = json_is_true(v);
	return 0;
}

const struct table_word *
table_find_word(const struct table_word *words, const char *text, size_t len)
{
	for (; words->name != NULL; words++)
		if (strlen(words->name) == len && strncasecmp(words->name, text, len) == 0)
			return words;
	return NULL;
}

/* The word that a JSON text is; NULL: it is no text, or none of them. */
static const struct table_word *
word_of(const struct table_row *row, const json_t *v)
{
	return json_is_string(v)
		? table_find_word(row->words, json_string_value(v), json_string_length(v))
		: NULL;
}

static int
decode_enum(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	const struct table_word *word = word_of(row, v);

	if (word == NULL)
		return reject_value(d, row, v);
	field_store(field, row->size, word->value);
	return 0;
}

static int
decode_flags(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	const struct table_word *word;
	const json_t *item;
	uint32_t flags = 0;
	size_t i;

	if (!json_is_array(v))
		return reject_value(d, row, v);
	json_array_foreach((json_t *)(uintptr_t)v, i, item) {
		word = word_of(row, item);
		if (word == NULL)
			return reject_value(d, row, item);
		flags |= word->value;
	}
	field_store(field, row->size, flags);
	return 0;
}

static int
decode_string(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	size_t len = json_string_length(v);

	/* text with a NUL inside cannot come: the parser rejects it */
	if (!json_is_string(v) || len == 0 || len > row->max)
		return reject_value(d, row, v);
	*(const char **)field = json_string_value(v); /* lives as long as the JSON */
	return 0;
}

static int
decode_chars(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	if (!json_is_string(v) || json_string_length(v) >= row->size)
		return reject_value(d, row, v);
	memcpy(field, json_string_value(v), json_string_length(v) + 1);
	return 0;
}

static int
decode_name(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	const char *name;

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return decode_string(d, row, v, field);
	name = arena_printf(d->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	*(const char **)field = name;
	return name != NULL ? 0 : -ENOMEM;
}

static int
decode_bytes(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	size_t len = json_string_length(v) / 2;
	uint8_t *data;

	if (!json_is_string(v) || len > row->max)
		return reject_value(d, row, v);
	data = arena_alloc(d->arena, len + 1);
	if (data == NULL)
		return -ENOMEM;
	if (hex_decode(json_string_value(v), json_string_length(v), data, len) < 0)
		return reject_value(d, row, v);
	*(struct table_bytes *)field = (struct table_bytes){ data, len };
	return 0;
}

static int
decode_form(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	if (!json_is_string(v) || !row->form->parse(json_string_value(v), field))
		return reject_value(d, row, v);
	return 0;
}

/* What the names are is the caller's to check. */
static int
decode_map(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	const json_t *item;
	size_t i;

	if (!json_is_object(v) && (row->type == TABLE_MAP || !json_is_array(v)))
		return reject_value(d, row, v);
	if (json_is_array(v) && (json_array_size(v) < row->min || json_array_size(v) > row->max))
		return reject_value(d, row, v);
	json_array_foreach((json_t *)(uintptr_t)v, i, item) {
		if (!json_is_object(item))
			return reject_value(d, row, item);
	}
	*(json_t **)field = (json_t *)(uintptr_t)v;
	return 0;
}

/* --- objects and lists --- */

static const struct table_row *
find_row(const struct table_row *rows, const char *name)
{
	const struct table_row *found;

	for (; rows->name != NULL; rows++) {
		if (rows->type == TABLE_INCLUDE) {
			found = find_row(rows->fields, name);
			if (found != NULL)
				return found;
		} else if (strcmp(rows->name, name) == 0) {
			return rows;
		}
	}
	return NULL;
}

/* Note an error in @p ret. @return false: decoding ends with it */
static bool
go_on(const struct table_decoder *d, int rc, int *ret)
{
	if (rc != 0)
		*ret = rc;
	return rc == 0 || d->on_error != NULL;
}

static int
check_names(struct table_decoder *d, const struct table_row *rows, const json_t *obj)
{
	const char *name;
	json_t *v;
	int ret = 0;

	json_object_foreach((json_t *)(uintptr_t)obj, name, v) {
		if (find_row(rows, name) == NULL && !go_on(d, reject_name(d, rows, name), &ret))
			break;
	}
	return ret;
}

static void
store_default(const struct table_row *row, void *field)
{
	if (row->type == TABLE_BOOL)
		*(bool *)field = row->def != 0;
	else if (row->type == TABLE_REAL)
		*(double *)field = (double)row->def;
	else
		field_store(field, row->size, row->def);
}

static int decode_members(struct table_decoder *d, const struct table_row *rows, const json_t *obj,
	void *base);

static int
decode_member(struct table_decoder *d, const struct table_row *row, const json_t *obj, void *base)
{
	const json_t *v = json_object_get(obj, row->name);
	size_t len = strlen(d->path);
	int rc = 0;

	if (row->type == TABLE_INCLUDE)
		return decode_members(d, row->fields, obj, (char *)base + row->offset);
	snprintf(d->path + len, sizeof(d->path) - len, "%s%s", len > 0 ? "." : "", row->name);
	if (v != NULL)
		rc = table_decode_value(d, row, v, base);
	else if ((row->flags & TABLE_REQUIRED) != 0)
		rc = reject_value(d, row, NULL);
	else if (row->def != 0)
		store_default(row, (char *)base + row->offset);
	d->path[len] = '\0';
	return rc;
}

static int
decode_members(struct table_decoder *d, const struct table_row *rows, const json_t *obj, void *base)
{
	int ret = 0;

	table_check(rows);
	while (rows->name != NULL && go_on(d, decode_member(d, rows, obj, base), &ret))
		rows++;
	return ret;
}

static int
decode_object(struct table_decoder *d, const struct table_row *row, const json_t *v, void *base)
{
	int ret = 0;

	if ((row->flags & TABLE_ONE_ALONE) != 0 && !json_is_object(v))
		return table_decode_value(d, &row->fields[0], v, base);
	if (!json_is_object(v))
		return reject_value(d, row, v);
	if (go_on(d, check_names(d, row->fields, v), &ret))
		go_on(d, decode_members(d, row->fields, v, base), &ret);
	return ret;
}

/* Decode an item of the list that @p row describes. An error says what an item may be. */
static int
decode_item(struct table_decoder *d, const struct table_row *row, const json_t *v, void *item)
{
	struct table_row object = *row;

	object.type = TABLE_OBJECT;
	if (row->init != NULL)
		memcpy(item, row->init, row->item_size);
	if ((row->flags & TABLE_VALUES) != 0)
		return table_decode_value(d, &row->fields[0], v, item);
	return decode_object(d, &object, v, item);
}

static int
decode_items(struct table_decoder *d, const struct table_row *row, const json_t *v, char *items)
{
	size_t i, len = strlen(d->path), n = json_array_size(v);
	int rc = 0, ret = 0;

	for (i = 0; i < n && go_on(d, rc, &ret); i++) {
		snprintf(d->path + len, sizeof(d->path) - len, "[%zu]", i);
		rc = decode_item(d, row, json_array_get(v, i), items + i * row->item_size);
		d->path[len] = '\0';
	}
	go_on(d, rc, &ret);
	return ret;
}

/* With TABLE_INLINE only a list; else one object may stand for a list of one. */
static int
decode_list(struct table_decoder *d, const struct table_row *row, const json_t *v, void *field)
{
	bool in_place = (row->flags & TABLE_INLINE) != 0;
	size_t n = json_is_array(v) ? json_array_size(v) : 1;
	struct table_list *list = field;

	if (n < row->min || n > row->max || (in_place && !json_is_array(v)))
		return reject_value(d, row, v);
	if (in_place) {
		*(unsigned int *)((char *)field - row->offset + row->count) = (unsigned int)n;
		return decode_items(d, row, v, field);
	}
	list->items = arena_alloc(d->arena, (n + 1) * row->item_size);
	if (list->items == NULL)
		return -ENOMEM;
	list->num = n;
	if (!json_is_array(v))
		return decode_item(d, row, v, list->items);
	return decode_items(d, row, v, list->items);
}

/* Without a function: only encoded. */
static int (*const decoders[])(struct table_decoder *d, const struct table_row *row,
	const json_t *v, void *field) = {
	[TABLE_UINT] = decode_uint,
	[TABLE_INT] = decode_int,
	[TABLE_REAL] = decode_real,
	[TABLE_BOOL] = decode_bool,
	[TABLE_STRING] = decode_string,
	[TABLE_CHARS] = decode_chars,
	[TABLE_NAME] = decode_name,
	[TABLE_BYTES] = decode_bytes,
	[TABLE_ENUM] = decode_enum,
	[TABLE_FLAGS] = decode_flags,
	[TABLE_FORM] = decode_form,
	[TABLE_OBJECT] = decode_object,
	[TABLE_LIST] = decode_list,
	[TABLE_MAP] = decode_map,
	[TABLE_MAPS] = decode_map,
	[TABLE_MEMBERS] = NULL,
};

int
table_decode_value(struct table_decoder *d, const struct table_row *row, const json_t *v,
	void *base)
{
	int rc;

	RTE_ASSERT(row->type <= TABLE_MEMBERS);
	rc = decoders[row->type] != NULL
		? decoders[row->type](d, row, v, (char *)base + row->offset)
		: reject_value(d, row, v);
	if (rc == 0 && row->bit != 0)
		*(uint32_t *)base |= row->bit;
	if ((row->flags & TABLE_NOTED) != 0 && json_is_object(v))
		*(bool *)((char *)base + row->count) = true;
	return rc;
}

int
table_decode(struct table_decoder *d, const struct table_row *rows, const json_t *v, void *out)
{
	const struct table_row row = { .name = d->root, .type = TABLE_OBJECT, .fields = rows };

	RTE_ASSERT(out != NULL || rows->name == NULL);
	memset(&d->err, 0, sizeof(d->err));
	if (v == NULL)
		return decode_members(d, rows, NULL, out);
	return table_decode_value(d, &row, v, out);
}
