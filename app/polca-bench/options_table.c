/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Every option: perftest's letters where perftest has the option. */

#include <rte_common.h>

#include "agents/rates.h"
#include "options.h"

#define MESSAGES (TAKES_TRAFFIC | TAKES_LEAST)
#define GIB      (UINT64_C(1) << 30)

static const struct table_word atomics[] = { { "fetch-add", 0 }, { "cmp-swap", 1 }, { NULL, 0 } };

const struct bench_options bench_options_default = {
	.rnr_timer = 1,
	.footprint = 65536,
	.icrc = true,
	.hugepages = true,
	.rehome = true,
	.link = "memory",
	.lcores = 1,
	.workers = 1,
	.rounds = 9,
};

/* clang-format off */
#define OPTION(letter, name, argument, type, field, groups, text, ...)                             \
	{ ROW_NAMED(struct bench_options, name, field, TABLE_##type, text, ##__VA_ARGS__),         \
		letter, argument, groups }
/* clang-format on */

const struct option_row option_rows[] = {
	OPTION('s', "size", "BYTES", UINT, size, MESSAGES,
		"size of a message (default: 65536 for bw, 64 for rate and skeleton, 2 for lat; atomic: 8)",
		.min = 1, .max = GIB),
	OPTION('a', "all", NULL, BOOL, all_sizes, TAKES_TRAFFIC,
		"all sizes 2, 4, 8, ... up to 8M, or up to -s"),
	OPTION('q', "qp", "N", UINT, qps, MESSAGES, "queue pairs (default 1)", .min = 1,
		.max = 1000000),
	OPTION('t', "tx-depth", "N", UINT, depth, TAKES_TRAFFIC,
		"work requests under way in each (default 128; read and atomic 16; lat 1)",
		.min = 1, .max = 16384),
	OPTION('r', "rx-depth", "N", UINT, rx_depth, TAKES_TRAFFIC,
		"receives posted to each (default: twice -t)", .min = 1, .max = 32768),
	OPTION('m', "mtu", "BYTES", UINT, mtu, MESSAGES,
		"path MTU: 256, 512, 1024, 2048, 4096 (default 4096)", .min = 256, .max = 4096),
	OPTION('n', "iters", "N", UINT, iterations, TAKES_TIME,
		"number of messages, of all queue pairs together, instead of -D", .min = 1,
		.max = UINT64_MAX / 2),
	OPTION('D', "duration", "SECONDS", REAL, seconds, TAKES_TIME | TAKES_LEAST,
		"time to measure each size (default 1)", .max = 1000000),
	OPTION('b', "bidirectional", NULL, BOOL, bidirectional, TAKES_TRAFFIC,
		"send in both directions"),
	OPTION('I', "inline_size", "BYTES", UINT, inline_size, TAKES_TRAFFIC,
		"post messages of up to BYTES inline (default 0: none)", .max = 512),
	OPTION('Q', "cq-mod", "N", UINT, signal_every, TAKES_TRAFFIC,
		"signal one of N requests (default 1)", .min = 1, .max = 16384),
	OPTION('A', "atomic_type", "TYPE", ENUM, atomic, TAKES_ATOMIC,
		"fetch-add (default) or cmp-swap", .words = atomics),
	OPTION(0, "ack-each", NULL, BOOL, ack_per_packet, MESSAGES,
		"an Ack for each request packet, instead of coalesced ones"),
	OPTION(0, "no-icrc", NULL, BOOL, icrc, MESSAGES, "neither make nor check the invariant CRC",
		.def = 1),
	OPTION(0, "record", NULL, BOOL, record, MESSAGES,
		"record the last 64 steps of each of our queue pairs (polca-ctl trace start qp)"),
	OPTION('F', "footprint", "BYTES", UINT, footprint, MESSAGES,
		"size of the memory that small messages use in turn (default 64K)", .min = 64,
		.max = GIB),
	OPTION(0, "check", NULL, BOOL, check, TAKES_TRAFFIC,
		"compare the bytes that arrive with those sent; costs time"),
	OPTION(0, "roofline", NULL, BOOL, roofline, TAKES_TRAFFIC,
		"measure in turn what bounds the figures: the least work possible, copy, CRC, ..."),
	OPTION(0, "plot", "FILE", STRING, plot, TAKES_TRAFFIC,
		"with -a: draw rate or latency over the sizes, and what bounds it, as SVG"),
	OPTION('u', "qp-timeout", "N", UINT, timeout, TAKES_TRAFFIC,
		"Local ACK Timeout, of 4.096 us * 2^N (default 18, with --loss 14)", .min = 1,
		.max = 31),
	OPTION(0, "loss", "N", UINT, loss, TAKES_TRAFFIC,
		"measure in turn without loss and with one of N packets lost at random, each way",
		.min = 2, .max = UINT32_MAX),
	OPTION(0, "beside", "BYTES", UINT, beside, TAKES_TRAFFIC,
		"send lat: measure in turn alone and beside a queue pair that reads BYTES at a time",
		.min = 1, .max = GIB),
	OPTION(0, "link", "LINK", STRING, link, TAKES_LINK | TAKES_LEAST,
		"link between the two ends (default memory)"),
	OPTION(0, "peer", "WHERE", STRING, peer, TAKES_LINK,
		"two processes: a path or HOST:PORT over which they exchange addresses first "
		"(default: by the link); "
		"or the other end itself: gid=ADDRESS,qpn=N,psn=N[,va=N,rkey=N][,length=N], or - "
		"to be told on standard input"),
	OPTION(0, "address", "ADDRESS", STRING, address, TAKES_LINK,
		"address of a DEVICE's port (default 192.0.2.1/24, of the server 192.0.2.2/24)"),
	OPTION(0, "connect", "HOST:PORT", STRING, connect, TAKES_TRAFFIC,
		"the other end is a Polca service: memory, sink; echo for send lat (port: 7471)"),
	OPTION(0, "perftest", "HOST[:PORT]", STRING, perftest, TAKES_TRAFFIC,
		"the other end is perftest's server: ib_send_bw, ib_write_lat, ... (port: 18515)"),
	OPTION('R', "rdma_cm", NULL, BOOL, rdma_cm, TAKES_TRAFFIC,
		"with --perftest: connect with the connection manager, as perftest's -R; else by TCP"),
	OPTION(0, "verbs", "DEVICE[,DEVICE]", STRING, verbs, TAKES_TRAFFIC,
		"measure in turn own posts and a program's through libibverbs and the devices of a "
		"running polca; start by polca-run"),
	OPTION(0, "lcores", "N", UINT, lcores, TAKES_TRAFFIC,
		"1: one lcore runs both ends in turn (default), 2: one lcore for each end",
		.min = 1, .max = 2),
	OPTION('w', "workers", "N", UINT, workers, TAKES_TRAFFIC,
		"one engine with N workers, both ends on each (default 1: one engine for each end)",
		.min = 1, .max = 16),
	OPTION(0, "handoff", "PERCENT", UINT, handoff, TAKES_TRAFFIC,
		"with -w: share of queue pairs whose packets arrive at another worker (default 0)",
		.max = 100),
	OPTION(0, "no-rehome", NULL, BOOL, rehome, TAKES_TRAFFIC,
		"with -w: do not move such queue pairs to the worker where packets arrive",
		.def = 1),
	OPTION(0, "runs", "N", UINT, rounds, TAKES_ROUNDS,
		"number of rounds; each measures everything once (default 9)", .min = 1,
		.max = RATES_ROUNDS_MAX),
	OPTION(0, "case", "TEXT", STRING, only, TAKES_CASE, "only cases with TEXT in their name"),
	OPTION(0, "short", NULL, BOOL, brief, TAKES_ROUNDS,
		"one short round, only to see that it works"),
	OPTION(0, "no-huge", NULL, BOOL, hugepages, TAKES_COMMON,
		"no hugepages, even if there are free ones", .def = 1),
	OPTION(0, "crc", "NAME", STRING, crc, TAKES_COMMON,
		"CRC kernel: portable, pclmul, vpclmul (default: the last one that the CPU has)"),
	OPTION(0, "json", NULL, BOOL, json, TAKES_COMMON, "print the report as JSON"),
	OPTION('V', "version", NULL, BOOL, version, TAKES_HELP, "print the versions"),
	OPTION('h', "help", NULL, BOOL, help, TAKES_HELP, "print this help, or that of a command"),
};
const unsigned int option_count = RTE_DIM(option_rows);
