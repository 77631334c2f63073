/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The commands as rows beside the methods: what each asks for, and which parameters of the method
 * under it are its own.
 */

#include <string.h>

#include "methods.h"
#include "sa.h"

#define TARGET    "to port class_version "
#define KEYS      "sm_key timeout_ms resp_time pkey_index sgid_index dlid dmac worker "
#define CHOICE    "record fields " TARGET "component_mask rid "

static const struct command {
	const char *name;
	const char *method;
	const char *op; /* of sa_query; NULL: another method, or the words say */
	const char *params; /* of the method's, in this order */
	const char *required;
	bool prints; /* records, so it takes --oneline */
	const char *help;
	const char *example;
} commands[] = {
	{ "sa_get", "sa_query", "get", CHOICE KEYS, "record", true,
		"Get the one record that has the fields given; several are an error.",
		"polca-ctl sa get node lid=2" },
	{ "sa_table", "sa_query", "table", CHOICE "end_rid sa_key " KEYS, "record", true,
		"Get all records that have the fields given, every one where none is.",
		"polca-ctl sa table path sgid=fe80::1 dgid=fe80::2" },
	{ "sa_bulk", "sa_query", "bulk", TARGET "sa_key " KEYS, "", true,
		"Get the whole database, or what has changed since sa_key.",
		"polca-ctl sa bulk --to fe80::2 --oneline" },
	{ "sa_set", "sa_query", "set", CHOICE KEYS, "record", true,
		"Put a record: offer a service, join a multicast group, subscribe to notices.",
		"polca-ctl sa set service service_id=0x1234 service_gid=fe80::1 service_pkey=0xffff service_lease=60 service_name=mine" },
	{ "sa_delete", "sa_query", "delete", CHOICE KEYS, "record", true,
		"Take a record away: withdraw a service, leave a multicast group (in class version 1 by --rid).",
		"polca-ctl sa delete service service_id=0x1234 service_gid=fe80::1 service_pkey=0xffff" },
	{ "sa_config", "sa_query", NULL, "record fields records " TARGET KEYS, "action record",
		false,
		"Add, edit or delete many records at once, all of them or none (class version 1): one as FIELD=VALUE words, or those of a file.",
		"polca-ctl sa config add link from_lid=1 from_port=1 to_lid=2 to_port=1" },
	{ "sa_import", "sa_import", NULL, "format replace", "file", false,
		"Put the records of a file into the database, all of them or, if one is wrong, none.",
		"polca-ctl sa import fabric.json --replace" },
	{ "sa_export", "sa_export", NULL, "", "file", false,
		"Write all records of the database to a file (- is standard output), as sa import reads them.",
		"polca-ctl sa export fabric.json" },
};

/* Parameters that the command itself knows. */
static const struct own {
	const char *name;
	const char *type;
	const char *allowed;
	const char *help;
} own_file = { "file", "string", "path, or - for standard input or output", "the file" },
  own_action = { "action", "enum", "one of add, edit, delete", "what is done with the records" },
  own_oneline = { "oneline", "boolean", "true or false", "a line for each record" };

static json_t *
own_param(const struct own *own, bool required)
{
	json_t *p = json_object();

	json_object_set_new(p, "name", json_string(own->name));
	json_object_set_new(p, "type", json_string(own->type));
	json_object_set_new(p, "required", json_boolean(required));
	json_object_set_new(p, "allowed", json_string(own->allowed));
	json_object_set_new(p, "help", json_string(own->help));
	if (own == &own_action)
		json_object_set_new(p, "words", json_pack("[s, s, s]", "add", "edit", "delete"));
	return p;
}

static bool
listed(const char *list, const char *name, size_t len)
{
	size_t n;

	for (; *list != '\0'; list += n + (list[n] != '\0')) {
		n = strcspn(list, " ");
		if (n == len && strncmp(list, name, len) == 0)
			return true;
	}
	return false;
}

/* A copy of the method's row, required or not as the command has it. */
static void
add_param(json_t *params, const json_t *method, const struct command *c, const char *name, size_t len)
{
	json_t *p, *copy;
	size_t i;

	json_array_foreach(json_object_get(method, "params"), i, p)
	{
		if (strlen(method_text(p, "name")) != len ||
				strncmp(method_text(p, "name"), name, len) != 0)
			continue;
		copy = json_copy(p);
		json_object_set_new(copy, "required",
			json_boolean(listed(c->required, name, len)));
		if (strcmp(method_text(p, "name"), "format") == 0) /* sa.c looks into the file */
			json_object_set_new(copy, "default", json_string("what the file looks like"));
		json_array_append_new(params, copy);
	}
}

static json_t *
params_of(const json_t *method, const struct command *c)
{
	json_t *params = json_array();
	const char *name;
	size_t len;

	if (listed(c->required, "action", 6))
		json_array_append_new(params, own_param(&own_action, true));
	if (listed(c->required, "file", 4))
		json_array_append_new(params, own_param(&own_file, true));
	for (name = c->params; *name != '\0'; name += len + (name[len] != '\0')) {
		len = strcspn(name, " ");
		add_param(params, method, c, name, len);
	}
	if (listed(c->required, "action", 6))
		json_array_append_new(params, own_param(&own_file, false));
	if (c->prints)
		json_array_append_new(params, own_param(&own_oneline, false));
	return params;
}

static void
add_command(json_t *methods, const struct command *c)
{
	json_t *row, *method = methods_find(methods, c->method);
	size_t i;

	if (method == NULL)
		return; /* an older server */
	row = json_object();
	json_object_set_new(row, "command", json_string(c->method));
	if (c->op != NULL)
		json_object_set_new(row, "op", json_string(c->op));
	json_object_set(row, "area", json_object_get(method, "area"));
	json_object_set_new(row, "name", json_string(c->name));
	json_object_set_new(row, "help", json_string(c->help));
	json_object_set_new(row, "params", params_of(method, c));
	json_object_set_new(row, "result", json_string(""));
	json_object_set_new(row, "example", json_string(c->example));
	/* in the method's place, or before it */
	for (i = 0; json_array_get(methods, i) != method; i++)
		;
	if (strcmp(c->name, c->method) == 0)
		json_array_set_new(methods, i, row);
	else
		json_array_insert_new(methods, i, row);
}

void
sa_commands(json_t *methods)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		add_command(methods, &commands[i]);
}
