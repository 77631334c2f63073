/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fences between a CQ's rings (qp_move.h). A fence waits only for completions and fences that are
 * older than itself. Fences therefore never wait in a circle, however often QPs move back and forth
 * before the poller runs.
 */

#include "rc/qp_move.h"

/* --- the workers --- */

/* One fence less is reserved or placed in a ring. */
static void
fence_release(struct rc_cq_ring *r)
{
	__atomic_fetch_sub(&r->fences_held, 1, __ATOMIC_RELEASE);
}

/* Reserve a fence in the ring of worker `to`, which exists. */
static int
cq_fence_reserve(struct rc_cq *cq, unsigned int to, struct error *err)
{
	struct rc_cq_ring *r = rc_cq_ring(cq, to);

	/* acquire: the poller has finished reading the fence whose place it freed */
	if (__atomic_fetch_add(&r->fences_held, 1, __ATOMIC_ACQUIRE) < CQ_FENCES)
		return 0;
	fence_release(r);
	return error_set(err, EAGAIN,
		"completion queue %u holds completions from before earlier moves: poll it",
		cq->cqn);
}

/* Order the next completions in ring `to` after all that are in ring `from`. */
static void
cq_fence_place(struct rc_cq *cq, unsigned int to, unsigned int from)
{
	struct rc_cq_ring *r = rc_cq_ring(cq, to), *old = rc_cq_ring(cq, from);
	uint32_t last = __atomic_load_n(&old->fence_head, __ATOMIC_ACQUIRE);
	uint32_t head = __atomic_load_n(&old->head, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&old->tail, __ATOMIC_ACQUIRE) == head &&
		__atomic_load_n(&old->fence_tail, __ATOMIC_ACQUIRE) == last) {
		fence_release(r); /* the old ring is empty: no fence needed */
		return;
	}
	r->fences[r->fence_head % CQ_FENCES] = (struct rc_cq_fence){
		.at = r->head,
		.after = old,
		.head = head,
		.fence_head = last,
	};
	__atomic_store_n(&r->fence_head, r->fence_head + 1, __ATOMIC_RELEASE);
}

/*
 * A CQ without a ring for the old worker has no queue pair there, and no completion: it needs
 * neither a ring for the new worker nor a fence.
 */

int
rc_cq_fences_reserve(const struct rc_worker *w, const uint32_t *cqns, uint32_t num, unsigned int to,
	struct error *err)
{
	struct rc_cq *cq;
	int rc = 0;
	uint32_t i;

	for (i = 0; i < num; i++) {
		cq = rc_cq_at(w->dev, cqns[i]);
		if (rc_cq_ring(cq, w->id) != NULL)
			rc = cq_fence_reserve(cq, to, err);
		if (rc != 0)
			break;
	}
	while (rc != 0 && i-- > 0) {
		cq = rc_cq_at(w->dev, cqns[i]);
		if (rc_cq_ring(cq, w->id) != NULL)
			fence_release(rc_cq_ring(cq, to));
	}
	return rc;
}

void
rc_cq_fences_place(const struct rc_worker *w, const uint32_t *cqns, uint32_t num, unsigned int from)
{
	struct rc_cq *cq;
	uint32_t i;

	for (i = 0; i < num; i++) {
		cq = rc_cq_at(w->dev, cqns[i]);
		if (rc_cq_ring(cq, from) != NULL)
			cq_fence_place(cq, w->id, from);
	}
}

/* --- the poller --- */

static bool
is_open(const struct rc_cq_fence *f)
{
	return (int32_t)(f->after->tail - f->head) >= 0 &&
		(int32_t)(f->after->fence_tail - f->fence_head) >= 0;
}

uint32_t
rc_cq_fence_limit(struct rc_cq_ring *r, uint32_t ready, bool *passed)
{
	uint32_t last = __atomic_load_n(&r->fence_head, __ATOMIC_ACQUIRE);
	const struct rc_cq_fence *f;

	while (r->fence_tail != last) {
		f = &r->fences[r->fence_tail % CQ_FENCES];
		if (f->at != r->tail || !is_open(f))
			return RTE_MIN(f->at - r->tail, ready);
		*passed = true;
		__atomic_store_n(&r->fence_tail, r->fence_tail + 1, __ATOMIC_RELEASE);
		fence_release(r);
	}
	return ready;
}
