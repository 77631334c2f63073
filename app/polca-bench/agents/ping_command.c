/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The command ping: how many liveness requests a worker answers, and how long an echo takes. */

#include <errno.h>

#include <rte_common.h>

#include "agents/agents.h"
#include "agents/rates.h"
#include "histogram.h"

#define REQUESTS       1000000
#define REQUESTS_BRIEF 10000
#define CASES_MAX      8

static const struct {
	uint32_t bytes, echoes, brief;
} sizes[] = {
	{ 56, 200000, 1000 },
	{ 208, 200000, 1000 },
	{ 4096, 20000, 100 },
	{ 65536, 2000, 20 },
	{ 1 << 20, 200, 3 },
};

static void
measure_answers(const struct bench_options *o, struct report *r)
{
	double rate[CASES_MAX][RATES_ROUNDS_MAX];
	unsigned int i, n;

	for (n = 0; n < rates_rounds(o); n++) {
		report_live(r, " round %u of %u", n + 1, rates_rounds(o));
		for (i = 0; i < ping_case_count && bench_stop == 0; i++)
			rate[i][n] = ping_rate(i, o->brief ? REQUESTS_BRIEF : REQUESTS);
		if (i < ping_case_count)
			break;
	}
	rates_table(r, "answers");
	for (i = 0; i < ping_case_count; i++)
		rates_row(r, ping_cases[i], rate[i], n);
}

static void
echoes(struct report *r, struct histogram *h, uint32_t bytes, uint32_t count)
{
	struct ping_pair *p = ping_create(bytes);
	uint32_t i;

	histogram_reset(h);
	for (i = 0; i < count / 10; i++) /* warm the caches and the round-trip estimates */
		ping_echo(p);
	for (i = 0; i < count && bench_stop == 0; i++)
		histogram_add(h, ping_echo(p));
	if (i > 0)
		report_latency(r, bytes, h);
	ping_destroy(p);
}

int
bench_ping_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err)
{
	struct histogram *h;
	unsigned int i;
	int ret = rates_begin(o, r, err);

	RTE_SET_USED(c);
	if (ret != 0)
		return ret;
	measure_answers(o, r);
	if (bench_stop != 0)
		return 0;
	h = histogram_create();
	if (h == NULL)
		return error_set(err, ENOMEM, "no memory for samples");
	report_note(r, "echoes between two workers, one at a time; above 208 bytes by RMPP");
	report_latency_table(r, "echo");
	for (i = 0; i < RTE_DIM(sizes); i++)
		echoes(r, h, sizes[i].bytes, o->brief ? sizes[i].brief : sizes[i].echoes);
	histogram_destroy(h);
	return 0;
}
