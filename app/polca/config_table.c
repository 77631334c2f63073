/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Every key of the configuration, one row each: here the process and what it has as a whole; the
 * others in config_agents.c and config_ports.c.
 */

#include <string.h>

#include "base/log_level.h"
#include "config_keys.h"

static const struct table_row control_keys[] = {
	TEXT(struct config, socket, "socket",
		"Unix socket of the control interface. Default: /run/polca/polca.sock for root, "
		"$XDG_RUNTIME_DIR/polca.sock for others, else /tmp/polca-UID/polca.sock."),
	TEXT(struct config, group, "group",
		"Group whose members may use the sockets too. polca's user must be a member. Default: "
		"none."),
	TEXT(struct config, mode, "mode",
		"Mode of the control socket, octal, at least 0600. Default: 0660 with a group, else 0600."),
	TEXT(struct config, monitor, "monitor",
		"A second socket, on which no method changes anything: for monitoring. Default: none."),
	TEXT(struct config, monitor_group, "monitor_group",
		"Group whose members may use the socket for monitoring, and need not be in group. "
		"polca's user must be a member. Default: group."),
	ROW_END,
};

#define VERBS_LIMIT(f, high, text)    UINT(struct config, verbs.f, #f, 1, high, text)
#define VERBS_CM(f, name, high, text) UINT(struct config, verbs.cm.f, name, 1, high, text)
#define VERBS_USER(f, name, high, text)                                                            \
	UINT(struct config, verbs.limits.user.f, name, 1, high, text)
#define VERBS_TABLE(f, low, high, text) UINT(struct config, verbs.limits.f, #f, low, high, text)

static const struct table_row verbs_keys[] = {
	BOOL(struct config, verbs.enabled, "enabled",
		"Let programs that use libibverbs open the ports as polca0, polca1, ..."),
	TEXT(struct config, verbs.socket, "socket",
		"Unix socket that their provider connects to. Default: verbs.sock beside the control "
		"socket."),
	TEXT(struct config, verbs.group, "group",
		"Group whose members may use it. polca's user must be a member. Default: none."),
	TEXT(struct config, verbs.mode, "mode",
		"Mode of the socket, octal, at least 0600. Default: 0660 with a group, else 0600."),
	VERBS_LIMIT(max_clients, 1024,
		"Devices that programs have opened, and programs that use librdmacm, each."),
	VERBS_LIMIT(max_user_clients, 1024, "Of these, those of one user."),
	VERBS_LIMIT(mr_mb, 1 << 24, "Of one client: memory of its regions in MiB."),
	VERBS_LIMIT(ring_mb, 65536, "Of one client: memory of its queues in MiB."),
	VERBS_TABLE(max_qp, 1, 65536, "Of one client: queue pairs."),
	VERBS_TABLE(max_cq, 1, 65536, "Of one client: completion queues."),
	VERBS_TABLE(max_srq, 1, 1024, "Of one client: shared receive queues."),
	VERBS_TABLE(max_pd, 1, 65536, "Of one client: protection domains."),
	VERBS_TABLE(max_mr, 1, 1 << 22, "Of one client: memory regions."),
	VERBS_TABLE(max_mw, 1, 1 << 22, "Of one client: memory windows."),
	VERBS_TABLE(max_channels, 1, 4096, "Of one client: completion channels."),
	VERBS_TABLE(max_wr, 1, 1 << 28,
		"Of one client: work requests that its queues have room for."),
	VERBS_USER(max_qp, "max_user_qp", 1 << 23, "Of all clients of a user: queue pairs."),
	VERBS_USER(max_cq, "max_user_cq", 1 << 23, "Of all clients of a user: completion queues."),
	VERBS_USER(max_srq, "max_user_srq", 1 << 20,
		"Of all clients of a user: shared receive queues."),
	VERBS_USER(max_pd, "max_user_pd", 1 << 20, "Of all clients of a user: protection domains."),
	VERBS_USER(max_mr, "max_user_mr", 1 << 23, "Of all clients of a user: memory regions."),
	VERBS_USER(max_mw, "max_user_mw", 1 << 23, "Of all clients of a user: memory windows."),
	VERBS_USER(max_wr, "max_user_wr", 1 << 30,
		"Of all clients of a user: work requests that their queues have room for."),
	VERBS_LIMIT(user_mr_mb, 1 << 24, "Of all clients of a user: memory of regions in MiB."),
	VERBS_CM(max_ids, "max_cm_ids", 65536, "Of a program that uses librdmacm: its IDs."),
	VERBS_CM(max_channels, "max_cm_channels", 4096,
		"Of a program that uses librdmacm: event channels. rsockets take one each."),
	ROW_END,
};

static const struct table_row metrics_keys[] = {
	TEXT(struct config, metrics, "listen",
		"Loopback address and port, such as 127.0.0.1:9464, or the path of a Unix socket. "
		"Default: nowhere."),
	ROW_END,
};

