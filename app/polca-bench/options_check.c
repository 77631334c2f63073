/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the command line leaves open, and what does not go together. */

#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "base/pci_address.h"
#include "base/plural.h"
#include "options.h"

#define ALL_SIZES_MAX (8u << 20)
#define ATOMIC_SIZE   8
#define CHECK_MAX     (UINT64_C(4) << 30)
#define READS         16 /* Reads and Atomics that a QP may have under way */

static uint32_t
default_size(const struct bench_options *o)
{
	if (o->verb == BENCH_ATOMIC)
		return ATOMIC_SIZE;
	if (o->verb == BENCH_SKELETON)
		return 64;
	if (o->all_sizes)
		return ALL_SIZES_MAX;
	return o->mode == BENCH_BW ? 65536 : o->mode == BENCH_RATE ? 64 : 2;
}

static uint32_t
default_depth(const struct bench_options *o)
{
	if (o->mode == BENCH_LAT)
		return 1;
	return o->verb == BENCH_READ || o->verb == BENCH_ATOMIC ? READS : 128;
}

bool
options_connects(const struct bench_options *o)
{
	return o->connect != NULL || (o->perftest != NULL && o->rdma_cm);
}

bool
options_given(const struct bench_options *o)
{
	return o->peer != NULL &&
		(strcmp(o->peer, "-") == 0 ||
			(strchr(o->peer, '=') != NULL && strchr(o->peer, '/') == NULL));
}

bool
options_pci(const struct bench_options *o)
{
	return pci_address_parse(o->link, NULL);
}

bool
options_device(const struct bench_options *o)
{
	return strncmp(o->link, "net_", 4) == 0 || options_pci(o);
}

/* perftest's own -n, which is of each queue pair. */
static uint64_t
perftest_iterations(const struct bench_options *o)
{
	bool write_bw = o->verb == BENCH_WRITE && o->mode != BENCH_LAT;

	return (uint64_t)o->qps * (write_bw ? 5000 : 1000);
}

static void
complete(struct bench_options *o)
{
	if (o->size == 0)
		o->size = default_size(o);
	if (o->qps == 0)
		o->qps = 1;
	if (o->depth == 0)
		o->depth = RTE_MAX(default_depth(o), o->signal_every);
	if (o->perftest != NULL && o->iterations == 0 && o->seconds == 0)
		o->iterations = perftest_iterations(o);
	if (o->seconds == 0)
		o->seconds = 1;
	if (o->rx_depth == 0)
		o->rx_depth = 2 * o->depth;
	if (o->mtu == 0) /* a device's frames have 1500 bytes, mostly */
		o->mtu = options_device(o) ? 1024 : 4096;
	if (o->signal_every == 0)
		o->signal_every = 1;
	/* machines stall, but where the timer has work to do perftest's is as good */
	if (o->timeout == 0)
		o->timeout = o->loss > 0 ? 14 : 18;
}

/* What some of the operations have not. */
static int
check_operation(const struct bench_options *o, struct error *err)
{
	if (o->inline_size > 0 && o->verb != BENCH_SEND && o->verb != BENCH_WRITE)
		return error_set(err, EINVAL,
			"-I, --inline_size: only of send and write: a Read or an Atomic carries no data of ours");
	if (o->check && o->verb == BENCH_ATOMIC && o->bidirectional)
		return error_set(err, EINVAL, "--check: of atomic one way only: leave out -b");
	if (o->check && o->verb == BENCH_READ && o->signal_every > 1)
		return error_set(err, EINVAL,
			"--check: what a Read brought is compared when it is told to be done: leave out -Q");
	return 0;
}

