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

/** The port with this number, or NULL with words. */
const struct port_attr *known_port(const struct engine *e, unsigned int number, struct error *err);
/** Is there a P_Key at this index of the port's table? @return 0, or -EINVAL with words */
int check_pkey(const struct port_attr *port, uint16_t index, struct error *err);

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

/** verbs_rehome.c: memory on @p worker for the completions of such a QP, should it move there. */
int reserve_completions(struct engine *e, const struct qp_init_attr *init, unsigned int worker,
	struct error *err);

/** verbs_owner.c: run fn on the QP's worker, whichever has it by then. @return -ENOENT: no QP */
int call_qp_owner(struct engine *e, uint32_t qpn, worker_fn fn, void *arg, struct error *err);

/** The worker asked for (>= 0), or the one with the fewest QPs. */
int choose_worker(struct engine *e, int asked, struct error *err);

/** The same for a QP: its SRQ's, or as choose_worker(). */
int qp_worker_for(struct engine *e, int asked, const struct qp_init_attr *attr, struct error *err);

/*
 * Callers' verbs keep off what services have: 0, or -EPERM with words. What there is not is for the
 * verb to say. While the control thread waits in engine_call(), on the worker too.
 */
int callers_pd(const struct engine *e, uint32_t pd, struct error *err);
/** @param what  the parameter: "cq", "send_cq", ... */
int callers_cq(const struct engine *e, const char *what, uint32_t cqn, struct error *err);
int callers_mr(const struct engine *e, const char *what, uint32_t key, struct error *err);
int callers_mw(const struct engine *e, uint32_t key, struct error *err);
/** What a QP is to be made of. */
int callers_new_qp(const struct engine *e, const struct qp_init_attr *init, struct error *err);
int callers_qp(const struct engine *e, const struct rc_qp_info *info, struct error *err);
/** The same of a QP of this worker. */
int callers_qp_here(const struct worker *w, uint32_t qpn, struct error *err);

/** The number of what stands at a place of a table: from 1 on, not reused soon. */
static inline uint32_t
place_number(uint32_t generation, uint32_t places, size_t place)
{
	return (generation % (UINT32_MAX / places - 1) + 1) * places + (uint32_t)place;
}

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
