/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "base/plural.h"
#include "rc/check.h"
#include "rc/qp_move.h"

/*
 * A shared receive queue and its QPs are on one worker (design.md, who owns what). Its number is an
 * index of the device's table. Workers claim free entries with an atomic; only the owner touches
 * the rest.
 */

#define CLAIMED 0xFE /* in srq_owners[] while an SRQ is created or destroyed */

int
rc_srq_owner(const struct rc_dev *dev, uint32_t srqn)
{
	uint8_t owner;

	if (srqn >= dev->limits.max_srq)
		return -1;
	owner = __atomic_load_n(&dev->srq_owners[srqn], __ATOMIC_ACQUIRE);
	return owner == RC_NO_OWNER || owner == CLAIMED ? -1 : owner;
}

struct rc_srq *
rc_srq_find(const struct rc_worker *w, uint32_t srqn)
{
	return rc_srq_owner(w->dev, srqn) == (int)w->id ? w->dev->srqs[srqn] : NULL;
}

int
rc_no_srq(const struct rc_worker *w, uint32_t srqn, struct error *err)
{
	int owner = rc_srq_owner(w->dev, srqn);

	if (owner < 0)
		return error_set(err, ENOENT, "srq: there is no shared receive queue %u", srqn);
	return error_set(err, EINVAL,
		"srq: shared receive queue %u lives on worker %d, not on worker %u", srqn, owner,
		w->id);
}

/* Claim a free SRQ number. */
static bool
srq_claim(struct rc_dev *dev, uint32_t *srqn)
{
	uint8_t expected;
	uint32_t i;

	for (i = 0; i < dev->limits.max_srq; i++) {
		expected = RC_NO_OWNER;
		if (__atomic_compare_exchange_n(&dev->srq_owners[i], &expected, CLAIMED, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			*srqn = i;
			return true;
		}
	}
	return false;
}

static void
srq_set_owner(struct rc_dev *dev, uint32_t srqn, uint8_t owner)
{
	__atomic_store_n(&dev->srq_owners[srqn], owner, __ATOMIC_RELEASE);
}

int
rc_srq_create(struct rc_worker *w, uint32_t pd, uint32_t max_wr, uint32_t max_sge, uint32_t *srqn,
	struct error *err)
{
	struct rc_dev *dev = w->dev;
	struct rc_srq *srq;
	uint32_t n;

	RTE_ASSERT(srqn != NULL);
	if (max_wr == 0 || max_wr > dev->limits.max_srq_wr)
		return error_set(err, EINVAL, "max_wr: got %u, allowed 1..%u", max_wr,
			dev->limits.max_srq_wr);
	if (max_sge > dev->limits.max_sge)
		return error_set(err, EINVAL, "max_sge: got %u, allowed 0..%u", max_sge,
			dev->limits.max_sge);
	if (!srq_claim(dev, &n))
		return error_set_limit(err, ENOMEM, "srq: all %u SRQs are in use (limits.max_srq)",
			dev->limits.max_srq);
	if (mem_pd_hold(w->mem, pd) < 0) {
		srq_set_owner(dev, n, RC_NO_OWNER);
		return error_set(err, ENOENT, "pd: no protection domain %u", pd);
	}
	srq = mem_zalloc(dev->alloc, sizeof(*srq) + rc_rq_bytes(max_wr, max_sge), CACHE_LINE);
	if (srq == NULL) {
		mem_pd_release(w->mem, pd);
		srq_set_owner(dev, n, RC_NO_OWNER);
		return error_set(err, ENOMEM, "max_wr: no memory for %u work requests", max_wr);
	}
	rc_rq_init(&srq->rq, pd, max_wr, max_sge, (uint8_t *)(srq + 1));
	srq->srqn = n;
	srq->worker = w;
	dev->srqs[n] = srq;
	srq_set_owner(dev, n, w->id);
	*srqn = n;
	rc_srq_check(srq);
	return 0;
}

int
rc_srq_destroy(struct rc_worker *w, uint32_t srqn, struct error *err)
{
	struct rc_srq *srq = rc_srq_find(w, srqn);
	struct rc_dev *dev = w->dev;

	if (srq == NULL)
		return rc_no_srq(w, srqn, err);
	if (srq->users > 0)
		return error_set(err, EBUSY, "srq: SRQ %u has %u queue pair%s", srqn, srq->users,
			plural(srq->users));
	srq_set_owner(dev, srqn, CLAIMED);
	dev->srqs[srqn] = NULL;
	mem_pd_release(w->mem, srq->rq.pd);
	mem_free(dev->alloc, srq);
	srq_set_owner(dev, srqn, RC_NO_OWNER);
	return 0;
}

void
rc_srq_give(struct rc_srq *srq, unsigned int to)
{
	struct rc_dev *dev = srq->worker->dev;

	srq->worker = dev->worker[to];
	/* pairs with rc_srq_owner(): the new owner sees what the old one wrote */
	srq_set_owner(dev, srq->srqn, (uint8_t)to);
}

void
rc_srq_count_waiting(struct rc_worker *w, uint32_t srqn, uint32_t (*count)(const void *arg),
	const void *arg)
{
	struct rc_srq *srq = rc_srq_find(w, srqn);

	RTE_ASSERT(srq != NULL);
	srq->count_waiting = count;
	srq->waiting_arg = arg;
}

int
rc_srq_modify(struct rc_worker *w, uint32_t srqn, uint32_t limit, struct error *err)
{
	struct rc_srq *srq = rc_srq_find(w, srqn);

	if (srq == NULL)
		return rc_no_srq(w, srqn, err);
	if (limit > srq->rq.max_wr)
		return error_set(err, EINVAL, "limit: got %u, allowed 0..%u", limit,
			srq->rq.max_wr);
	srq->limit = limit;
	rc_srq_taken(srq);
	rc_srq_check(srq);
	return 0;
}

int
rc_srq_post(struct rc_worker *w, uint32_t srqn, const struct recv_wr *wr, struct error *err)
{
	struct rc_srq *srq = rc_srq_find(w, srqn);
	int rc;

	if (srq == NULL)
		return rc_no_srq(w, srqn, err);
	rc = rc_rq_post(&srq->rq, wr, err);
	rc_srq_check(srq);
	return rc;
}

int
rc_srq_query(const struct rc_worker *w, uint32_t srqn, struct rc_srq_info *info)
{
	const struct rc_srq *srq = rc_srq_find(w, srqn);

	if (srq == NULL)
		return -ENOENT;
	*info = (struct rc_srq_info){
		.srqn = srqn,
		.worker = w->id,
		.pd = srq->rq.pd,
		.max_wr = srq->rq.max_wr,
		.max_sge = srq->rq.max_sge,
		.posted = rc_rq_posted(&srq->rq),
		.limit = srq->limit,
		.users = srq->users,
	};
	return 0;
}

bool
rc_srq_next(const struct rc_worker *w, uint32_t *cursor, uint32_t *srqn)
{
	while (*cursor < w->dev->limits.max_srq) {
		*srqn = (*cursor)++;
		if (rc_srq_find(w, *srqn) != NULL)
			return true;
	}
	return false;
}
