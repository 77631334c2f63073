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

#define CLIENT(field, ...) ROW_NAMED(struct client_row, #field, info.field, TABLE_UINT, __VA_ARGS__)

static const struct table_row client_rows[] = {
	CLIENT(pid, "of the process, as polca sees it"),
	ROW(struct client_row, user, TABLE_STRING, "its user; a number, if it has no name"),
	ROW(struct client_row, command, TABLE_STRING, "its name; null: it cannot be read",
		.flags = TABLE_NULL),
	CLIENT(port, "of the device that it opened"),
	CLIENT(worker, "that serves it"),
	CLIENT(contexts, "devices that the process has open, this one included"),
	CLIENT(qps),
	CLIENT(cqs),
	CLIENT(srqs),
	CLIENT(regions),
	CLIENT(bytes, "of its regions"),
	CLIENT(posted, "work requests, of this device since it was opened"),
	CLIENT(completed, "completions, likewise"),
	CLIENT(refused, "requests that a limit refused, likewise"),
	ROW_END,
};

static const struct table_row client_list_results[] = {
	PAGE_ROWS("clients", struct client_row, client_rows),
	ROW_END,
};

static int
next_client(struct rpc_call *call, uint64_t *cursor, void *to)
{
	struct client_row *row = to;
	const struct passwd *pw;

	if (!engine_client_next(call->e, cursor, &row->info))
		return 0;
	pw = getpwuid(row->info.uid);
	row->user = pw != NULL ? arena_printf(&call->arena, "%s", pw->pw_name)
			       : arena_printf(&call->arena, "%u", row->info.uid);
	if (row->info.command[0] != '\0')
		row->command = arena_printf(&call->arena, "%s", row->info.command);
	return 1;
}

const struct rpc_method methods_client[] = {
	{ "client_list", page_list, params_page, sizeof(struct page_args),
		"List programs that use the ports by libibverbs: a row for each device that one has open.",
		"polca-ctl client list", PAGES(client_list_results, next_client) },
	{ NULL },
};
