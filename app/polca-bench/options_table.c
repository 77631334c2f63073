/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Every option: perftest's letters where perftest has the option. */

#include <rte_common.h>

#include "agents/rates.h"
#include "options.h"

#define FIELD(f) ((uint16_t)offsetof(struct bench_options, f))
#define MESSAGES (TAKES_TRAFFIC | TAKES_LEAST)
#define GIB      (UINT64_C(1) << 30)

static const char *const atomics[] = { "fetch-add", "cmp-swap", NULL };

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

const struct option_row option_rows[] = {
	{ 's', "size", "BYTES", OPTION_U32, FIELD(size), MESSAGES, 1, GIB, NULL,
		"of a message (default: 65536 for bw, 64 for rate and skeleton, 2 for lat; atomic: 8)" },
	{ 'a', "all", NULL, OPTION_FLAG, FIELD(all_sizes), TAKES_TRAFFIC, 0, 0, NULL,
		"all sizes 2, 4, 8, ... up to 8M, or up to -s" },
	{ 'q', "qp", "N", OPTION_U32, FIELD(qps), MESSAGES, 1, 1000000, NULL,
		"queue pairs (default 1)" },
	{ 't', "tx-depth", "N", OPTION_U32, FIELD(depth), TAKES_TRAFFIC, 1, 16384, NULL,
		"work requests under way in each (default 128; read and atomic 16; lat 1)" },
	{ 'r', "rx-depth", "N", OPTION_U32, FIELD(rx_depth), TAKES_TRAFFIC, 1, 32768, NULL,
		"receives posted to each (default: twice -t)" },
	{ 'm', "mtu", "BYTES", OPTION_U32, FIELD(mtu), MESSAGES, 256, 4096, NULL,
		"path MTU: 256, 512, 1024, 2048, 4096 (default 4096)" },
	{ 'n', "iters", "N", OPTION_U64, FIELD(iterations), TAKES_TIME, 1, UINT64_MAX / 2, NULL,
		"just so many messages, of all queue pairs together, instead of -D" },
	{ 'D', "duration", "SECONDS", OPTION_SECONDS, FIELD(seconds), TAKES_TIME | TAKES_LEAST, 0,
		0, NULL, "how long, for each size (default 1)" },
	{ 'b', "bidirectional", NULL, OPTION_FLAG, FIELD(bidirectional), TAKES_TRAFFIC, 0, 0, NULL,
		"both ends send" },
	{ 'I', "inline_size", "BYTES", OPTION_U32, FIELD(inline_size), TAKES_TRAFFIC, 0, 512, NULL,
		"post messages up to it inline (default 0: none)" },
	{ 'Q', "cq-mod", "N", OPTION_U32, FIELD(signal_every), TAKES_TRAFFIC, 1, 16384, NULL,
		"one of so many requests is signaled (default 1)" },
	{ 'A', "atomic_type", "TYPE", OPTION_WORD, FIELD(atomic), TAKES_ATOMIC, 0, 0, atomics,
		"fetch-add (default) or cmp-swap" },
	{ 0, "ack-each", NULL, OPTION_FLAG, FIELD(ack_per_packet), MESSAGES, 0, 0, NULL,
		"an Ack for each request packet, instead of coalesced ones" },
	{ 0, "no-icrc", NULL, OPTION_NO, FIELD(icrc), MESSAGES, 0, 0, NULL,
		"neither make nor check the invariant CRC" },
	{ 'F', "footprint", "BYTES", OPTION_U32, FIELD(footprint), MESSAGES, 64, GIB, NULL,
		"memory that small messages go through in turn (default 64K)" },
	{ 0, "check", NULL, OPTION_FLAG, FIELD(check), TAKES_TRAFFIC, 0, 0, NULL,
		"compare the bytes that arrive with those sent; costs time" },
	{ 0, "roofline", NULL, OPTION_FLAG, FIELD(roofline), TAKES_TRAFFIC, 0, 0, NULL,
		"measure in turn what bounds the figures: the least work possible, copy, CRC, ..." },
	{ 0, "plot", "FILE", OPTION_TEXT, FIELD(plot), TAKES_TRAFFIC, 0, 0, NULL,
		"with -a: draw rate or latency over the sizes, and what bounds it, as SVG" },
	{ 'u', "qp-timeout", "N", OPTION_U32, FIELD(timeout), TAKES_TRAFFIC, 1, 31, NULL,
		"Local ACK Timeout, of 4.096 us * 2^N (default 18, with --loss 14)" },
	{ 0, "loss", "N", OPTION_U32, FIELD(loss), TAKES_TRAFFIC, 2, UINT32_MAX, NULL,
		"measure by turns without and with one of N packets lost at random, each way" },
	{ 0, "beside", "BYTES", OPTION_U32, FIELD(beside), TAKES_TRAFFIC, 1, GIB, NULL,
		"send lat: measure by turns alone and beside a queue pair that reads so many at a time" },
	{ 0, "link", "LINK", OPTION_TEXT, FIELD(link), TAKES_LINK | TAKES_LEAST, 0, 0, NULL,
		"what joins the two ends (default memory)" },
	{ 0, "peer", "WHERE", OPTION_TEXT, FIELD(peer), TAKES_LINK, 0, 0, NULL,
		"two processes: a path or HOST:PORT they talk over before (default: by the link); "
		"or the other end itself: gid=ADDRESS,qpn=N,psn=N[,va=N,rkey=N][,length=N], or - "
		"to be told on standard input" },
	{ 0, "address", "ADDRESS", OPTION_TEXT, FIELD(address), TAKES_LINK, 0, 0, NULL,
		"of a DEVICE's port (default 192.0.2.1/24, of the server 192.0.2.2/24)" },
	{ 0, "connect", "HOST:PORT", OPTION_TEXT, FIELD(connect), TAKES_TRAFFIC, 0, 0, NULL,
		"the other end is a Polca service: memory, sink; echo for send lat (port: 7471)" },
	{ 0, "perftest", "HOST[:PORT]", OPTION_TEXT, FIELD(perftest), TAKES_TRAFFIC, 0, 0, NULL,
		"the other end is perftest's server: ib_send_bw, ib_write_lat, ... (port: 18515)" },
	{ 'R', "rdma_cm", NULL, OPTION_FLAG, FIELD(rdma_cm), TAKES_TRAFFIC, 0, 0, NULL,
		"with --perftest: all by the connection manager, as with -R there; else by TCP" },
	{ 0, "lcores", "N", OPTION_U32, FIELD(lcores), TAKES_TRAFFIC, 1, 2, NULL,
		"1: both ends by turns on one (default), 2: each on its own" },
	{ 'w', "workers", "N", OPTION_U32, FIELD(workers), TAKES_TRAFFIC, 1, 16, NULL,
		"one engine of so many workers, both ends on each (default 1: an engine an end)" },
	{ 0, "handoff", "PERCENT", OPTION_U32, FIELD(handoff), TAKES_TRAFFIC, 0, 100, NULL,
		"with -w: of the queue pairs whose packets arrive at another worker (default 0)" },
	{ 0, "no-rehome", NULL, OPTION_NO, FIELD(rehome), TAKES_TRAFFIC, 0, 0, NULL,
		"with -w: leave those where they are" },
	{ 0, "runs", "N", OPTION_U32, FIELD(rounds), TAKES_ROUNDS, 1, RATES_ROUNDS_MAX, NULL,
		"rounds, each of which measures everything once (default 9)" },
	{ 0, "case", "TEXT", OPTION_TEXT, FIELD(only), TAKES_CASE, 0, 0, NULL,
		"only what has this in its name" },
	{ 0, "short", NULL, OPTION_FLAG, FIELD(brief), TAKES_ROUNDS, 0, 0, NULL,
		"one round of little: only to see that it works" },
	{ 0, "no-huge", NULL, OPTION_NO, FIELD(hugepages), TAKES_COMMON, 0, 0, NULL,
		"no hugepages, even if there are free ones" },
	{ 0, "crc", "NAME", OPTION_TEXT, FIELD(crc), TAKES_COMMON, 0, 0, NULL,
		"CRC kernel: portable, pclmul, vpclmul (default: the last one that the CPU has)" },
	{ 0, "json", NULL, OPTION_FLAG, FIELD(json), TAKES_COMMON, 0, 0, NULL,
		"the report as JSON" },
};
const unsigned int option_count = RTE_DIM(option_rows);
