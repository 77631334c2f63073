/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_H
#define BENCH_H

/**
 * @file
 * polca-bench: what its parts share. A benchmark has two ends, each an engine of its own with one
 * port; what joins the ports is the link's business (link_memory.c, ...).
 */

#include <stdbool.h>
#include <stdint.h>

#include "engine/verbs.h"
#include "link.h"
#include "options.h"

/* --- end.c: one end --- */

struct end {
	struct engine *engine;
	enum bench_role role;
	uint32_t pd, cq;
	struct mem_mr_info mr;
	uint32_t qps;
	uint32_t *qpn;
	struct rc_worker *rc;
	uint64_t busy; /**< TSC cycles of turns that found work */
};

/** An engine with one port on @p device, one worker, the given one of the EAL's worker lcores. */
int end_create(struct end *end, const struct bench_options *o, const char *device,
	enum bench_role role, unsigned int lcore, struct error *err);
void end_destroy(struct end *end);
/** QPs of both ends in RTS, each with its peer; both ends are turned meanwhile. */
int end_connect(struct end *a, struct end *b, const struct bench_options *o, struct error *err);

/* --- load.c: what the ends post and poll --- */

struct load {
	const struct bench_options *o;
	struct end *end;
	const struct end *peer;
	uint32_t offset; /**< where the next message is */
	uint32_t *since_signal; /**< by QP */
	uint64_t done; /**< messages completed */
	uint64_t failed;
};

int load_create(struct load *l, const struct bench_options *o, struct end *end,
	const struct end *peer, struct error *err);
void load_destroy(struct load *l);
/** Fill the queues. */
int load_start(struct load *l, struct error *err);
/** Take completions and post anew. @return completions */
unsigned int load_turn(struct load *l);

/* --- roles.c: both roles by turns on this thread --- */

#define BENCH_SLICES 400

/** Medians over slices of a few milliseconds that nothing interrupted. */
struct roles_result {
	unsigned int slices, clean;
	double rate; /**< messages/s */
	double ns[ROLES]; /**< per message and role */
	double goodput; /**< bit/s of payload */
};

int roles_run(struct load load[ROLES], struct roles_result *r, struct error *err);
/** Just so many messages, untimed: to count instructions. */
void roles_count(struct load load[ROLES], uint64_t messages);

#endif
