/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>

#include <rte_ethdev.h>

#include "ctl/methods.h"

/* --- ports --- */

struct gid_row {
	unsigned int index;
	struct port_gid gid;
};

static const struct table_row gid_rows[] = {
	ROW(struct gid_row, index, TABLE_UINT),
	ROW_NAMED(struct gid_row, "gid", gid.gid, TABLE_GID),
	ROW_NAMED(struct gid_row, "prefix_len", gid.prefix_len, TABLE_UINT),
	ROW_NAMED(struct gid_row, "type", gid.type, TABLE_ENUM, .words = words_gid_type),
	ROW_NAMED(struct gid_row, "gateway", gid.gateway, TABLE_GID,
		.help = "null where there is none", .flags = TABLE_NULL),
	ROW_END,
};

/* PortInfo.PortState (smp-sma 3); a RoCE port is DOWN or ACTIVE. */
static const struct table_word words_port_state[] = {
	{ "DOWN", PORT_STATE_DOWN },
	{ "INIT", PORT_STATE_INIT },
	{ "ARMED", PORT_STATE_ARMED },
	{ "ACTIVE", PORT_STATE_ACTIVE },
	{ NULL, 0 },
};

uint32_t
port_state(const struct port_attr *attr, const struct link_state *state)
{
	if (!state->up)
		return PORT_STATE_DOWN;
	return attr->ib ? attr->state : PORT_STATE_ACTIVE;
}

/* What the device hashes to choose a receive queue */
enum rss_function {
	RSS_IPV4_UDP = 1,
	RSS_IPV6_UDP = 2,
	RSS_IPV4 = 4,
	RSS_IPV6 = 8,
};

static const struct table_word words_rss[] = {
	{ "ipv4-udp", RSS_IPV4_UDP },
	{ "ipv6-udp", RSS_IPV6_UDP },
	{ "ipv4", RSS_IPV4 },
	{ "ipv6", RSS_IPV6 },
	{ NULL, 0 },
};

static uint32_t
rss_functions(uint64_t rss)
{
	uint32_t functions = 0;

	if (rss & RTE_ETH_RSS_NONFRAG_IPV4_UDP)
		functions |= RSS_IPV4_UDP;
	if (rss & (RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_IPV6_UDP_EX))
		functions |= RSS_IPV6_UDP;
	if (rss & (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER))
		functions |= RSS_IPV4;
	if (rss &
		(RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER |
			RTE_ETH_RSS_IPV6_EX))
		functions |= RSS_IPV6;
	return functions;
}

struct port_row {
	uint32_t present;
	unsigned int port;
	uint32_t state;
	const char *link_layer;
	const char *encapsulation;
	uint32_t rss;
	struct table_list gids;
	struct link_state link;
	struct port_attr attr;
};
#define PORT_IB 0x1

#define ATTR(field, t, ...) ROW_NAMED(struct port_row, #field, attr.field, t, __VA_ARGS__)
#define LINK(field, t, ...) ROW_NAMED(struct port_row, #field, link.field, t, __VA_ARGS__)

#define IB(field, ...) ATTR(field, TABLE_UINT, .flags = TABLE_NULL, .bit = PORT_IB, __VA_ARGS__)

static const struct table_row pkey_value[] = {
	{ .name = "pkey", .type = TABLE_UINT, .size = sizeof(uint16_t) },
};

