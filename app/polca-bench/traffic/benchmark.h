/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_BENCHMARK_H
#define BENCH_BENCHMARK_H

/**
 * @file
 * One benchmark of a traffic command: its endpoints, loads and runners, and its report.
 */

#include "command.h"
#include "traffic/bench.h"

struct exchange;
struct benchmark_plot;

/** What the other process of a remote link has measured. */
struct far_side {
	bool stop_sent, done_sent, figures_received; /**< messages of remote.h */
	double busy; /**< seconds */
	uint64_t messages; /**< messages during that time */
	uint64_t own; /**< messages that the other process sent and completed */
	uint64_t wrong;
};

/** Packets that arrived at another worker than their queue pair's. */
struct handed_over {
	uint64_t out, received; /**< packets handed to another worker, and all received packets */
	uint64_t moved; /**< queue pairs moved to the worker at which their packets arrive */
};

/** One run of a traffic command. */
struct benchmark {
	struct bench_options o; /**< .size is the largest message of the run */
	const struct bench_link *link;
	struct report *report;
	enum bench_role first; /**< a remote link: the role of the only endpoint in this process */
	unsigned int ends; /**< endpoints in this process: end[first] and those after it */
	struct endpoint end[ROLES];
	struct peer peer[ROLES]; /**< peer[i] is the peer of end[i] */
	struct load load[ROLES][BENCH_WORKERS_MAX];
	struct runner runner[BENCH_WORKERS_MAX];
	struct run run;
	struct exchange *exchange; /**< a remote link: the connection to the other process */
	struct error lost; /**< why the other process is gone */
	struct far_side far;
	uint64_t next_live; /**< TSC */
	struct run_mark last_live;
	struct handed_over handed; /**< at the beginning of the measurement */
	uint64_t handed_of; /**< start time of the run that .handed belongs to */
	struct benchmark_plot *plot; /**< with --plot */
	uint64_t grant; /**< bytes of the service's memory; 0: none */
	uint32_t size; /**< current message size */
};

/** The lcores and memory that it needs. */
void benchmark_wish(const struct bench_options *o, const struct bench_link *link,
	enum bench_role role, struct eal_wish *wish);
/** Create the endpoints with their queue pairs. */
int benchmark_create(struct benchmark *s, struct error *err);
/** Connect the endpoints, whose .peer is set, and create loads and runners. */
int benchmark_connect(struct benchmark *s, struct error *err);
/** Create loads and runners; the endpoints are connected. */
int benchmark_load(struct benchmark *s, struct error *err);
void benchmark_destroy(struct benchmark *s);
/** Prepare for messages of @p size and post receives. */
int benchmark_prepare(struct benchmark *s, uint32_t size, struct error *err);
/** Send messages of that size until the run is over, and report a failure in err. */
int benchmark_run(struct benchmark *s, struct error *err);

/** benchmark_report.c: report the environment, the table's head, a row. */
void benchmark_report_environment(struct benchmark *s);
void benchmark_report_head(struct benchmark *s);
void benchmark_report_row(struct benchmark *s, const struct far_side *far);
/** Messages per second on average. @param best  set to the highest rate of a slice */
double benchmark_rate(const struct benchmark *s, double *best);
/**
 * benchmark_plot.c: without --plot, these functions do nothing. Open the file before the run.
 *
 * @retval -EINVAL  the file cannot be written
 */
int benchmark_plot_open(struct benchmark *s, struct error *err);
/** After the start of the EAL: prepare to measure the limit, if this run has one. */
int benchmark_plot_limits(struct benchmark *s, struct error *err);
/**
 * Add two values of s->size (NAN: none), in the order of the legend, and measure the limit of that
 * size.
 */
void benchmark_plot_add(struct benchmark *s, double first, double second);
/**
 * If @p done, report the limits and draw the picture; else remove a file that benchmark_plot_open()
 * created.
 */
int benchmark_plot_close(struct benchmark *s, bool done, struct error *err);

/** Print a progress line once a second during the run. */
void benchmark_look(struct benchmark *s, uint64_t now);

#endif
