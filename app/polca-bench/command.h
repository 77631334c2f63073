/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

/**
 * @file
 * The commands: a row each in main.c.
 */

#include <signal.h>

#include "options.h"
#include "report.h"

struct command {
	const char *name;
	const char *help; /**< one line */
	const char *const *modes; /**< second word, the first one is the default; NULL: none */
	unsigned int takes; /**< TAKES_ */
	enum bench_verb verb;
	/** Starts the EAL itself (bench_eal_start), fills the report. */
	int (*run)(const struct command *c, const struct bench_options *o, struct report *r,
		struct error *err);
};

/** The user wants it to end: report what there is. */
extern volatile sig_atomic_t bench_stop;

/* traffic.c: send, write, read, atomic */
int traffic_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

/* timers.c */
int timers_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

/* skeleton_command.c */
int skeleton_run_command(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

/* --- eal.c --- */

/** What a run asks of the EAL. */
struct eal_wish {
	unsigned int workers; /**< lcores besides the main one that work; 0: main does it all */
	unsigned int first_cpu; /**< of those allowed: which the first lcore takes */
	uint64_t bytes; /**< memory */
	bool share_memory; /**< another process maps it: hugepages in one file */
};
/** Memory is hugepages when enough of them are free. */
int bench_eal_start(const struct bench_options *o, const struct eal_wish *wish, struct error *err);
/** Is its memory hugepages? */
bool bench_eal_huge(void);
/** Lines that DPDK has logged as errors since it was started. */
const char *bench_eal_log(void);
/** "1 on CPU 0": those that work. */
const char *bench_eal_lcores(void);
/** Bytes it was started with. */
uint64_t bench_eal_bytes(void);

#endif
