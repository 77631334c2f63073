/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>

#include <rte_common.h>

#include "agents/agents.h"
#include "agents/rates.h"

#define EAL_BYTES (32u << 20) /* small: the agents allocate from the C heap */

static const struct report_column columns[] = {
	{ "case", "case", 36, 0 },
	{ "median", "median[1/sec]", 14, 0 },
	{ "lowest", "lowest[1/sec]", 14, 0 },
	{ "highest", "highest[1/sec]", 14, 0 },
};

int
rates_begin(const struct bench_options *o, struct report *r, struct error *err)
{
	const struct eal_wish wish = { .bytes = EAL_BYTES };
	int ret;

	ret = bench_eal_start(o, &wish, err);
	if (ret == 0)
		report_environment(r, o);
	if (ret == 0)
		report_fact(r, "port", "none: frames of RoCEv2 in memory");
	return ret;
}

unsigned int
rates_rounds(const struct bench_options *o)
{
	return o->brief ? 1 : o->rounds;
}

void
rates_table(struct report *r, const char *name)
{
	report_table(r, name, columns, RTE_DIM(columns));
}

void
rates_row(struct report *r, const char *name, double *v, unsigned int n)
{
	double row[] = { 0, 0, 0 };

	if (n == 0)
		return;
	qsort(v, n, sizeof(*v), bench_by_value);
	row[0] = bench_quantile(v, n, 0.5);
	row[1] = v[0];
	row[2] = v[n - 1];
	report_named_row(r, name, row);
}
