/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Routes of native IB ports: which MAC address a LID is reached by. */

#include <errno.h>

#include "ctl/methods.h"

/* --- lid_list --- */

struct list_args {
	uint32_t port;
	uint64_t cursor;
	uint32_t max;
};

static const struct param list_params[] = {
	P(struct list_args, port, PARAM_UINT, .flags = PARAM_DEFAULT, .max = LINK_PORTS_MAX - 1,
		.help = "native InfiniBand port"),
	P(struct list_args, cursor, PARAM_UINT, .flags = PARAM_DEFAULT, .max = UINT32_MAX,
		.help = "where to go on: the cursor of the reply before; 0: from the start"),
	P(struct list_args, max, PARAM_UINT, .flags = PARAM_DEFAULT, .min = 1, .max = PAGE_MAX,
		.def = 100, .help = "rows in a reply"),
	P_END,
};

static json_t *
lid_row(const struct link_lid_info *info)
{
	json_t *row = json_object();

	set_int(row, "lid", info->lid);
	set(row, "mac", json_mac(info->mac));
	set(row, "origin", json_string(info->fixed ? "FIXED" : "LEARNED"));
	return row;
}

static int
lid_list(struct rpc_call *call)
{
	const struct list_args *a = call->args;
	uint32_t cursor = (uint32_t)a->cursor;
	struct link_lid_info info;
	bool more = true;
	json_t *rows;

	if (check_ib_port(call, a->port) != 0)
		return -EINVAL;
	rows = json_array();
	while (more && json_array_size(rows) < a->max) {
		more = link_lid_next(engine_link(call->e), a->port, &cursor, &info);
		if (more)
			json_array_append_new(rows, lid_row(&info));
	}
	set_page(call, "lids", rows, more, cursor);
	return 0;
}

/* --- lid_set --- */

struct set_args {
	uint32_t present;
	uint32_t port;
	uint16_t lid;
	uint8_t mac[6];
	bool forget;
};
#define SET_MAC 0x1

static const struct param set_params[] = {
	P(struct set_args, lid, PARAM_UINT, .flags = PARAM_REQUIRED, .min = 1, .max = 0xbfff,
		.help = "unicast LID"),
	P(struct set_args, mac, PARAM_MAC, .bit = SET_MAC,
		.help = "MAC address that it is reached by from now on, whatever is heard"),
	P(struct set_args, forget, PARAM_BOOL, .flags = PARAM_DEFAULT,
		.help = "take the route away instead, fixed or learned"),
	P(struct set_args, port, PARAM_UINT, .flags = PARAM_DEFAULT, .max = LINK_PORTS_MAX - 1,
		.help = "native InfiniBand port"),
	P_END,
};

static int
lid_set(struct rpc_call *call)
{
	const struct set_args *a = call->args;
	bool given = (a->present & SET_MAC) != 0;

	if (given == a->forget)
		return error_set(&call->err, EINVAL, "mac, forget: got %s of them, allowed: one",
			given ? "both" : "none");
	if (check_ib_port(call, a->port) != 0)
		return -EINVAL;
	return link_lid_set(engine_link(call->e), a->port, a->lid, given ? a->mac : NULL,
		&call->err);
}

const struct rpc_method methods_lid[] = {
	{ "lid_list", lid_list, list_params, sizeof(struct list_args),
		"Which MAC address each LID is reached by from a native InfiniBand port. Packets to other LIDs are broadcast.",
		"lids: list of lid, mac, origin (FIXED: configured or set; LEARNED: heard from there)" PAGE_RESULT,
		"polca-ctl lid list --port 0" },
	{ "lid_set", lid_set, set_params, sizeof(struct set_args),
		"Give a LID a fixed route, or forget the one it has.", "",
		"polca-ctl lid set 5 --mac 02:00:00:00:00:05" },
	{ NULL },
};
