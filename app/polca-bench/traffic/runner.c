/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Threads that run workers and their loads. The cost of a message for each role is measured in
 * slices. A slice does not count if an iteration took so long that the thread must have been
 * interrupted, unless this is true of all slices.
 */

#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "base/plural.h"
#include "command.h"
#include "median.h"
#include "report.h"
#include "traffic/bench.h"

#define SLICE_MS    3
#define WARM_UP     20 /* slices, but at most a tenth of the run */
#define PAUSE_US    100 /* a longer iteration was interrupted */
#define DRAIN_MS    5000 /* after the last progress */
#define STOP_MS     1000 /* in total, after the user's signal */
#define LOOK_US     20000
#define LAUNCHED_US 200

/* Run the worker and its loads once. @return the TSC afterwards */
static uint64_t
place_turn(struct place *p, uint64_t now)
{
	bool busy = engine_turn(p->engine, p->worker, now);
	unsigned int i;
	uint64_t end;

	for (i = 0; i < p->loads; i++)
		busy |= p->load[i]->turn(p->load[i]) > 0;
	end = rte_rdtsc();
	if (busy)
		p->busy += end - now;
	return end;
}

static uint64_t
runner_sum(const struct runner *r, size_t counter)
{
	uint64_t sum = 0;
	unsigned int i, k;

	for (i = 0; i < r->places; i++)
		for (k = 0; k < r->place[i].loads; k++)
			sum += __atomic_load_n(
				(const uint64_t *)(const void *)((const char *)r->place[i].load[k] +
					counter),
				__ATOMIC_RELAXED);
	return sum;
}

static uint64_t
run_sum(const struct run *run, size_t counter)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < run->runners; i++)
		sum += runner_sum(&run->runner[i], counter);
	return sum;
}

uint64_t
run_done(const struct run *run)
{
	return run_sum(run, offsetof(struct load, done));
}

static bool
run_failed(const struct run *run)
{
	return run_sum(run, offsetof(struct load, failed)) > 0;
}

static void
run_busy(const struct run *run, uint64_t busy[ROLES])
{
	const struct place *p;
	unsigned int i, k;

	busy[REQUESTER] = busy[RESPONDER] = 0;
	for (i = 0; i < run->runners; i++) {
		for (k = 0; k < run->runner[i].places; k++) {
			p = &run->runner[i].place[k];
			busy[p->role] += __atomic_load_n(&p->busy, __ATOMIC_RELAXED);
		}
	}
}

void
run_mark(const struct run *run, struct run_mark *m)
{
	m->time = rte_rdtsc();
	m->done = run_done(run);
	run_busy(run, m->busy);
}

static void
runner_keep_slice(struct runner *r, const struct place *before, uint64_t done, uint64_t cycles,
	bool clean)
{
	double hz = (double)rte_get_tsc_hz();
	struct slice *s;
	unsigned int i, *n = clean ? &r->clean : &r->unclean;

	r->slices++;
	if (done == 0)
		return;
	s = &r->slice[clean][(*n)++ % BENCH_SLICES];
	s->rate = (double)done * hz / (double)cycles;
	for (i = 0; i < r->places; i++)
		s->ns[i] = (double)(r->place[i].busy - before[i].busy) * 1e9 / hz / (double)done;
	if (s->rate > r->best)
		r->best = s->rate;
}

/* True if messages are counted and this runner's are all completed. */
static bool
runner_iterations_done(const struct runner *r)
{
	bool any = false;
	unsigned int i, k;

	for (i = 0; i < r->places; i++) {
		for (k = 0; k < r->place[i].loads; k++) {
			if (!iterations_done(r->place[i].load[k]))
				return false;
			any |= r->place[i].load[k]->count > 0;
		}
	}
	return any;
}

static void
runner_one_slice(struct runner *r, bool measure)
{
	uint64_t slice = SLICE_MS * (rte_get_tsc_hz() / 1000);
	uint64_t pause = PAUSE_US * (rte_get_tsc_hz() / 1000000);
	uint64_t now = rte_rdtsc(), start = now, last;
	uint64_t done = runner_sum(r, offsetof(struct load, done));
	struct place before[ROLES] = { r->place[0], r->place[1] };
	bool clean = true;
	unsigned int i;

	do {
		last = now;
		for (i = 0; i < r->places; i++)
			now = place_turn(&r->place[i], now);
		clean &= now - last < pause;
	} while (now - start < slice && !runner_iterations_done(r));
	done = runner_sum(r, offsetof(struct load, done)) - done;
	if (measure)
		runner_keep_slice(r, before, done, now - start, clean);
}

