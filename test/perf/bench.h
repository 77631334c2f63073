/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_PERF_BENCH_H
#define TEST_PERF_BENCH_H

/* What the programs here have in common, beside polca-bench's agents. */

#include "agents/agents.h"

#define BENCH_RUNS_MAX 99
/*
 * [--runs N] [--short], and [--case TEXT] for a benchmark that has cases; the usage for all else.
 * @param only NULL: it has none. @return how many runs: 9, one when brief
 */
unsigned int bench_options(int argc, char **argv, bool *brief, const char **only);
/* Where it is measured. */
void bench_print_machine(unsigned int runs);

#endif
