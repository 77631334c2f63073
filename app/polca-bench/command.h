/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

/**
 * @file
 * The commands; main.c has a row for each.
 */

#include <signal.h>

#include "options.h"
#include "report.h"

struct command {
	const char *name;
	const char *help; /**< one line */
	/** allowed second words, the first one is the default; NULL: none */
	const char *const *modes;
	unsigned int takes; /**< TAKES_ */
	enum bench_verb verb;
	/** Run the command: start the EAL (bench_eal_start()) and fill in the report. */
	int (*run)(const struct command *c, const struct bench_options *o, struct report *r,
		struct error *err);
};

/** Set by a signal: end the run and report the results so far. */
extern volatile sig_atomic_t bench_stop;

/* traffic/traffic.c: send, write, read, atomic */
int traffic_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

/* traffic/timers.c */
int timers_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

/* limits/skeleton_command.c */
int skeleton_run_command(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

/* --- eal.c --- */

/** The resources a run needs from the EAL. */
struct eal_wish {
	/** working lcores besides the main one; 0: the main lcore does all work */
	unsigned int workers;
	unsigned int first_cpu; /**< index of the first lcore's CPU among the allowed ones */
	uint64_t bytes; /**< bytes of memory */
	bool share_memory; /**< another process maps the memory: hugepages in one file */
};
/** Start the EAL. Its memory is hugepages if enough of them are free. */
int bench_eal_start(const struct bench_options *o, const struct eal_wish *wish, struct error *err);
/** True if its memory is hugepages. */
bool bench_eal_huge(void);
/** The errors that DPDK logged since the EAL's start. */
const char *bench_eal_log(void);
/** The working lcores: "1 on CPU 0". */
const char *bench_eal_lcores(void);
/** The size of its memory in bytes. */
uint64_t bench_eal_bytes(void);

#endif
