/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_BENCHMARK_H
#define BENCH_BENCHMARK_H

/**
 * @file
 * Private to the traffic commands: ends, loads and runners of one run, and its report.
 */

#include "command.h"
#include "traffic/bench.h"

struct exchange;
struct benchmark_plot;

/** What the other process measured, of a remote link. */
struct far_side {
	bool asked, done, told;
	double busy; /**< seconds */
	uint64_t messages; /**< that it was busy for */
	uint64_t own; /**< messages done that it sent */
	uint64_t wrong;
};

/** Packets that came in at another worker than their queue pair's, and all. */
struct handed {
	uint64_t out, received; /**< packets sent on to another worker, of those that came in */
	uint64_t moved; /**< queue pairs, to where their packets come in */
};

struct benchmark {
	struct bench_options o; /**< .size is the largest one of the run */
	const struct bench_link *link;
	struct report *report;
	enum bench_role first; /**< a remote link: the one end that is here */
	unsigned int ends; /**< end[first], ... that are here */
	struct endpoint end[ROLES];
	struct peer peer[ROLES]; /**< of end[i] */
	struct load load[ROLES][BENCH_WORKERS_MAX];
	struct runner runner[BENCH_WORKERS_MAX];
	struct run run;
	struct exchange *exchange; /**< a remote link: the other process */
	struct error lost; /**< why the other process is no longer there */
	struct far_side far;
	uint64_t next_live; /**< TSC */
	struct run_mark last_live;
	struct handed handed; /**< when it began to be measured */
	uint64_t handed_of; /**< the run's beginning that it belongs to */
	struct benchmark_plot *plot; /**< with --plot */
	uint64_t grant; /**< bytes of the service's memory; 0: none */
	uint32_t size; /**< now */
};

/** Lcores and memory that it needs. */
void benchmark_wish(const struct bench_options *o, const struct bench_link *link,
	enum bench_role role, struct eal_wish *wish);
/** Ends with their queue pairs. */
int benchmark_create(struct benchmark *s, struct error *err);
/** After .peer is known of all ends: connected, with loads and runners. */
int benchmark_connect(struct benchmark *s, struct error *err);
/** The latter alone, of ends that are connected. */
int benchmark_load(struct benchmark *s, struct error *err);
void benchmark_destroy(struct benchmark *s);
/** Receives are posted for messages of @p size. */
int benchmark_prepare(struct benchmark *s, uint32_t size, struct error *err);
/** Messages of that size, until it is over; what failed is told. */
int benchmark_run(struct benchmark *s, struct error *err);

/** benchmark_report.c: facts, the table's head, a row. */
void benchmark_tell_environment(struct benchmark *s);
void benchmark_tell_head(struct benchmark *s);
void benchmark_tell(struct benchmark *s, const struct far_side *far);
/** Messages a second, and of the best few milliseconds. */
double benchmark_rate(const struct benchmark *s, double *best);
/**
 * benchmark_plot.c, all of them nothing without --plot. Before the run: the file can be written.
 *
 * @retval -EINVAL  it cannot
 */
int benchmark_plot_open(struct benchmark *s, struct error *err);
/** The EAL is there: measure limits from now on, where they hold. */
int benchmark_plot_limits(struct benchmark *s, struct error *err);
/** Figures of s->size (NAN: there is none), in the order of the picture's legend; its limit is measured now. */
void benchmark_plot_add(struct benchmark *s, double first, double second);
/** The table of limits, and the picture of the sizes that were added, if @p done; else no file. */
int benchmark_plot_close(struct benchmark *s, bool done, struct error *err);

/** A line each second while it runs. */
void benchmark_look(struct benchmark *s, uint64_t now);

#endif
