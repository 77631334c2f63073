/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_TARGET_H
#define SVC_PERFTEST_TARGET_H

/**
 * @file
 * With -R a client describes on one connection the memory that another connection is to write
 * to. The two may belong to different workers. The first connection notes it in the table of its
 * place; the second one searches all tables.
 */

#include <stdbool.h>
#include <stdint.h>

#include "svc/perftest_text.h"

#define PERFTEST_TARGETS 64 /* queue pairs of a client */

struct perftest_target {
	struct perftest_dest theirs;
	uint32_t told; /**< how often the client described it */
};

/** Written only by the worker of its place. */
struct perftest_targets {
	uint32_t life; /**< changes when the table is cleared */
	uint32_t count;
	struct perftest_target target[PERFTEST_TARGETS];
} __attribute__((aligned(64)));

void perftest_targets_clear(struct perftest_targets *t);
/** Note a queue pair once, and count how often it is told. @retval false  table full */
bool perftest_target_note(struct perftest_targets *t, const struct perftest_dest *theirs);
/** Find a noted queue pair; any worker may call it. @param n  number of tables */
bool perftest_target_find(const struct perftest_targets *t, uint32_t n, const union gid *gid,
	uint32_t qpn, struct perftest_target *found);

#endif
