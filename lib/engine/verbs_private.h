/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_PRIVATE_H
#define ENGINE_VERBS_PRIVATE_H

/**
 * @file
 * Private to lib/engine: what the verbs share.
 */

#include "engine/verbs.h"
#include "engine/worker.h"

/** Resolve an address handle: the port's side from its attributes, the next hop from lib/link. */
int ah_resolve(struct engine *e, const struct engine_ah *ah, struct av *av, uint32_t *neighbour,
	struct error *err);

struct engine_mad_ask;
/** verbs_mad_peer.c: the manager that @p ask is for. */
int mad_ask_peer(struct engine *e, const struct engine_mad_ask *ask, struct mad_peer *to,
	struct error *err);

/** @return the worker, or -ENOENT with words */
int qp_worker(struct engine *e, uint32_t qpn, struct error *err);
int srq_worker(struct engine *e, uint32_t srqn, struct error *err);

/** The worker asked for (>= 0), or the one with the fewest QPs. */
int choose_worker(struct engine *e, int asked, struct error *err);

/** The same for a QP: its SRQ's, or as choose_worker(). */
int qp_worker_for(struct engine *e, int asked, const struct qp_init_attr *attr, struct error *err);

/** Look again, in growing pauses, for what a grace period holds up. */
void grace_pause(unsigned int *us);

/**
 * Walk the objects of all workers with one cursor: the worker in the upper half, its own cursor in
 * the lower.
 *
 * @param fn  runs on the worker with a struct walk; 1: *walk.cursor moved and out was filled
 */
struct walk {
	uint32_t cursor;
	void *out;
};
bool walk_workers(struct engine *e, uint64_t *cursor, worker_fn fn, void *out);

#endif
