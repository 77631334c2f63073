/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_PERFTEST_H
#define BENCH_PERFTEST_H

/**
 * @file
 * A run against perftest's server on a verbs host (ib_send_bw and its like): we are its client.
 */

#include "peers/connection.h"
#include "traffic/benchmark.h"

/** The whole run; s->o and s->link are set. */
int perftest_run(struct benchmark *s, struct error *err);

/* --- perftest_talk.c: how a message goes to the server, and its answer comes back --- */

struct perftest_talk {
	struct endpoint *end; /**< goes on meanwhile, once it is there */
	int fd; /**< TCP; negative: over a connection */
	uint32_t qpn; /**< that one's */
	uint32_t cq;
	struct mem_mr_info mr;
};

/** By TCP, at HOST or HOST:PORT. */
int perftest_talk_tcp(struct perftest_talk *t, const char *where, struct error *err);
/** Over a connection of t->end's that @p c makes. */
int perftest_talk_cm(struct perftest_talk *t, struct connector *c, struct error *err);
void perftest_talk_end(struct perftest_talk *t);
/** Say it, wait for an answer of the same length. */
int perftest_talk(struct perftest_talk *t, const uint8_t *message, size_t len, uint8_t *answer,
	struct error *err);
/** Is the server still there, and says nothing? */
bool perftest_talk_quiet(struct perftest_talk *t);

#endif
