/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What the configuration says of those who answer: management agents, the SA, the communication
 * manager and services.
 */

#include "config_keys.h"

#define MAD(f, low, high, text) UINT(struct config, engine.mad.f, #f, low, high, text)

const struct table_row config_mad_keys[] = {
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
	BOOL(struct config, engine.mad.v1_early_resend, "v1_early_resend",
		"Class version 1: send again, too, what is overdue by round trips, and not "
		"only when the standard's timeouts end. A loss then costs milliseconds."),
	MAD(rmpp_total_ms, 100, 86400000,
		"RMPP: a message that is not whole after so many milliseconds is given up."),
	MAD(keepalive_total_ms, 100, 86400000,
		"Class version 1: a session that only KeepAlives keep ends after so many milliseconds."),
	ROW_END,
};

#define SA(f, low, high, text)     UINT(struct config, engine.sa.f, #f, low, high, text)
#define SERVER(f, low, high, text) UINT(struct config, engine.sa.server.f, #f, low, high, text)

#define EDIT(i, key, text) UINT(struct config, engine.sa.server.edit_codes[i], key, 1, 255, text)

static const struct table_word trust_words[] = {
	{ "key", SA_TRUST_KEY },
	{ "all", SA_TRUST_ALL },
	{ NULL, 0 },
};

static const struct table_row partition_keys[] = {
	ROW_NAMED(struct sa_partition, "pkey", pkey, TABLE_UINT, "Its P_Key, in either membership.",
		.flags = TABLE_REQUIRED, .digits = 1, .min = 1, .max = 0xFFFF),
	ROW_NAMED(struct sa_partition, "sl", sl, TABLE_UINT, "The SL.", .flags = TABLE_REQUIRED,
		.max = 15),
	ROW_END,
};

const struct table_row config_peer_value[] = {
	{ .name = "peer",
		.type = TABLE_FORM,
		.form = &config_form_peers,
		.size = sizeof(struct allow_prefix) },
};

const struct table_row config_pkey_value[] = {
	{ .name = "P_Key", .type = TABLE_UINT, .size = sizeof(uint16_t), .min = 1, .max = 0xFFFF },
};

static const struct table_row sa_allow_keys[] = {
	ALLOW_KEYS(struct config, engine.sa.server.allow),
	ROW_END,
};

const struct table_row config_sa_keys[] = {
	BOOL(struct config, engine.sa.enabled, "enabled",
		"Serve subnet administration. Asking others works without."),
	TEXT(struct config, engine.sa.path, "path",
		"Directory of the database, made when only it is missing. Default: memory only."),
	SA(map_mb, 1, 1 << 24,
		"The most that the database may grow to, MiB, in memory and on disk."),
	SA(max_import_mb, 1, 4096,
		"The largest file that is imported, MiB; it is read into memory as a whole."),
	ROW_NAMED(struct config, "sm_key", engine.sa.server.sm_key, TABLE_UINT,
		"SM_Key of trusted requesters. The default, 1, is opensm's and saquery's, "
		"which everybody knows: who gives it sees everything but keys, and "
		"changes only what is its own. 0: nobody is trusted for a key.",
		.flags = TABLE_SECRET, .max = INT64_MAX),
	ENUM(struct config, engine.sa.server.trust, "trust", trust_words,
		"key: who gives the SM_Key sees and, unless it is 1, changes "
		"everything, others see their partition; all: everybody may do everything."),
	SERVER(master_sm_lid, 0, 0xBFFF,
		"LID of the Master SM: Config is taken from it whatever its SM_Key, besides "
		"from those who may change everything. 0: from those alone."),
	EDIT(0, "edit_add", "Class version 1: EditModifier that adds, as server and as client."),
	EDIT(1, "edit_delete", "The one that deletes."),
	EDIT(2, "edit_edit", "The one that edits."),
	OBJECT("allow", sa_allow_keys,
		"Who is answered, subscriptions included; other requests are dropped and counted."),
	SERVER(packet_life, 0, 63, "PacketLifeTime of computed paths: 4.096 us * 2^it."),
	LIST(struct config, engine.sa.server.partition, engine.sa.server.num_partitions,
		"partitions", 0, SA_PARTITIONS_MAX, 0, partition_keys, NULL,
		"SLs of partitions, as sl= in opensm's partitions.conf: computed paths of "
		"the partition have it unless an SL was imported for them, and so have "
		"multicast groups whose creator names none. Others have SL 0."),
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
		"Memory that old versions may keep, MiB; beyond, the oldest transfer ends."),
	SERVER(notice_retries, 0, 255, "A Report that nobody answers is sent again so often."),
	SERVER(notice_interval_ms, 10, 3600000, "Milliseconds between two of them."),
	SERVER(notices_max, 1, 1 << 20, "Reports under way, per worker."),
	SA(query_mb, 1, 1 << 20,
		"Memory for the records that one query of ours may bring, MiB: about 8000 "
		"NodeRecords each."),
	ROW_END,
};

#define SMA(f, low, high, text)  UINT(struct config, engine.sma.f, #f, low, high, text)
#define TRAP(f, low, high, text) UINT(struct config, engine.sma.limits.f, #f, low, high, text)

static const struct table_row service_allow_keys[] = {
	ALLOW_KEYS(struct config_service, svc.allow),
	ROW_END,
};

