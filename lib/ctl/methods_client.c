/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <pwd.h>

#include "ctl/methods.h"
#include "engine/clients_info.h"

struct client_row {
	struct engine_client_info info;
	const char *user;
	const char *command;
};

#define CLIENT_USE(field, ...)                                                                     \
	ROW_NAMED(struct client_row, #field, info.use.field, TABLE_UINT, __VA_ARGS__)
#define CLIENT(field, ...) ROW_NAMED(struct client_row, #field, info.field, TABLE_UINT, __VA_ARGS__)

static const struct table_row client_rows[] = {
	CLIENT(id, "a number of its own, which no later one gets"),
	CLIENT(pid, "of the process, as polca sees it"),
	ROW(struct client_row, user, TABLE_STRING, "its user; a number, if it has no name"),
	ROW(struct client_row, command, TABLE_STRING, "its name; null: it cannot be read",
		.flags = TABLE_NULL),
	CLIENT(port, "of the device that it opened"),
	CLIENT(worker, "that serves it"),
	CLIENT(contexts, "devices that the process has open, this one included"),
	CLIENT_USE(qps),
	CLIENT_USE(cqs),
	CLIENT_USE(srqs),
	CLIENT_USE(pds, "protection domains"),
	CLIENT_USE(regions),
	CLIENT_USE(bytes, "of its regions"),
	CLIENT_USE(windows, "memory windows"),
	CLIENT_USE(requests, "work requests that its queues have room for"),
	CLIENT(posted, "work requests, of this device since it was opened"),
	CLIENT(completed, "completions, likewise"),
	CLIENT(refused, "requests that a limit refused, likewise"),
	ROW_END,
};

static const struct table_row client_list_results[] = {
	PAGE_ROWS("clients", struct client_row, client_rows),
	ROW_END,
};

/* A user's name, or number if there is none. */
static const char *
client_user_name(struct rpc_call *call, uint32_t uid)
{
	const struct passwd *pw = getpwuid(uid);

	return pw != NULL ? arena_printf(&call->arena, "%s", pw->pw_name)
			  : arena_printf(&call->arena, "%u", uid);
}

static int
next_client(struct rpc_call *call, uint64_t *cursor, void *to)
{
	struct client_row *row = to;

	if (!engine_client_next(call->e, cursor, &row->info))
		return 0;
	row->user = client_user_name(call, row->info.uid);
	if (row->info.command[0] != '\0')
		row->command = arena_printf(&call->arena, "%s", row->info.command);
	return 1;
}

struct client_rehome_args {
	uint64_t id;
	uint32_t worker;
};

static const struct table_row client_rehome_params[] = {
	ROW(struct client_rehome_args, id, TABLE_UINT, "of the client, as client_list shows it",
		.flags = TABLE_REQUIRED),
	ROW(struct client_rehome_args, worker, TABLE_UINT, "worker that is to serve it",
		.flags = TABLE_REQUIRED, .max = RC_WORKERS_MAX - 1),
	ROW_END,
};

static int
client_rehome(struct rpc_call *call)
{
	const struct client_rehome_args *a = call->args;

	return engine_client_rehome(call->e, a->id, a->worker, &call->err);
}

/* --- users --- */

struct client_user_row {
	struct engine_client_user info;
	const char *user;
};

#define USER_HAS(field, ...)                                                                       \
	ROW_NAMED(struct client_user_row, #field, info.use.field, TABLE_UINT, __VA_ARGS__)
#define USER_MAX(field, ...)                                                                       \
	ROW_NAMED(struct client_user_row, "max_" #field, info.limits.field, TABLE_UINT, __VA_ARGS__)

static const struct table_row client_user_rows[] = {
	ROW(struct client_user_row, user, TABLE_STRING, "a number, if it has no name"),
	ROW_NAMED(struct client_user_row, "clients", info.clients, TABLE_UINT,
		"devices that its programs have open"),
	USER_HAS(qps),
	USER_MAX(qps, "verbs.max_user_qp"),
	USER_HAS(cqs),
	USER_MAX(cqs, "verbs.max_user_cq"),
	USER_HAS(srqs),
	USER_MAX(srqs, "verbs.max_user_srq"),
	USER_HAS(pds, "protection domains"),
	USER_MAX(pds, "verbs.max_user_pd"),
	USER_HAS(regions),
	USER_MAX(regions, "verbs.max_user_mr"),
	USER_HAS(bytes, "of the regions"),
	USER_MAX(bytes, "verbs.user_mr_mb"),
	USER_HAS(windows, "memory windows"),
	USER_MAX(windows, "verbs.max_user_mw"),
	USER_HAS(requests, "work requests that the queues have room for"),
	USER_MAX(requests, "verbs.max_user_wr"),
	ROW_END,
};

static const struct table_row client_users_results[] = {
	PAGE_ROWS("users", struct client_user_row, client_user_rows),
	ROW_END,
};

static int
next_client_user(struct rpc_call *call, uint64_t *cursor, void *to)
{
	struct client_user_row *row = to;

	if (!engine_client_user_next(call->e, cursor, &row->info))
		return 0;
	row->user = client_user_name(call, row->info.uid);
	return 1;
}

const struct rpc_method methods_client[] = {
	{ "client_list", page_list, params_page, sizeof(struct page_args),
		"List programs that use the ports by libibverbs: a row for each device that one has open.",
		"polca-ctl client list", PAGES(client_list_results, next_client) },
	{ "client_rehome", client_rehome, client_rehome_params, sizeof(struct client_rehome_args),
		"Move a program's device, with all its queue pairs, completion queues and shared receive queues, to another worker, in mid-traffic. The program notices nothing.",
		"polca-ctl client rehome 3 --worker 1" },
	{ "client_users", page_list, params_page, sizeof(struct page_args),
		"List users whose programs use the ports by libibverbs: what they have, and may have.",
		"polca-ctl client users", PAGES(client_users_results, next_client_user) },
	{ NULL },
};
