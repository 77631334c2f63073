/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Set up and run a benchmark. The endpoints share one lcore, have one lcore each, or share several
 * workers; of a remote link, only one endpoint is here.
 */

#include <errno.h>

#include "peers/connection.h"
#include "peers/exchange.h"
#include "traffic/benchmark.h"

#define MIB (UINT64_C(1) << 20)
/* per endpoint, without its queue pairs: tables, agents, packet buffers */
#define END_BYTES    (256 * MIB)
#define WORKER_BYTES (32 * MIB)
#define QP_BYTES     2048
#define WQE_BYTES    128 /* with its completion queue entry, both rounded up twice */
#define SGE_BYTES    16

static bool
benchmark_on_workers(const struct bench_options *o)
{
	return o->workers > 1;
}

void
benchmark_wish(const struct bench_options *o, const struct bench_link *link, enum bench_role role,
	struct eal_wish *wish)
{
	uint64_t qp = QP_BYTES + (uint64_t)o->depth * (WQE_BYTES + SGE_BYTES + o->inline_size) +
		(uint64_t)o->rx_depth * WQE_BYTES;

	wish->workers = benchmark_on_workers(o) ? o->workers : o->lcores > 1 ? o->lcores : 0;
	wish->first_cpu = link->remote ? role : 0;
	wish->bytes = (END_BYTES + o->qps * qp) * (link->remote ? 1 : ROLES) +
		wish->workers * WORKER_BYTES;
}

int
benchmark_create(struct benchmark *s, struct error *err)
{
	char device[ROLES][256];
	unsigned int i;
	int ret;

	if (benchmark_on_workers(&s->o)) {
		s->ends = ROLES;
		return endpoints_create(s->end, &s->o, err);
	}
	ret = s->link->create(&s->o, s->first, device, err);
	for (i = 0; ret == 0 && i < (s->link->remote ? 1 : ROLES); i++) {
		enum bench_role role = s->link->remote ? s->first : i;

		s->ends++;
		ret = endpoint_create(&s->end[role], &s->o, device[role], role,
			s->o.lcores > 1 ? role : 0, err);
	}
	return ret;
}

static void
runner_add_place(struct runner *r, struct benchmark *s, enum bench_role role, unsigned int worker)
{
	struct place *p = &r->place[r->places++];

	*p = (struct place){ .engine = s->end[role].engine, .worker = worker, .role = role };
	p->load[p->loads++] = &s->load[role][worker];
}

static void
benchmark_make_runners(struct benchmark *s)
{
	unsigned int i;

	s->run = (struct run){ .o = &s->o, .runner = s->runner };
	if (benchmark_on_workers(&s->o)) {
		for (i = 0; i < s->o.workers; i++) {
			runner_add_place(&s->runner[i], s, REQUESTER, i);
			s->runner[i].place[0].load[s->runner[i].place[0].loads++] =
				&s->load[RESPONDER][i];
		}
		s->run.runners = s->o.workers;
	} else if (s->ends < ROLES) {
		runner_add_place(&s->runner[0], s, s->first, 0);
		s->run.runners = 1;
	} else {
		for (i = 0; i < ROLES; i++)
			runner_add_place(&s->runner[s->o.lcores > 1 ? i : 0], s, i, 0);
		s->run.runners = s->o.lcores;
	}
	s->run.launched = benchmark_on_workers(&s->o) || s->o.lcores > 1;
	s->run.count = !s->link->remote && s->o.mode != BENCH_LAT;
}

int
benchmark_load(struct benchmark *s, struct error *err)
{
	struct load *load[ROLES * BENCH_WORKERS_MAX];
	unsigned int i, w, n = 0;
	int ret = 0;

	for (i = s->first; i < s->first + s->ends && ret == 0; i++) {
		for (w = 0; w < s->o.workers && ret == 0; w++) {
			load[n] = &s->load[i][w];
			ret = load_create(load[n++], &s->o, &s->end[i], &s->peer[i], w, err);
		}
	}
	if (ret == 0)
		iterations_share(load, n, &s->o);
	benchmark_make_runners(s);
	return ret;
}

int
benchmark_connect(struct benchmark *s, struct error *err)
{
	unsigned int i;
	int ret = 0;

	if (s->o.connect != NULL)
		ret = service_connect(&s->end[s->first], &s->peer[s->first], &s->o, &s->grant, err);
	for (i = s->first; i < s->first + s->ends && ret == 0 && s->o.connect == NULL; i++)
		ret = endpoint_connect(&s->end[i], &s->peer[i], &s->o, err);
	if (ret == 0)
		ret = endpoints_resolve(&s->end[s->first], s->ends, err);
	return ret == 0 ? benchmark_load(s, err) : ret;
}

void
benchmark_destroy(struct benchmark *s)
{
	unsigned int i, w;

	for (i = 0; i < ROLES; i++) {
		for (w = 0; w < BENCH_WORKERS_MAX; w++)
			load_destroy(&s->load[i][w]);
		connections_close(&s->end[i]);
		endpoint_destroy(&s->end[i]);
	}
	exchange_destroy(s->exchange);
}

int
benchmark_prepare(struct benchmark *s, uint32_t size, struct error *err)
{
	unsigned int i, w;
	int ret = 0;

	s->size = size;
	for (i = s->first; i < s->first + s->ends && ret == 0; i++)
		for (w = 0; w < s->o.workers && ret == 0; w++)
			ret = load_receive(&s->load[i][w], size, err);
	return ret;
}

static int
benchmark_check(struct benchmark *s, struct error *err)
{
	struct load *l;
	unsigned int i, w;
	int ret = 0;

	if (s->lost.text[0] != '\0')
		return error_set(err, ECONNRESET, "%s", s->lost.text);
	/* within one process, every request is completed by now */
	if (s->o.check && s->ends == ROLES)
		s->load[RESPONDER][0].wrong +=
			memory_check_left(&s->end[RESPONDER], &s->o, s->size, run_done(&s->run));
	for (i = s->first; i < s->first + s->ends && ret == 0; i++) {
		for (w = 0; w < s->o.workers && ret == 0; w++) {
			l = &s->load[i][w];
			ret = load_failure(l, err);
			if (ret == 0 && bench_stop == 0 && !load_idle(l))
				ret = error_set(err, ETIMEDOUT, "%lu requests were not answered",
					l->posted - l->done);
		}
	}
	return ret;
}

int
benchmark_run(struct benchmark *s, struct error *err)
{
	unsigned int i, w;
	int ret = 0;

	for (i = s->first; i < s->first + s->ends && ret == 0 && !run_counts(&s->run); i++)
		for (w = 0; w < s->o.workers && ret == 0; w++)
			ret = load_send(&s->load[i][w], err);
	if (ret != 0)
		return ret;
	run_for(&s->run);
	return benchmark_check(s, err);
}
