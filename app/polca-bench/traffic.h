/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

/**
 * @file
 * Private to the traffic commands: ends, loads and runners of one run, and its report.
 */

#include "bench.h"
#include "command.h"

struct exchange;
struct scene_plot;

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

struct scene {
	struct bench_options o; /**< .size is the largest one of the run */
	const struct bench_link *link;
	struct report *report;
	enum bench_role first; /**< a remote link: the one end that is here */
	unsigned int ends; /**< end[first], ... that are here */
	struct end end[ROLES];
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
	struct scene_plot *plot; /**< with --plot */
	uint64_t grant; /**< bytes of the service's memory; 0: none */
	uint32_t size; /**< now */
};

/** Lcores and memory that it needs. */
void scene_wish(const struct bench_options *o, const struct bench_link *link,
	enum bench_role role, struct eal_wish *wish);
/** Ends with their queue pairs. */
int scene_create(struct scene *s, struct error *err);
/** After .peer is known of all ends: connected, with loads and runners. */
int scene_connect(struct scene *s, struct error *err);
/** The latter alone, of ends that are connected. */
int scene_load(struct scene *s, struct error *err);
void scene_destroy(struct scene *s);
/** Receives are posted for messages of @p size. */
int scene_prepare(struct scene *s, uint32_t size, struct error *err);
/** Messages of that size, until it is over; what failed is told. */
int scene_run(struct scene *s, struct error *err);

/** scene_report.c: facts, the table's head, a row. */
void scene_tell_environment(struct scene *s);
void scene_tell_head(struct scene *s);
void scene_tell(struct scene *s, const struct far_side *far);
/** Messages a second, and of the best few milliseconds. */
double scene_rate(const struct scene *s, double *best);
/**
 * scene_plot.c, all of them nothing without --plot. Before the run: the file can be written.
 *
 * @retval -EINVAL  it cannot
 */
int scene_plot_open(struct scene *s, struct error *err);
/** The EAL is there: measure limits from now on, where they hold. */
int scene_plot_limits(struct scene *s, struct error *err);
/** Figures of s->size (NAN: there is none), in the order of the picture's legend; its limit is measured now. */
void scene_plot_add(struct scene *s, double first, double second);
/** The table of limits, and the picture of the sizes that were added, if @p done; else no file. */
int scene_plot_close(struct scene *s, bool done, struct error *err);

/** A line each second while it runs. */
void scene_look(struct scene *s, uint64_t now);

#endif
