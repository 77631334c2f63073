/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * send lat --beside: alternate a ping-pong alone with a ping-pong while a second queue pair of the
 * same workers reads o->beside bytes in one Read after the other.
 */

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/plural.h"
#include "traffic/paired.h"

#define VA  UINT64_C(0x100000000)
#define MIB 1048576.0

enum { TYPICAL, P99, P999, MEASURES };

static const double percents[MEASURES] = { 50, 99, 99.9 };

static const struct report_column columns[] = {
	{ "bytes", "#bytes", 8, 0 },
	{ "beside", "#beside", 10, 0 },
	{ "t_typical_us", "t_typical[us]", 13, 2 },
	{ "t_typical_beside_us", "beside[us]", 10, 2 },
	{ "p99_us", "99%[us]", 8, 2 },
	{ "p99_beside_us", "beside[us]", 10, 2 },
	{ "p999_us", "99.9%[us]", 9, 2 },
	{ "p999_beside_us", "beside[us]", 10, 2 },
	{ "p99_ratio", "ratio of 99%", 12, 2 },
	{ "bw_beside_mib", "BW beside[MiB/sec]", 18, 2 },
};

struct background_reads {
	struct bench_options o; /* of the Reads */
	struct endpoint end[ROLES];
	struct peer peer[ROLES];
	struct load load;
	uint64_t pauses;
	struct paired latency[MEASURES]; /* us */
	double bytes, seconds; /* of the Reads */
};

/* Replace the small region that endpoint_add() registered. */
static int
reads_make_region(struct endpoint *end, uint64_t bytes, struct error *err)
{
	struct mem_mr_attr mr = {
		.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE,
		.length = bytes,
		.va = VA,
		.pd = end->pd,
		.hugepages = true,
		.numa_node = -1,
	};

	return engine_mr_register(end->engine, &mr, 0, &end->mr, err);
}

static int
reads_create(struct background_reads *b, struct benchmark *s, struct error *err)
{
	unsigned int i;
	int ret = 0;

	b->o = s->o;
	b->o.verb = BENCH_READ;
	b->o.mode = BENCH_BW;
	b->o.check = false;
	b->o.iterations = 0; /* the Reads last as long as the ping-pong */
	for (i = 0; i < ROLES && ret == 0; i++) {
		ret = endpoint_add(&b->end[i], &s->end[i], &b->o, err);
		if (ret == 0)
			ret = reads_make_region(&b->end[i], s->o.beside, err);
		endpoint_describe(&b->end[i], &b->peer[!i]);
	}
	for (i = 0; i < ROLES && ret == 0; i++)
		ret = endpoint_connect(&b->end[i], &b->peer[i], &b->o, err);
	b->o.size = s->o.beside;
	if (ret == 0)
		ret = load_create(&b->load, &b->o, &b->end[REQUESTER], &b->peer[REQUESTER], 0, err);
	return ret;
}

static void
reads_destroy(struct background_reads *b)
{
	unsigned int i;

	load_destroy(&b->load);
	for (i = 0; i < ROLES; i++)
		endpoint_destroy(&b->end[i]);
}

/* In the parts with Reads, the requester's place also runs their load. */
static void
reads_join(struct benchmark *s, struct background_reads *b, bool with)
{
	struct place *p = &s->runner[0].place[0];

	p->load[1] = &b->load;
	p->loads = with ? 2 : 1;
}

static int
lat_with_reads_part(struct benchmark *s, struct background_reads *b, bool with, uint32_t size,
	struct error *err)
{
	const struct histogram *h = s->load[REQUESTER][0].histogram;
	double us = 1e6 / (double)rte_get_tsc_hz();
	uint64_t start;
	unsigned int i;
	int ret;

	reads_join(s, b, with);
	ret = benchmark_prepare(s, size, err);
	if (ret == 0)
		ret = load_receive(&b->load, b->o.size, err);
	start = rte_rdtsc();
	if (ret == 0 && with)
		ret = load_send(&b->load, err);
	if (ret == 0)
		ret = benchmark_run(s, err);
	if (ret == 0)
		ret = load_failure(&b->load, err);
	if (ret != 0)
		return ret;
	for (i = 0; i < MEASURES; i++)
		b->latency[i].value[with][b->latency[i].pairs] =
			us * histogram_percentile(h, percents[i]);
	if (with) {
		b->bytes += (double)b->load.done * b->o.size;
		b->seconds += us * (double)(rte_rdtsc() - start) / 1e6;
	}
	return 0;
}

static void
lat_with_reads_report(struct benchmark *s, const struct background_reads *b, uint32_t size)
{
	struct paired_result r[MEASURES];
	unsigned int i;

	for (i = 0; i < MEASURES; i++)
		r[i] = paired_medians(&b->latency[i]);
	double row[] = { size, b->o.size, r[TYPICAL].median[0], r[TYPICAL].median[1],
		r[P99].median[0], r[P99].median[1], r[P999].median[0], r[P999].median[1],
		r[P99].ratio, b->bytes / b->seconds / MIB };

	report_table(s->report, "beside", columns, RTE_DIM(columns));
	report_row(s->report, row);
	report_note(s->report,
		"beside: medians of %u pair%s, interleaved: alone, then while another "
		"queue pair reads %u byte%s at a time; without the samples in which something "
		"else ran on the CPU: %lu time%s",
		b->latency[P99].pairs, plural(b->latency[P99].pairs), b->o.size, plural(b->o.size),
		b->pauses, plural(b->pauses));
}

int
lat_with_reads_run(struct benchmark *s, uint32_t size, struct error *err)
{
	struct background_reads b = { .bytes = 0 };
	unsigned int i, with, pairs;
	int ret = reads_create(&b, s, err);

	s->o.seconds /= 2 * PAIRS;
	for (i = 0; i < ROLES; i++)
		s->load[i][0].pauses = &b.pauses;
	for (pairs = 0; pairs < PAIRS && ret == 0 && bench_stop == 0; pairs++) {
		for (with = 0; with < 2 && ret == 0 && bench_stop == 0; with++)
			ret = lat_with_reads_part(s, &b, with, size, err);
		for (i = 0; i < MEASURES; i++)
			b.latency[i].pairs += ret == 0 && with == 2;
	}
	if (ret == 0 && b.latency[0].pairs > 0)
		lat_with_reads_report(s, &b, size);
	reads_destroy(&b);
	return ret;
}
