/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Shared by the agents' benchmarks: clock, port, limits, statistics. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "agents/agents.h"

void
bench_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

uint64_t
bench_hz(void)
{
	static uint64_t hz;
	struct timespec a, b;
	uint64_t start;

	if (hz != 0)
		return hz;
	clock_gettime(CLOCK_MONOTONIC, &a);
	start = rte_rdtsc();
	do {
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while ((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec < 100000000);
	hz = (rte_rdtsc() - start) * 1000000000 /
		(uint64_t)((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec);
	return hz;
}

/* --- ports and limits --- */

void
bench_port(struct port_attr *port, uint32_t ip, uint8_t subnet_timeout)
{
	const uint8_t addr[4] = { 10, (uint8_t)(ip >> 16), (uint8_t)(ip >> 8), (uint8_t)ip };

	*port = (struct port_attr){
		.name = "bench",
		.mtu = 4200,
		.active_mtu = 4096,
		.up = true,
		.vlan = PATH_NO_VLAN,
		.num_gids = 1,
		.num_pkeys = 1,
		.pkey = { 0xFFFF },
		.mac = { 2, 0, 0, 0, 0, (uint8_t)ip },
		.subnet_timeout = subnet_timeout,
	};
	port->gid[0].gid = gid_from_ipv4(addr);
	port->gid[0].type = GID_ROCEV2;
	port->gid[0].prefix_len = 8;
}

void
agents_limits(struct mad_limits *limits, const struct bench_config *config)
{
	*limits = mad_limits_default;
	limits->max_sessions = config->sessions;
	limits->max_sessions_per_peer = config->sessions;
	limits->resp_time = config->resp_time != 0 ? config->resp_time : 18;
	limits->v1_early_resend = true;
	limits->rmpp_window = 64;
	limits->rmpp_send_max = 64;
}

/* --- statistics --- */

int
bench_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double
bench_quantile(const double *sorted, unsigned int n, double share)
{
	unsigned int i = (unsigned int)(share * (n - 1) + 0.5);

	return sorted[i];
}