void
runner_slice(struct runner *r)
{
	runner_one_slice(r, false);
}

static void
stop_loads(struct runner *r)
{
	unsigned int i, k;

	for (i = 0; i < r->places; i++)
		for (k = 0; k < r->place[i].loads; k++)
			r->place[i].load[k]->stopping = true;
}

static bool
runner_idle(const struct runner *r)
{
	const struct load *l;
	unsigned int i, k;

	for (i = 0; i < r->places; i++) {
		for (k = 0; k < r->place[i].loads; k++) {
			l = r->place[i].load[k];
			if (!load_idle(l) && l->failed == 0)
				return false;
		}
	}
	return true;
}

/* Ask the process at the other end of a remote link, which only a run with one runner has. */
static int
runner_ask_others(struct runner *r, bool *done)
{
	int ret = r->run->others(r->run);

	if (ret > 0) {
		*done = true;
		__atomic_sub_fetch(&r->run->draining, 1, __ATOMIC_ACQ_REL);
	}
	return ret < 0 ? ret : 0;
}

/* Set the end of the wait. A signal of the user shortens it once and for all. */
static void
extend_drain(uint64_t *end, uint64_t now, bool progress, bool *stopped)
{
	uint64_t ms = rte_get_tsc_hz() / 1000;

	if (*stopped)
		return;
	*stopped = bench_stop != 0;
	if (*stopped)
		*end = now + STOP_MS * ms;
	else if (progress)
		*end = now + DRAIN_MS * ms;
}

static uint64_t
runner_pending(const struct runner *r)
{
	return runner_sum(r, offsetof(struct load, posted)) -
		runner_sum(r, offsetof(struct load, done));
}

/* Post nothing new, and run until no load has requests under way. */
static void
runner_drain(struct runner *r)
{
	uint64_t now = rte_rdtsc(), end = now, done = 0, before;
	bool idle = false, stopped = false, others = r->run->others == NULL;
	unsigned int i;

	stop_loads(r);
	extend_drain(&end, now, true, &stopped);
	/* an idle load may have answered a ping-pong since, and now waits for the ACK */
	while (now < end &&
		(!runner_idle(r) || __atomic_load_n(&r->run->draining, __ATOMIC_ACQUIRE) > 0)) {
		for (i = 0; i < r->places; i++)
			now = place_turn(&r->place[i], now);
		before = done;
		done = run_done(r->run);
		extend_drain(&end, now, done != before, &stopped);
		if (!r->run->launched)
			report_progress("waiting for the last %lu message%s", runner_pending(r),
				plural(runner_pending(r)));
		if (!idle && runner_idle(r)) {
			idle = true;
			__atomic_sub_fetch(&r->run->draining, 1, __ATOMIC_ACQ_REL);
		}
		if (!others && runner_ask_others(r, &others) != 0)
			return;
	}
}

/* --- the whole run --- */

static int
runner_main(void *arg)
{
	struct runner *r = arg;

	while (!__atomic_load_n(&r->run->stop, __ATOMIC_RELAXED))
		runner_one_slice(r, false);
	runner_drain(r);
	return 0;
}

/* True if all runners have completed their messages. */
static bool
run_counted(const struct run *run)
{
	const struct runner *r;
	unsigned int i, k;

	for (r = run->runner; r < run->runner + run->runners; r++)
		for (i = 0; i < r->places; i++)
			for (k = 0; k < r->place[i].loads; k++)
				if (!iterations_done(r->place[i].load[k]))
					return false;
	return true;
}

/* The time at which the last counted message completed. @return 0: unknown */
static uint64_t
run_ended(const struct run *run)
{
	const struct runner *r;
	uint64_t ended = 0;
	unsigned int i, k;

	if (run->o->iterations == 0 || !run_counted(run))
		return 0;
	for (r = run->runner; r < run->runner + run->runners; r++)
		for (i = 0; i < r->places; i++)
			for (k = 0; k < r->place[i].loads; k++)
				ended = RTE_MAX(ended, r->place[i].load[k]->ended);
	return ended;
}

