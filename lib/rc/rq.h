/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_RQ_H
#define RC_RQ_H

/**
 * @file
 * Private to lib/rc: receive queues, of a QP or shared.
 */

#include "rc/rc.h"

#define CACHE_LINE 64

struct rc_rq_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t length; /**< sum of the scatter list */
	struct sge sge[];
};

/** A ring of receive WQEs, two of one piece in a cache line; head and tail count for ever, masked on use. */
struct rc_rq {
	uint32_t head; /**< next free */
	uint32_t tail; /**< next to be taken */
	uint32_t mask;
	uint32_t max_wr; /**< what was asked for; the ring may be larger */
	uint32_t max_sge;
	uint32_t stride;
	uint32_t pd;
	uint32_t key_hint; /**< of its WQEs' lkeys (mem_access_hint()) */
	uint8_t *wqes;
	uint32_t missed_at; /**< head when EVENT_RQ_EMPTY was told last; another: it was not told since */
};

struct rc_srq { /* its ring follows */
	struct rc_rq rq;
	uint32_t srqn;
	uint32_t limit;
	uint32_t users;
	struct rc_worker *worker;
} __attribute__((aligned(CACHE_LINE)));

/* rq.c */
/** Bytes of its ring, which the caller provides: zeroed, aligned to a cache line. */
size_t rc_rq_bytes(uint32_t max_wr, uint32_t max_sge);
void rc_rq_init(struct rc_rq *rq, uint32_t pd, uint32_t max_wr, uint32_t max_sge, uint8_t *wqes);
int rc_rq_post(struct rc_rq *rq, const struct recv_wr *wr, struct error *err);

/* srq.c */
/** A WQE has left the SRQ: raise the limit event when armed and due. */
void rc_srq_taken(struct rc_srq *srq);

/** EVENT_RQ_EMPTY may be told again. */
static inline void
rc_rq_not_missed(struct rc_rq *rq)
{
	rq->missed_at = rq->head - 1;
}

static inline uint32_t
rc_rq_posted(const struct rc_rq *rq)
{
	return rq->head - rq->tail;
}

static inline struct rc_rq_wqe *
rc_rq_at(const struct rc_rq *rq, uint32_t index)
{
	return (struct rc_rq_wqe *)(rq->wqes + (size_t)(index & rq->mask) * rq->stride);
}

#endif
