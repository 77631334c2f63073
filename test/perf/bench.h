/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_PERF_BENCH_H
#define TEST_PERF_BENCH_H

/* Options and header lines that the benchmarks of this folder share. */

#include "agents/agents.h"

#define BENCH_RUNS_MAX 99
/*
 * Parse [--runs N] [--short] [--case TEXT]; print the usage for anything else.
 * @param only  set to TEXT; NULL: the benchmark has no cases
 * @return number of runs: by default 9, 1 with --short
 */
unsigned int bench_options(int argc, char **argv, bool *brief, const char **only);
/* Print the machine and the number of runs. */
void bench_print_machine(unsigned int runs);

#endif
