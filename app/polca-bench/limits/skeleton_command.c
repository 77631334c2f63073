/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The command skeleton: both roles alternate in this process, or this process has one role and
 * another process the other. The two processes do not negotiate: give both the same options.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include "base/plural.h"
#include "command.h"
#include "limits/skeleton.h"
#include "median.h"

enum { BOTH, REQUESTER_ONLY, RESPONDER_ONLY };

#define SLICE_MS   3
#define PAUSE_US   100
#define SLICES     400
#define LINK_UP_MS 30000
#define QUIET_MS   2000 /* without packets: the other process has ended */
#define MIB        (UINT64_C(1) << 20)
#define BUFFER     4222 /* of memif: a path MTU of 4096 and its headers, as in Polca's ports */

struct run_of_it {
	struct skeleton_endpoint end[ROLES];
	unsigned int first, ends;
	double rate[SLICES], ns[ROLES][SLICES];
	unsigned int n, slices;
	bool clean; /* the slices that count were not interrupted */
};

static void
skeleton_iteration(struct run_of_it *v)
{
	if (v->first == REQUESTER)
		skeleton_request(&v->end[REQUESTER]);
	if (v->first + v->ends > RESPONDER)
		skeleton_respond(&v->end[RESPONDER]);
}

static uint64_t
skeleton_messages(const struct run_of_it *v)
{
	return v->end[v->first].messages;
}

static void
skeleton_run_slice(struct run_of_it *v)
{
	uint64_t hz = rte_get_tsc_hz(), now = rte_rdtsc(), start = now, last;
	uint64_t done = skeleton_messages(v);
	bool clean = true;
	unsigned int i;

	for (i = 0; i < ROLES; i++)
		v->end[i].busy = 0;
	do {
		last = now;
		skeleton_iteration(v);
		now = rte_rdtsc();
		clean &= now - last < PAUSE_US * (hz / 1000000);
	} while (now - start < SLICE_MS * (hz / 1000));
	done = skeleton_messages(v) - done;
	v->slices++;
	if (done == 0)
		return;
	if (clean && !v->clean) { /* the first uninterrupted slice: discard those before it */
		v->clean = true;
		v->n = 0;
	}
	if (clean != v->clean || v->n == SLICES)
		return;
	v->rate[v->n] = (double)done * (double)hz / (double)(now - start);
	for (i = 0; i < ROLES; i++)
		v->ns[i][v->n] = (double)v->end[i].busy * 1e9 / (double)hz / (double)done;
	v->n++;
}

/* Run the responder until no packet has arrived for a while, after the first one. */
static void
run_responder(struct run_of_it *v)
{
	uint64_t hz = rte_get_tsc_hz(), last = rte_rdtsc(), before;

	while (bench_stop == 0) {
		before = v->end[RESPONDER].packets;
		skeleton_run_slice(v);
		if (v->end[RESPONDER].packets != before || before == 0)
			last = rte_rdtsc();
		else if (rte_rdtsc() - last > QUIET_MS * (hz / 1000))
			break;
	}
}

static void
run_requester(struct run_of_it *v, double seconds)
{
	uint64_t end;

	skeleton_start(&v->end[REQUESTER]);
	skeleton_run_slice(v);
	v->n = v->slices = 0;
	v->clean = false;
	end = rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz());
	while (rte_rdtsc() < end && bench_stop == 0) {
		skeleton_run_slice(v);
		report_progress("%u slice%s", (unsigned int)v->slices, plural(v->slices));
	}
}

/* --- ports --- */

static int
wait_for_link(uint16_t ethdev, struct error *err)
{
	struct rte_eth_link link;
	unsigned int ms;

	for (ms = 0; ms < LINK_UP_MS && bench_stop == 0; ms += 10) {
		if (rte_eth_link_get_nowait(ethdev, &link) == 0 &&
			link.link_status == RTE_ETH_LINK_UP)
			return 0;
		usleep(10000);
	}
	return error_set(err, ETIMEDOUT, "the other process did not come within %u s",
		LINK_UP_MS / 1000);
}

/*
 * Open a memif device; ring devices are already open. Leaves only the device's name in @p device.
 */
static int
open_memif(const struct bench_options *o, enum bench_role role, char *device, size_t size,
	struct error *err)
{
	char socket[200];

	if (role == RESPONDER && link_value(o, "socket", socket, sizeof(socket)))
		unlink(socket); /* left behind by a killed process */
	snprintf(device + strlen(device), size - strlen(device), ",bsize=%d", BUFFER);
	if (rte_dev_probe(device) != 0)
		return error_set(err, ENODEV, "%s cannot be opened", device);
	device[strcspn(device, ",")] = '\0';
	return 0;
}

