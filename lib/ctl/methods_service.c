/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Services: who answers when somebody connects. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/cm_args.h"
#include "ctl/counters.h"

/* --- names --- */

/* A service by its number, or by its name: the first that has it. */
static bool
find_service(struct rpc_call *call, const char *word, struct engine_service_info *info)
{
	uint32_t cursor = 0;
	uint64_t id = 0;

	if (!text_u64(word, &id))
		id = 0;
	while (engine_service_next(call->e, &cursor, info))
		if (id != 0 ? info->id == id : strcmp(info->config.name, word) == 0)
			return true;
	return false;
}

/* Names are told from numbers, and one from another. */
static int
check_name(struct rpc_call *call, const char *name)
{
	struct engine_service_info info;
	uint64_t number;

	if (text_u64(name, &number))
		return error_set(&call->err, EINVAL,
			"name: got \"%s\", which would be taken for a number", name);
	if (find_service(call, name, &info))
		return error_set(&call->err, EEXIST,
			"name: service %u is called \"%s\" already", info.id, name);
	return 0;
}

/* The kind's, with a number behind it where that is taken: "rping-2". */
static void
choose_name(struct rpc_call *call, struct svc_config *config)
{
	struct engine_service_info info;
	unsigned int n;

	snprintf(config->name, sizeof(config->name), "%s", config->kind);
	for (n = 2; find_service(call, config->name, &info); n++)
		snprintf(config->name, sizeof(config->name), "%.20s-%u", config->kind, n);
}

/* --- cm_listen --- */

struct listen_args {
	const char *kind;
	const char *name;
	struct service_id_args id;
	uint64_t service_mask;
	struct service_args svc;
};
#define SVC offsetof(struct listen_args, svc)

static const struct table_row listen_params[] = {
	ROW(struct listen_args, kind, TABLE_STRING, .flags = TABLE_REQUIRED, .max = SVC_NAME_MAX - 1,
		.help = "kind of service: memory, echo, rping, ... (polca-ctl service kinds lists all)"),
	SERVICE_ID_ROWS(offsetof(struct listen_args, id)),
	ROW(struct listen_args, service_mask, TABLE_UINT, .flags = TABLE_DEFAULT, .def = UINT64_MAX,
		.def_text = "all", .help = "bits of the service ID that count"),
	ROW(struct listen_args, name, TABLE_STRING, .max = SVC_NAME_MAX - 1, .def_text = "the kind",
		.help = "what it is called"),
	SERVICE_ROWS(SVC),
	SERVICE_ROW(SVC, mr, TABLE_UINT, .flags = TABLE_DEFAULT, .def_text = "a new one; rcopy: none",
		.help = "memory, rcopy: key of a region that is there"),
	SERVICE_ROW(SVC, per_connection, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "memory: each connection has its own"),
	SERVICE_ROW(SVC, max_connections, TABLE_UINT, KINDS_OWN,
		.help = "more than so many are refused"),
	SERVICE_ROW(SVC, tcp_port, TABLE_UINT, .flags = TABLE_DEFAULT, .def_text = "none",
		.help = "perftest: TCP port for who exchanges addresses there, without rdma_cm"),
	SERVICE_ROW(SVC, count, TABLE_UINT, KINDS_OWN,
		.help = "end a connection after so many exchanges"),
	ROW_END,
};

static int
cm_listen_method(struct rpc_call *call)
{
	const struct listen_args *a = call->args;
	struct svc_config config;
	uint32_t id;
	int rc;

	rc = service_config_of(call, "kind", a->kind, &a->svc, false, &config);
	if (rc == 0)
		rc = service_id_of(call, &a->id, &config.service_id);
	if (rc == 0 && config.service_id == 0 && config.tcp_port == 0)
		rc = error_set(&call->err, EINVAL,
			"port, service_id: got none of them: where to listen");
	if (rc == 0 && a->name != NULL)
		rc = check_name(call, a->name);
	if (rc != 0)
		return rc;
	config.service_mask = a->service_mask;
	if (a->name != NULL)
		snprintf(config.name, sizeof(config.name), "%s", a->name);
	else
		choose_name(call, &config);
	rc = engine_cm_listen(call->e, &config, &id, &call->err);
	if (rc != 0)
		return rc;
	set_int(call->result, "service", id);
	set(call->result, "name", json_string(config.name));
	if (config.service_id != 0)
		set_service_id(call->result, config.service_id);
	return 0;
}

/* --- cm_unlisten --- */

struct unlisten_args {
	const char *service;
	bool disconnect;
};

static const struct table_row unlisten_params[] = {
	ROW(struct unlisten_args, service, TABLE_NAME, .flags = TABLE_REQUIRED,
		.max = SVC_NAME_MAX - 1, .help = "the service: number or name"),
	ROW(struct unlisten_args, disconnect, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "end its connections too; else they stay until either side ends them"),
	ROW_END,
};

