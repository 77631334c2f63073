/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The table of times: perftest's columns, in lines of 120 characters. */

#include <rte_common.h>
#include <rte_cycles.h>

#include "histogram.h"
#include "report.h"

static const struct report_column columns[] = {
	{ "bytes", "#bytes", 8, 0 },
	{ "iterations", "#iterations", 11, 0 },
	{ "t_min_us", "t_min[us]", 9, 2 },
	{ "t_max_us", "t_max[us]", 10, 2 },
	{ "t_typical_us", "t_typical[us]", 13, 2 },
	{ "t_avg_us", "t_avg[us]", 9, 2 },
	{ "t_stdev_us", "t_stdev[us]", 11, 2 },
	{ "p99_us", "99%[us]", 9, 2 },
	{ "p999_us", "99.9%[us]", 10, 2 },
	{ "p9999_us", "99.99%[us]", 10, 2 },
};

void
report_latency_table(struct report *r, const char *name)
{
	report_table(r, name, columns, RTE_DIM(columns));
}

void
report_latency(struct report *r, double bytes, const struct histogram *h)
{
	double us = 1e6 / (double)rte_get_tsc_hz();
	double row[] = {
		bytes,
		(double)histogram_count(h),
		us * (double)histogram_min(h),
		us * (double)histogram_max(h),
		us * histogram_percentile(h, 50),
		us * histogram_mean(h),
		us * histogram_stdev(h),
		us * histogram_percentile(h, 99),
		us * histogram_percentile(h, 99.9),
		us * histogram_percentile(h, 99.99),
	};

	report_row(r, row);
}