static int
skeleton_open_ports(struct run_of_it *v, const struct bench_options *o,
	const struct bench_link *link, struct error *err)
{
	struct skeleton_config config = {
		.write = o->size > o->mtu,
		.size = o->size,
		.mtu = o->mtu,
		.qps = o->qps,
		.window = SKELETON_WINDOW,
		.ack_every = o->ack_per_packet ? 1 : SKELETON_ACK_EVERY,
		.footprint = o->footprint,
		.icrc = o->icrc,
	};
	char device[ROLES][256];
	unsigned int i;
	int ret = 0;

	if (!link->remote)
		ret = link_memory_pair("skeleton", device, err);
	for (i = v->first; i < v->first + v->ends && ret == 0; i++) {
		if (link->remote) {
			ret = link->create(o, i, device, err);
			if (ret == 0)
				ret = open_memif(o, i, device[i], sizeof(device[i]), err);
		}
		if (ret == 0)
			ret = skeleton_create(&v->end[i], &config, i, device[i], err);
		if (ret == 0 && link->remote)
			ret = wait_for_link(v->end[i].ethdev, err);
	}
	return ret;
}

/* --- the command --- */

static const struct report_column columns[] = {
	{ "bytes", "#bytes", 10, 0 },
	{ "msg_rate_peak_mpps", "peak[Mpps]", 12, 6 },
	{ "msg_rate_mpps", "MsgRate[Mpps]", 15, 6 },
	{ "requester_ns", "requester[ns]", 14, 1 },
	{ "responder_ns", "responder[ns]", 14, 1 },
};

static int
skeleton_report(struct run_of_it *v, const struct bench_options *o, struct report *r,
	struct error *err)
{
	uint64_t bad = v->end[0].bad + v->end[1].bad;
	double row[RTE_DIM(columns)], best = 0;
	unsigned int i;

	if (v->n == 0)
		return error_set(err, ETIME,
			"no message was answered in %u slice%s: is the other process there?",
			v->slices, plural(v->slices));
	for (i = 0; i < v->n; i++)
		best = RTE_MAX(best, v->rate[i]);
	row[0] = o->size;
	row[1] = best / 1e6;
	row[2] = median(v->rate, v->n) / 1e6;
	row[3] = median(v->ns[REQUESTER], v->n);
	row[4] = median(v->ns[RESPONDER], v->n);
	report_table(r, "skeleton", columns, RTE_DIM(columns));
	report_row(r, row);
	report_note(r, "medians of %u of %u slice%s; %lu bad packet%s", v->n, v->slices,
		plural(v->slices), bad, plural(bad));
	if (!v->clean)
		report_note(r, "every slice was interrupted: all of them count");
	return 0;
}

static int
skeleton_check(const struct bench_options *o, const struct bench_link *link, struct error *err)
{
	if (link == NULL)
		return -EINVAL;
	if (o->size % 4 != 0 || o->qps > SKELETON_QPS)
		return error_set(err, EINVAL,
			"skeleton: allowed multiples of 4 bytes, up to %u queue pairs",
			SKELETON_QPS);
	if (link->remote == ((unsigned int)o->mode == BOTH))
		return error_set(err, EINVAL,
			"skeleton: both roles with --link memory; requester or "
			"responder with --link memif, each in its process");
	return 0;
}

int
skeleton_run_command(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err)
{
	struct run_of_it *v = calloc(1, sizeof(*v));
	const struct bench_link *link = link_find(o, err);
	struct eal_wish wish = { .bytes = 256 * MIB };
	unsigned int i;
	int ret = skeleton_check(o, link, err);

	RTE_SET_USED(c);
	if (ret != 0)
		goto out;
	v->first = (unsigned int)o->mode == RESPONDER_ONLY ? RESPONDER : REQUESTER;
	v->ends = (unsigned int)o->mode == BOTH ? ROLES : 1;
	wish.first_cpu = v->first;
	ret = bench_eal_start(o, &wish, err);
	if (ret == 0)
		ret = skeleton_open_ports(v, o, link, err);
	if (ret != 0)
		goto out;
	report_environment(r, o);
	report_fact(r, "port", "%s, link %s", link->remote ? "net_memif" : "net_ring", o->link);
	report_fact(r, "queues", "%u queue pair%s, window %u, PMTU %u%s", o->qps, plural(o->qps),
		SKELETON_WINDOW, o->mtu, o->ack_per_packet ? ", an Ack each" : "");
	if ((unsigned int)o->mode == RESPONDER_ONLY)
		run_responder(v);
	else
		run_requester(v, o->seconds);
	ret = skeleton_report(v, o, r, err);
	for (i = v->first; i < v->first + v->ends; i++)
		skeleton_destroy(&v->end[i]);
out:
	free(v);
	return ret;
}
