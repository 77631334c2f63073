/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Every key of the configuration, one row each.
 */

#include <string.h>

#include <rte_log.h>

#include "config.h"

#define FIELD(S, f) .offset = offsetof(S, f), .size = sizeof(((S *)0)->f)
#define UINT(S, f, key, low, high, text)                                                           \
	{                                                                                          \
		.name = key, .type = KEY_UINT, FIELD(S, f), .min = low, .max = high, .help = text  \
	}
#define HEX(S, f, key, low, high, text)                                                            \
	{                                                                                          \
		.name = key, .type = KEY_HEX, FIELD(S, f), .min = low, .max = high, .help = text   \
	}
#define BOOL(S, f, key, text)                                                                      \
	{                                                                                          \
		.name = key, .type = KEY_BOOL, FIELD(S, f), .help = text                           \
	}
#define TEXT(S, f, key, text)                                                                      \
	{                                                                                          \
		.name = key, .type = KEY_TEXT, FIELD(S, f), .help = text                           \
	}
#define OBJECT(key, table, text)                                                                   \
	{                                                                                          \
		.name = key, .type = KEY_OBJECT, .fields = table, .help = text                     \
	}
#define LIST(S, f, num, key, most, item, first, text)                                              \
	{                                                                                          \
		.name = key, .type = KEY_LIST, .offset = offsetof(S, f), .fields = item,           \
		.max = most, .stride = sizeof(((S *)0)->f[0]), .num_offset = offsetof(S, num),     \
		.init = first, .help = text                                                        \
	}
#define END                                                                                        \
	{                                                                                          \
		.name = NULL                                                                       \
	}

static const struct key control_keys[] = {
	TEXT(struct config, socket, "socket",
			"Unix socket of the control interface. Default: /run/polca/polca.sock for "
			"root, "
			"$XDG_RUNTIME_DIR/polca.sock for others, else /tmp/polca-UID/polca.sock."),
	END,
};

static const struct key arg_item[] = {
	{ .name = "argument", .type = KEY_TEXT, .size = sizeof(struct config_arg) },
};

static const struct key eal_keys[] = {
	TEXT(struct config, lcores, "lcores",
			"DPDK's --lcores, with lcore 0 for the control thread and one lcore per "
			"worker from 1 on. "
			"Default: one CPU for each worker in turn, the control thread on any."),
	BOOL(struct config, hugepages, "hugepages",
			"Take memory from hugepages: what real NICs need. Without, any user may "
			"run polca."),
	{ .name = "memory_mb",
			.type = KEY_UINT,
			FIELD(struct config, memory_mb),
			.max = 1048576,
			.help = "Memory for packets and objects in MiB. 0: without hugepages a "
				"share for each "
				"port and worker, with hugepages as much as is needed." },
	TEXT(struct config, file_prefix, "file_prefix",
			"Name of this instance's runtime directory, for dpdk-telemetry.py -f."),
	BOOL(struct config, multi_process, "multi_process",
			"Let DPDK secondary processes attach, such as dpdk-dumpcap. Needs "
			"hugepages."),
	LIST(struct config, arg, num_args, "args", CONFIG_ARGS_MAX, arg_item, NULL,
			"More arguments for the EAL, one text each."),
	END,
};

static const struct key_word idle_words[] = {
	{ "poll", IDLE_POLL },
	{ "backoff", IDLE_BACKOFF },
	{ NULL, 0 },
};

static const struct key worker_keys[] = {
	UINT(struct config, workers, "count", 0, LINK_WORKERS_MAX,
			"Worker lcores. 0: one for each port, but no more than there are CPUs."),
	{ .name = "idle",
			.type = KEY_ENUM,
			FIELD(struct config, engine.idle),
			.words = idle_words,
			.help = "What a worker without work does: poll for ever, or back off to "
				"sleeping." },
	UINT(struct config, engine.idle_spin_us, "idle_spin_us", 0, 1000000,
			"backoff: microseconds without work before the first sleep."),
	UINT(struct config, engine.idle_sleep_us, "idle_sleep_us", 1, 10000,
			"backoff: longest sleep in microseconds; it bounds how late a first packet "
			"is seen."),
	{ .name = "handoff_ring",
			.type = KEY_UINT,
			.flags = KEY_POWER_OF_TWO,
			FIELD(struct config, engine.handoff_ring),
			.min = 64,
			.max = 65536,
			.help = "Packets that wait from one worker to another before they are "
				"dropped." },
	BOOL(struct config, engine.rehome, "rehome",
			"Queue pairs move to the worker at whose receive queues nearly all of their "
			"packets arrive, on ports with a queue for each worker."),
	UINT(struct config, engine.stall_ms, "stall_ms", 10, 3600000,
			"A worker that has not polled for so many milliseconds raises an alarm."),
	BOOL(struct config, engine.icrc_unchecked, "icrc_unchecked",
			"Do not verify invariant CRCs: trust the link."),
	END,
};

