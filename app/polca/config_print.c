/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The table read the other way: a configuration as JSON, and the JSON schema.
 */

#include <errno.h>

#include "config.h"

static int
print_config_json(json_t *v, FILE *f)
{
	int ret = json_dumpf(v, f, JSON_INDENT(2));

	json_decref(v);
	return ret != 0 || fputc('\n', f) == EOF || fflush(f) != 0 ? -EIO : 0;
}

int
config_print(const struct config *c, FILE *f)
{
	return print_config_json(table_encode(config_rows, c), f);
}

int
config_print_schema(FILE *f)
{
	static struct config c;
	json_t *s;

	config_init(&c);
	s = table_schema(config_rows, TABLE_IN, &c);
	json_object_set_new(s, "description", json_string("Configuration of polca"));
	json_object_set_new(s, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
	json_object_set_new(s, "title", json_string("polca"));
	return print_config_json(s, f);
}
