/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_RATES_H
#define BENCH_RATES_H

/**
 * @file
 * Used by the agents' commands: cases measured in turn, in rounds, so that all meet the same load
 * of the machine. The result of each case is the median, the lowest and the highest rate.
 */

#include "command.h"

#define RATES_ROUNDS_MAX 99

/** Start the EAL with little memory, and report the environment. */
int rates_begin(const struct bench_options *o, struct report *r, struct error *err);
unsigned int rates_rounds(const struct bench_options *o);
void rates_table(struct report *r, const char *name);
/** @param v  n values; they are sorted */
void rates_row(struct report *r, const char *name, double *v, unsigned int n);

/* sa_command.c, ping_command.c, cm_command.c */
int bench_sa_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);
int bench_ping_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);
int bench_cm_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

#endif
