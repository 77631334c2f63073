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

static const struct key_word level_words[] = { LOG_LEVEL_WORDS, { NULL, 0 } };

static const struct key log_keys[] = {
	{ .name = "component",
			.type = KEY_TEXT,
			.flags = KEY_REQUIRED,
			FIELD(struct config_log, component),
			.help = "Log component, with * for any text: \"polca.*\", \"lib.eal\", "
				"\"pmd.*\". Those of DPDK are known, and checked, only when polca "
				"starts." },
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
	OBJECT("mad", config_mad_keys, "Management datagrams: sessions and their bounds."),
	OBJECT("sa", config_sa_keys, "Subnet administration."),
	OBJECT("sma", config_sma_keys,
			"The channel adapter as subnet managers see it, on native IB ports."),
	OBJECT("live", config_live_keys, "Answers to pings over management datagrams."),
	OBJECT("cm", config_cm_keys, "The communication manager: who connects, and how many."),
	LIST(struct config, service, num_services, "services", ENGINE_SERVICES_MAX,
			config_service_item, &config_service_init,
			"Services that listen for connections from the start."),
	{ .name = "ports",
			.type = KEY_LIST,
			.flags = KEY_REQUIRED,
			.offset = offsetof(struct config, port),
			.fields = config_port_item,
			.min = 1,
			.max = LINK_PORTS_MAX,
			.stride = sizeof(struct config_port),
			.num_offset = offsetof(struct config, num_ports),
			.init = &config_port_init,
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
