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
	uint64_t cursor = 0;
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
		return error_set(&call->err, EEXIST, "name: service %u is called \"%s\" already",
			info.id, name);
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
	ROW(struct listen_args, kind, TABLE_STRING,
		"kind of service (polca-ctl service kinds explains each)", .flags = TABLE_REQUIRED,
		.max = SVC_NAME_MAX - 1, .texts = svc_kinds_that_listen),
	SERVICE_ID_ROWS(offsetof(struct listen_args, id)),
	ROW(struct listen_args, service_mask, TABLE_UINT, "bits of the service ID that count",
		.def = UINT64_MAX, .def_text = "all"),
	ROW(struct listen_args, name, TABLE_STRING, "what it is called", .max = SVC_NAME_MAX - 1,
		.def_text = "the kind"),
	SERVICE_ROWS(SVC),
	SERVICE_ROW(SVC, mr, TABLE_UINT, "memory, rcopy: key of a region that is there",
		.def_text = "a new one; rcopy: none"),
	SERVICE_ROW(SVC, per_connection, TABLE_BOOL, "memory: each connection has its own"),
	SERVICE_ROW(SVC, max_connections, TABLE_UINT, "more than so many are refused", KINDS_OWN),
	SERVICE_ROW(SVC, max_connections_per_peer, TABLE_UINT, "so many of them of one address",
		.def_text = "three times as many as are left, so that others find places"),
	SERVICE_ROW(SVC, tcp_port, TABLE_UINT,
		"perftest: TCP port for who exchanges addresses there, without rdma_cm",
		.def_text = "none"),
	SERVICE_ROW(SVC, tcp_address, TABLE_STRING, "perftest: address that tcp_port listens on",
		.max = SVC_ADDRESS_MAX - 1, .def_text = "all of this host"),
	SERVICE_ROW(SVC, tcp_any_gid, TABLE_BOOL,
		"perftest: a client may announce any GID, not only the address of its TCP connection, and a LID"),
	SERVICE_ROW(SVC, local_port, TABLE_UINT,
		"local port that most peers come by, counted from 0: the service's memory is on its card's NUMA node",
		.max = LINK_PORTS_MAX - 1),
	SERVICE_ROW(SVC, count, TABLE_UINT, "end a connection after so many exchanges", KINDS_OWN),
	ROW_END,
};

struct listen_reply {
	uint32_t service;
	char name[SVC_NAME_MAX];
	struct service_id_info id;
};

static const struct table_row cm_listen_results[] = {
	ROW(struct listen_reply, service, TABLE_UINT, "its number, for cm_unlisten"),
	ROW(struct listen_reply, name, TABLE_CHARS, "what it is called"),
	ROW_INCLUDE(struct listen_reply, id, rows_service_id),
	ROW_END,
};

static int
cm_listen_method(struct rpc_call *call)
{
	const struct listen_args *a = call->args;
	struct svc_config config;
	struct listen_reply *reply = call->reply;
	int rc;

	rc = service_config_of(call, "kind", a->kind, &a->svc, false, &config);
	if (rc == 0)
		rc = ctl_check_local_port(call, config.local_port);
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
	if (a->svc.tcp_address != NULL)
		snprintf(config.tcp_address, sizeof(config.tcp_address), "%s", a->svc.tcp_address);
	if (a->name != NULL)
		snprintf(config.name, sizeof(config.name), "%s", a->name);
	else
		choose_name(call, &config);
	memcpy(reply->name, config.name, sizeof(reply->name));
	if (config.service_id != 0)
		reply->id = service_id_info(config.service_id);
	return engine_cm_listen(call->e, &config, &reply->service, &call->err);
}

/* --- cm_unlisten --- */

struct unlisten_args {
	const char *service;
	bool disconnect;
};

