/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_PAIRED_H
#define BENCH_PAIRED_H

/**
 * @file
 * Runs in pairs of parts, one without and one with a change, so that both meet the same load of the
 * machine: --loss, --beside.
 */

#include "traffic/benchmark.h"

#define PAIRS 9

/** The values of the pairs: [0] without, [1] with the change. */
struct paired {
	double value[2][PAIRS];
	unsigned int pairs;
};

/** The two medians, and [1] divided by [0]. */
struct paired_result {
	double median[2];
	double ratio;
};

struct paired_result paired_medians(const struct paired *p);

/** goodput.c: --loss. The benchmark is connected. */
int goodput_run(struct benchmark *s, uint32_t size, struct error *err);
/** lat_with_reads.c: --beside. The benchmark is connected. */
int lat_with_reads_run(struct benchmark *s, uint32_t size, struct error *err);

#endif
