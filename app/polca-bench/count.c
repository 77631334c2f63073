/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A number of messages on one lcore, whose instructions are counted from outside: valgrind --tool=callgrind
 * --toggle-collect=roles_count (test/perf/count_instructions.py). Nothing here depends on how fast
 * the machine is: the clock that the engines see goes a step on with each turn.
 */

#include "bench.h"
#include "command.h"

#include <rte_common.h>
#include <rte_cycles.h>

#define PART_MAX   (UINT64_C(1) << 20) /* messages until somebody looks */
#define PART_BYTES (UINT64_C(1) << 30)
#define TURN_US   2 /* about what a turn with a burst takes */
#define WARM_UP   10 /* times what the send queues hold */
#define IDLE_MAX  (5 * 1000 * 1000 / TURN_US) /* turns without progress: it will not end */

struct clock {
	uint64_t now, step;
};

static void
turn(struct place *p, uint64_t now)
{
	uint64_t start = rte_rdtsc();
	bool busy = engine_turn(p->engine, p->worker, now);

	busy |= p->load[0]->turn(p->load[0]) > 0;
	if (busy)
		p->busy += rte_rdtsc() - start;
}

/* A function each, so that their counts are told apart. */
static void __attribute__((noinline))
requester_count(struct runner *r, uint64_t now)
{
	turn(&r->place[REQUESTER], now);
}

static void __attribute__((noinline))
responder_count(struct runner *r, uint64_t now)
{
	turn(&r->place[RESPONDER], now);
}

static void
both(struct runner *r, struct clock *c)
{
	requester_count(r, c->now);
	responder_count(r, c->now);
	c->now += c->step;
}

static bool
failed(const struct runner *r)
{
	return r->place[REQUESTER].load[0]->failed + r->place[RESPONDER].load[0]->failed > 0;
}

static void
messages(struct runner *r, struct clock *c, uint64_t n)
{
	const struct load *l = r->place[REQUESTER].load[0];
	uint64_t end = l->done + n;

	while (l->done < end && !failed(r) && bench_stop == 0)
		both(r, c);
}

void __attribute__((noinline))
roles_count(struct runner *r, struct clock *c, uint64_t n)
{
	messages(r, c, n);
}

static void
drain(struct runner *r, struct clock *c)
{
	struct load *l = r->place[REQUESTER].load[0];
	struct load *other = r->place[RESPONDER].load[0];
	unsigned int i;

	l->stopping = other->stopping = true;
	for (i = 0; i < IDLE_MAX && !failed(r) && !(load_idle(l) && load_idle(other)); i++)
		both(r, c);
}

/* In parts, only for the live line: what is counted is the same. */
static void
count_parts(struct run *run, struct clock *c)
{
	uint64_t left = run->o->iterations, part = RTE_MIN(PART_MAX, 1 + PART_BYTES / run->o->size);
	struct runner *r = &run->runner[0];
	const struct load *l = r->place[REQUESTER].load[0];
	uint64_t before;

	while (left > 0 && !failed(r) && bench_stop == 0) {
		before = l->done;
		roles_count(r, c, RTE_MIN(left, part));
		left -= RTE_MIN(left, l->done - before);
		if (run->look != NULL)
			run->look(run, rte_rdtsc());
	}
}

void
count_messages(struct run *run)
{
	const struct bench_options *o = run->o;
	struct clock c = { rte_rdtsc(), TURN_US * (rte_get_tsc_hz() / 1000000) };

	messages(&run->runner[0], &c, (uint64_t)WARM_UP * o->qps * o->depth);
	run_mark(run, &run->from);
	count_parts(run, &c);
	run_mark(run, &run->to);
	drain(&run->runner[0], &c);
}
