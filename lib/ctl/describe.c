/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The method table in words: rpc_list's reply.
 */

#include <string.h>

#include "ctl/methods.h"

const struct table_row *
rpc_results(const struct rpc_method *m)
{
	return m->results != NULL ? m->results : params_none;
}

json_t *
rpc_result_schema(const struct rpc_method *m)
{
	return table_schema(rpc_results(m), TABLE_OUT, NULL);
}

static json_t *
describe_method(const char *area, const struct rpc_method *m, bool schema)
{
	json_t *row = json_object();

	json_set(row, "area", json_string(area));
	json_set(row, "name", json_string(m->name));
	json_set(row, "help", json_string(m->help));
	json_set(row, "params", table_describe(m->params, TABLE_IN));
	json_set(row, "result", table_summary(rpc_results(m)));
	json_set(row, "example", json_string(m->example));
	json_set(row, "reads", json_boolean(m->reads));
	if (schema) {
		json_set(row, "results", table_describe(rpc_results(m), TABLE_OUT));
		json_set(row, "params_schema", table_schema(m->params, TABLE_IN, NULL));
		json_set(row, "result_schema", rpc_result_schema(m));
	}
	return row;
}

json_t *
rpc_describe(const char *name, bool schema)
{
	json_t *list = json_array();
	const struct rpc_area *a;
	const struct rpc_method *m;

	for (a = rpc_areas; a->title != NULL; a++)
		for (m = a->methods; m->name != NULL; m++)
			if (name == NULL || strcmp(name, m->name) == 0)
				json_array_append_new(list, describe_method(a->title, m, schema));
	return list;
}
