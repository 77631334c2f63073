/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "ctl/methods.h"

#define FIELDS_TEXT 256 /* bytes of an error that lists fields: all of them are in its data */

const struct rpc_area rpc_areas[] = {
	{ "Server", methods_server },
	{ "Configuration", methods_config },
	{ "Ports and workers", methods_port },
	{ "Routes of native InfiniBand ports", methods_lid },
	{ "Counters", methods_stats },
	{ "The flight recorder", methods_trace },
	{ "Protection domains, memory regions and windows", methods_mem },
	{ "Bytes of a memory region", methods_bytes },
	{ "Completion queues", methods_cq },
	{ "Shared receive queues", methods_srq },
	{ "Queue pairs", methods_qp },
	{ "Queue pairs: their last steps, and why they failed", methods_qp_trace },
	{ "Queue pair attributes", methods_modify },
	{ "Work requests", methods_post },
	{ "Programs on the verbs socket", methods_client },
	{ "Subnet administration", methods_sa },
	{ "The SA's database", methods_sa_data },
	{ "The SA's database from the live subnet", methods_sa_sweep },
	{ "The SA's sessions and figures", methods_sa_stats },
	{ "The fleet", methods_fleet },
	{ "Management sessions: their last steps", methods_sa_trace },
	{ "Subnet management", methods_smp },
	{ "Traps", methods_trap },
	{ "The subnet manager behind a port", methods_sm },
	{ "Liveness", methods_live },
	{ "Services", methods_service },
	{ "Connecting", methods_cm_connect },
	{ "Connections", methods_cm },
	{ "Connections: their last steps", methods_cm_trace },
	{ NULL, NULL },
};

const struct table_row params_none[] = { ROW_END };

const struct table_row params_page[] = {
	ROW(struct page_args, cursor, TABLE_UINT,
		"where to go on: the cursor of the reply before; 0: from the start"),
	ROW(struct page_args, max, TABLE_UINT, "rows in a reply", .min = 1, .max = PAGE_MAX,
		.def = 100),
	ROW_END,
};

const struct table_row value_text[] = {
	{ .name = "text", .type = TABLE_STRING, .size = sizeof(const char *) },
};

void
add_warning(struct rpc_call *call, struct table_list *warnings, const char *fmt, ...)
{
	const char **item = ADD(call, warnings, const char *);
	char text[200];
	va_list ap;

	if (item == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*item = arena_printf(&call->arena, "%s", text);
}

int
page_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	struct page_reply *reply = call->reply;
	uint64_t cursor = a->cursor;
	void *row;
	int rc;

	while (reply->rows.num < a->max) {
		row = list_add(&call->arena, &reply->rows, call->method->results[0].item_size);
		if (row == NULL)
			return -ENOMEM;
		rc = call->method->next(call, &cursor, row);
		if (rc != 1) {
			reply->rows.num--;
			return rc;
		}
	}
	reply->cursor = cursor;
	return 0;
}

int
number_method(struct rpc_call *call)
{
	const struct number_args *a = call->args;

	return call->method->verb(call->e, a->number, &call->err);
}

int
find_region(struct rpc_call *call, uint32_t key, struct mem_mr_info *info)
{
	uint64_t cursor = 0;

	while (engine_mr_next(call->e, &cursor, info))
		if (info->key == key)
			return 0;
	return error_set(&call->err, ENOENT, "key: no memory region has the key 0x%08x", key);
}

bool
waited(struct rpc_call *call, uint32_t timeout_ms)
{
	call->until = call->start + timeout_ms;
	return call->now >= call->until;
}

int
no_such_field(struct rpc_call *call, const char *unknown, const char *of, json_t *names)
{
	struct error *err = &call->err;
	struct nearest near = nearest_to(unknown);
	char mean[64] = "";
	const char *name;
	json_t *v;
	size_t i, len;

	json_array_foreach(names, i, v)
		nearest_try(&near, json_string_value(v));
	if (near.word != NULL)
		snprintf(mean, sizeof(mean), "; did you mean %.40s?", near.word);
	call->data = json_object();
	json_set(call->data, "fields", names);
	snprintf(err->text, sizeof(err->text), "fields.%.64s: %s has no such field; it has",
		unknown, of);
	json_array_foreach(names, i, v) {
		name = json_string_value(v);
		len = strlen(err->text);
		if (len + strlen(name) + strlen(mean) + 8 > FIELDS_TEXT) {
			snprintf(err->text + len, sizeof(err->text) - len, ", ...");
			break;
		}
		snprintf(err->text + len, sizeof(err->text) - len, "%s %s", i == 0 ? "" : ",",
			name);
	}
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, "%s", mean);
	return -EINVAL;
}

static int
ctl_check_port_of(struct rpc_call *call, const char *param, unsigned int port)
{
	if (port < link_num_ports(engine_link(call->e)))
		return 0;
	return error_set(&call->err, EINVAL, "%s: got %u, there are %u, counted from 0", param,
		port, link_num_ports(engine_link(call->e)));
}

int
ctl_check_port(struct rpc_call *call, unsigned int port)
{
	return ctl_check_port_of(call, "port", port);
}

int
ctl_check_local_port(struct rpc_call *call, unsigned int port)
{
	return ctl_check_port_of(call, "local_port", port);
}

int
ctl_check_ib_port(struct rpc_call *call, unsigned int port)
{
	int rc = ctl_check_port(call, port);

	if (rc != 0 || link_port_attr(engine_link(call->e), port)->ib)
		return rc;
	return error_set(&call->err, EINVAL,
		"port: got %u, whose link_layer is Ethernet (port_list), allowed: a native InfiniBand port",
		port);
}
