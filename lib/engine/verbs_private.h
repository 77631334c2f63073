/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_PRIVATE_H
#define ENGINE_VERBS_PRIVATE_H

/**
 * @file
 * Private to lib/engine: functions that several verbs use.
 */

#include "engine/verbs.h"
#include "engine/worker.h"

/** The port with this number, or NULL and an error. */
const struct port_attr *known_port(const struct engine *e, unsigned int number, struct error *err);
/** Check that the port's table has a P_Key at this index. @return 0 or -EINVAL */
int check_pkey(const struct port_attr *port, uint16_t index, struct error *err);

/**
 * Resolve an address handle: our addresses from the port's attributes, the next hop from lib/link.
 */
int ah_resolve(struct engine *e, const struct engine_ah *ah, struct av *av, uint32_t *neighbour,
	struct error *err);

struct engine_mad_ask;
/** verbs_mad_peer.c: the destination of @p ask. */
int mad_ask_peer(struct engine *e, const struct engine_mad_ask *ask, struct mad_peer *to,
	struct error *err);

/** @return the worker that owns the QP or SRQ, or -ENOENT */
int qp_worker(struct engine *e, uint32_t qpn, struct error *err);
int srq_worker(struct engine *e, uint32_t srqn, struct error *err);

/** verbs_cq.c: allocate completion rings on @p worker for a QP that may move there. */
int reserve_completions(struct engine *e, const struct qp_init_attr *init, unsigned int worker,
	struct error *err);

/**
 * verbs_owner.c: run fn on the worker that owns the QP, even if it moves. @retval -ENOENT no such
 * QP
 */
int call_qp_owner(struct engine *e, uint32_t qpn, worker_fn fn, void *arg, struct error *err);

/**
 * verbs_owner.c: @return worker @p asked if it is not negative, else the best one: one that is not
 * full, then one that is not busy, then one with few QPs
 */
int choose_worker(struct engine *e, int asked, struct error *err);

/** verbs_rehome.c: the workers do not run: do their part of a move. */
void qp_move_without_workers(struct engine *e);

/** verbs_qp.c: engine_qp_modify_paths() for a QP that anybody may own. */
int qp_modify_any(struct engine *e, uint32_t qpn, struct qp_attr *attr, const struct engine_ah *ah,
	const struct engine_ah *alt_ah, uint32_t mask, struct error *err);

/** The worker for a QP: the SRQ's if it has one, else as choose_worker(). */
int qp_worker_for(struct engine *e, int asked, const struct qp_init_attr *attr, struct error *err);

/*
 * Clients must not use objects that a service owns: -EPERM for those, else 0. A number without
 * object also gives 0, because the verb reports that itself. These run on the control thread, or on
 * a worker while the control thread waits in engine_call().
 */
int callers_pd(const struct engine *e, uint32_t pd, struct error *err);
/** @param what  the parameter: "cq", "send_cq", ... */
int callers_cq(const struct engine *e, const char *what, uint32_t cqn, struct error *err);
int callers_mr(const struct engine *e, const char *what, uint32_t key, struct error *err);
int callers_mw(const struct engine *e, uint32_t key, struct error *err);
/** Checks the PD and the CQs of a QP that is to be created. */
int callers_new_qp(const struct engine *e, const struct qp_init_attr *init, struct error *err);
int callers_qp(const struct engine *e, const struct rc_qp_info *info, struct error *err);
/** As callers_qp(), for a QP of this worker. */
int callers_qp_here(const struct worker *w, uint32_t qpn, struct error *err);

/** The public number of a table entry: at least 1, and not reused soon. */
static inline uint32_t
place_number(uint32_t generation, uint32_t places, size_t place)
{
	return (generation % (UINT32_MAX / places - 1) + 1) * places + (uint32_t)place;
}

/** Sleep before the next check whether a grace period has ended; the pause doubles up to 1 ms. */
void grace_pause(unsigned int *us);

/**
 * Walk the objects of all workers with one cursor: its upper half is the worker, its lower half
 * that worker's own cursor.
 *
 * @param fn  runs on the worker with a struct walk; returns 1 if it advanced .cursor and filled
 *   .out
 */
struct walk {
	uint32_t cursor;
	void *out;
};
bool walk_workers(struct engine *e, uint64_t *cursor, worker_fn fn, void *out);

#endif
