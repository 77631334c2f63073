/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_PAIRED_H
#define BENCH_PAIRED_H

/**
 * @file
 * Runs in pairs, each with a part without something and a part with it, so that both see the same
 * mood of the machine: --loss, --beside.
 */

#include "traffic/benchmark.h"

#define PAIRS 9

/** Values of each pair: [0] without, [1] with it. */
struct paired {
	double value[2][PAIRS];
	unsigned int pairs;
};

/** Medians, and the one of [1] over the one of [0]. */
struct paired_result {
	double median[2];
	double ratio;
};

struct paired_result paired_medians(const struct paired *p);

/** goodput.c: --loss. The scene is connected. */
int goodput_run(struct benchmark *s, uint32_t size, struct error *err);
/** beside.c: --beside. The scene is connected. */
int lat_with_reads_run(struct benchmark *s, uint32_t size, struct error *err);

#endif