const struct table_row config_sma_keys[] = {
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
		"SMPs that wait in a port's VL15 buffer; more are dropped, silently but counted."),
	TRAP(trap_interval_ms, 10, 3600000,
		"Milliseconds between repeats of a trap, if the port's SubnetTimeOut does "
		"not ask for more."),
	TRAP(trap_retries, 0, 65535, "A trap that nobody represses is sent again so often."),
	TRAP(trap_rate, 1, 1000000, "New traps a second, per port."),
	TRAP(trap_burst, 1, 1000000, "New traps at once, per port."),
	ROW_END,
};

#define LIVE(f, low, high, text) UINT(struct config, engine.live.f, #f, low, high, text)

const struct table_row config_live_keys[] = {
	BOOL(struct config, engine.live.ibping, "ibping", "Answer ibping (class 0x32)."),
	BOOL(struct config, engine.live.sysstat, "sysstat",
		"Answer ibsysstat (class 0x33): it tells anybody this host's name and CPUs."),
	LIVE(rate, 0, 100000000,
		"Requests a second that one source may send, per worker. 0: any number."),
	LIVE(burst, 1, 100000000, "And so many at once."),
	POWER2(struct config, engine.live.sources, "sources", 16, 1 << 20,
		"Sources that are told apart, per worker."),
	LIVE(max_echo, 208, 1 << 26, "Largest echo, bytes."),
	ROW_END,
};

#define CM(f, low, high, text) UINT(struct config, engine.cm.f, #f, low, high, text)

const struct table_row config_cm_keys[] = {
	CM(max_connections, 1, 1 << 20,
		"Connections of a worker, those that ended a moment ago (TIMEWAIT) included, "
		"half-open ones not."),
	CM(max_half_open, 1, 1 << 20, "Requests of others not yet established, per worker."),
	CM(max_half_open_per_peer, 1, 1 << 20, "The same of one peer."),
	CM(max_connections_per_peer, 1, 1 << 20, "Connections with one peer, per worker."),
	CM(max_listeners, 1, 65535, "Service IDs that listen."),
	CM(response_timeout, 0, 31,
		"Time that we take to answer a message at most: 4.096 us * 2^it."),
	CM(max_retries, 0, 15, "A message that nobody answers is sent again so often."),
	CM(ack_delay, 0, 31, "Our share of the peer's Local ACK Timeout: 4.096 us * 2^it."),
	CM(packet_life, 0, 31, "PacketLifeTime of RoCE paths, where no SA tells: 4.096 us * 2^it."),
	BOOL(struct config, engine.cm.send_mra, "send_mra",
		"Answer a repeated request that still waits by MRA."),
	ROW_END,
};

#define SERVICE(f, low, high, text) UINT(struct config_service, svc.f, #f, low, high, text)

static const struct table_word port_space_words[] = {
	{ "tcp", CM_PS_TCP },
	{ "udp", CM_PS_UDP },
	{ "ib", CM_PS_IB },
	{ NULL, 0 },
};

const struct table_row config_service_keys[] = {
	ROW_NAMED(struct config_service, "kind", svc.kind, TABLE_CHARS,
		"What answers: memory, echo, sink, rping, ...; polca-ctl cm listen --help tells all.",
		.flags = TABLE_REQUIRED, .texts = svc_kinds_that_listen),
	TEXT(struct config_service, svc.name, "name",
		"The operator's name for it. Default: the kind."),
	UINT(struct config_service, port, "port", 1, 65535,
		"Port that it listens on, as rdma_cm programs count them."),
	ENUM(struct config_service, port_space, "port_space", port_space_words,
		"Port space of port."),
	HEX(struct config_service, svc.service_id, "service_id", 1, UINT64_MAX,
		"Instead of port: the service ID itself."),
	UINT(struct config_service, svc.tcp_port, "tcp_port", 1, 65535,
		"perftest: port of its exchange over TCP. Default: none."),
	TEXT(struct config_service, svc.tcp_address, "tcp_address",
		"perftest: address that tcp_port listens on. Default: all of this host."),
	BOOL(struct config_service, svc.tcp_any_gid, "tcp_any_gid",
		"perftest: a client may announce any GID, and a LID. By default only the address of its "
		"TCP connection, so that nobody directs traffic at others; clients whose TCP comes by "
		"another network, or that use native InfiniBand, need it."),
	SERVICE(length, 1, UINT64_C(1) << 40, "Bytes of its memory. Default: the kind's."),
	SERVICE(size, 1, UINT32_MAX, "Bytes of a message at most. Default: the kind's."),
	SERVICE(depth, 1, 1 << 20, "Receives kept posted. Default: the kind's."),
	SERVICE(local_port, 0, LINK_PORTS_MAX - 1,
		"Port that most peers come by, counted from 0: its memory is on that card's NUMA node."),
	BOOL(struct config_service, svc.per_connection, "per_connection",
		"memory: each connection has its own."),
	SERVICE(max_connections, 1, 1 << 20, "Connections at most. Default: the kind's."),
	SERVICE(max_connections_per_peer, 1, 1 << 20,
		"Of one address. Default: three times as many as are left, so that others find "
		"places."),
	OBJECT("allow", service_allow_keys,
		"Who may connect, perftest's TCP included; for others the service does not exist."),
	ROW_END,
};

const struct config_service config_service_init = { .port_space = CM_PS_TCP };
