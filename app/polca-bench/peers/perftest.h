/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_PERFTEST_H
#define BENCH_PERFTEST_H

/**
 * @file
 * A run against perftest's server on a verbs host (ib_send_bw and others); polca-bench is its
 * client.
 */

#include "peers/connection.h"
#include "traffic/benchmark.h"

/** Run; s->o and s->link are set. */
int perftest_run(struct benchmark *s, struct error *err);

/* --- perftest_talk.c: send messages to the server and receive its answers --- */

struct perftest_talk {
	struct endpoint *end; /**< its engine keeps running during a wait, once it exists */
	int fd; /**< TCP socket; negative: over a connection */
	uint32_t qpn; /**< queue pair of that connection */
	uint32_t cq;
	struct mem_mr_info mr;
};

/** Connect by TCP to HOST or HOST:PORT. */
int perftest_talk_tcp(struct perftest_talk *t, const char *where, struct error *err);
/** Open a connection of t->end with @p c. */
int perftest_talk_cm(struct perftest_talk *t, struct connector *c, struct error *err);
void perftest_talk_end(struct perftest_talk *t);
/** Send a message and wait for an answer of the same length. */
int perftest_talk(struct perftest_talk *t, const uint8_t *message, size_t len, uint8_t *answer,
	struct error *err);
/** True if the server is connected and has sent nothing. */
bool perftest_talk_quiet(struct perftest_talk *t);

#endif
