/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

/**
 * @file
 * The report of a run: environment, tables, notes. It is printed line by line, or at the end as one
 * JSON object: {"command", "version", "environment": {}, "options": {}, "tables": [{"name", "rows":
 * [{}]}], "notes": []}.
 */

#include <stdbool.h>

#include "options.h"

struct report;

struct report_column {
	const char *key; /**< name in JSON */
	const char *head; /**< perftest's column head, with the unit */
	int width;
	int decimals;
};

struct report *report_create(const char *command, bool json);
/**
 * Print the JSON, if chosen.
 *
 * @retval -EIO  stdout could not be written, for example on a full disk
 */
int report_end(struct report *r);

/** Add a line to the environment: "cpu", "AMD ...". */
void report_fact(struct report *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** The text of that line. @return a borrowed string, or NULL */
const char *report_fact_text(const struct report *r, const char *key);
/** Add the options covered by @p takes; only in JSON. */
void report_options(struct report *r, const struct bench_options *o, unsigned int takes);
/** environment.c: add CPU, DPDK, build, memory and CRC kernel. The EAL is running. */
void report_environment(struct report *r, const struct bench_options *o);
/** Begin a table. @param columns  must outlive the table; @param n  at most 32 */
void report_table(struct report *r, const char *name, const struct report_column *columns,
	unsigned int n);
/** Add a row, one value per column; NAN: none. */
void report_row(struct report *r, const double *values);
/** Add a row whose first column is a name; the values are those of the other columns. */
void report_named_row(struct report *r, const char *name, const double *values);
/** Add a note, one sentence. */
void report_note(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct histogram;
/** report_latency.c: begin a table of times, add a row. @param h  TSC cycles */
void report_latency_table(struct report *r, const char *name);
void report_latency(struct report *r, double bytes, const struct histogram *h);

/** Print a line that the next output overwrites; only on a terminal. */
void report_live(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * Print progress in the same way while the main thread waits: at most once a second, and only after
 * two seconds without other output.
 */
void report_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
