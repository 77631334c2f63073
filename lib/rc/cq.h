/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_CQ_H
#define RC_CQ_H

/**
 * @file
 * Private to lib/rc: a completion queue is one single-producer ring of full depth per worker that
 * has a QP on it, merged by its one poller (verbs order completions only per work queue).
 */

#include <rte_branch_prediction.h>

#include "rc/qp.h"

/* Fences per ring: QP moves to a worker that may wait for the poller at one time (qp_move.h) */
#define CQ_FENCES 16

struct rc_cq_ring;

/**
 * A fence in a ring: the poller takes no entry from index .at on before it has polled ring .after
 * up to .head and passed its fences up to .fence_head (qp_move.h).
 */
struct rc_cq_fence {
	uint32_t at;
	uint32_t head;
	uint32_t fence_head;
	const struct rc_cq_ring *after;
};

struct rc_cq_ring {
	/* written by the worker */
	uint32_t head __attribute__((aligned(CACHE_LINE)));
	uint32_t tail_seen; /**< the worker's last reading of .tail */
	uint32_t fence_head; /**< number of fences placed so far */
	uint8_t notify; /**< CQ_ARMED_ kinds of completion since the last rc_run() */
	struct rc_cq_ring *notify_next; /**< on rc_worker.notify while notify != 0 */
	struct rc_cq *cq;
	/* written by the poller */
	uint32_t tail __attribute__((aligned(CACHE_LINE)));
	uint32_t fence_tail; /**< number of fences passed so far */
	/* rarely used: by workers that move QPs to this ring's worker, and by the poller */
	uint32_t fences_held __attribute__((aligned(CACHE_LINE))); /**< atomic; <= CQ_FENCES */
	struct rc_cq_fence fences[CQ_FENCES];
	struct wc wcs[] __attribute__((aligned(CACHE_LINE)));
};

#define CQ_ARMED_SOLICITED 1 /* event on solicited completions and errors only */
#define CQ_ARMED_ANY       2 /* event on any completion */

struct rc_cq {
	uint32_t cqn;
	uint32_t depth;
	uint32_t mask;
	/** SQs and RQs that complete here; atomic, changed at QP create and destroy */
	uint32_t users;
	uint32_t turn; /**< ring the next poll begins with */
	uint8_t armed; /**< CQ_ARMED_, 0: not armed */
	uint8_t awaited; /**< the poller waits for a completion: see rc_cq_await() */
	uint8_t overrun;
	unsigned int workers;
	struct rc_cq_ring *rings[]; /**< by worker; published once, freed with the CQ */
};

/** Count one work queue that completes to this CQ. @param what  parameter's name, for errors */
int rc_cq_hold(struct rc_worker *w, uint32_t cqn, const char *what, struct rc_cq **held,
	struct error *err);
void rc_cq_release(struct rc_cq *cq);
/** A worker's ring; any lcore. @return NULL: the worker has no ring in this CQ */
static inline struct rc_cq_ring *
rc_cq_ring(const struct rc_cq *cq, unsigned int worker)
{
	return __atomic_load_n(&cq->rings[worker], __ATOMIC_ACQUIRE);
}

/** As rc_cq_ring(), and create the ring if there is none. @return NULL: no memory */
struct rc_cq_ring *rc_cq_ring_make(struct rc_dev *dev, struct rc_cq *cq, unsigned int worker);
/** Raise EVENT_CQ_COMPLETION for armed CQs with new completions; once per rc_run(). */
void rc_cq_notify(struct rc_worker *w);

static inline bool
rc_cq_overrun(const struct rc_cq *cq)
{
	return __atomic_load_n(&cq->overrun, __ATOMIC_RELAXED) != 0;
}

/*
 * Fast path: write completions directly at the ring's head, then publish them with one store of
 * the head. If the ring looks full, use rc_cq_push().
 */

/** True if tail_seen leaves room for one completion and the CQ has not overrun. */
static inline bool
rc_cq_has_room(const struct rc_cq *cq, const struct rc_cq_ring *r)
{
	return likely(r->head - r->tail_seen < cq->depth) && likely(!rc_cq_overrun(cq));
}

/** Write a successful completion without immediate at ring index @p at, from .head on. */
static inline void
rc_cq_write_done(const struct rc_cq *cq, struct rc_cq_ring *r, uint32_t at, uint64_t wr_id,
	enum wc_opcode opcode, uint32_t byte_len, uint32_t qpn)
{
	struct wc *wc = &r->wcs[at & cq->mask];

	wc->wr_id = wr_id;
	wc->status = WC_SUCCESS;
	wc->opcode = opcode;
	wc->byte_len = byte_len;
	wc->imm_data = 0;
	wc->qp_num = qpn;
	wc->wc_flags = 0;
	wc->mw_key = 0;
}

/** Publish all entries before the new head. @param notify  their kinds, CQ_ARMED_ bits */
static inline void
rc_cq_publish(struct rc_worker *w, struct rc_cq_ring *r, uint32_t head, uint8_t notify)
{
	__atomic_store_n(&r->head, head, __ATOMIC_RELEASE);
	if (unlikely(r->notify == 0)) {
		r->notify_next = w->notify;
		w->notify = r;
	}
	r->notify |= notify;
}

static inline uint8_t
rc_cq_kinds(bool solicited)
{
	return solicited ? CQ_ARMED_SOLICITED | CQ_ARMED_ANY : CQ_ARMED_ANY;
}

/** rc_cq_push() for a successful completion without immediate. */
static inline void
rc_cq_push_done(struct rc_cq *cq, struct rc_qp *qp, uint64_t wr_id, enum wc_opcode opcode,
	uint32_t byte_len, bool solicited)
{
	struct rc_worker *w = qp->worker;
	struct rc_cq_ring *r = cq->rings[w->id];
	uint32_t head = r->head;

	if (unlikely(!rc_cq_has_room(cq, r))) {
		rc_cq_push(cq, qp,
			&(struct wc){
				.wr_id = wr_id,
				.status = WC_SUCCESS,
				.opcode = opcode,
				.byte_len = byte_len,
				.qp_num = qp->qpn,
			},
			solicited);
		return;
	}
	rc_cq_write_done(cq, r, head, wr_id, opcode, byte_len, qp->qpn);
	rc_cq_publish(w, r, head + 1, rc_cq_kinds(solicited));
}

#endif
