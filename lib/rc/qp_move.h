/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_QP_MOVE_H
#define RC_QP_MOVE_H

/**
 * @file
 * Private to lib/rc: the halves of a move of a QP to another worker, and the fences that keep its
 * completions in order.
 */

#include "rc/qp_directory.h"

/* Set in qp.qpn between export and import, so that no QPN of a packet matches */
#define QPN_MOVING (1u << 31)

/*
 * --- qp_move.c: the halves of a move. The caller has checked that the QP can move, and keeps its
 * completions in order (below).
 */

/** @retval -EINVAL  there is no such worker to move to */
int rc_move_target_check(const struct rc_dev *dev, unsigned int to, struct error *err);
/** Old owner: the QP leaves all lists of its worker, and its share. */
void rc_qp_give(struct rc_qp *qp, unsigned int to);
/** New owner. @param share  that it joins, or NULL. @return NULL: no such QP came to this worker */
struct rc_qp *rc_qp_take(struct rc_worker *w, uint32_t qpn, struct rc_share *share);

/** srq.c: an SRQ, all of whose QPs were given to worker @p to, follows them. */
void rc_srq_give(struct rc_srq *srq, unsigned int to);

/*
 * --- cq_fence.c: keep the completions of a work queue in order although they are in two rings. The
 * new owner places a fence in its ring before the QP's first completion. The poller does not pass
 * the fence before it has taken the completions that were in the old owner's ring.
 */

/**
 * Old owner: reserve a fence in each of these CQs that has a ring for this worker, in its ring of
 * worker @p to, which exists.
 *
 * @retval -EAGAIN  all CQ_FENCES fences of one wait for the poller: none is reserved
 */
int rc_cq_fences_reserve(const struct rc_worker *w, const uint32_t *cqns, uint32_t num,
	unsigned int to, struct error *err);
/** New owner: order its next completions after all that are in @p from's rings. */
void rc_cq_fences_place(const struct rc_worker *w, const uint32_t *cqns, uint32_t num,
	unsigned int from);

/**
 * Poller, after an acquire load of ring.head: how many of the @p ready completions in ring @p r it
 * may take now. Passes fences that are open and then sets *passed.
 */
uint32_t rc_cq_fence_limit(struct rc_cq_ring *r, uint32_t ready, bool *passed);

#endif
