/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_TARGET_H
#define SVC_PERFTEST_TARGET_H

/**
 * @file
 * With -R a client speaks on one connection of the memory that another one is to write to; the two
 * may live on different workers. What is said is noted in the table of the first connection's
 * place; the second one looks through all tables.
 */

#include <stdbool.h>
#include <stdint.h>

#include "svc/perftest_text.h"

#define PERFTEST_TARGETS 64 /* queue pairs of a client */

struct perftest_target {
	struct perftest_dest theirs;
	uint32_t told; /**< how often */
};

/** One writer: the worker of its place. */
struct perftest_targets {
	uint32_t life; /**< changes when all is forgotten */
	uint32_t count;
	struct perftest_target target[PERFTEST_TARGETS];
} __attribute__((aligned(64)));

void perftest_targets_clear(struct perftest_targets *t);
/** Again and again the same: once, and counted. @retval false full */
bool perftest_target_note(struct perftest_targets *t, const struct perftest_dest *theirs);
/** Any worker. @param n  tables */
bool perftest_target_find(const struct perftest_targets *t, uint32_t n, const union gid *gid,
	uint32_t qpn, struct perftest_target *found);

#endif
