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

#define CQ_AWAITED_ONCE   1 /* the poller waits for a completion: rc_cq_await() */
#define CQ_AWAITED_ALWAYS 2 /* rc_cq_follow() */

struct rc_cq {
	uint32_t cqn;
	uint32_t depth;
	uint32_t mask;
	/** SQs and RQs that complete here; atomic, changed at QP create and destroy */
	uint32_t users;
	uint32_t turn; /**< ring the next poll begins with */
	uint8_t armed; /**< CQ_ARMED_, 0: not armed */
	uint8_t awaited; /**< CQ_AWAITED_, 0: nobody waits */
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

/**
 * Write a completion at ring index @p at, from .head on. The poller sees it when published. Field
 * by field: the compiler then keeps @p wc in registers, and its zeros are constants.
 */
static __rte_always_inline void
rc_cq_write(struct rc_cq_ring *r, uint32_t at, struct wc wc)
{
	struct wc *to = &r->wcs[at & r->cq->mask];

	to->wr_id = wc.wr_id;
	to->status = wc.status;
	to->opcode = wc.opcode;
	to->byte_len = wc.byte_len;
	to->imm_data = wc.imm_data;
	to->qp_num = wc.qp_num;
	to->wc_flags = wc.wc_flags;
	to->mw_key = wc.mw_key;
}

/** Completions of one work queue that are written, and published together. */
struct rc_cq_batch {
	struct rc_cq_ring *ring;
	uint32_t head; /**< ring index of the next one */
	uint32_t end; /**< the CQ looks full there, by .tail_seen; .head once it has overrun */
};

static __rte_always_inline struct rc_cq_batch
rc_cq_begin(const struct rc_cq *cq, const struct rc_worker *w)
{
	struct rc_cq_ring *r = cq->rings[w->id];

	return (struct rc_cq_batch){ r, r->head,
		likely(!rc_cq_overrun(cq)) ? r->tail_seen + cq->depth : r->head };
}

/**
 * Publish a batch.
 *
 * @param solicited  true for a receive whose packet had BTH SE; errors always count as solicited
 */
static __rte_always_inline void
rc_cq_end(const struct rc_cq_batch *b, struct rc_worker *w, bool solicited)
{
	struct rc_cq_ring *r = b->ring;

	if (unlikely(b->head == r->head))
		return;
	__atomic_store_n(&r->head, b->head, __ATOMIC_RELEASE);
	if (unlikely(r->notify == 0)) {
		r->notify_next = w->notify;
		w->notify = r;
	}
	r->notify |= CQ_ARMED_ANY | (solicited ? CQ_ARMED_SOLICITED : 0);
}

/**
 * rc_cq_add() for an error, or if the ring looks full: count, and look at the poller's tail. All
 * is published, what the batch has written before `head` as well.
 */
void rc_cq_add_any(struct rc_cq_ring *r, uint32_t head, struct rc_qp *qp, struct wc wc,
	bool solicited);

/**
 * Append a completion, and count it if it is an error. If the CQ is full it overruns: the
 * completion is lost, EVENT_CQ_ERR is raised once, and the CQ's QPs go to ERR after the current
 * packet or run. This call itself never changes a QP's state.
 */
static __rte_always_inline void
rc_cq_add(struct rc_cq_batch *b, struct rc_qp *qp, struct wc wc, bool solicited)
{
	struct wc any;

	if (likely(COMMON_CASE(wc.status == WC_SUCCESS)) && likely(b->head != b->end)) {
		rc_cq_write(b->ring, b->head++, wc);
	} else {
		any = wc; /* a copy, so that the compiler may keep wc in registers */
		rc_cq_add_any(b->ring, b->head, qp, any, solicited);
		*b = rc_cq_begin(b->ring->cq, qp->worker);
	}
}

#endif