static int
cm_unlisten_method(struct rpc_call *call)
{
	const struct unlisten_args *a = call->args;
	struct engine_service_info info;

	if (!find_service(call, a->service, &info))
		return error_set(&call->err, ENOENT,
			"service: there is no service \"%s\"; service_list shows them", a->service);
	return engine_cm_unlisten(call->e, info.id, a->disconnect, &call->err);
}

/* --- service_list --- */

/* A client's connection has ended from TIMEWAIT on, as cm_list says too: what rests there is its QP. */
static bool
client_ended(const struct engine_service_info *info)
{
	return info->connections == 0 ||
		(info->counters.established > 0 && info->counters.connections == 0);
}

static const char *
state_word(const struct engine_service_info *info)
{
	if (info->client)
		return client_ended(info) ? "ENDED" : "CONNECTED";
	return info->listening ? "LISTENING" : "ENDING";
}

/* Every row has the same members. */
static json_t *
service_row(const struct engine_service_info *info)
{
	static const char *const where[] = { "connection", "service_id", "port_space", "port",
		"tcp_port" };
	struct counter_sink s = { json_object(), false };
	size_t i;

	set_int(s.obj, "service", info->id);
	set(s.obj, "name", json_string(info->config.name));
	set(s.obj, "kind", json_string(info->config.kind));
	set(s.obj, "state", json_string(state_word(info)));
	for (i = 0; i < sizeof(where) / sizeof(where[0]); i++)
		set(s.obj, where[i], json_null());
	if (info->client)
		set_int(s.obj, "connection", info->connection);
	else if (info->config.service_id != 0)
		set_service_id(s.obj, info->config.service_id);
	if (info->config.tcp_port != 0)
		set_int(s.obj, "tcp_port", info->config.tcp_port);
	counters_svc(&info->counters, counter_take, &s);
	return s.obj;
}

static int
service_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	uint32_t cursor = (uint32_t)a->cursor;
	json_t *rows = json_array();
	struct engine_service_info info;

	while (json_array_size(rows) < a->max) {
		if (!engine_service_next(call->e, &cursor, &info)) {
			set_page(call, "services", rows, false, 0);
			return 0;
		}
		json_array_append_new(rows, service_row(&info));
	}
	set_page(call, "services", rows, true, cursor);
	return 0;
}

/* --- service_kinds --- */

/* null: it has none, or it depends on other parameters */
static void
set_default(json_t *row, const char *name, uint64_t value)
{
	set(row, name, value != 0 ? json_u64(value) : json_null());
}

static json_t *
kind_row(const struct svc_ops *ops)
{
	json_t *row = json_object();

	set(row, "kind", json_string(ops->name));
	set(row, "listens", json_boolean(ops->server));
	set(row, "connects", json_boolean(ops->client));
	set_default(row, "length", ops->defaults.length);
	set_default(row, "size", ops->defaults.size);
	set_default(row, "depth", ops->defaults.depth);
	set_default(row, "max_connections", ops->defaults.max_connections);
	set(row, "help", json_string(ops->help));
	return row;
}

static int
service_kinds(struct rpc_call *call)
{
	json_t *rows = json_array();
	unsigned int i;

	for (i = 0; svc_kinds[i] != NULL; i++)
		json_array_append_new(rows, kind_row(svc_kinds[i]));
	set(call->result, "kinds", rows);
	return 0;
}

const struct rpc_method methods_service[] = {
	{ "cm_listen", cm_listen_method, listen_params, sizeof(struct listen_args),
		"Let a service answer who connects. It is served on all ports and workers.",
		"service: its number, for cm_unlisten\n"
		"name: what it is called\n"
		"service_id, port_space, port: where it listens, if not on TCP alone; the last two where it is one of rdma_cm's",
		"polca-ctl cm listen rping --port 7471" },
	{ "cm_unlisten", cm_unlisten_method, unlisten_params, sizeof(struct unlisten_args),
		"Let a service listen no more. It is gone when its last connection is; one that drives a connection of ours may be ended so too.",
		"", "polca-ctl cm unlisten rping --disconnect" },
	{ "service_list", service_list, params_page, sizeof(struct page_args),
		"List services: those that listen, and those that drive connections of ours, until a minute after their end.",
		"services: list of service, name, kind, state (LISTENING; ENDING: its last connections are awaited; of a connection of ours CONNECTED, or ENDED from TIMEWAIT on), connection (of ours), service_id, port_space and port (where it listens), tcp_port (these are null where there is none), and its counters (stats_describe)" PAGE_RESULT,
		"polca-ctl service list" },
	{ "service_kinds", service_kinds, params_none, 0, "List the kinds of services there are.",
		"kinds: list of kind, listens (cm_listen takes it), connects (cm_connect does), length, size, depth and max_connections (defaults; null: it has none, or it depends on others), help",
		"polca-ctl service kinds" },
	{ NULL },
};
