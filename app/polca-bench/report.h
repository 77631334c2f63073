/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

/**
 * @file
 * What a run tells: where it ran, tables of figures, remarks. Printed as it comes, or at the end as
 * one JSON object: {"command", "version", "environment": {}, "options": {}, "tables": [{"name",
 * "rows": [{}]}], "notes": []}.
 */

#include <stdbool.h>

#include "options.h"

struct report;

struct report_column {
	const char *key; /**< JSON */
	const char *head; /**< as perftest has it, with the unit */
	int width;
	int decimals;
};

struct report *report_create(const char *command, bool json);
/**
 * Prints the JSON, if it is to be that.
 *
 * @retval -EIO  the report is not where stdout goes: a full disk
 */
int report_end(struct report *r);

/** A line of the environment: "cpu", "AMD ...". */
void report_fact(struct report *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** The text of that line. @return NULL: there is none. It stays the report's */
const char *report_fact_text(const struct report *r, const char *key);
/** Those options that @p takes covers; in JSON only. */
void report_options(struct report *r, const struct bench_options *o, unsigned int takes);
/** After the EAL's start: CPU, DPDK, build, memory, CRC kernel. environment.c */
void report_environment(struct report *r, const struct bench_options *o);
/** A table begins. @param columns  stay the caller's; @param n at most 32 */
void report_table(struct report *r, const char *name, const struct report_column *columns,
	unsigned int n);
/** A row of it, a value per column; NAN: there is none. */
void report_row(struct report *r, const double *values);
/** The first column is a name, the values are those of the others. */
void report_named_row(struct report *r, const char *name, const double *values);
/** A sentence. */
void report_note(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct histogram;
/** report_latency.c: a table of times, and a row of it. @param h  TSC cycles */
void report_latency_table(struct report *r, const char *name);
void report_latency(struct report *r, double bytes, const struct histogram *h);

/** A line that the next one, or anything printed, overwrites; only on a terminal. */
void report_live(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * The same about something that takes long, from wherever it is waited for, on the main thread: at
 * most once a second, and not before nothing else was printed for two.
 */
void report_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
