/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The method table in words: rpc_list's reply.
 */

#include <string.h>

#include "ctl/methods.h"

static json_t *describe_params(const struct param *table);

static json_t *
describe_words(const struct param_word *words)
{
	json_t *list = json_array();

	for (; words->name != NULL; words++)
		json_array_append_new(list, json_string(words->name));
	return list;
}

static json_t *
describe_param(const struct param *p)
{
	json_t *row = json_object();
	const char *def;
	char buf[768];

	set(row, "name", json_string(p->name));
	set(row, "type", json_string(param_type_name(p->type)));
	set(row, "required", json_boolean((p->flags & PARAM_REQUIRED) != 0));
	def = param_default(p, buf, sizeof(buf));
	if (def != NULL)
		set(row, "default", json_string(def));
	set(row, "allowed", json_string(param_allowed(p, buf, sizeof(buf))));
	set(row, "help", json_string(p->help));
	if (p->words != NULL)
		set(row, "words", describe_words(p->words));
	if (p->fields != NULL)
		set(row, "fields", describe_params(p->fields));
	return row;
}

static json_t *
describe_params(const struct param *table)
{
	json_t *list = json_array();

	for (; table->name != NULL; table++)
		json_array_append_new(list, describe_param(table));
	return list;
}

static json_t *
describe_method(const char *area, const struct rpc_method *m)
{
	json_t *row = json_object();

	set(row, "area", json_string(area));
	set(row, "name", json_string(m->name));
	set(row, "help", json_string(m->help));
	set(row, "params", describe_params(m->params));
	set(row, "result", json_string(m->result));
	set(row, "example", json_string(m->example));
	return row;
}

json_t *
rpc_describe(const char *name)
{
	json_t *list = json_array();
	const struct rpc_area *a;
	const struct rpc_method *m;

	for (a = rpc_areas; a->title != NULL; a++)
		for (m = a->methods; m->name != NULL; m++)
			if (name == NULL || strcmp(name, m->name) == 0)
				json_array_append_new(list, describe_method(a->title, m));
	return list;
}
