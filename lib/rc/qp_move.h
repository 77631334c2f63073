/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_QP_MOVE_H
#define RC_QP_MOVE_H

/**
 * @file
 * Private to lib/rc: what the QP directory and the CQs do when a QP moves to another worker.
 */

#include "rc/qp_directory.h"

/* Set in qp.qpn between export and import, so that no QPN of a packet matches */
#define QPN_MOVING (1u << 31)

/* --- qp_move.c: return the slot of a destroyed QP to its home worker --- */

/** Any worker: return a slot to its home worker's share. */
void rc_slot_send_home(struct rc_dev *dev, uint32_t slot);
/**
 * Home worker: take the returned slots, linked by dev->slot_links. @return the first, or RC_NO_SLOT
 */
uint32_t rc_slots_returned(struct rc_slots *s);

/*
 * --- cq_fence.c: keep the completions of a work queue in order although they are in two rings. The
 * new owner places a fence in its ring before the QP's first completion. The poller does not pass
 * the fence before it has taken the completions that were in the old owner's ring.
 */

/**
 * Old owner: reserve a fence in the ring of worker @p to, which exists.
 *
 * @retval -EAGAIN  all CQ_FENCES fences wait for the poller
 */
int rc_cq_fence_reserve(struct rc_cq *cq, unsigned int to, struct error *err);
void rc_cq_fence_cancel(struct rc_cq *cq, unsigned int to);
/** New owner @p to: order its next completions after all that are in @p from's ring. */
void rc_cq_fence_place(struct rc_cq *cq, unsigned int to, unsigned int from);

/**
 * Poller, after an acquire load of ring.head: how many of the @p ready completions in ring @p r it
 * may take now. Passes fences that are open and then sets *passed.
 */
uint32_t rc_cq_fence_limit(struct rc_cq_ring *r, uint32_t ready, bool *passed);

#endif
