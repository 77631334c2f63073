/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/json_record.h"
#include "ctl/value.h"

/* Plain numbers stay numbers; everything else is the text that people read and sa_parse() takes. */
static json_t *
json_field(const struct sa_field *f, const uint8_t *rec)
{
	char buf[SA_PRINT_MAX];

	if (f->kind == SA_DEC && f->bits <= 64)
		return json_u64(sa_get(f, rec));
	return json_string(sa_print(f, rec, buf, sizeof(buf)));
}

json_t *
json_record(const struct sa_record_type *t, uint32_t rid, const uint8_t *rec)
{
	json_t *row = json_object();
	const struct sa_field *f;

	set(row, "record", json_string(t->name));
	if (rid != 0)
		set(row, "rid", json_sprintf("0x%08" PRIx32, rid));
	for (f = t->fields; f < t->fields + t->num_fields; f++)
		if (f->kind != SA_RESERVED)
			set(row, f->name, json_field(f, rec));
	return row;
}

static const char *
text_of(const json_t *v, char buf[32])
{
	if (json_is_integer(v)) {
		snprintf(buf, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		return buf;
	}
	if (json_is_boolean(v))
		return json_is_true(v) ? "1" : "0";
	return json_string_value(v);
}

int
record_from_json(const struct sa_record_type *t, json_t *fields, uint8_t *rec, uint64_t *mask,
	const char **unknown, struct error *err)
{
	const struct sa_field *f;
	const char *name, *text;
	char buf[32];
	json_t *v;

	memset(rec, 0, t->len);
	*mask = 0;
	*unknown = NULL;
	json_object_foreach(fields, name, v)
	{
		if (strcmp(name, "record") == 0 || strcmp(name, "rid") == 0)
			continue;
		f = sa_field_named(t, name);
		if (f == NULL || f->kind == SA_RESERVED) {
			*unknown = name;
			return error_set(err, EINVAL, "%s: %s has no such field", name, t->name);
		}
		text = text_of(v, buf);
		if (text == NULL)
			return error_set(err, EINVAL, "%s: expected text or a number", name);
		if (sa_parse(f, rec, text, err) != 0)
			return -EINVAL;
		*mask |= sa_mask(t, f, SA_V2);
	}
	return 0;
}

json_t *
json_field_names(const struct sa_record_type *t)
{
	json_t *names = json_array();
	const struct sa_field *f;

	for (f = t->fields; f < t->fields + t->num_fields; f++)
		if (f->kind != SA_RESERVED)
			json_array_append_new(names, json_string(f->name));
	return names;
}
