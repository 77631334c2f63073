/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* polca-bench: how fast is it, and what bounds it? */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "bench.h"

static int
run(const struct bench_options *o, struct error *err)
{
	const char *device[ROLES];
	struct roles_result r;
	struct load load[ROLES];
	struct end end[ROLES];
	unsigned int i;
	int ret;

	ret = link_memory_create(device, err);
	for (i = 0; i < ROLES && ret == 0; i++)
		ret = end_create(&end[i], o, device[i], i, 0, err);
	if (ret == 0)
		ret = end_connect(&end[0], &end[1], o, err);
	for (i = 0; i < ROLES && ret == 0; i++)
		ret = load_create(&load[i], o, &end[i], &end[!i], err);
	if (ret == 0)
		ret = load_start(&load[RESPONDER], err);
	if (ret == 0)
		ret = load_start(&load[REQUESTER], err);
	if (ret == 0 && o->iterations > 0) {
		roles_count(load, 10 * o->qps * o->depth); /* warm */
		roles_count(load, o->iterations);
		return 0;
	}
	if (ret == 0)
		ret = roles_run(load, &r, err);
	if (ret != 0)
		return ret;
	printf("%u bytes: %.2f M messages/s, %.2f Gb/s; requester %.1f ns, responder %.1f ns a "
	       "message (%u of %u slices)\n",
			o->size, r.rate / 1e6, r.goodput / 1e9, r.ns[REQUESTER], r.ns[RESPONDER],
			r.clean, r.slices);
	for (i = 0; i < ROLES; i++) {
		load_destroy(&load[i]);
		end_destroy(&end[i]);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "qp", required_argument, NULL, 'q' },
		{ "tx-depth", required_argument, NULL, 't' },
		{ "mtu", required_argument, NULL, 'm' },
		{ "duration", required_argument, NULL, 'D' },
		{ "iters", required_argument, NULL, 'n' },
		{ "cq-mod", required_argument, NULL, 'Q' },
		{ "footprint", required_argument, NULL, 'F' },
		{ "ack-each", no_argument, NULL, 'a' },
		{ "no-icrc", no_argument, NULL, 'N' },
		{ NULL, 0, NULL, 0 },
	};
	static const char *const verbs[] = { "send", "write", "read", "atomic" };
	struct bench_options o = { .size = 64, .qps = 4, .depth = 32, .mtu = 4096, .seconds = 1,
		.footprint = 65536, .signal_every = 1, .icrc = true };
	static char eal_args[][24] = { "polca-bench", "--no-huge", "--no-shconf", "-m1024",
		"--no-pci", "--lcores=0@0,1@0", "--no-telemetry", "--log-level=4" };
	char *eal[RTE_DIM(eal_args)];
	struct error err = { "" };
	unsigned int v;
	int c;

	while ((c = getopt_long(argc, argv, "s:q:t:m:D:Q:F:n:", options, NULL)) != -1) {
		switch (c) {
		case 's': o.size = strtoul(optarg, NULL, 0); break;
		case 'q': o.qps = strtoul(optarg, NULL, 0); break;
		case 't': o.depth = strtoul(optarg, NULL, 0); break;
		case 'm': o.mtu = strtoul(optarg, NULL, 0); break;
		case 'D': o.seconds = strtod(optarg, NULL); break;
		case 'n': o.iterations = strtoull(optarg, NULL, 0); break;
		case 'Q': o.signal_every = strtoul(optarg, NULL, 0); break;
		case 'F': o.footprint = strtoul(optarg, NULL, 0); break;
		case 'a': o.ack_per_packet = true; break;
		case 'N': o.icrc = false; break;
		default: return 2;
		}
	}
	for (v = 0; v < RTE_DIM(verbs); v++)
		if (optind < argc && strcmp(argv[optind], verbs[v]) == 0)
			break;
	if (v == RTE_DIM(verbs))
		return 2;
	o.verb = v;
	for (v = 0; v < RTE_DIM(eal); v++)
		eal[v] = eal_args[v];
	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		return 1;
	if (run(&o, &err) != 0) {
		fprintf(stderr, "polca-bench: %s\n", err.text);
		return 1;
	}
	return 0;
}
