/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Report where and how a result was measured; without this, the result means little. */

#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_version.h>

#include "command.h"
#include "wire/crc32.h"

#define NAME_SIZE 256

static void
cpu_name(char *buf, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256], *colon;

	snprintf(buf, size, "unknown");
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL) {
		colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || colon == NULL)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(buf, size, "%s", colon + 2);
		break;
	}
	fclose(f);
}

/*
 * The instruction set that the compiler may use everywhere. Functions for larger ones are chosen at
 * run time.
 */
static const char *
instructions(void)
{
#if defined(__AVX512F__)
	return "AVX-512";
#elif defined(__AVX2__)
	return "AVX2";
#elif defined(__SSE4_2__)
	return "SSE4.2";
#elif defined(__ARM_NEON)
	return "NEON";
#else
	return "the architecture's baseline";
#endif
}

void
report_environment(struct report *r, const struct bench_options *o)
{
	char text[NAME_SIZE];

	cpu_name(text, sizeof(text));
	report_fact(r, "cpu", "%s, TSC %.3f GHz", text, (double)rte_get_tsc_hz() / 1e9);
	report_fact(r, "dpdk", "%s", rte_version());
	report_fact(r, "build", "%s, instructions up to %s", BENCH_BUILD, instructions());
	report_fact(r, "lcores", "%s", bench_eal_lcores());
	report_fact(r, "memory", "%lu MiB, %s", bench_eal_bytes() >> 20,
		bench_eal_huge() ? "hugepages" : "no hugepages");
	report_fact(r, "icrc", "%s, %s", o->icrc ? "made and checked" : "off", crc_kernel->name);
}
