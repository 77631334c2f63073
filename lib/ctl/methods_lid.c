/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Routes of native IB ports: which MAC address a LID is reached by. */

#include <errno.h>

#include "ctl/methods.h"

/* --- lid_list --- */

struct lid_list_args {
	struct page_args page;
	uint32_t port;
};

static const struct table_row lid_list_params[] = {
	ROW(struct lid_list_args, port, TABLE_UINT, "native InfiniBand port",
		.max = LINK_PORTS_MAX - 1),
	ROW_INCLUDE(struct lid_list_args, page, params_page),
	ROW_END,
};

struct lid_row {
	struct link_lid_info info;
	const char *origin;
};

static const struct table_row lid_rows[] = {
	ROW_NAMED(struct lid_row, "lid", info.lid, TABLE_UINT),
	ROW_NAMED(struct lid_row, "mac", info.mac, TABLE_MAC),
	ROW(struct lid_row, origin, TABLE_STRING,
		"FIXED: configured or set; LEARNED: heard from there"),
	ROW_END,
};

static const struct table_row lid_list_results[] = { PAGE_ROWS("lids", struct lid_row, lid_rows),
	ROW_END };

static int
next_lid(struct rpc_call *call, uint64_t *cursor, void *item)
{
	const struct lid_list_args *a = call->args;
	struct lid_row *row = item;

	if (ctl_check_ib_port(call, a->port) != 0)
		return -EINVAL;
	if (!link_lid_next(engine_link(call->e), a->port, cursor, &row->info))
		return 0;
	row->origin = row->info.fixed ? "FIXED" : "LEARNED";
	return 1;
}

/* --- lid_set --- */

struct lid_set_args {
	uint32_t present;
	uint32_t port;
	uint16_t lid;
	uint8_t mac[6];
	bool forget;
};
#define LID_SET_MAC 0x1

static const struct table_row lid_set_params[] = {
	ROW(struct lid_set_args, lid, TABLE_UINT, "unicast LID", .flags = TABLE_REQUIRED, .min = 1,
		.max = 0xbfff),
	ROW(struct lid_set_args, mac, TABLE_MAC,
		.help = "MAC address that it is reached by from now on, whatever is heard",
		.bit = LID_SET_MAC),
	ROW(struct lid_set_args, forget, TABLE_BOOL,
		"take the route away instead, fixed or learned"),
	ROW(struct lid_set_args, port, TABLE_UINT, "native InfiniBand port",
		.max = LINK_PORTS_MAX - 1),
	ROW_END,
};

static int
lid_set(struct rpc_call *call)
{
	const struct lid_set_args *a = call->args;
	bool given = (a->present & LID_SET_MAC) != 0;

	if (given == a->forget)
		return error_set(&call->err, EINVAL, "mac, forget: got %s of them, allowed: one",
			given ? "both" : "none");
	if (ctl_check_ib_port(call, a->port) != 0)
		return -EINVAL;
	return link_lid_set(engine_link(call->e), a->port, a->lid, given ? a->mac : NULL,
		&call->err);
}

const struct rpc_method methods_lid[] = {
	{ "lid_list", page_list, lid_list_params, sizeof(struct lid_list_args),
		"Which MAC address each LID is reached by from a native InfiniBand port. Packets to other LIDs are broadcast.",
		"polca-ctl lid list --port 0", PAGES(lid_list_results, next_lid) },
	{ "lid_set", lid_set, lid_set_params, sizeof(struct lid_set_args),
		"Give a LID a fixed route, or forget the one it has.",
		"polca-ctl lid set 5 --mac 02:00:00:00:00:05" },
	{ NULL },
};
