/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completion of parameter values from the running server. The user waits for it: if there is no
 * server, or it does not answer within VALUES_MS, nothing is offered.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "complete.h"
#include "connection.h"
#include "units.h"

#define VALUES_MS 300

/* The values of a parameter are a member of the rows that a list method returns. */
static const struct source {
	const char *param;
	const char *method; /* prefix of the methods that have the parameter; NULL: all others */
	const char *list;
	const char *member;
	bool own; /* leave out objects of services, which callers may not use */
	const char *only; /* member that must not be false; NULL: all rows */
} sources[] = {
	{ "key", "mw_", "mw_list", "key", true },
	{ "port", "cm_connect", "service_list", "port", false },
	{ "port", "cm_listen", NULL, NULL, false },
	{ "service", "cm_connect", "service_kinds", "kind", .only = "connects" },
	{ "service", "cm_unlisten", "service_list", "name", false },
	{ "kind", "cm_listen", "service_kinds", "kind", .only = "listens" },
	{ "qp_num", NULL, "qp_list", "qp_num", false },
	{ "dest_qp_num", NULL, "qp_list", "qp_num", false },
	{ "pd", NULL, "pd_list", "pd", true },
	{ "cq", NULL, "cq_list", "cq", true },
	{ "send_cq", NULL, "cq_list", "cq", true },
	{ "recv_cq", NULL, "cq_list", "cq", true },
	{ "srq", NULL, "srq_list", "srq", true },
	{ "key", NULL, "mr_list", "key", true },
	{ "lkey", NULL, "mr_list", "key", true },
	{ "rkey", NULL, "mr_list", "key", false },
	{ "invalidate_rkey", NULL, "mr_list", "key", false },
	{ "mr", NULL, "mr_list", "key", true },
	{ "mr_key", NULL, "mr_list", "key", true },
	{ "mw_key", NULL, "mw_list", "key", true },
	{ "addr", NULL, "mr_list", "va", true },
	{ "remote_addr", NULL, "mr_list", "va", false },
	{ "port", NULL, "port_list", "port", false },
	{ "local_port", NULL, "port_list", "port", false },
	{ "dest", NULL, "port_list", "gids", false },
	{ "dgid", NULL, "port_list", "gids", false },
	{ "to", NULL, "port_list", "gids", false },
	{ "worker", NULL, "worker_list", "worker", false },
	{ "connection", NULL, "cm_list", "connection", false },
	{ "trap", NULL, "trap_list", "trap", false },
	{ "component", NULL, "log_level_get", "component", false },
	{ "method", NULL, "rpc_list", "name", false },
};

static const struct source *
source_of(const char *method, const char *param)
{
	const struct source *s;

	for (s = sources; s < sources + sizeof(sources) / sizeof(sources[0]); s++)
		if (strcmp(s->param, param) == 0 &&
			(s->method == NULL || strncmp(s->method, method, strlen(s->method)) == 0))
			return s;
	return NULL;
}

/* Offer a value as tables print it, and in decimal if the user began to type it in decimal. */
static void
complete_cell(const char *name, const json_t *v, const char *before, const char *typed)
{
	char text[256];
	json_t *item;
	size_t i;

	if (json_is_array(v)) {
		json_array_foreach(v, i, item)
			complete_cell("gid", json_object_get(item, "gid"), before, typed);
		return;
	}
	if (!json_is_integer(v) && !json_is_string(v))
		return;
	complete_candidate(before, units_print(name, v, text, sizeof(text)), typed);
	if (!json_is_integer(v) || strncmp(text, "0x", 2) != 0 || typed[0] == '\0')
		return;
	snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	complete_candidate(before, text, typed);
}

static void
complete_rows(const struct source *s, const json_t *result, const char *before, const char *typed)
{
	json_t *list = NULL, *row;
	const char *name;
	size_t i;

	json_object_foreach((json_t *)(uintptr_t)result, name, list) {
		if (json_is_array(list))
			break;
	}
	json_array_foreach(list, i, row) {
		if (s->only != NULL && json_is_false(json_object_get(row, s->only)))
			continue;
		if (!s->own || !json_is_string(json_object_get(row, "service")))
			complete_cell(s->member, json_object_get(row, s->member), before, typed);
	}
}

void
complete_values(const char *socket, const char *method, const char *param, const char *before,
	const char *typed)
{
	const struct source *s = source_of(method, param);
	struct connection *c;
	json_t *result = NULL, *error = NULL;

	if (s == NULL || s->list == NULL)
		return;
	c = connection_open(socket);
	if (c == NULL)
		return;
	if (connection_call(c, s->list, NULL, VALUES_MS, &result, &error) == 0)
		complete_rows(s, result, before, typed);
	json_decref(result);
	json_decref(error);
	connection_close(c);
}
