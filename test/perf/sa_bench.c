/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What subnet administration costs: segments, sessions and path queries of one worker, and how
 * long a table takes on a link that loses packets.
 *
 *	sa_bench [--runs N] [--case TEXT] [--short]
 *
 * Runs are interleaved: each round measures every case once; the medians of the rounds are
 * printed. --short only checks that it works, on small databases.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"


static unsigned int runs;
static const char *only = "";
static bool brief;

/* --- throughput --- */

struct bench_case {
	const char *name, *unit;
	enum ask ask;
	unsigned int version;
	uint32_t sessions;
	uint32_t count; /* segments or answers to be measured */
};

static const struct bench_case cases[] = {
	{ "v1-segments-1", "segments/s", ASK_NODES, 1, 1, 400000 },
	{ "v1-segments-1000", "segments/s", ASK_NODES, 1, 1000, 800000 },
	{ "v1-segments-100000", "segments/s", ASK_NODES, 1, 100000, 1600000 },
	{ "v2-segments-1", "segments/s", ASK_NODES, 2, 1, 400000 },
	{ "v2-segments-1000", "segments/s", ASK_NODES, 2, 1000, 800000 },
	{ "v2-segments-100000", "segments/s", ASK_NODES, 2, 100000, 1600000 },
	{ "v1-sessions-1", "sessions/s", ASK_LINK, 1, 1, 100000 },
	{ "v1-sessions-1000", "sessions/s", ASK_LINK, 1, 1000, 200000 },
	{ "v1-sessions-100000", "sessions/s", ASK_LINK, 1, 100000, 400000 },
	{ "v2-sessions-1", "sessions/s", ASK_LINK, 2, 1, 100000 },
	{ "v2-sessions-1000", "sessions/s", ASK_LINK, 2, 1000, 200000 },
	{ "v2-sessions-100000", "sessions/s", ASK_LINK, 2, 100000, 400000 },
	{ "v1-get-path", "Get/s", ASK_PATH, 1, 256, 400000 },
	{ "v2-get-path", "Get/s", ASK_PATH, 2, 256, 400000 },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static uint32_t
scaled(uint32_t n)
{
	return brief && n > 1000 ? n / 100 : n;
}

static bool
chosen(const char *name)
{
	return strstr(name, only) != NULL;
}

static uint64_t
progress(const struct bench_client *c)
{
	return c->ask == ASK_NODES ? c->segments : c->completed;
}

/* Let it run until so much has come. */
static void
run_until(struct bench_server *s, struct bench_client *c, uint64_t count)
{
	unsigned int idle = 0;

	while (progress(c) < count || c->begun < c->sessions) {
		uint32_t begun = client_start(c);
		uint64_t before = progress(c);
		unsigned int n = server_step(s, &c->out, s->busy + 1);

		client_step(c, &s->out);
		idle = n + begun != 0 || progress(c) != before ? 0 : idle + 1;
		if (idle > 100000000)
			die("nothing moves any more");
	}
}

static double
measure(const struct bench_case *k, struct bench_server *s, uint32_t ports, double *repeated)
{
	struct bench_client *c = calloc(1, sizeof(*c));
	uint32_t sessions = scaled(k->sessions), count = scaled(k->count);
	uint64_t from, start;
	double rate;

	if (c == NULL)
		die("no memory");
	client_create(c, k->ask, k->version, sessions, ports);
	run_until(s, c, sessions + count / 10); /* every session has begun */
	from = progress(c);
	start = s->busy;
	run_until(s, c, from + count);
	rate = (double)(progress(c) - from) * (double)bench_hz() / (double)(s->busy - start);
	if (c->failed != 0)
		die("a transfer failed");
	*repeated = (double)c->out_of_order / (double)progress(c);
	client_destroy(c);
	free(c);
	return rate;
}

static void
create_for(struct bench_server *s, const struct bench_case *k, uint32_t *ports)
{
	const struct bench_config config = { .sessions = 131072 };

	*ports = scaled(10000);
	server_create(s, &config);
	if (k->ask == ASK_NODES)
		load_nodes(s, scaled(20000));
	else
		load_fabric(s, *ports);
}

static void
throughput(void)
{
	double rate[CASES][BENCH_RUNS_MAX], repeated[CASES][BENCH_RUNS_MAX];
	unsigned int i, r;

	for (r = 0; r < runs; r++) {
		for (i = 0; i < CASES; i++) {
			struct bench_server s;
			uint32_t ports;

			if (!chosen(cases[i].name))
				continue;
			create_for(&s, &cases[i], &ports);
			rate[i][r] = measure(&cases[i], &s, ports, &repeated[i][r]);
			server_destroy(&s);
		}
	}
	printf("%-20s %12s %12s %12s %10s\n", "case", "median", "lowest", "highest", "repeated");
	for (i = 0; i < CASES; i++) {
		if (!chosen(cases[i].name))
			continue;
		qsort(rate[i], runs, sizeof(double), bench_by_value);
		qsort(repeated[i], runs, sizeof(double), bench_by_value);
		printf("%-20s %12.0f %12.0f %12.0f %8.2f %%  %s\n", cases[i].name,
				bench_quantile(rate[i], runs, 0.5), rate[i][0], rate[i][runs - 1],
				100 * bench_quantile(repeated[i], runs, 0.5), cases[i].unit);
	}
}

/* --- loss --- */

static void
loss_case(struct loss_bench *b, unsigned int version, uint32_t one_in, unsigned int transfers,
		uint32_t records)
{
	double *us = calloc(transfers, sizeof(*us));
	uint64_t lost = 0, segments = 0;
	struct loss_result r;
	unsigned int i;

	if (us == NULL)
		die("no memory");
	for (i = 0; i < transfers; i++) {
		loss_run(b, version, one_in, i + 1, &r);
		if (r.result.end != MAD_END_OK || r.records != records)
			die("a transfer failed");
		us[i] = (double)r.ns / 1000;
		lost += r.lost;
		segments += r.result.segments;
	}
	qsort(us, transfers, sizeof(*us), bench_by_value);
	printf("v%u, loss %4.1f %%: median %9.1f us, 90 %% %9.1f, 99 %% %9.1f, longest %9.1f; "
	       "%.1f segments, %.1f packets lost\n",
			version, one_in != 0 ? 100.0 / one_in : 0, bench_quantile(us, transfers, 0.5),
			bench_quantile(us, transfers, 0.9), bench_quantile(us, transfers, 0.99),
			us[transfers - 1], (double)segments / transfers, (double)lost / transfers);
	free(us);
}

static void
loss(void)
{
	uint32_t records = scaled(1000);
	unsigned int version, transfers = brief ? 20 : 1000;
	struct loss_bench *b;

	if (!chosen("loss"))
		return;
	b = loss_create(records, 20000);
	printf("\n%u NodeRecords, round trip 20 us, 5 million packets a second, %u transfers\n",
			records, transfers);
	for (version = 1; version <= 2; version++) {
		loss_case(b, version, 0, transfers, records);
		loss_case(b, version, 100, transfers, records);
	}
	loss_destroy(b);
}

int
main(int argc, char **argv)
{
	runs = bench_options(argc, argv, &brief, &only);
	bench_print_machine(runs);
	throughput();
	loss();
	return 0;
}