static const struct table_row port_rows[] = {
	ROW(struct port_row, port, TABLE_UINT, "its number"),
	ATTR(name, TABLE_CHARS),
	ROW(struct port_row, state, TABLE_ENUM,
		"DOWN, ACTIVE; of an InfiniBand port also INIT, ARMED", .words = words_port_state),
	ROW(struct port_row, link_layer, TABLE_STRING, "Ethernet, InfiniBand"),
	ROW(struct port_row, encapsulation, TABLE_STRING, "roce, ib"),
	ATTR(mac, TABLE_MAC),
	LINK(speed_mbps, TABLE_UINT),
	ATTR(mtu, TABLE_UINT),
	ATTR(active_mtu, TABLE_UINT, "largest path MTU that fits"),
	ATTR(vlan, TABLE_UINT, .flags = TABLE_NULL, .max = PATH_NO_VLAN - 1),
	LINK(driver, TABLE_CHARS),
	LINK(numa_node, TABLE_INT),
	LINK(memory_node, TABLE_INT, "of its packet buffers; -1: not known, without hugepages"),
	LINK(rx_queues, TABLE_UINT),
	LINK(tx_queues, TABLE_UINT),
	ROW(struct port_row, rss, TABLE_FLAGS,
		"what the device hashes to choose a receive queue; empty: it does not",
		.words = words_rss),
	ROW_LIST(struct port_row, gids, struct gid_row, gid_rows),
	ROW_NAMED(struct port_row, "pkeys", attr.pkey, TABLE_LIST,
		.flags = TABLE_INLINE | TABLE_VALUES, .fields = pkey_value,
		.item_size = sizeof(uint16_t), .count = offsetof(struct port_row, attr.num_pkeys)),
	IB(lid, .help = "this and what follows: null unless the port is an InfiniBand port"),
	IB(lmc),
	IB(sm_lid),
	IB(sm_sl),
	IB(guid, .digits = 16),
	IB(gid_prefix, .digits = 16),
	ROW_END,
};

struct rows_reply {
	struct table_list rows;
};

static const struct table_row port_list_results[] = {
	ROW_NAMED(struct rows_reply, "ports", rows, TABLE_LIST, .fields = port_rows,
		.item_size = sizeof(struct port_row)),
	ROW_END,
};

static int
add_gids(struct rpc_call *call, struct port_row *row)
{
	const struct port_gid *gid = row->attr.gid;
	struct gid_row *g;
	unsigned int i;

	for (i = 0; i < row->attr.num_gids; i++) {
		if (gid_is_zero(&gid[i].gid))
			continue; /* a free entry of GUIDInfo */
		g = ADD(call, &row->gids, struct gid_row);
		if (g == NULL)
			return -ENOMEM;
		*g = (struct gid_row){ i, gid[i] };
	}
	return 0;
}