#define LIMIT(f, low, high, text) UINT(struct config, engine.limits.f, #f, low, high, text)
#define TABLE(f, high, text)      UINT(struct config, engine.f, #f, 1, high, text)

static const struct key limit_keys[] = {
	{ .name = "max_qp",
			.type = KEY_UINT,
			.flags = KEY_POWER_OF_TWO,
			FIELD(struct config, engine.limits.max_qp),
			.min = 32,
			.max = 1 << 23,
			.help = "Queue pairs." },
	LIMIT(max_cq, 1, 1 << 20, "Completion queues."),
	LIMIT(max_srq, 0, 1 << 20, "Shared receive queues."),
	TABLE(max_pd, 1 << 20, "Protection domains."),
	TABLE(max_mr, 1 << 22, "Memory regions."),
	TABLE(max_mw, 1 << 22, "Memory windows."),
	LIMIT(max_qp_wr, 1, 1 << 20, "Work requests in a send or receive queue."),
	LIMIT(max_srq_wr, 1, 1 << 20, "Work requests in a shared receive queue."),
	LIMIT(max_sge, 1, RC_SGE_MAX, "Scatter/gather entries in a work request."),
	LIMIT(max_inline, 0, RC_INLINE_MAX, "Inline bytes in a work request."),
	LIMIT(max_cqe, 1, 1 << 24, "Entries in a completion queue."),
	LIMIT(max_rd_atomic, 1, 255, "Outstanding Reads and Atomics of a queue pair, either way."),
	LIMIT(min_ack_timeout, 0, 31,
			"Local ACK Timeouts below this code (but 0, which is off) are raised to "
			"it."),
	LIMIT(window, 1, 1 << 23, "Packets that a queue pair may have in flight."),
	LIMIT(ack_interval, 1, 1 << 16, "Ask for an ACK at least every so many request packets."),
	LIMIT(quarantine, 0, 1 << 22,
			"A destroyed queue pair's number rests until so many others were "
			"destroyed."),
	END,
};

