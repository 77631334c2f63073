/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_IBVERBS_COMPARE_H
#define BENCH_IBVERBS_COMPARE_H

/**
 * @file
 * --verbs: measure by turns our own posts in memory, and the same messages of a program through
 * libibverbs and a running polca.
 */

#include "traffic/paired.h"
#include "ibverbs/pair.h"

/** compare.c. The benchmark is connected. */
int verbs_run(struct benchmark *s, uint32_t size, struct error *err);

/** The calls that a program pays for. */
enum verbs_call {
	VERBS_POST, /**< ibv_post_send() of VERBS_INLINE inline bytes */
	VERBS_POLL, /**< ibv_poll_cq() of an empty queue */
	VERBS_REQUEST, /**< ibv_query_port(): to polca's control thread and back, for nothing */
	VERBS_CALLS
};

extern const char *const verbs_call_names[VERBS_CALLS];

/** calls.c: measure each call. @param ns  set to the times of one call */
int verbs_calls(struct verbs_pair *p, double ns[VERBS_CALLS], struct error *err);

#endif
