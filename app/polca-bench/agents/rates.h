/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_RATES_H
#define BENCH_RATES_H

/**
 * @file
 * The agents' commands: cases that are measured by turns, in rounds, so that all see the same mood of
 * the machine. What is told of each is the median, the lowest and the highest.
 */

#include "command.h"

#define RATES_ROUNDS_MAX 99

/** The EAL with little memory, the environment. */
int rates_begin(const struct bench_options *o, struct report *r, struct error *err);
unsigned int rates_rounds(const struct bench_options *o);
void rates_table(struct report *r, const char *name);
/** @param v  n of them, which are sorted */
void rates_row(struct report *r, const char *name, double *v, unsigned int n);

/* sa.c, ping.c, cm.c */
int sa_run_command(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);
int ping_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);
int cm_run_command(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

#endif