static const struct table_word seccomp_words[] = {
	{ "enforce", CONFIG_SECCOMP_ENFORCE },
	{ "log", CONFIG_SECCOMP_LOG },
	{ "off", CONFIG_SECCOMP_OFF },
	{ NULL, 0 },
};

static const struct table_row security_keys[] = {
	TEXT(struct config, user, "user",
		"User to become when started as root, once all devices are open; \"root\" stays root. "
		"Default: polca if the host has this user, else nobody; root with eal.multi_process, or "
		"without CAP_SETUID, as in a container."),
	ENUM(struct config, seccomp, "seccomp", seccomp_words,
		"System calls that a running Polca does not need: fail with EPERM (enforce), or are "
		"only noted in the kernel's log (log)."),
	UINT(struct config, engine.key_errors, "key_errors", 0, 1000000,
		"Requests with wrong R_Keys from one address within a minute, after which it gets no "
		"new connections for a while. 0: any number."),
	UINT(struct config, engine.key_error_pause_s, "key_error_pause_s", 1, 86400,
		"For so many seconds."),
	ROW_END,
};

static const struct table_row arg_item[] = {
	{ .name = "argument", .type = TABLE_CHARS, .size = sizeof(struct config_arg) },
};

static const struct table_row eal_keys[] = {
	TEXT(struct config, lcores, "lcores",
		"DPDK's --lcores, with lcore 0 for the control thread and one lcore per "
		"worker from 1 on. Default: one CPU for each worker in turn, the control thread on any."),
	BOOL(struct config, hugepages, "hugepages",
		"Take memory from hugepages: what real NICs need. Without, any user may run polca."),
	UINT(struct config, memory_mb, "memory_mb", 0, 1048576,
		"Memory for packets and objects in MiB. 0: without hugepages a share for each "
		"port and worker, with hugepages as much as is needed."),
	TEXT(struct config, file_prefix, "file_prefix",
		"Name of this instance's runtime directory, for dpdk-telemetry.py -f."),
	BOOL(struct config, multi_process, "multi_process",
		"Let DPDK secondary processes attach, such as dpdk-dumpcap. Needs hugepages."),
	LIST(struct config, arg, num_args, "args", 0, CONFIG_ARGS_MAX, TABLE_VALUES, arg_item, NULL,
		"More arguments for the EAL, one text each."),
	ROW_END,
};

static const struct table_word idle_words[] = {
	{ "poll", IDLE_POLL },
	{ "backoff", IDLE_BACKOFF },
	{ NULL, 0 },
};

static const struct table_row worker_keys[] = {
	UINT(struct config, workers, "count", 0, LINK_WORKERS_MAX,
		"Worker lcores. 0: one for each port, but no more than there are CPUs."),
	ENUM(struct config, engine.idle, "idle", idle_words,
		"What a worker without work does: poll for ever, or back off to sleeping."),
	UINT(struct config, engine.idle_spin_us, "idle_spin_us", 0, 1000000,
		"backoff: microseconds without work before the first sleep."),
	UINT(struct config, engine.idle_sleep_us, "idle_sleep_us", 1, 10000,
		"backoff: longest sleep in microseconds; it bounds how late a first packet is seen."),
	POWER2(struct config, engine.handoff_ring, "handoff_ring", 64, 65536,
		"Packets that wait from one worker to another before they are dropped."),
	BOOL(struct config, engine.rehome, "rehome",
		"Queue pairs move to the worker at whose receive queues nearly all of their "
		"packets arrive, on ports with a queue for each worker."),
	ROW_NAMED(struct config, "stall_ms", engine.stall_ms, TABLE_UINT,
		"A worker that has not polled for so many milliseconds raises an alarm.",
		.flags = TABLE_RELOAD, .min = 10, .max = 3600000),
	BOOL(struct config, engine.icrc_unchecked, "icrc_unchecked",
		"Do not verify invariant CRCs: trust the link."),
	ROW_END,
};

#define LIMIT(f, low, high, text) UINT(struct config, engine.limits.f, #f, low, high, text)
/* of what is made from now on */
#define LIMIT_RELOAD(f, low, high, text)                                                           \
	ROW_NAMED(struct config, #f, engine.limits.f, TABLE_UINT, text, .flags = TABLE_RELOAD,     \
		.min = low, .max = high)
#define TABLE(f, high, text) UINT(struct config, engine.f, #f, 1, high, text)

