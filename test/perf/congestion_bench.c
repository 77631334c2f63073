/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Two senders share a link whose queue marks packets (for DCQCN) and drops them when it is full.
 * Time is virtual, so the figures are the same on any machine.
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bottleneck.h"

#define MS UINT64_C(1000000)

static void
congestion_bench_row(const char *name, const struct bottleneck_config *c)
{
	struct bottleneck_result r;

	bottleneck_run(c, &r);
	printf("%-22s %4u %8.2f %8.2f %6.3f %6.1f%% %8llu %8llu %8llu %8llu %8.0f%s\n", name,
		c->gbps, r.gbps[0], r.gbps[1], r.share, 100 * r.efficiency,
		(unsigned long long)r.marked, (unsigned long long)r.cnps,
		(unsigned long long)r.dropped, (unsigned long long)r.retransmitted,
		r.queue_max / 1024.0, r.broken != 0 ? "  retries ran out" : "");
}

int
main(int argc, char **argv)
{
	static const uint32_t speeds[] = { 10, 25, 100 };
	bool brief = argc == 2 && strcmp(argv[1], "--short") == 0;
	unsigned int i;

	if (argc > 1 && !brief) {
		fprintf(stderr, "usage: congestion_bench [--short]\n");
		return 2;
	}
	printf("two senders of 64 KiB Writes, PMTU 4096, one link; the second begins 1 ms later; "
	       "measured after half the time\n\n%-22s %4s %8s %8s %6s %7s %8s %8s %8s %8s %8s\n",
		"", "link", "first", "second", "Jain", "of link", "marked", "CNPs", "dropped",
		"resent", "queue");
	printf("%-22s %4s %8s %8s %6s %7s %8s %8s %8s %8s %8s\n", "", "Gb/s", "Gb/s", "Gb/s", "",
		"", "packets", "", "packets", "packets", "KiB, max");
	for (i = 0; i < (brief ? 1 : sizeof(speeds) / sizeof(speeds[0])); i++) {
		struct bottleneck_config c = {
			.gbps = speeds[i],
			.second_at = 1 * MS,
			.drop = 1 << 20,
			.ns = (brief ? 20 : 400) * MS,
		};

		c.from = c.ns / 2;
		congestion_bench_row("dcqcn off", &c);
		c.mark = 65536;
		congestion_bench_row("dcqcn off, marking", &c);
		c.dcqcn = true;
		congestion_bench_row("dcqcn on", &c);
	}
	return 0;
}
