/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Where and how a figure was taken: without it the figure says little. */

#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_version.h>

#include "command.h"
#include "wire/crc32.h"

#define LCORES_TEXT 256

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

static void
lcores(char *buf, size_t size)
{
	unsigned int lcore;
	size_t len = 0;

	buf[0] = '\0';
	RTE_LCORE_FOREACH(lcore)
		if (len < size)
			len += (size_t)snprintf(buf + len, size - len, "%s%u@%d",
					len > 0 ? "," : "", lcore, rte_lcore_to_cpu_id((int)lcore));
}

void
report_environment(struct report *r, const struct bench_options *o)
{
	char text[LCORES_TEXT];

	cpu_name(text, sizeof(text));
	report_fact(r, "cpu", "%s, TSC %.3f GHz", text, (double)rte_get_tsc_hz() / 1e9);
	report_fact(r, "dpdk", "%s", rte_version());
	report_fact(r, "build", "%s", BENCH_BUILD);
	lcores(text, sizeof(text));
	report_fact(r, "lcores", "%s", text);
	report_fact(r, "memory", "%lu MiB, %s", bench_eal_bytes() >> 20,
			bench_eal_huge() ? "hugepages" : "no hugepages");
	report_fact(r, "icrc", "%s, %s", o->icrc ? "made and checked" : "off", crc32_kernel());
}