static int
check_latency(const struct bench_options *o, struct error *err)
{
	if (o->qps > 1 || o->depth > 1 || o->signal_every > 1)
		return error_set(err, EINVAL,
			"lat: one message at a time on one queue pair: leave out -q, -t and -Q");
	if (o->bidirectional)
		return error_set(err, EINVAL, "lat: a ping-pong goes both ways: leave out -b");
	if (o->workers > 1)
		return error_set(err, EINVAL, "lat: leave out -w");
	if (o->check && o->verb == BENCH_WRITE)
		return error_set(err, EINVAL,
			"write lat: the last byte is the signal, --check compares Sends and Reads");
	return 0;
}

/* What is measured by turns without and with something else. */
static int
check_paired(const struct bench_options *o, struct error *err)
{
	bool memory = strcmp(o->link, "memory") == 0;

	if (o->loss > 0 && (o->mode == BENCH_LAT || o->all_sizes || o->roofline || !memory))
		return error_set(err, EINVAL,
			"--loss: for one size in memory: leave out lat, -a, --roofline and --link");
	if (o->beside > 0 &&
		(o->verb != BENCH_SEND || o->mode != BENCH_LAT || o->all_sizes || !memory))
		return error_set(err, EINVAL,
			"--beside: for send lat and one size in memory: leave out -a and --link");
	return 0;
}

/* A service does what it does. */
static int
check_connect(const struct bench_options *o, struct error *err)
{
	if (o->bidirectional || o->peer != NULL || o->workers > 1 || o->lcores > 1)
		return error_set(err, EINVAL, "--connect: leave out -b, -w, --peer and --lcores");
	if (o->verb == BENCH_WRITE && o->mode == BENCH_LAT)
		return error_set(err, EINVAL,
			"--connect: nobody answers a Write there: read lat or send lat");
	if (o->check && (o->verb != BENCH_SEND || o->mode != BENCH_LAT))
		return error_set(err, EINVAL,
			"--check: with --connect only of send lat, whose messages come back");
	return 0;
}

/* One way, one size, one worker: that is what they have. */
static int
check_foreign(const struct bench_options *o, const char *option, struct error *err)
{
	if (o->bidirectional || o->all_sizes || o->workers > 1 || o->lcores > 1 || o->check ||
		o->connect != NULL)
		return error_set(err, EINVAL,
			"%s: leave out -a, -b, -w, --lcores, --check and --connect", option);
	if (o->iterations % ((uint64_t)o->qps * o->signal_every) != 0)
		return error_set(err, EINVAL,
			"-n, --iters: got %lu, allowed: multiples of -q times -Q (%lu) with %s",
			o->iterations, (uint64_t)o->qps * o->signal_every, option);
	return 0;
}

static int
check_perftest(const struct bench_options *o, struct error *err)
{
	if (o->perftest == NULL)
		return o->rdma_cm ? error_set(err, EINVAL, "-R, --rdma_cm: wants --perftest") : 0;
	if (o->peer != NULL)
		return error_set(err, EINVAL, "--perftest: leave out --peer");
	return check_foreign(o, "--perftest", err);
}

static int
check_given(const struct bench_options *o, struct error *err)
{
	if (!options_given(o))
		return 0;
	if (o->qps > 1)
		return error_set(err, EINVAL, "--peer gid=...: is one queue pair: leave out -q");
	if (o->verb == BENCH_WRITE && o->mode == BENCH_LAT)
		return error_set(err, EINVAL,
			"--peer gid=...: nobody answers a Write there: read lat or send lat");
	return check_foreign(o, "--peer gid=...", err);
}

/* Own posts in memory on one lcore, and a program's to compare with. */
static int
check_verbs(const struct bench_options *o, struct error *err)
{
	if (o->verbs == NULL)
		return 0;
	if (o->mode == BENCH_LAT && o->verb != BENCH_SEND)
		return error_set(err, EINVAL, "--verbs: of send, send lat, write, read and atomic");
	if (strcmp(o->link, "memory") != 0 || o->iterations > 0 || o->loss > 0 || o->beside > 0 ||
		o->roofline || !o->icrc)
		return error_set(err, EINVAL,
			"--verbs: leave out -n, --link, --loss, --beside, --roofline and --no-icrc");
	if (o->depth % o->signal_every != 0)
		return error_set(err, EINVAL,
			"--verbs: -t, --tx-depth: got %u, allowed: multiples of -Q (%u)", o->depth,
			o->signal_every);
	return check_foreign(o, "--verbs", err);
}

