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

/** A ring of receive WQEs; two with one sge fill a cache line. head and tail are free-running. */
struct rc_rq {
	uint32_t head; /**< next free WQE */
	uint32_t tail; /**< next WQE to be taken */
	uint32_t mask;
	uint32_t max_wr; /**< as requested; the ring may be larger */
	uint32_t max_sge;
	uint32_t stride;
	uint32_t pd;
	uint32_t key_hint; /**< for lkeys of WQEs (mem_access_hint()) */
	uint8_t *wqes;
	/** head at the last EVENT_RQ_EMPTY; it is not raised again while equal */
	uint32_t missed_at;
};

struct rc_srq { /* its ring follows */
	struct rc_rq rq;
	uint32_t srqn;
	uint32_t limit;
	uint32_t users;
	struct rc_worker *worker;
	uint32_t (*count_waiting)(const void *arg); /* see rc_srq_count_waiting(); or NULL */
	const void *waiting_arg;
} __attribute__((aligned(CACHE_LINE)));

/* rq.c */
/** Bytes of its ring, which the caller provides: zeroed, aligned to a cache line. */
size_t rc_rq_bytes(uint32_t max_wr, uint32_t max_sge);
void rc_rq_init(struct rc_rq *rq, uint32_t pd, uint32_t max_wr, uint32_t max_sge, uint8_t *wqes);
int rc_rq_post(struct rc_rq *rq, const struct recv_wr *wr, struct error *err);

/** Allow the next EVENT_RQ_EMPTY. */
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
