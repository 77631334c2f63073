/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The command sa: what one worker of subnet administration serves, and how long a table takes over
 * a link that loses packets.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "agents/agents.h"
#include "agents/rates.h"

#define LOSS_RECORDS   1000
#define LOSS_RTT_NS    20000
#define LOSS_TRANSFERS 1000
#define BRIEF          50 /* a short run does one part in this many */

struct measured {
	double rate[RATES_ROUNDS_MAX], repeated[RATES_ROUNDS_MAX];
	unsigned int n;
};

static bool
chosen(const struct bench_options *o, const char *name)
{
	return o->only == NULL || strstr(name, o->only) != NULL;
}

/* "loss" is a case of its own, see measure_loss(). */
static bool
any_chosen(const struct bench_options *o)
{
	bool any = chosen(o, "loss");
	unsigned int i;

	for (i = 0; i < sa_case_count && !any; i++)
		any = chosen(o, sa_cases[i].name);
	return any;
}

static void
report_repeated(struct report *r, const struct sa_case *k, struct measured *m)
{
	double repeated;

	if (m->n == 0)
		return;
	qsort(m->repeated, m->n, sizeof(double), bench_by_value);
	repeated = bench_quantile(m->repeated, m->n, 0.5);
	if (repeated >= 0.001)
		report_note(r, "%s: %.1f %% as many packets came repeated, out of order or late",
			k->name, 100 * repeated);
}

static int
throughput(const struct bench_options *o, struct report *r, struct error *err)
{
	struct measured *m = calloc(sa_case_count, sizeof(*m));
	unsigned int i, round, any = 0;

	if (m == NULL)
		return error_set(err, ENOMEM, "no memory");
	for (i = 0; i < sa_case_count; i++)
		any += chosen(o, sa_cases[i].name);
	for (round = 0; round < rates_rounds(o); round++) {
		for (i = 0; i < sa_case_count && bench_stop == 0; i++) {
			if (!chosen(o, sa_cases[i].name))
				continue;
			report_live(r, " round %u of %u: %s", round + 1, rates_rounds(o),
				sa_cases[i].name);
			m[i].rate[m[i].n] =
				sa_case_rate(&sa_cases[i], o->brief, &m[i].repeated[m[i].n]);
			m[i].n++;
		}
	}
	if (any > 0)
		rates_table(r, "sa");
	for (i = 0; i < sa_case_count; i++)
		rates_row(r, sa_cases[i].name, m[i].rate, m[i].n);
	for (i = 0; i < sa_case_count; i++)
		report_repeated(r, &sa_cases[i], &m[i]);
	free(m);
	return 0;
}

/* --- loss, in virtual time: the results are the same on every machine --- */

static const struct report_column loss_columns[] = {
	{ "class_version", "class version", 14, 0 },
	{ "loss_percent", "loss[%]", 8, 1 },
	{ "p50_us", "50%[usec]", 12, 1 },
	{ "p90_us", "90%[usec]", 12, 1 },
	{ "p99_us", "99%[usec]", 12, 1 },
	{ "max_us", "longest[usec]", 14, 1 },
	{ "segments", "segments", 10, 1 },
	{ "lost", "packets lost", 12, 1 },
};

static int
loss_row(struct sa_loss *b, const struct bench_options *o, unsigned int version, uint32_t one_in,
	struct report *r, struct error *err)
{
	unsigned int i, n = o->brief ? LOSS_TRANSFERS / BRIEF : LOSS_TRANSFERS;
	double us[LOSS_TRANSFERS];
	uint64_t lost = 0, segments = 0;
	struct sa_loss_result l;

	for (i = 0; i < n && bench_stop == 0; i++) {
		sa_loss_run(b, version, one_in, i + 1, &l);
		if (l.result.end != MAD_END_OK || l.records == 0)
			return error_set(err, EIO, "a transfer ended with %s",
				mad_end_name(l.result.end));
		us[i] = (double)l.ns / 1000;
		lost += l.lost;
		segments += l.result.segments;
	}
	if (i == 0)
		return 0;
	n = i;
	qsort(us, n, sizeof(*us), bench_by_value);
	report_row(r,
		(double[]){ version, one_in != 0 ? 100.0 / one_in : 0, bench_quantile(us, n, 0.5),
			bench_quantile(us, n, 0.9), bench_quantile(us, n, 0.99), us[n - 1],
			(double)segments / n, (double)lost / n });
	return 0;
}

static int
measure_loss(const struct bench_options *o, struct report *r, struct error *err)
{
	uint32_t records = o->brief ? LOSS_RECORDS / BRIEF : LOSS_RECORDS;
	unsigned int version;
	struct sa_loss *b;
	int ret = 0;

	if (!chosen(o, "loss") || bench_stop != 0)
		return 0;
	b = sa_loss_create(records, LOSS_RTT_NS);
	report_note(r,
		"a table of %u NodeRecords, round trip 20 us, 5 million packets a second, in virtual time",
		records);
	report_table(r, "loss", loss_columns, RTE_DIM(loss_columns));
	for (version = 1; version <= 2 && ret == 0; version++) {
		ret = loss_row(b, o, version, 0, r, err);
		if (ret == 0)
			ret = loss_row(b, o, version, 100, r, err);
	}
	sa_loss_destroy(b);
	return ret;
}

int
bench_sa_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err)
{
	int ret;

	RTE_SET_USED(c);
	if (!any_chosen(o))
		return error_set(err, EINVAL,
			"--case: no case has \"%.32s\" in its name; without it all are run and named",
			o->only);
	ret = rates_begin(o, r, err);
	if (ret == 0)
		ret = throughput(o, r, err);
	return ret != 0 ? ret : measure_loss(o, r, err);
}