int
options_complete(struct bench_options *o, struct error *err)
{
	if (o->iterations > 0 && o->seconds > 0)
		return error_set(err, EINVAL, "-n, --iters and -D, --duration exclude each other");
	complete(o);
	if (o->verb == BENCH_ATOMIC && (o->size != ATOMIC_SIZE || o->all_sizes))
		return error_set(err, EINVAL,
			"atomic: an operand has %d bytes: leave out -s and -a", ATOMIC_SIZE);
	if (o->mtu < 256 || !rte_is_power_of_2(o->mtu))
		return error_set(err, EINVAL,
			"-m, --mtu: got %u, allowed: 256, 512, 1024, 2048, 4096", o->mtu);
	if (o->signal_every > o->depth)
		return error_set(err, EINVAL,
			"-Q, --cq-mod: got %u, allowed: up to -t (%u): the queue would fill without a completion",
			o->signal_every, o->depth);
	if (o->check && (uint64_t)o->qps * RTE_MAX(o->depth, o->rx_depth) * o->size > CHECK_MAX)
		return error_set(err, EINVAL,
			"--check: each message under way has a place of its "
			"own, %lu MiB in all, allowed: %lu: less with -s, -q, -t",
			(uint64_t)o->qps * RTE_MAX(o->depth, o->rx_depth) * o->size >> 20,
			CHECK_MAX >> 20);
	if (check_operation(o, err) != 0)
		return -EINVAL;
	if (o->handoff > 0 && o->workers < 2)
		return error_set(err, EINVAL, "--handoff: got %u without -w, --workers 2 or more",
			o->handoff);
	if (!o->rehome && o->workers < 2)
		return error_set(err, EINVAL, "--no-rehome: wants -w, --workers 2 or more");
	if ((o->workers > 1 || o->lcores > 1) && strcmp(o->link, "memory") != 0)
		return error_set(err, EINVAL,
			"--lcores and -w, --workers: with --link memory only; else each end has one lcore");
	if (o->peer != NULL && strcmp(o->link, "memory") == 0)
		return error_set(err, EINVAL,
			"--peer: got \"%.64s\", but with --link memory there "
			"is no second process: --link memif or DEVICE",
			o->peer);
	if (o->workers > 1 && o->lcores > 1)
		return error_set(err, EINVAL,
			"--lcores and -w, --workers exclude each other: each worker is an lcore with both ends");
	if (o->roofline &&
		(o->workers > 1 || o->lcores > 1 || o->all_sizes || o->mode == BENCH_LAT ||
			strcmp(o->link, "memory") != 0))
		return error_set(err, EINVAL,
			"--roofline: for one size in memory on one lcore: leave "
			"out lat, -a, -w, --lcores and --link");
	if (o->plot != NULL && !o->all_sizes)
		return error_set(err, EINVAL,
			"--plot: draws figures over message sizes: wants -a, --all (with -s for the largest size)");
	if (o->workers > o->qps)
		return error_set(err, EINVAL,
			"-w, --workers: got %u for %u queue pair%s: more with -q", o->workers,
			o->qps, plural(o->qps));
	if (check_paired(o, err) != 0 || check_perftest(o, err) != 0 || check_given(o, err) != 0)
		return -EINVAL;
	if (check_verbs(o, err) != 0)
		return -EINVAL;
	if (o->connect != NULL && check_connect(o, err) != 0)
		return -EINVAL;
	return o->mode == BENCH_LAT && o->verb != BENCH_SKELETON ? check_latency(o, err) : 0;
}
