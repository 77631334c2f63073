/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A worker that serves, and one iteration of its loop. */

#include <rte_cycles.h>

#include "agents/agents.h"

#define WHEEL_TICK 32768 /* 13 us at 2.6 GHz, as in the engine */

static const struct port_attr *
server_port_of(void *arg, uint16_t port)
{
	return port == 0 ? arg : NULL;
}

static uint64_t
server_grace_start(void *arg)
{
	(void)arg;
	return 0;
}

static bool
server_grace_done(void *arg, uint64_t token)
{
	(void)arg;
	(void)token;
	return true;
}

static bool
no_writes(void *arg, struct sa_write *write)
{
	(void)arg;
	(void)write;
	return false;
}

static void
server_create_sa(struct bench_server *s, uint64_t hz, uint8_t resp_time, uint32_t sessions)
{
	struct store_config store = {
		.tables = sa_num_tables,
		.indexes = sa_indexes,
		.num_indexes = sa_num_indexes,
		.readers = 1,
		.alloc = &allocator_malloc,
		.max_old_bytes = 1u << 30,
		.max_versions = 1 << 20,
		.grace = { server_grace_start, server_grace_done, NULL },
	};
	struct sa_config config = sa_config_default;
	struct error err = { 0 };

	s->store = store_create(&store, &err);
	if (s->store == NULL)
		bench_die(err.text);
	config.store = s->store;
	config.hz = hz;
	config.alloc = &allocator_malloc;
	config.rng = &rng_kernel;
	config.workers = 1;
	config.trust = SA_TRUST_ALL;
	config.gid_prefix = BENCH_PREFIX;
	config.resp_time = resp_time;
	config.max_transfers = sessions;
	s->sa = sa_create(&config, &err);
	if (s->sa == NULL)
		bench_die(err.text);
}

void
server_create(struct bench_server *s, const struct bench_config *config)
{
	struct mad_worker_config mad = {
		.workers = 1,
		.hash_key = 0x1234567,
		.hz = config->hz != 0 ? config->hz : bench_hz(),
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.tx = &s->out.sink,
		.port = server_port_of,
		.port_arg = &s->port,
	};
	struct sa_worker_config worker = { .submit = no_writes };

	*s = (struct bench_server){ 0 };
	agents_limits(&mad.limits, config);
	bench_port(&s->port, 1, config->subnet_timeout != 0 ? config->subnet_timeout : 18);
	frames_init(&s->out, config->queue != 0 ? config->queue : 4096);
	s->wheel = timer_wheel_create(&allocator_malloc, WHEEL_TICK, 0);
	mad.wheel = s->wheel;
	s->mad = mad_worker_create(&mad);
	if (s->mad == NULL)
		bench_die("no memory for the sessions");
	server_create_sa(s, mad.hz, mad.limits.resp_time, config->sessions);
	worker.mad = s->mad;
	worker.reader = store_reader(s->store, 0);
	s->worker = sa_worker_create(s->sa, &worker);
	if (s->worker == NULL)
		bench_die("no memory for the SA");
}

void
server_destroy(struct bench_server *s)
{
	mad_worker_destroy(s->mad); /* do this first: its sessions call into the SA */
	sa_worker_destroy(s->worker);
	sa_destroy(s->sa);
	store_destroy(s->store);
	timer_wheel_destroy(s->wheel);
	frames_free(&s->out);
}

unsigned int
server_step(struct bench_server *s, struct frames *in, uint64_t now)
{
	uint64_t start = rte_rdtsc();
	struct packet pkt;
	unsigned int n;

	for (n = 0; n < BENCH_BURST && frames_front(in, &pkt, now) != NULL; n++) {
		mad_receive(s->mad, &pkt, now);
		frames_pop(in);
	}
	n += timer_wheel_run(s->wheel, now);
	n += sa_run(s->worker, now, BENCH_SA_BUDGET);
	n += mad_run(s->mad, now, BENCH_SEND_BUDGET);
	timer_wheel_sent(s->wheel, now);
	s->busy += rte_rdtsc() - start;
	return n;
}

void
server_load(struct bench_server *s, const struct sa_change *changes, size_t n)
{
	struct error err = { 0 };

	if (sa_change(s->sa, changes, n, &err) != 0)
		bench_die(err.text);
	store_reclaim(s->store);
}
