/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <rte_ethdev.h>

#include "ctl/methods.h"

/* --- ports --- */

static json_t *
gid_rows(const struct port_attr *attr)
{
	json_t *row, *rows = json_array();
	unsigned int i;

	for (i = 0; i < attr->num_gids; i++) {
		if (gid_is_zero(&attr->gid[i].gid))
			continue; /* a free entry of GUIDInfo */
		row = json_object();
		set_int(row, "index", i);
		set(row, "gid", json_gid(&attr->gid[i].gid));
		set_int(row, "prefix_len", attr->gid[i].prefix_len);
		set(row, "type", json_word(words_gid_type, attr->gid[i].type));
		set(row, "gateway", gid_is_zero(&attr->gid[i].gateway)
				? json_null() : json_gid(&attr->gid[i].gateway));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *
pkey_rows(const struct port_attr *attr)
{
	json_t *rows = json_array();
	unsigned int i;

	for (i = 0; i < attr->num_pkeys; i++)
		json_array_append_new(rows, json_integer(attr->pkey[i]));
	return rows;
}

/* Every row has the same members; those that do not apply to the port are null. */
static void
set_ib(json_t *row, const struct port_attr *attr)
{
	static const char *const names[] = { "lid", "lmc", "sm_lid", "sm_sl", "guid", "gid_prefix" };
	size_t i;

	for (i = 0; !attr->ib && i < sizeof(names) / sizeof(names[0]); i++)
		set(row, names[i], json_null());
	if (!attr->ib)
		return;
	set_int(row, "lid", attr->lid);
	set_int(row, "lmc", attr->lmc);
	set_int(row, "sm_lid", attr->sm_lid);
	set_int(row, "sm_sl", attr->sm_sl);
	set(row, "guid", json_sprintf("0x%016llx", (unsigned long long)attr->guid));
	set(row, "gid_prefix", json_sprintf("0x%016llx", (unsigned long long)attr->gid_prefix));
}

/* PortInfo.PortState (smp-sma 3); a RoCE port is DOWN or ACTIVE. */
static const struct param_word words_port_state[] = {
	{ "DOWN", PORT_STATE_DOWN },
	{ "INIT", PORT_STATE_INIT },
	{ "ARMED", PORT_STATE_ARMED },
	{ "ACTIVE", PORT_STATE_ACTIVE },
	{ NULL, 0 },
};

static uint32_t
state_of(const struct port_attr *attr, const struct link_state *state)
{
	if (!state->up)
		return PORT_STATE_DOWN;
	return attr->ib ? attr->state : PORT_STATE_ACTIVE;
}

/* What the device hashes to choose a receive queue */
static json_t *
rss_names(uint64_t rss)
{
	static const struct {
		uint64_t bits;
		const char *name;
	} functions[] = {
		{ RTE_ETH_RSS_NONFRAG_IPV4_UDP, "ipv4-udp" },
		{ RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_IPV6_UDP_EX, "ipv6-udp" },
		{ RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER, "ipv4" },
		{ RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER |
			RTE_ETH_RSS_IPV6_EX, "ipv6" },
	};
	json_t *names = json_array();
	size_t i;

	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (rss & functions[i].bits)
			json_array_append_new(names, json_string(functions[i].name));
	return names;
}

static json_t *
port_row(struct link *l, unsigned int port)
{
	const struct port_attr *attr = link_port_attr(l, port);
	struct link_state state = { 0 };
	json_t *row = json_object();

	link_state(l, port, &state);
	set_int(row, "port", port);
	set(row, "name", json_string(attr->name));
	set(row, "state", json_word(words_port_state, state_of(attr, &state)));
	set(row, "link_layer", json_string(attr->ib ? "InfiniBand" : "Ethernet"));
	set(row, "encapsulation", json_string(attr->ib ? "ib" : "roce"));
	set(row, "mac", json_mac(attr->mac));
	set_int(row, "speed_mbps", state.speed_mbps);
	set_int(row, "mtu", attr->mtu);
	set_int(row, "active_mtu", attr->active_mtu);
	set(row, "vlan", attr->vlan == PATH_NO_VLAN ? json_null() : json_integer(attr->vlan));
	set(row, "driver", json_string(state.driver));
	set(row, "numa_node", json_integer(state.numa_node));
	set(row, "memory_node", json_integer(state.memory_node));
	set_int(row, "rx_queues", state.rx_queues);
	set_int(row, "tx_queues", state.tx_queues);
	set(row, "rss", rss_names(state.rss));
	set(row, "gids", gid_rows(attr));
	set(row, "pkeys", pkey_rows(attr));
	set_ib(row, attr);
	return row;
}

static int
port_list(struct rpc_call *call)
{
	struct link *l = engine_link(call->e);
	json_t *rows = json_array();
	unsigned int port;

	for (port = 0; port < link_num_ports(l); port++)
		json_array_append_new(rows, port_row(l, port));
	set(call->result, "ports", rows);
	return 0;
}

static json_t *
neighbour_row(const struct link_neighbour_info *info)
{
	json_t *row = json_object();

	set_int(row, "port", info->port);
	set(row, "gid", json_gid(&info->gid));
	set(row, "state", json_string(info->resolved ? "RESOLVED" : "RESOLVING"));
	set(row, "mac", info->resolved ? json_mac(info->mac) : json_null());
	set_int(row, "age_ms", info->age_ms);
	return row;
}

static int
neighbour_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	uint32_t cursor = (uint32_t)a->cursor;
	struct link_neighbour_info info;
	json_t *rows = json_array();

	while (json_array_size(rows) < a->max) {
		if (!link_neighbour_next(engine_link(call->e), &cursor, &info)) {
			set_page(call, "neighbours", rows, false, 0);
			return 0;
		}
		json_array_append_new(rows, neighbour_row(&info));
	}
	set_page(call, "neighbours", rows, true, cursor);
	return 0;
}

/* --- workers --- */

static json_t *
worker_row(const struct engine *e, unsigned int worker)
{
	json_t *row = json_object();
	struct worker_info info = { 0 };

	engine_worker_info(e, worker, &info);
	set_int(row, "worker", worker);
	set_int(row, "lcore", info.lcore);
	set(row, "cpu", json_integer(info.cpu));
	set(row, "numa_node", json_integer(info.numa_node));
	set(row, "memory_node", json_integer(info.memory_node));
	set(row, "stalled", json_boolean(info.stalled));
	set_int(row, "heartbeat_age_us", info.heartbeat_age_us);
	set(row, "busy_share", json_real(info.busy_share));
	set(row, "longest_gap_us", json_real(info.longest_gap_us));
	set_int(row, "qps", info.qps);
	set_int(row, "polls", info.polls);
	set_int(row, "busy_polls", info.busy_polls);
	set_int(row, "sleeps", info.sleeps);
	set_int(row, "handoff_out", info.handoff_out);
	set_int(row, "handoff_in", info.handoff_in);
	set_int(row, "handoff_full", info.handoff_full);
	set_int(row, "handoff_again", info.handoff_again);
	set(row, "handoff_percent", json_real(info.handoff_percent));
	set_int(row, "rehomed_out", info.rehomed_out);
	set_int(row, "rehomed_in", info.rehomed_in);
	set_int(row, "handoff_depth", info.handoff_depth);
	set_int(row, "commands", info.commands);
	return row;
}

static int
worker_list(struct rpc_call *call)
{
	json_t *rows = json_array();
	unsigned int w;

	for (w = 0; w < engine_workers(call->e); w++)
		json_array_append_new(rows, worker_row(call->e, w));
	set(call->result, "workers", rows);
	return 0;
}

const struct rpc_method methods_port[] = {
	{ "port_list", port_list, params_none, 0, "Ports and their addresses.",
		"ports: list of port (its number), name, state (DOWN, ACTIVE; of an InfiniBand port also INIT, ARMED), link_layer (Ethernet, InfiniBand), encapsulation (roce, ib), mac, speed_mbps, mtu, active_mtu (largest path MTU that fits), vlan, driver, numa_node, memory_node (of its packet buffers; -1: not known, without hugepages), rx_queues, tx_queues, rss (what the device hashes to choose a receive queue: ipv4-udp, ipv6-udp, ipv4, ipv6; empty: it does not), gids (list of index, gid, prefix_len, type, gateway; gateway is null where there is none), pkeys, and lid, lmc, sm_lid, sm_sl, guid, gid_prefix, which are null unless the port is an InfiniBand port",
		"polca-ctl port list" },
	{ "neighbour_list", neighbour_list, params_page, sizeof(struct page_args),
		"Next hops that ARP and IPv6 neighbour discovery have found or look for.",
		"neighbours: list of port, gid, state (RESOLVED, RESOLVING), mac, age_ms (since last confirmed)" PAGE_RESULT,
		"polca-ctl neighbour list" },
	{ "worker_list", worker_list, params_none, 0,
		"The lcores that do the work, and how they fare.",
		"workers: list of worker (its number), lcore, cpu, numa_node, memory_node (of its tables and rings; -1: not known, without hugepages), stalled (its heartbeat is overdue), heartbeat_age_us, busy_share (of time since start, 0 to 1), longest_gap_us (between two polls), qps, polls, busy_polls, sleeps, handoff_out, handoff_in, handoff_full, handoff_again (packets that reached the wrong worker: sent on, taken over, dropped for want of room, sent on once more since their queue pair had moved; all that is sent is taken over), handoff_percent (of the packets of its own receive queues, those sent on), rehomed_out, rehomed_in (queue pairs that moved from here, to here), handoff_depth (waiting now), commands (waiting now)",
		"polca-ctl worker list" },
	{ NULL },
};
