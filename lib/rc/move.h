/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_MOVE_H
#define RC_MOVE_H

/**
 * @file
 * Private to lib/rc: what queue pairs that change their worker ask of the directory and of
 * completion queues.
 */

#include "rc/dev.h"

/* in qp.qpn while it is between two owners: no number from a packet is equal */
#define QPN_MOVING (1u << 31)

/** Has the QP arrived at the worker that owns it? */
static inline bool
rc_qp_arrived(const struct rc_qp *qp)
{
	return (qp->qpn & QPN_MOVING) == 0;
}

/* --- move.c: slots are destroyed where the QP is, and given out where they are from --- */

/** Any worker: to the share it is from. */
void rc_slot_send_home(struct rc_dev *dev, uint32_t slot);
/** Its worker: slots that came home, linked by dev->slot_links. @return the first, or RC_NO_SLOT */
uint32_t rc_slots_returned(struct rc_slots *s);

/*
 * --- cq_fence.c: completions of a work queue stay in order though they stand in two rings. The
 * new owner's ring gets a fence where the QP's first completion may come: the poller takes nothing
 * beyond it before it has taken what stood in the old owner's ring.
 */

/**
 * Old owner: make sure that worker @p to can place a fence in its ring, which it has.
 *
 * @retval -EAGAIN  as many as there can be wait for the poller
 */
int rc_cq_fence_reserve(struct rc_cq *cq, unsigned int to, struct error *err);
void rc_cq_fence_cancel(struct rc_cq *cq, unsigned int to);
/** New owner @p to: what comes from here on stands behind all that is in @p from's ring. */
void rc_cq_fence_place(struct rc_cq *cq, unsigned int to, unsigned int from);

/**
 * The poller, whose acquire of ring.head came before: completions it may take of the @p ready ones
 * that ring @p r has. Passes fences that are due, and says so in *passed.
 */
uint32_t rc_cq_fence_limit(struct rc_cq_ring *r, uint32_t ready, bool *passed);

#endif
