/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* From a structure to JSON. */

#include <inttypes.h>

#include "base/field.h"
#include "table/check.h"
#include "table/value.h"

static json_int_t
signed_number(const void *field, size_t size)
{
	unsigned int spare = 64 - 8 * (unsigned int)size;

	return (json_int_t)(field_load(field, size) << spare) >> spare;
}

static bool
is_zero_field(const uint8_t *field, size_t size)
{
	while (size > 0 && field[size - 1] == 0)
		size--;
	return size == 0;
}

bool
table_empty(const struct table_row *row, const void *base)
{
	const void *field = (const char *)base + row->offset;
	bool may_lack = (row->flags & (TABLE_OPTIONAL | TABLE_NULL)) != 0;
	uint64_t n;

	if (row->bit != 0 && (*(const uint32_t *)base & row->bit) != row->bit)
		return true;
	switch (row->type) {
	case TABLE_UINT:
		n = field_load(field, row->size);
		return n < row->min || (row->max != 0 && n > row->max);
	case TABLE_STRING:
	case TABLE_NAME:
		return *(const char *const *)field == NULL ||
			(may_lack && **(const char *const *)field == '\0');
	case TABLE_MAP:
	case TABLE_MAPS:
	case TABLE_COUNTS:
		return *(json_t *const *)field == NULL;
	case TABLE_CHARS:
		return may_lack && *(const char *)field == '\0';
	case TABLE_BYTES:
		return may_lack && ((const struct table_bytes *)field)->data == NULL;
	case TABLE_LIST:
		return may_lack && (row->flags & TABLE_INLINE) == 0 &&
			((const struct table_list *)field)->num == 0;
	case TABLE_FORM:
		return may_lack && is_zero_field(field, row->size);
	case TABLE_OBJECT:
		return (row->flags & TABLE_NOTED) != 0 &&
			!*(const bool *)((const char *)base + row->count);
	default:
		return false;
	}
}

static json_t *encode_object(const struct table_row *rows, const void *base, uint32_t hidden);

static json_t *
encode_list(const struct table_row *row, const void *base, uint32_t hidden)
{
	bool in_place = (row->flags & TABLE_INLINE) != 0;
	const void *field = (const char *)base + row->offset;
	const struct table_list *list = field;
	const char *items = in_place ? field : list->items;
	size_t i, n;
	json_t *array = json_array(), *v;

	n = in_place ? *(const unsigned int *)((const char *)base + row->count) : list->num;
	for (i = 0; i < n; i++) {
		if ((row->flags & TABLE_VALUES) != 0)
			v = table_encode_value(&row->fields[0], items + i * row->item_size);
		else
			v = encode_object(row->fields, items + i * row->item_size, hidden);
		if ((row->flags & TABLE_ONE_ALONE) != 0 && json_object_size(v) == 1) {
			json_t *alone = json_incref(json_object_get(v, row->fields[0].name));

			json_decref(v);
			v = alone;
		}
		if (json_array_append_new(array, v) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *
encode_value(const struct table_row *row, const void *base, uint32_t hidden)
{
	const void *field = (const char *)base + row->offset;
	const struct table_bytes *bytes = field;
	char text[TABLE_FORM_MAX];
	uint64_t n;

	switch (row->type) {
	case TABLE_UINT:
		n = field_load(field, row->size);
		return row->digits == 0 ? json_u64(n)
					: json_sprintf("0x%0*" PRIx64, row->digits, n);
	case TABLE_INT:
		return json_integer(signed_number(field, row->size));
	case TABLE_REAL:
		return json_real(*(const double *)field);
	case TABLE_BOOL:
		return json_boolean(*(const bool *)field);
	case TABLE_STRING:
	case TABLE_NAME:
		return json_string(*(const char *const *)field);
	case TABLE_CHARS:
		return json_string(field);
	case TABLE_BYTES:
		return json_hex(bytes->data, bytes->len);
	case TABLE_ENUM:
		return json_word(row->words, (uint32_t)field_load(field, row->size));
	case TABLE_FLAGS:
		return json_flags(row->words, (uint32_t)field_load(field, row->size));
	case TABLE_FORM:
		return json_string(row->form->print(field, text));
	case TABLE_OBJECT:
		return encode_object(row->fields, field, hidden);
	case TABLE_LIST:
		return encode_list(row, base, hidden);
	case TABLE_MAP:
	case TABLE_MAPS:
	case TABLE_COUNTS:
	case TABLE_MEMBERS:
		return json_incref(*(json_t *const *)field);
	case TABLE_INCLUDE:
		break;
	}
	return NULL;
}

json_t *
table_encode_value(const struct table_row *row, const void *base)
{
	return encode_value(row, base, 0);
}

static int
encode_members(const struct table_row *rows, const void *base, json_t *obj, uint32_t hidden)
{
	json_t *v;
	int rc = 0;

	table_check(rows);
	for (; rows->name != NULL && rc == 0; rows++) {
		if ((rows->flags & hidden) != 0 ||
			(rows->type == TABLE_INCLUDE && table_empty(rows, base))) {
			continue;
		} else if (rows->type == TABLE_INCLUDE) {
			rc = encode_members(rows->fields, (const char *)base + rows->offset, obj,
				hidden);
		} else if (rows->type == TABLE_MEMBERS) {
			v = *(json_t *const *)((const char *)base + rows->offset);
			rc = v == NULL ? 0 : json_object_update(obj, v);
		} else if (!table_empty(rows, base)) {
			rc = json_object_set_new(obj, rows->name, encode_value(rows, base, hidden));
		} else if ((rows->flags & TABLE_NULL) != 0) {
			rc = json_object_set_new(obj, rows->name, json_null());
		}
	}
	return rc;
}

static json_t *
encode_object(const struct table_row *rows, const void *base, uint32_t hidden)
{
	json_t *obj = json_object();

	if (encode_members(rows, base, obj, hidden) == 0)
		return obj;
	json_decref(obj);
	return NULL;
}

json_t *
table_encode(const struct table_row *rows, const void *base)
{
	return encode_object(rows, base, 0);
}

json_t *
table_encode_without(const struct table_row *rows, const void *base, uint32_t hidden)
{
	return encode_object(rows, base, hidden);
}
