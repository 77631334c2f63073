/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Both ends by turns on one thread: what a message costs each role. Measured in slices; one in
 * which a turn took suspiciously long (somebody else had the CPU) does not count.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "bench.h"

#define SLICE_MS   3
#define WARM_UP    20 /* slices */
#define PAUSE_US   100 /* a turn longer than this was interrupted */

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

/* @return the TSC after it */
static uint64_t
turn(struct load *l, uint64_t now)
{
	bool busy = engine_turn(l->end->engine, 0, now);
	uint64_t end;

	busy |= load_turn(l) > 0;
	end = rte_rdtsc();
	if (busy)
		l->end->busy += end - now;
	return end;
}

int
roles_run(struct load load[ROLES], struct roles_result *r, struct error *err)
{
	static double rate[BENCH_SLICES], ns[ROLES][BENCH_SLICES];
	double hz = (double)rte_get_tsc_hz();
	uint64_t slice = SLICE_MS * (rte_get_tsc_hz() / 1000);
	uint64_t pause = PAUSE_US * (rte_get_tsc_hz() / 1000000);
	uint64_t now = rte_rdtsc(), stop = now + (uint64_t)(load->o->seconds * hz);
	unsigned int i, n = 0, total = 0;

	while (n < BENCH_SLICES && now < stop) {
		uint64_t start = now, last, done = load[REQUESTER].done;
		bool clean = true;

		load[0].end->busy = load[1].end->busy = 0;
		do {
			last = now;
			for (i = 0; i < ROLES; i++)
				now = turn(&load[i], now);
			clean &= now - last < pause;
		} while (now - start < slice);
		done = load[REQUESTER].done - done;
		if (load[0].failed + load[1].failed > 0)
			return error_set(err, EIO, "%lu work requests failed",
					load[0].failed + load[1].failed);
		if (++total <= WARM_UP || !clean || done == 0)
			continue;
		rate[n] = (double)done * hz / (double)(now - start);
		for (i = 0; i < ROLES; i++)
			ns[i][n] = (double)load[i].end->busy * 1e9 / hz / (double)done;
		n++;
	}
	if (n == 0)
		return error_set(err, ETIME, "none of %u slices was undisturbed: the machine is "
				"too busy", total);
	r->slices = total;
	r->clean = n;
	r->rate = median(rate, n);
	for (i = 0; i < ROLES; i++)
		r->ns[i] = median(ns[i], n);
	r->goodput = r->rate * load->o->size * 8;
	return 0;
}

void __attribute__((noinline))
roles_count(struct load load[ROLES], uint64_t messages)
{
	uint64_t end = load[REQUESTER].done + messages;

	while (load[REQUESTER].done < end && load[REQUESTER].failed == 0) {
		turn(&load[REQUESTER], rte_rdtsc());
		turn(&load[RESPONDER], rte_rdtsc());
	}
}