static void
mark_end(struct run *run)
{
	uint64_t ended = run_ended(run);

	run_mark(run, &run->to);
	if (ended != 0)
		run->to.time = ended;
}

static bool
run_over(struct run *run)
{
	const struct bench_options *o = run->o;
	uint64_t now = rte_rdtsc();

	if (bench_stop != 0 || run_failed(run))
		return true;
	if (run->look != NULL && run->look(run, now) != 0)
		return true;
	if (o->iterations > 0)
		return run_counted(run);
	return (double)(now - run->from.time) >= o->seconds * (double)rte_get_tsc_hz();
}

static unsigned int
warm_up_slices(const struct bench_options *o)
{
	double tenth = o->seconds * 1000 / SLICE_MS / 10;

	if (o->iterations > 0)
		return 0; /* every message counts */
	return tenth > WARM_UP ? WARM_UP : (unsigned int)tenth;
}

/* Run the only runner on this thread: slices to warm up, measured ones, and the drain. */
static void
run_here(struct run *run)
{
	unsigned int i, warm = warm_up_slices(run->o);
	struct runner *r = &run->runner[0];

	for (i = 0; i < warm && !run_failed(run); i++)
		runner_one_slice(r, false);
	run_mark(run, &run->from);
	do
		runner_one_slice(r, true);
	while (!run_over(run));
	mark_end(run);
	runner_drain(r);
}

/* Sleep, because rte_eal_mp_wait_lcore() spins on a CPU that it may share with a runner. */
static void
wait_for_launched(void)
{
	unsigned int lcore;

	RTE_LCORE_FOREACH_WORKER(lcore)
		while (rte_eal_get_lcore_state(lcore) == RUNNING)
			usleep(LAUNCHED_US);
	rte_eal_mp_wait_lcore();
}

static void
run_launched(struct run *run)
{
	double rate, hz = (double)rte_get_tsc_hz();
	struct run_mark last, now;
	unsigned int i, lcore = rte_get_next_lcore(-1, 1, 0);

	run_mark(run, &run->from);
	for (i = 0; i < run->runners; i++, lcore = rte_get_next_lcore(lcore, 1, 0))
		rte_eal_remote_launch(runner_main, &run->runner[i], lcore);
	if (warm_up_slices(run->o) > 0) {
		usleep(warm_up_slices(run->o) * SLICE_MS * 1000);
		run_mark(run, &run->from);
	}
	last = run->from;
	do {
		usleep(LOOK_US);
		run_mark(run, &now);
		rate = (double)(now.done - last.done) * hz / (double)(now.time - last.time);
		if (rate > run->runner[0].best)
			run->runner[0].best = rate;
		last = now;
	} while (!run_over(run));
	mark_end(run);
	__atomic_store_n(&run->stop, true, __ATOMIC_RELAXED);
	wait_for_launched();
}

bool
run_counts(const struct run *run)
{
	return run->count && !run->launched && run->o->iterations > 0;
}

void
run_for(struct run *run)
{
	unsigned int i;

	run->stop = false;
	run->draining = run->runners + (run->others != NULL);
	for (i = 0; i < run->runners; i++) {
		run->runner[i].run = run;
		run->runner[i].slices = run->runner[i].clean = run->runner[i].unclean = 0;
		run->runner[i].best = 0;
	}
	if (run->launched)
		run_launched(run);
	else if (run_counts(run))
		count_messages(run);
	else
		run_here(run);
}

/* --- results --- */

static double
slice_median(const struct slice *s, unsigned int n, size_t field)
{
	double v[BENCH_SLICES];
	unsigned int i;

	for (i = 0; i < n; i++)
		v[i] = *(const double *)(const void *)((const char *)&s[i] + field);
	return median(v, n);
}

bool
runner_median(const struct runner *r, struct slice *m)
{
	bool clean = r->clean > 0;
	unsigned int n = clean ? r->clean : r->unclean;

	if (n > BENCH_SLICES)
		n = BENCH_SLICES;
	*m = (struct slice){ .rate = 0 };
	if (n == 0)
		return false;
	m->rate = slice_median(r->slice[clean], n, offsetof(struct slice, rate));
	m->ns[0] = slice_median(r->slice[clean], n, offsetof(struct slice, ns[0]));
	m->ns[1] = slice_median(r->slice[clean], n, offsetof(struct slice, ns[1]));
	return clean;
}