static int
port_list(struct rpc_call *call)
{
	struct link *l = engine_link(call->e);
	struct rows_reply *reply = call->reply;
	struct port_row *row;
	unsigned int port;

	for (port = 0; port < link_num_ports(l); port++) {
		row = ADD(call, &reply->rows, struct port_row);
		if (row == NULL)
			return -ENOMEM;
		row->attr = *link_port_attr(l, port);
		link_state(l, port, &row->link);
		row->present = row->attr.ib ? PORT_IB : 0;
		row->port = port;
		row->state = port_state(&row->attr, &row->link);
		row->link_layer = row->attr.ib ? "InfiniBand" : "Ethernet";
		row->encapsulation = row->attr.ib ? "ib" : "roce";
		row->rss = rss_functions(row->link.rss);
		if (add_gids(call, row) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- neighbours --- */

struct neighbour_row {
	uint32_t present;
	const char *state;
	struct link_neighbour_info info;
};
#define NEIGHBOUR_RESOLVED 0x1

#define NEIGHBOUR(field, t, ...) ROW_NAMED(struct neighbour_row, #field, info.field, t, __VA_ARGS__)

static const struct table_row neighbour_rows[] = {
	NEIGHBOUR(port, TABLE_UINT),
	NEIGHBOUR(gid, TABLE_GID),
	ROW(struct neighbour_row, state, TABLE_STRING, "RESOLVED, RESOLVING"),
	NEIGHBOUR(mac, TABLE_MAC, .flags = TABLE_NULL, .bit = NEIGHBOUR_RESOLVED),
	NEIGHBOUR(age_ms, TABLE_UINT, "since last confirmed"),
	ROW_END,
};

static const struct table_row neighbour_list_results[] = {
	PAGE_ROWS("neighbours", struct neighbour_row, neighbour_rows),
	ROW_END,
};

static int
next_neighbour(struct rpc_call *call, uint64_t *cursor, void *item)
{
	struct neighbour_row *row = item;
	uint32_t at = (uint32_t)*cursor;

	if (!link_neighbour_next(engine_link(call->e), &at, &row->info))
		return 0;
	*cursor = at;
	row->present = row->info.resolved ? NEIGHBOUR_RESOLVED : 0;
	row->state = row->info.resolved ? "RESOLVED" : "RESOLVING";
	return 1;
}

/* --- workers --- */

struct worker_row {
	unsigned int worker;
	struct worker_info info;
};

#define WORKER(field, t, ...) ROW_NAMED(struct worker_row, #field, info.field, t, __VA_ARGS__)

static const struct table_row worker_rows[] = {
	ROW(struct worker_row, worker, TABLE_UINT, "its number"),
	WORKER(lcore, TABLE_UINT),
	WORKER(cpu, TABLE_INT),
	WORKER(numa_node, TABLE_INT),
	WORKER(memory_node, TABLE_INT, "of its tables and rings; -1: not known, without hugepages"),
	WORKER(stalled, TABLE_BOOL, "its heartbeat is overdue"),
	WORKER(heartbeat_age_us, TABLE_UINT),
	WORKER(busy_us, TABLE_UINT, "time with work, since start"),
	WORKER(busy_share, TABLE_REAL, "of time since start, 0 to 1"),
	WORKER(longest_gap_us, TABLE_REAL, "between two polls"),
	WORKER(qps, TABLE_UINT),
	WORKER(polls, TABLE_UINT),
	WORKER(busy_polls, TABLE_UINT),
	WORKER(sleeps, TABLE_UINT),
	WORKER(handoff_out, TABLE_UINT,
		"packets that reached the wrong worker here and were sent on"),
	WORKER(handoff_in, TABLE_UINT,
		"those taken over from others; all that is sent is taken over"),
	WORKER(handoff_full, TABLE_UINT, "those dropped for want of room"),
	WORKER(handoff_again, TABLE_UINT,
		"those taken over and sent on once more, since their queue pair had moved"),
	WORKER(handoff_percent, TABLE_REAL,
		"of the packets of its own receive queues, those sent on"),
	WORKER(rehomed_out, TABLE_UINT, "queue pairs that moved from here"),
	WORKER(rehomed_in, TABLE_UINT, "queue pairs that moved to here"),
	WORKER(handoff_depth, TABLE_UINT, "waiting now"),
	WORKER(commands, TABLE_UINT, "waiting now"),
	ROW_END,
};

static const struct table_row worker_list_results[] = {
	ROW_NAMED(struct rows_reply, "workers", rows, TABLE_LIST, .fields = worker_rows,
		.item_size = sizeof(struct worker_row)),
	ROW_END,
};

static int
worker_list(struct rpc_call *call)
{
	struct rows_reply *reply = call->reply;
	struct worker_row *row;
	unsigned int w;

	for (w = 0; w < engine_workers(call->e); w++) {
		row = ADD(call, &reply->rows, struct worker_row);
		if (row == NULL)
			return -ENOMEM;
		row->worker = w;
		engine_worker_info(call->e, w, &row->info);
	}
	return 0;
}

const struct rpc_method methods_port[] = {
	{ "port_list", port_list, params_none, 0, "Ports and their addresses.",
		"polca-ctl port list", RESULTS(port_list_results, struct rows_reply),
		.reads = true },
	{ "neighbour_list", page_list, params_page, sizeof(struct page_args),
		"Next hops that ARP and IPv6 neighbour discovery have found or look for.",
		"polca-ctl neighbour list", PAGES(neighbour_list_results, next_neighbour) },
	{ "worker_list", worker_list, params_none, 0,
		"The lcores that do the work, and how they fare.", "polca-ctl worker list",
		RESULTS(worker_list_results, struct rows_reply), .reads = true },
	{ NULL },
};
