/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Segments, sessions and path queries of one worker of subnet administration. */

#include <stdlib.h>

#include <rte_common.h>

#include "agents/agents.h"

#define BRIEF 100 /* a short run does one part in this many */

const struct sa_case sa_cases[] = {
	{ "v1-segments-1", "segments/s", ASK_NODES, 1, 1, 400000 },
	{ "v1-segments-1000", "segments/s", ASK_NODES, 1, 1000, 800000 },
	{ "v1-segments-100000", "segments/s", ASK_NODES, 1, 100000, 1600000 },
	{ "v2-segments-1", "segments/s", ASK_NODES, 2, 1, 400000 },
	{ "v2-segments-1000", "segments/s", ASK_NODES, 2, 1000, 800000 },
	{ "v2-segments-100000", "segments/s", ASK_NODES, 2, 100000, 1600000 },
	{ "v1-sessions-1", "sessions/s", ASK_LINK, 1, 1, 100000 },
	{ "v1-sessions-1000", "sessions/s", ASK_LINK, 1, 1000, 200000 },
	{ "v1-sessions-100000", "sessions/s", ASK_LINK, 1, 100000, 400000 },
	{ "v2-sessions-1", "sessions/s", ASK_LINK, 2, 1, 100000 },
	{ "v2-sessions-1000", "sessions/s", ASK_LINK, 2, 1000, 200000 },
	{ "v2-sessions-100000", "sessions/s", ASK_LINK, 2, 100000, 400000 },
	{ "v1-get-path", "Get/s", ASK_PATH, 1, 256, 400000 },
	{ "v2-get-path", "Get/s", ASK_PATH, 2, 256, 400000 },
};
const unsigned int sa_case_count = RTE_DIM(sa_cases);

static uint32_t
scaled(uint32_t n, bool brief)
{
	return brief && n > 1000 ? n / BRIEF : n;
}

static uint64_t
progress(const struct bench_client *c)
{
	return c->ask == ASK_NODES ? c->segments : c->completed;
}

/* Run until this many segments or answers have arrived. */
static void
run_until(struct bench_server *s, struct bench_client *c, uint64_t count)
{
	unsigned int idle = 0;

	while (progress(c) < count || c->begun < c->sessions) {
		uint32_t begun = client_start(c);
		uint64_t before = progress(c);
		unsigned int n = server_step(s, &c->out, s->busy + 1);

		client_step(c, &s->out);
		idle = n + begun != 0 || progress(c) != before ? 0 : idle + 1;
		if (idle > 100000000)
			bench_die("no progress");
	}
}

static double
sa_case_measure(const struct sa_case *k, bool brief, struct bench_server *s, uint32_t ports,
	double *repeated)
{
	struct bench_client *c = calloc(1, sizeof(*c));
	uint32_t sessions = scaled(k->sessions, brief), count = scaled(k->count, brief);
	uint64_t from, start;
	double rate;

	if (c == NULL)
		bench_die("no memory");
	bench_client_create(c, k->ask, k->version, sessions, ports);
	run_until(s, c, sessions + count / 10); /* all sessions have begun */
	from = progress(c);
	start = s->busy;
	run_until(s, c, from + count);
	rate = (double)(progress(c) - from) * (double)bench_hz() / (double)(s->busy - start);
	if (c->failed != 0)
		bench_die("a transfer failed");
	*repeated = (double)c->unused / (double)progress(c);
	bench_client_destroy(c);
	free(c);
	return rate;
}

double
sa_case_rate(const struct sa_case *k, bool brief, double *repeated)
{
	const struct bench_config config = { .sessions = 131072 };
	uint32_t ports = scaled(10000, brief);
	struct bench_server s;
	double rate;

	server_create(&s, &config);
	if (k->ask == ASK_NODES)
		load_nodes(&s, scaled(20000, brief));
	else
		load_fabric(&s, ports);
	rate = sa_case_measure(k, brief, &s, ports, repeated);
	server_destroy(&s);
	return rate;
}
