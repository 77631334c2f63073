/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>

#include "ctl/methods.h"

const struct rpc_area rpc_areas[] = {
	{ "Server", methods_server },
	{ "Ports and workers", methods_port },
	{ "Counters", methods_stats },
	{ "Protection domains, memory regions and windows", methods_mem },
	{ "Bytes of a memory region", methods_bytes },
	{ "Completion queues", methods_cq },
	{ "Shared receive queues", methods_srq },
	{ "Queue pairs", methods_qp },
	{ "Queue pair attributes", methods_modify },
	{ "Work requests", methods_post },
	{ "Subnet administration", methods_sa },
	{ "The SA's database", methods_sa_data },
	{ "The SA's sessions and figures", methods_sa_stats },
	{ NULL, NULL },
};

const struct param params_none[] = { P_END };

const struct param params_page[] = {
	P(struct page_args, cursor, PARAM_UINT, .flags = PARAM_DEFAULT,
		.help = "where to go on: the cursor of the reply before; 0: from the start"),
	P(struct page_args, max, PARAM_UINT, .flags = PARAM_DEFAULT, .min = 1, .max = PAGE_MAX,
		.def = 100, .help = "rows in a reply"),
	P_END,
};

void
set_page(struct rpc_call *call, const char *key, json_t *rows, bool more, uint64_t cursor)
{
	set(call->result, key, rows);
	set(call->result, "cursor", more ? json_u64(cursor) : json_null());
}

int
find_region(struct rpc_call *call, uint32_t key, struct mem_mr_info *info)
{
	uint32_t cursor = 0;

	while (engine_mr_next(call->e, &cursor, info))
		if (info->key == key)
			return 0;
	return error_set(&call->err, ENOENT, "key: no memory region has the key %u (0x%08x)", key,
		key);
}

bool
waited(const struct rpc_call *call, uint32_t timeout_ms)
{
	return call->now - call->start >= timeout_ms;
}
