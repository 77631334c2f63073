/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The common options of the benchmarks, and their first lines of output. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

unsigned int
bench_options(int argc, char **argv, bool *brief, const char **only)
{
	static const struct option options[] = {
		{ "runs", required_argument, NULL, 'r' },
		{ "short", no_argument, NULL, 's' },
		{ "case", required_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned long runs = 9;
	bool good = true;
	int o;

	while ((o = getopt_long(argc, argv, "r:sc:", options, NULL)) != -1) {
		if (o == 'r')
			runs = strtoul(optarg, NULL, 10);
		else if (o == 's')
			*brief = true;
		else if (o == 'c' && only != NULL)
			*only = optarg;
		else
			good = false;
	}
	if (!good || runs == 0 || runs > BENCH_RUNS_MAX || optind != argc) {
		fprintf(stderr, "usage: %s [--runs N] %s[--short]\n", program_invocation_short_name,
			only != NULL ? "[--case TEXT] " : "");
		exit(2);
	}
	return *brief ? 1 : (unsigned int)runs;
}

void
bench_print_machine(unsigned int runs)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "model name", 10) == 0) {
			printf("%s", strchr(line, ':') + 2);
			break;
		}
	if (f != NULL)
		fclose(f);
	printf("TSC %.2f GHz; %s; %s; %u runs, interleaved\n", (double)bench_hz() / 1e9,
		__VERSION__, BENCH_FLAGS, runs);
}