#define CONGESTION(f, low, high, text)                                                             \
	UINT(struct config, engine.limits.congestion.f, #f, low, high, text)

static const struct key congestion_keys[] = {
	BOOL(struct config, engine.limits.congestion.dcqcn, "dcqcn",
			"RoCEv2: send packets as ECN capable, and slow a queue pair down when its peer "
			"answers with congestion notification packets. Those are sent either way."),
	CONGESTION(max_rate, 1, 800000,
			"Mbit/s of the ports. A queue pair begins at it and is not limited when it has "
			"it again."),
	CONGESTION(min_rate, 1, 800000, "Mbit/s: no queue pair is made slower."),
	CONGESTION(g, 1, 65536,
			"The estimate of congestion moves by 1/g of its way with each notification, and "
			"back without."),
	CONGESTION(alpha_timer, 1, 1000000000,
			"Microseconds without notification after which that estimate decays."),
	CONGESTION(cut_interval, 0, 1000000,
			"Notifications so many microseconds after another that had effect have none."),
	CONGESTION(increase_timer, 1, 1000000000, "Microseconds after which the rate rises."),
	CONGESTION(byte_counter, 4096, UINT32_MAX, "Bytes sent after which it rises, too."),
	CONGESTION(fast_recovery, 1, 1000,
			"So many rises go half of the way back, each; those after them go beyond."),
	CONGESTION(rate_ai, 1, 100000, "Mbit/s that such a rise adds to the target."),
	CONGESTION(rate_hai, 0, 100000,
			"Mbit/s that it adds when both timer and counter have gone on for so long."),
	END,
};

#define MAD(f, low, high, text) UINT(struct config, engine.mad.f, #f, low, high, text)

static const struct key mad_keys[] = {
	MAD(max_sessions, 16, 1 << 22, "Sessions of a worker, either side."),
	MAD(max_sessions_per_peer, 1, 1 << 22, "Sessions that one peer may have on a worker."),
	MAD(max_bytes, 1 << 16, UINT64_C(1) << 36,
			"Bytes of many-packet requests that a worker reassembles at one time."),
	MAD(max_bytes_per_peer, 1 << 12, UINT64_C(1) << 36, "The same of one peer."),
	MAD(v1_window, 64, 65535, "Class version 1: window that our requests ask for, packets."),
	MAD(rmpp_window, 1, 65535, "RMPP: packets that we let a sender be ahead."),
	MAD(rmpp_send_max, 1, 65535, "RMPP: packets that we are ahead at most."),
	MAD(retries, 0, 7, "A packet is sent again, or asked for again, so often."),
	MAD(resp_time, 0, 31, "Time that we take to answer at most: 4.096 us * 2^it."),
	BOOL(struct config, engine.mad.v1_flags_lsb, "v1_flags_lsb",
			"Class version 1: read FragmentFlag from its least significant bit, as "
			"some early managers did."),
	MAD(rmpp_total_ms, 100, 86400000,
			"RMPP: a message that is not whole after so many milliseconds is given "
			"up."),
	MAD(keepalive_total_ms, 100, 86400000,
			"Class version 1: a session that only KeepAlives keep ends after so many "
			"milliseconds."),
	END,
};

#define SA(f, low, high, text) UINT(struct config, engine.sa.f, #f, low, high, text)
#define SERVER(f, low, high, text) UINT(struct config, engine.sa.server.f, #f, low, high, text)
#define EDIT(i, key, text) UINT(struct config, engine.sa.server.edit_codes[i], key, 1, 255, text)

static const struct key_word trust_words[] = {
	{ "key", SA_TRUST_KEY },
	{ "all", SA_TRUST_ALL },
	{ NULL, 0 },
};

static const struct key sa_keys[] = {
	BOOL(struct config, engine.sa.enabled, "enabled",
			"Serve subnet administration. Asking others works without."),
	TEXT(struct config, engine.sa.path, "path",
			"Directory of the database, made when only it is missing. Default: memory "
			"only."),
	SA(map_mb, 1, 1 << 24, "The most that the database may grow to, MiB."),
	SERVER(sm_key, 0, INT64_MAX,
			"SM_Key of trusted requesters. The default, 1, is opensm's and saquery's, "
			"which everybody knows: who gives it sees everything, but changes only "
			"what is its own. 0: nobody is trusted for a key."),
	{ .name = "trust",
			.type = KEY_ENUM,
			FIELD(struct config, engine.sa.server.trust),
			.words = trust_words,
			.help = "key: who gives the SM_Key sees and, unless it is 1, changes "
				"everything, others see their partition; all: everybody may do "
				"everything." },
	SERVER(master_sm_lid, 0, 0xBFFF,
			"LID of the Master SM: Config is taken from it whatever its SM_Key, besides "
			"from those who may change everything. 0: from those alone."),
	EDIT(0, "edit_add", "Class version 1: EditModifier that adds, as server and as client."),
	EDIT(1, "edit_delete", "The one that deletes."),
	EDIT(2, "edit_edit", "The one that edits."),
	SERVER(packet_life, 0, 63, "PacketLifeTime of computed paths: 4.096 us * 2^it."),
	SERVER(max_results, 1, 1 << 24, "Records that a filtered query may gather."),
	SA(max_result_mb, 1, 4095, "Memory of gathered results, per worker, MiB."),
	SERVER(max_queries, 1, 1 << 20, "Queries that are not answered yet, per worker."),
	SERVER(max_transfers, 1, 1 << 20,
			"Answers of many packets under way, per worker; about 250 bytes each."),
	SERVER(path_ports, 1, 1 << 20,
			"Ports that a worker keeps at hand to compute paths, rounded up to a power "
			"of two; those of a larger fabric are read from the database again."),
	SERVER(path_switches, 1, 49151,
			"Switches of the fabric at most; in a larger one paths are refused."),
	SERVER(path_links, 1, 1 << 22, "Links between switches at most, each counted twice."),
	SERVER(path_routes, 1, 49151,
			"Switches whose routes a worker keeps; best as many as have hosts. Each takes "
			"4 bytes times path_switches."),
	SERVER(max_writes, 1, 65535, "Changes under way, per worker."),
	SA(max_versions, 1, 1 << 20,
			"Versions of the database that transfers may hold at one time."),
	SA(old_mb, 1, 1 << 20,
			"Memory that old versions may keep, MiB; beyond, the oldest transfer "
			"ends."),
	SERVER(notice_retries, 0, 255, "A Report that nobody answers is sent again so often."),
	SERVER(notice_interval_ms, 10, 3600000, "Milliseconds between two of them."),
	SERVER(notices_max, 1, 1 << 20, "Reports under way, per worker."),
	SA(query_mb, 1, 1 << 20,
			"Memory for the records that one query of ours may bring, MiB: about 8000 "
			"NodeRecords each."),
	END,
};

#define SMA(f, low, high, text) UINT(struct config, engine.sma.f, #f, low, high, text)
#define TRAP(f, low, high, text) UINT(struct config, engine.sma.limits.f, #f, low, high, text)

static const struct key sma_keys[] = {
	TEXT(struct config, engine.sma.node_desc, "node_description",
			"NodeDescription. Default: \"polca \" and the name of this host."),
	HEX(struct config, engine.sma.node_guid, "node_guid", 1, UINT64_MAX,
			"NodeGUID. Default: the EUI-64 of the first port's MAC address."),
	HEX(struct config, engine.sma.system_image_guid, "system_image_guid", 1, UINT64_MAX,
			"SystemImageGUID. Default: the NodeGUID."),
	HEX(struct config, engine.sma.vendor_id, "vendor_id", 0, 0xFFFFFF, "VendorID, an OUI."),
	HEX(struct config, engine.sma.device_id, "device_id", 0, 0xFFFF, "DeviceID."),
	HEX(struct config, engine.sma.revision, "revision", 0, UINT32_MAX, "Revision."),
	SMA(vl15_buffer, 1, ENGINE_VL15_MAX,
			"SMPs that wait in a port's VL15 buffer; more are dropped, silently but "
			"counted."),
	TRAP(trap_interval_ms, 10, 3600000,
			"Milliseconds between repeats of a trap, if the port's SubnetTimeOut does "
			"not ask for more."),
	TRAP(trap_retries, 0, 65535, "A trap that nobody represses is sent again so often."),
	TRAP(trap_rate, 1, 1000000, "New traps a second, per port."),
	TRAP(trap_burst, 1, 1000000, "New traps at once, per port."),
	END,
};

#define LIVE(f, low, high, text) UINT(struct config, engine.live.f, #f, low, high, text)

static const struct key live_keys[] = {
	BOOL(struct config, engine.live.ibping, "ibping", "Answer ibping (class 0x32)."),
	BOOL(struct config, engine.live.sysstat, "sysstat",
			"Answer ibsysstat (class 0x33): it tells anybody this host's name and "
			"CPUs."),
	LIVE(rate, 0, 100000000,
			"Requests a second that one source may send, per worker. 0: any number."),
	LIVE(burst, 1, 100000000, "And so many at once."),
	{ .name = "sources",
			.type = KEY_UINT,
			.flags = KEY_POWER_OF_TWO,
			FIELD(struct config, engine.live.sources),
			.min = 16,
			.max = 1 << 20,
			.help = "Sources that are told apart, per worker." },
	LIVE(max_echo, 208, 1 << 26, "Largest echo, bytes."),
	END,
};

#define CM(f, low, high, text) UINT(struct config, engine.cm.f, #f, low, high, text)

static const struct key cm_keys[] = {
	CM(max_connections, 1, 1 << 20,
			"Connections of a worker, those that ended a moment ago (TIMEWAIT) included."),
	CM(max_half_open, 1, 1 << 20, "Requests of others not yet established, per worker."),
	CM(max_half_open_per_peer, 1, 1 << 20, "The same of one peer."),
	CM(max_connections_per_peer, 1, 1 << 20, "Connections with one peer, per worker."),
	CM(max_listeners, 1, 65535, "Service IDs that listen."),
	CM(response_timeout, 0, 31,
			"Time that we take to answer a message at most: 4.096 us * 2^it."),
	CM(max_retries, 0, 15, "A message that nobody answers is sent again so often."),
	CM(ack_delay, 0, 31, "Our share of the peer's Local ACK Timeout: 4.096 us * 2^it."),
	CM(packet_life, 0, 31,
			"PacketLifeTime of RoCE paths, where no SA tells: 4.096 us * 2^it."),
	BOOL(struct config, engine.cm.send_mra, "send_mra",
			"Answer a repeated request that still waits by MRA."),
	END,
};

#define SERVICE(f, low, high, text) UINT(struct config_service, svc.f, #f, low, high, text)

static const struct key_word port_space_words[] = {
	{ "tcp", CM_PS_TCP },
	{ "udp", CM_PS_UDP },
	{ "ib", CM_PS_IB },
	{ NULL, 0 },
};

static const struct key service_keys[] = {
	{ .name = "kind",
			.type = KEY_TEXT,
			.flags = KEY_REQUIRED,
			FIELD(struct config_service, svc.kind),
			.help = "What answers: memory, echo, sink, rping, ...; polca-ctl cm listen "
				"--help tells all." },
	TEXT(struct config_service, svc.name, "name", "The operator's name for it. Default: the kind."),
	UINT(struct config_service, port, "port", 1, 65535,
			"Port that it listens on, as rdma_cm programs count them."),
	{ .name = "port_space",
			.type = KEY_ENUM,
			FIELD(struct config_service, port_space),
			.words = port_space_words,
			.help = "Port space of port." },
	HEX(struct config_service, svc.service_id, "service_id", 1, UINT64_MAX,
			"Instead of port: the service ID itself."),
	UINT(struct config_service, svc.tcp_port, "tcp_port", 1, 65535,
			"perftest: port of its exchange over TCP. Default: none."),
	SERVICE(length, 1, UINT64_C(1) << 40, "Bytes of its memory. Default: the kind's."),
	SERVICE(size, 1, UINT32_MAX, "Bytes of a message at most. Default: the kind's."),
	SERVICE(depth, 1, 1 << 20, "Receives kept posted. Default: the kind's."),
	BOOL(struct config_service, svc.per_connection, "per_connection",
			"memory: each connection has its own."),
	SERVICE(max_connections, 1, 1 << 20, "Connections at most. Default: the kind's."),
	END,
};

static const struct key service_item[] = {
	{ .name = "service", .type = KEY_OBJECT, .fields = service_keys },
};

static const struct config_service service_init = { .port_space = CM_PS_TCP };

static const struct key address_keys[] = {
	{ .name = "address",
			.type = KEY_PREFIX,
			.flags = KEY_REQUIRED,
			.size = sizeof(struct link_addr),
			.help = "The address with its prefix length." },
	{ .name = "gateway",
			.type = KEY_ADDRESS,
			FIELD(struct link_addr, gateway),
			.help = "Next hop for what is outside the prefix." },
	END,
};

static const struct key address_item[] = {
	{ .name = "address", .type = KEY_OBJECT, .flags = KEY_SHORTHAND, .fields = address_keys },
};

static const struct key pkey_item[] = {
	{ .name = "P_Key", .type = KEY_UINT, .size = sizeof(uint16_t), .min = 1, .max = 0xFFFF },
};

static const struct key lid_keys[] = {
	UINT(struct link_lid, lid, "lid", 1, PORT_LID_MULTICAST - 1, "The LID."),
	{ .name = "mac",
			.type = KEY_MAC,
			.flags = KEY_REQUIRED,
			FIELD(struct link_lid, mac),
			.help = "Where its packets go." },
	END,
};

static const struct key lid_item[] = {
	{ .name = "lid", .type = KEY_OBJECT, .fields = lid_keys },
};

static const struct key_word encapsulation_words[] = {
	{ "roce", CONFIG_ROCE },
	{ "ib", CONFIG_IB },
	{ NULL, 0 },
};

static const struct key_word sm_state_words[] = {
	{ "not_active", 0 },
	{ "discovering", 1 },
	{ "standby", 2 },
	{ "master", 3 },
	{ NULL, 0 },
};

static const struct key sm_keys[] = {
	UINT(struct config_port, sma.sm_priority, "priority", 0, 15, "The higher becomes master."),
	{ .name = "state",
			.type = KEY_ENUM,
			FIELD(struct config_port, sm_state),
			.words = sm_state_words,
			.help = "SMState at start." },
	END,
};

#define IB(f, low, high, text) UINT(struct config_port, sma.f, #f, low, high, text)

static const struct key ib_keys[] = {
	HEX(struct config_port, link.guid, "guid", 1, UINT64_MAX,
			"PortGUID. Default: the EUI-64 of the port's MAC address."),
	HEX(struct config_port, sma.gid_prefix, "gid_prefix", 1, UINT64_MAX,
			"Subnet prefix of its GIDs. Default: 0xfe80000000000000."),
	IB(lid, 0, PORT_LID_MULTICAST - 1, "LID until a subnet manager gives one. 0: none."),
	IB(lmc, 0, 7, "The port has 2^lmc LIDs from there on."),
	IB(sm_lid, 0, PORT_LID_MULTICAST - 1, "LID of the subnet manager. 0: none."),
	IB(sm_sl, 0, 15, "Service level to it."),
	BOOL(struct config_port, sma.active, "active",
			"Come up Active, without a subnet manager. Default: wait for one in state "
			"Initialize."),
	HEX(struct config_port, sma.m_key, "m_key", 0, UINT64_MAX, "M_Key. 0: none."),
	IB(m_key_protect, 0, 3, "M_KeyProtectBits."),
	IB(m_key_lease, 0, 65535, "M_KeyLeasePeriod, seconds. 0: for ever."),
	{ .name = "vls",
			.type = KEY_UINT,
			.flags = KEY_POWER_OF_TWO,
			FIELD(struct config_port, vls),
			.min = 1,
			.max = 8,
			.help = "Data virtual lanes." },
	HEX(struct config_port, link.ethertype, "ethertype", 0x0600, 0xFFFF,
			"EtherType of the frames. Default: 0x88b5."),
	{ .name = "peer_mac",
			.type = KEY_MAC,
			FIELD(struct config_port, link.peer_mac),
			.help = "The other end of the link, where directed-route SMPs go. Default: "
				"whoever was heard last." },
	LIST(struct config_port, link.lids, link.num_lids, "lids", LINK_LIDS_MAX, lid_item, NULL,
			"Fixed routes from LID to MAC address; the others are learned."),
	{ .name = "sm",
			.type = KEY_OBJECT,
			.flags = KEY_NOTED,
			.num_offset = offsetof(struct config_port, has_sm),
			.fields = sm_keys,
			.help = "A subnet manager stands behind this port: serve SMInfo." },
	END,
};

#define PORT(f) struct config_port, link.f

static const struct key port_keys[] = {
	{ .name = "name",
			.type = KEY_TEXT,
			.flags = KEY_REQUIRED,
			FIELD(struct config_port, link.name),
			.help = "Ours, such as \"port0\"." },
	TEXT(struct config_port, device, "device",
			"A PCI address (\"0000:3b:00.0\"), or a virtual device with its arguments "
			"as for DPDK's "
			"--vdev (\"net_af_packet0,iface=eth1\")."),
	TEXT(struct config_port, link.back_to_back, "back_to_back",
			"Instead of a device: the name of another port in this process to be "
			"joined with."),
	LIST(struct config_port, link.addr, link.num_addr, "addresses", LINK_ADDRS_MAX,
			address_item, NULL,
			"IPv4 and IPv6 addresses: texts ADDRESS/PREFIX, or objects with a gateway "
			"too."),
	{ .name = "mtu",
			.type = KEY_UINT,
			FIELD(struct config_port, link.mtu),
			.min = 336,
			.max = 9978,
			.help = "Bytes of an IP packet: a path MTU of 4096 needs 4176, 1024 needs "
				"1104. Default: "
				"the device's." },
	UINT(struct config_port, link.vlan, "vlan", 1, 4094, "VLAN id. Default: untagged."),
	BOOL(struct config_port, link.rocev1, "rocev1",
			"Speak RoCEv1 too: each GID gets a v1 twin."),
	{ .name = "mac",
			.type = KEY_MAC,
			FIELD(struct config_port, link.mac),
			.help = "Default: the device's." },
	LIST(struct config_port, link.pkeys, link.num_pkeys, "pkeys", 16, pkey_item, NULL,
			"P_Key table. Default: 65535 alone."),
	UINT(struct config_port, link.rx_desc, "rx_desc", 64, 32768,
			"Receive descriptors in a queue. Default: the driver's choice."),
	UINT(struct config_port, link.tx_desc, "tx_desc", 64, 32768,
			"Transmit descriptors in a queue. Default: the driver's choice."),
	UINT(struct config_port, link.mbufs, "mbufs", 512, 1 << 22,
			"Packet buffers. Default: from queues, descriptors and workers."),
	BOOL(struct config_port, link.promiscuous, "promiscuous",
			"Take in frames for other MAC addresses, to count them."),
	{ .name = "encapsulation",
			.type = KEY_ENUM,
			FIELD(struct config_port, encapsulation),
			.words = encapsulation_words,
			.help = "roce: RoCEv2 over the port's IP addresses; ib: native InfiniBand "
				"packets in Ethernet frames, managed by a subnet manager." },
	{ .name = "ib",
			.type = KEY_OBJECT,
			.flags = KEY_NOTED,
			.num_offset = offsetof(struct config_port, has_ib),
			.fields = ib_keys,
			.help = "A native InfiniBand port before a subnet manager has spoken to "
				"it." },
	END,
};

static const struct config_port port_init = { .link = { .vlan = PATH_NO_VLAN }, .vls = 8 };

static const struct key port_item[] = {
	{ .name = "port", .type = KEY_OBJECT, .fields = port_keys },
};

static const struct key_word level_words[] = {
	{ "emergency", RTE_LOG_EMERG },
	{ "alert", RTE_LOG_ALERT },
	{ "critical", RTE_LOG_CRIT },
	{ "error", RTE_LOG_ERR },
	{ "warning", RTE_LOG_WARNING },
	{ "notice", RTE_LOG_NOTICE },
	{ "info", RTE_LOG_INFO },
	{ "debug", RTE_LOG_DEBUG },
	{ NULL, 0 },
};

static const struct key log_keys[] = {
	{ .name = "component",
			.type = KEY_TEXT,
			.flags = KEY_REQUIRED,
			FIELD(struct config_log, component),
			.help = "Log component, with * for any text: \"polca.*\", \"lib.eal\", "
				"\"pmd.*\"." },
	{ .name = "level",
			.type = KEY_ENUM,
			.flags = KEY_REQUIRED,
			FIELD(struct config_log, level),
			.words = level_words,
			.help = "The least severe messages that are shown." },
	END,
};

static const struct key log_item[] = {
	{ .name = "log", .type = KEY_OBJECT, .fields = log_keys },
};

static const struct key root_keys[] = {
	TEXT(struct config, schema, "$schema", "For editors: where config/polca.schema.json is."),
	OBJECT("control", control_keys, "The control socket."),
	OBJECT("eal", eal_keys, "DPDK's environment: CPUs and memory."),
	OBJECT("workers", worker_keys, "The lcores that poll."),
	OBJECT("limits", limit_keys, "Sizes of tables; all are allocated at start."),
	OBJECT("congestion", congestion_keys, "Reaction to congestion: DCQCN."),
	OBJECT("mad", mad_keys, "Management datagrams: sessions and their bounds."),
	OBJECT("sa", sa_keys, "Subnet administration."),
	OBJECT("sma", sma_keys, "The channel adapter as subnet managers see it, on native IB ports."),
	OBJECT("live", live_keys, "Answers to pings over management datagrams."),
	OBJECT("cm", cm_keys, "The communication manager: who connects, and how many."),
	LIST(struct config, service, num_services, "services", ENGINE_SERVICES_MAX, service_item,
			&service_init, "Services that listen for connections from the start."),
	{ .name = "ports",
			.type = KEY_LIST,
			.flags = KEY_REQUIRED,
			.offset = offsetof(struct config, port),
			.fields = port_item,
			.min = 1,
			.max = LINK_PORTS_MAX,
			.stride = sizeof(struct config_port),
			.num_offset = offsetof(struct config, num_ports),
			.init = &port_init,
			.help = "The ports, numbered from 0 in this order." },
	LIST(struct config, log, num_log, "log", CONFIG_LOG_MAX, log_item, NULL,
			"What is logged, later entries over earlier ones."),
	END,
};

const struct key config_root = {
	.name = "configuration",
	.type = KEY_OBJECT,
	.fields = root_keys,
	.help = "Configuration of polca",
};

void
config_init(struct config *c)
{
	memset(c, 0, sizeof(*c));
	c->engine = engine_config_default;
	c->engine.limits = rc_limits_default;
	c->engine.mad = mad_limits_default;
	c->engine.sa.server = sa_config_default;
	c->engine.sma.limits = sma_limits_default;
	c->engine.live = live_limits_default;
	c->engine.cm = cm_limits_default;
	strcpy(c->file_prefix, "polca");
}
