/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <inttypes.h>

#include "ctl/json_record.h"
#include "table/value.h"

json_t *
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

	json_set(row, "record", json_string(t->name));
	if (rid != 0)
		json_set(row, "rid", json_sprintf("0x%08" PRIx32, rid));
	for (f = t->fields; f < t->fields + t->num_fields; f++)
		if (f->kind != SA_RESERVED)
			json_set(row, f->name, json_field(f, rec));
	return row;
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
