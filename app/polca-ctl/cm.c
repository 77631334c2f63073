/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <string.h>

#include "cm.h"
#include "dest.h"
#include "methods.h"
#include "table.h"

int
cm_take_dest(json_t *params, const char *words)
{
	char dest[64], text[128];

	snprintf(dest, sizeof(dest), "%s", method_text(params, "dest"));
	json_object_del(params, "dest");
	if (dest_parse(dest, params, "dgid", "dlid"))
		return 0;
	snprintf(text, sizeof(text), "%s: dest: got \"%s\"", words, dest);
	return usage_error("%s, allowed: " DEST_ALLOWED, text);
}

/* --- services --- */

/* Drop a column that is 0 in every row. */
static void
drop_zeros(json_t *rows, const char *name)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		if (member_int(row, name) != 0)
			return;
	}
	json_array_foreach(rows, i, row)
		json_object_del(row, name);
}

static void
drop_nulls(json_t *row)
{
	const char *name;
	json_t *v;
	void *tmp;

	json_object_foreach_safe(row, tmp, name, v) {
		if (json_is_null(v))
			json_object_del(row, name);
	}
}

/*
 * Drop columns that carry no information. The service ID is shown only for services without a port.
 */
static void
narrow(json_t *rows)
{
	static const char *const counters[] = { "connections", "established", "refused",
		"peer_limit", "messages_in", "messages_out", "bytes_in", "bytes_out", "errors",
		"exchanges", "mismatches", "violations", "receives_missing" };
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		drop_nulls(row);
		if (json_object_get(row, "port") != NULL)
			json_object_del(row, "service_id");
		if (strcmp(method_text(row, "port_space"), "TCP") == 0)
			json_object_del(row, "port_space");
	}
	for (i = 2; i < sizeof(counters) / sizeof(counters[0]); i++)
		drop_zeros(rows, counters[i]);
}

int
cm_all_services(const struct options *o, struct connection *c, const char *words, json_t **result)
{
	json_t *page, *params = json_pack("{s: i}", "max", CM_SERVICES);
	int rc = ask_server(o, c, words, "service_list", params, 0, result);

	while (rc == 0 && json_is_integer(json_object_get(*result, "cursor"))) {
		json_object_set(params, "cursor", json_object_get(*result, "cursor"));
		rc = ask_server(o, c, words, "service_list", params, 0, &page);
		if (rc != 0) {
			json_decref(*result);
			*result = NULL;
			break;
		}
		json_array_extend(json_object_get(*result, "services"),
			json_object_get(page, "services"));
		json_object_set(*result, "cursor", json_object_get(page, "cursor"));
		json_decref(page);
	}
	json_decref(params);
	return rc;
}

static int
print_services(const struct options *o, struct connection *c)
{
	json_t *rows, *result = NULL;
	int rc = cm_all_services(o, c, "cm services", &result);

	if (rc != 0)
		return rc;
	rows = json_object_get(result, "services");
	if (o->json) {
		print_json(result);
	} else if (json_array_size(rows) == 0) {
		printf("none; polca-ctl cm listen --help says how to have one\n");
	} else {
		narrow(rows);
		table_print(stdout, result);
	}
	json_decref(result);
	return 0;
}

/* --- cm alternate --- */

static void
print_agreed(const json_t *result)
{
	json_t *w;
	size_t i;

	table_print(stdout, result);
	json_array_foreach(json_object_get(result, "warnings"), i, w)
		fprintf(stderr, "warning: %s\n", json_string_value(w));
}

static int
load_alternate(const struct options *o, struct connection *c, json_t *params)
{
	json_t *result = NULL;
	int rc = cm_take_dest(params, "cm alternate");

	if (rc == 0)
		rc = ask_server(o, c, "cm alternate", "cm_load_alternate", params, 0, &result);
	if (rc == 0 && o->json)
		print_json(result);
	else if (rc == 0)
		print_agreed(result);
	json_decref(result);
	return rc;
}

int
cm_command_run(const struct options *o, struct connection *c, const json_t *command, json_t *params)
{
	const char *name = method_text(command, "name");

	if (strcmp(name, "cm_services") == 0)
		return print_services(o, c);
	if (strcmp(name, "cm_connect") == 0)
		return cm_connect_run(o, c, params);
	return load_alternate(o, c, params);
}