static const struct table_row unlisten_params[] = {
	ROW(struct unlisten_args, service, TABLE_NAME, "the service: number or name",
		.flags = TABLE_REQUIRED, .max = SVC_NAME_MAX - 1),
	ROW(struct unlisten_args, disconnect, TABLE_BOOL,
		"end its connections too; else they stay until either side ends them"),
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

/*
 * A client's connection has ended from TIMEWAIT on, as cm_list says too: what rests there is its
 * QP.
 */
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

struct service_row {
	uint32_t present;
	struct engine_service_info info;
	struct service_id_info id;
	const char *state;
	json_t *counters;
};
#define SERVICE_CLIENT 0x1

static const struct table_row service_id_or_null[] = { SERVICE_ID_RESULT_ROWS(TABLE_NULL),
	ROW_END };

#define INFO(name, field, t, ...) ROW_NAMED(struct service_row, name, info.field, t, __VA_ARGS__)

/* Every row has the same members: those that do not apply are null. */
static const struct table_row service_rows[] = {
	INFO("service", id, TABLE_UINT),
	INFO("name", config.name, TABLE_CHARS),
	INFO("kind", config.kind, TABLE_CHARS),
	ROW(struct service_row, state, TABLE_STRING,
		"LISTENING; ENDING: its last connections are awaited; of a connection of ours CONNECTED, or ENDED from TIMEWAIT on"),
	INFO("connection", connection, TABLE_UINT, "of ours", .flags = TABLE_NULL,
		.bit = SERVICE_CLIENT),
	ROW_INCLUDE(struct service_row, id, service_id_or_null),
	INFO("tcp_port", config.tcp_port, TABLE_UINT, .flags = TABLE_NULL, .min = 1),
	ROW(struct service_row, counters, TABLE_MEMBERS, "stats_describe says what they mean"),
	ROW_END,
};

static const struct table_row service_list_results[] = {
	PAGE_ROWS("services", struct service_row, service_rows),
	ROW_END,
};

static void
fill_service_row(struct rpc_call *call, struct service_row *row)
{
	struct counter_sink s = counter_sink(call, false);
	const struct engine_service_info *info = &row->info;

	row->state = state_word(info);
	if (info->client)
		row->present = SERVICE_CLIENT;
	else if (info->config.service_id != 0)
		row->id = service_id_info(info->config.service_id);
	counters_svc(&info->counters, counter_take, &s);
	row->counters = s.obj;
}

static int
next_service(struct rpc_call *call, uint64_t *cursor, void *item)
{
	struct service_row *row = item;

	if (!engine_service_next(call->e, cursor, &row->info))
		return 0;
	fill_service_row(call, row);
	return 1;
}

/* --- service_wait --- */

struct service_wait_args {
	uint32_t connection;
	uint32_t timeout_ms;
};

static const struct table_row service_wait_params[] = {
	ROW(struct service_wait_args, connection, TABLE_UINT,
		"of ours: what cm_connect with a service has returned", .flags = TABLE_REQUIRED),
	ROW(struct service_wait_args, timeout_ms, TABLE_UINT,
		"wait so long for its end, then tell how it stands", .max = 60000),
	ROW_END,
};

static int
service_wait(struct rpc_call *call)
{
	const struct service_wait_args *a = call->args;
	struct service_row *row = call->reply;
	uint64_t cursor = 0;

	while (engine_service_next(call->e, &cursor, &row->info)) {
		if (!row->info.client || row->info.connection != a->connection)
			continue;
		if (!client_ended(&row->info) && !waited(call, a->timeout_ms))
			return RPC_WAIT;
		fill_service_row(call, row);
		return 0;
	}
	return error_set(&call->err, ENOENT,
		"connection: no service of ours drives connection 0x%x, or it ended more than a minute ago",
		a->connection);
}

/* --- service_kinds --- */

#define KIND(name, field, t, ...) ROW_NAMED(struct svc_ops, name, field, t, __VA_ARGS__)
#define KIND_DEFAULT(field, ...)                                                                   \
	KIND(#field, defaults.field, TABLE_UINT, .flags = TABLE_NULL, .min = 1, __VA_ARGS__)

static const struct table_row kind_rows[] = {
	KIND("kind", name, TABLE_STRING),
	KIND("listens", server, TABLE_BOOL, "cm_listen takes it"),
	KIND("connects", client, TABLE_BOOL, "cm_connect does"),
	KIND_DEFAULT(length,
		.help = "default; null, as in the next three: none, or it depends on others"),
	KIND_DEFAULT(size),
	KIND_DEFAULT(depth),
	KIND_DEFAULT(max_connections),
	KIND("help", help, TABLE_STRING),
	ROW_END,
};

struct kinds_reply {
	struct table_list kinds;
};

static const struct table_row service_kinds_results[] = {
	ROW_LIST(struct kinds_reply, kinds, struct svc_ops, kind_rows),
	ROW_END,
};

static int
service_kinds(struct rpc_call *call)
{
	struct kinds_reply *reply = call->reply;
	struct svc_ops *row;
	unsigned int i;

	for (i = 0; svc_kinds[i] != NULL; i++) {
		row = ADD(call, &reply->kinds, struct svc_ops);
		if (row == NULL)
			return -ENOMEM;
		*row = *svc_kinds[i];
	}
	return 0;
}

const struct rpc_method methods_service[] = {
	{ "cm_listen", cm_listen_method, listen_params, sizeof(struct listen_args),
		"Let a service answer who connects. It is served on all ports and workers.",
		"polca-ctl cm listen rping --port 7471",
		RESULTS(cm_listen_results, struct listen_reply) },
	{ "cm_unlisten", cm_unlisten_method, unlisten_params, sizeof(struct unlisten_args),
		"Let a service listen no more. It is gone when its last connection is; one that drives a connection of ours may be ended so too.",
		"polca-ctl cm unlisten rping --disconnect" },
	{ "service_list", page_list, params_page, sizeof(struct page_args),
		"List services: those that listen, and those that drive connections of ours, until a minute after their end.",
		"polca-ctl service list", PAGES(service_list_results, next_service) },
	{ "service_wait", service_wait, service_wait_params, sizeof(struct service_wait_args),
		"Wait until a service that drives a connection of ours has ended, and tell its counters.",
		"polca-ctl service wait --connection 0x12345678 --timeout-ms 10000",
		RESULTS(service_rows, struct service_row), .reads = true },
	{ "service_kinds", service_kinds, params_none, 0, "List the kinds of services there are.",
		"polca-ctl service kinds", RESULTS(service_kinds_results, struct kinds_reply),
		.reads = true },
	{ NULL },
};