static const struct table_row limit_keys[] = {
	POWER2(struct config, engine.limits.max_qp, "max_qp", 32, 1 << 23, "Queue pairs."),
	LIMIT(max_cq, 1, 1 << 20, "Completion queues."),
	LIMIT(max_srq, 0, 1 << 20, "Shared receive queues."),
	TABLE(max_pd, 1 << 20, "Protection domains."),
	TABLE(max_mr, 1 << 22, "Memory regions."),
	TABLE(max_mw, 1 << 22, "Memory windows."),
	LIMIT_RELOAD(max_qp_wr, 1, 1 << 20, "Work requests in a send or receive queue."),
	LIMIT_RELOAD(max_srq_wr, 1, 1 << 20, "Work requests in a shared receive queue."),
	LIMIT_RELOAD(max_sge, 1, RC_SGE_MAX, "Scatter/gather entries in a work request."),
	LIMIT_RELOAD(max_inline, 0, RC_INLINE_MAX, "Inline bytes in a work request."),
	LIMIT_RELOAD(max_cqe, 1, 1 << 24, "Entries in a completion queue."),
	LIMIT(max_rd_atomic, 1, 255, "Outstanding Reads and Atomics of a queue pair, either way."),
	LIMIT_RELOAD(min_ack_timeout, 0, 31,
		"Local ACK Timeouts below this code (but 0, which is off) are raised to it."),
	LIMIT_RELOAD(window, 1, 1 << 23, "Packets that a queue pair may have in flight."),
	LIMIT_RELOAD(ack_interval, 1, 1 << 16,
		"Ask for an ACK at least every so many request packets."),
	LIMIT_RELOAD(quarantine, 0, 1 << 22,
		"A destroyed queue pair's number rests until so many others were destroyed."),
	ROW_END,
};

#define CONGESTION(f, low, high, text)                                                             \
	UINT(struct config, engine.limits.congestion.f, #f, low, high, text)

static const struct table_row congestion_keys[] = {
	BOOL(struct config, engine.limits.congestion.dcqcn, "dcqcn",
		"RoCEv2: send packets as ECN capable, and slow a queue pair down when its peer "
		"answers with congestion notification packets. Those are sent either way."),
	CONGESTION(max_rate, 1, 800000,
		"Mbit/s of the ports. A queue pair begins at it and is not limited when it has it again."),
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
	ROW_END,
};

static const struct table_word level_words[] = { LOG_LEVEL_WORDS, { NULL, 0 } };

static const struct table_row log_keys[] = {
	ROW_NAMED(struct config_log, "component", component, TABLE_CHARS,
		"Log component, with * for any text: \"polca.*\", \"lib.eal\", "
		"\"pmd.*\". Those of DPDK are known, and checked, only when polca starts.",
		.flags = TABLE_REQUIRED),
	ROW_NAMED(struct config_log, "level", level, TABLE_ENUM,
		"The least severe messages that are shown.", .flags = TABLE_REQUIRED,
		.words = level_words),
	ROW_END,
};

const struct table_row config_rows[] = {
	TEXT(struct config, schema, "$schema", "For editors: where config/polca.schema.json is."),
	OBJECT("control", control_keys, "The control socket."),
	OBJECT("verbs", verbs_keys,
		"The verbs socket: queue pairs for other programs of this host."),
	OBJECT("metrics", metrics_keys, "GET /metrics for Prometheus, by HTTP."),
	OBJECT("security", security_keys, "What the process may do once its devices are open."),
	OBJECT("eal", eal_keys, "DPDK's environment: CPUs and memory."),
	OBJECT("workers", worker_keys, "The lcores that poll."),
	OBJECT("limits", limit_keys,
		"Sizes of tables, all allocated at start: max_qp, max_cq, max_srq, max_pd, max_mr, "
		"max_mw; and what a reload may change for objects made from then on."),
	OBJECT("congestion", congestion_keys, "Reaction to congestion: DCQCN."),
	OBJECT("mad", config_mad_keys, "Management datagrams: sessions and their bounds."),
	OBJECT("sa", config_sa_keys, "Subnet administration."),
	OBJECT("fleet", config_fleet_keys,
		"Several appliances that serve one database, which etcd holds. Needs sa.path."),
	OBJECT("sma", config_sma_keys,
		"The channel adapter as subnet managers see it, on native IB ports."),
	OBJECT("live", config_live_keys, "Answers to pings over management datagrams."),
	OBJECT("cm", config_cm_keys, "The communication manager: who connects, and how many."),
	LIST(struct config, service, num_services, "services", 0, ENGINE_SERVICES_MAX, TABLE_RELOAD,
		config_service_keys, &config_service_init,
		"Services that listen for connections from the start."),
	LIST(struct config, port, num_ports, "ports", 1, LINK_PORTS_MAX, TABLE_REQUIRED,
		config_port_keys, &config_port_init, "The ports, numbered from 0 in this order."),
	LIST(struct config, log, num_log, "log", 0, CONFIG_LOG_MAX, TABLE_RELOAD, log_keys, NULL,
		"What is logged, later entries over earlier ones."),
	ROW_END,
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
	c->verbs = verbs_config_default;
	strcpy(c->file_prefix, "polca");
	strcpy(c->engine.sa.fleet.prefix, "/polca");
	c->engine.sa.fleet.lease_s = 5;
	c->engine.sa.fleet.max_txn_ops = 128;
	c->seccomp = CONFIG_SECCOMP_ENFORCE;
}
