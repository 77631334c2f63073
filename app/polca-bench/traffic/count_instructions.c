/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Send a fixed number of messages on one lcore, while valgrind --tool=callgrind
 * --toggle-collect=roles_count counts instructions (test/perf/count_instructions.py). The result
 * does not depend on the speed of the machine: the engines' clock advances by a fixed step per
 * iteration.
 */

#include "command.h"
#include "traffic/bench.h"

#include <rte_common.h>
#include <rte_cycles.h>

#define PART_MAX   (UINT64_C(1) << 20) /* messages between two updates of the live line */
#define PART_BYTES (UINT64_C(1) << 30)
#define TURN_US    2 /* about the time of an iteration with a burst */
#define WARM_UP    10 /* times the depth of the send queues */
/* iterations without progress after which the run is given up */
#define IDLE_MAX (5 * 1000 * 1000 / TURN_US)

struct clock {
	uint64_t now, step;
};

static void
count_turn(struct place *p, uint64_t now)
{
	uint64_t start = rte_rdtsc();
	bool busy = engine_turn(p->engine, p->worker, now);

	busy |= p->load[0]->turn(p->load[0]) > 0;
	if (busy)
		p->busy += rte_rdtsc() - start;
}

/* A function for each role, so that callgrind counts them apart. */
static void __rte_noinline
requester_count(struct runner *r, uint64_t now)
{
	count_turn(&r->place[REQUESTER], now);
}

static void __rte_noinline
responder_count(struct runner *r, uint64_t now)
{
	count_turn(&r->place[RESPONDER], now);
}

static void
count_iteration(struct runner *r, struct clock *c)
{
	requester_count(r, c->now);
	responder_count(r, c->now);
	c->now += c->step;
}

static bool
count_failed(const struct runner *r)
{
	return r->place[REQUESTER].load[0]->failed + r->place[RESPONDER].load[0]->failed > 0;
}

static void
count_run(struct run *run, struct clock *c, uint64_t n)
{
	uint64_t end = run_done(run) + n;

	while (run_done(run) < end && !count_failed(&run->runner[0]) && bench_stop == 0)
		count_iteration(&run->runner[0], c);
}

void __rte_noinline
roles_count(struct run *run, struct clock *c, uint64_t n)
{
	count_run(run, c, n);
}

static void
count_drain(struct runner *r, struct clock *c)
{
	struct load *l = r->place[REQUESTER].load[0];
	struct load *other = r->place[RESPONDER].load[0];
	unsigned int i;

	l->stopping = other->stopping = true;
	for (i = 0; i < IDLE_MAX && !count_failed(r) && !(load_idle(l) && load_idle(other)); i++)
		count_iteration(r, c);
}

/* Send in parts, only to update the live line between them: the instruction count is the same. */
static void
count_parts(struct run *run, struct clock *c)
{
	uint64_t left = run->o->iterations, part = RTE_MIN(PART_MAX, 1 + PART_BYTES / run->o->size);
	uint64_t before;

	while (left > 0 && !count_failed(&run->runner[0]) && bench_stop == 0) {
		before = run_done(run);
		roles_count(run, c, RTE_MIN(left, part));
		left -= RTE_MIN(left, run_done(run) - before);
		if (run->look != NULL)
			run->look(run, rte_rdtsc());
	}
}

static uint64_t
load_warm_up(const struct load *l)
{
	return l->count > 0 ? (uint64_t)WARM_UP * l->o->qps * l->o->depth : 0;
}

uint64_t
count_warm_up(const struct run *run)
{
	const struct runner *r = &run->runner[0];

	return load_warm_up(r->place[REQUESTER].load[0]) +
		load_warm_up(r->place[RESPONDER].load[0]);
}

static void
count_begin(struct load *l, uint64_t messages)
{
	iterations_begin(l, messages);
	load_send(l, NULL);
}

void
count_messages(struct run *run)
{
	struct clock c = { rte_rdtsc(), TURN_US * (rte_get_tsc_hz() / 1000000) };
	struct load *l;
	unsigned int i;

	for (i = 0; i < ROLES; i++) {
		l = run->runner[0].place[i].load[0];
		count_begin(l, load_warm_up(l));
	}
	count_run(run, &c, count_warm_up(run));
	run_mark(run, &run->from);
	for (i = 0; i < ROLES; i++) {
		l = run->runner[0].place[i].load[0];
		count_begin(l, l->count);
	}
	count_parts(run, &c);
	run_mark(run, &run->to);
	count_drain(&run->runner[0], &c);
}
