/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completion queues. Each worker writes to its own ring of the CQ; one poller reads all rings.
 */

#include "rc/check.h"
#include "rc/failure.h"
#include "rc/qp_move.h"

/* --- control thread --- */

/*
 * A free CQ number: the highest, or the next, round robin, so that a freed one is reused late.
 * @return max_cq: none
 */
static uint32_t
cq_free_number(const struct rc_dev *dev, bool top)
{
	uint32_t i, n, max = dev->limits.max_cq;

	for (i = 0; i < max; i++) {
		n = top ? max - 1 - i : (dev->cq_next + i) % max;
		if (dev->cqs[n] == NULL)
			return n;
	}
	return max;
}

static int
cq_create_from(struct rc_dev *dev, uint32_t depth, bool top, uint32_t *cqn, struct error *err)
{
	uint32_t n = cq_free_number(dev, top);
	struct rc_cq *cq;

	if (depth == 0 || depth > dev->limits.max_cqe)
		return error_set(err, EINVAL, "cqe: got %u, allowed: 1 to %u", depth,
			dev->limits.max_cqe);
	if (n == dev->limits.max_cq)
		return error_set_limit(err, ENOSPC,
			"all %u completion queues are in use (limits.max_cq)", dev->limits.max_cq);
	cq = mem_zalloc(dev->alloc, sizeof(*cq) + dev->workers * sizeof(cq->rings[0]), CACHE_LINE);
	if (cq == NULL)
		return error_set(err, ENOMEM, "no memory for a completion queue");
	cq->cqn = n;
	cq->depth = depth;
	cq->mask = rte_align32pow2(depth) - 1;
	cq->workers = dev->workers;
	__atomic_store_n(&dev->cqs[n], cq, __ATOMIC_RELEASE);
	if (!top)
		dev->cq_next = (n + 1) % dev->limits.max_cq;
	*cqn = n;
	return 0;
}

int
rc_cq_create(struct rc_dev *dev, uint32_t depth, uint32_t *cqn, struct error *err)
{
	return cq_create_from(dev, depth, false, cqn, err);
}

int
rc_cq_create_top(struct rc_dev *dev, uint32_t depth, uint32_t *cqn, struct error *err)
{
	return cq_create_from(dev, depth, true, cqn, err);
}

int
rc_cq_destroy(struct rc_dev *dev, uint32_t cqn, struct error *err)
{
	struct rc_cq *cq = rc_cq_at(dev, cqn);
	unsigned int i;

	if (cq == NULL)
		return rc_no_cq("cq", cqn, err);
	if (__atomic_load_n(&cq->users, __ATOMIC_ACQUIRE) != 0)
		return error_set(err, EBUSY, "cq: queue pairs still use completion queue %u", cqn);
	__atomic_store_n(&dev->cqs[cqn], NULL, __ATOMIC_RELEASE);
	for (i = 0; i < cq->workers; i++)
		mem_free(dev->alloc, cq->rings[i]);
	mem_free(dev->alloc, cq);
	return 0;
}

static uint32_t
cq_pending(const struct rc_cq *cq)
{
	const struct rc_cq_ring *r;
	uint32_t pending = 0;
	unsigned int i;

	for (i = 0; i < cq->workers; i++) {
		r = rc_cq_ring(cq, i);
		if (r != NULL)
			pending += __atomic_load_n(&r->head, __ATOMIC_RELAXED) -
				__atomic_load_n(&r->tail, __ATOMIC_RELAXED);
	}
	return pending;
}

int
rc_cq_reserve(struct rc_dev *dev, uint32_t cqn, unsigned int worker, struct error *err)
{
	struct rc_cq *cq = rc_cq_at(dev, cqn);

	RTE_ASSERT(worker < dev->workers);
	if (cq == NULL)
		return rc_no_cq("cq", cqn, err);
	if (rc_cq_ring_make(dev, cq, worker) == NULL)
		return error_set(err, ENOMEM, "no memory for %u completions of worker %u",
			cq->depth, worker);
	return 0;
}

int
rc_cq_reserve_move(struct rc_dev *dev, uint32_t cqn, unsigned int from, unsigned int to,
	struct error *err)
{
	const struct rc_cq *cq = rc_cq_at(dev, cqn);
	int rc;

	RTE_ASSERT(from < dev->workers && to < dev->workers);
	if (cq != NULL && (rc_cq_ring(cq, from) == NULL || rc_cq_ring(cq, to) != NULL))
		return 0;
	rc = rc_cq_reserve(dev, cqn, to, err);
	return rc == 0 ? 1 : rc;
}

void
rc_cq_unreserve(struct rc_dev *dev, uint32_t cqn, unsigned int worker)
{
	struct rc_cq *cq = rc_cq_at(dev, cqn);
	struct rc_cq_ring *r = rc_cq_ring(cq, worker);

	RTE_ASSERT(r->head == 0 && r->fence_head == 0 && r->fences_held == 0);
	__atomic_store_n(&cq->rings[worker], NULL, __ATOMIC_RELEASE);
	mem_free(dev->alloc, r);
}

int
rc_cq_query(const struct rc_dev *dev, uint32_t cqn, struct rc_cq_info *info)
{
	const struct rc_cq *cq = rc_cq_at(dev, cqn);

	if (cq == NULL)
		return -ENOENT;
	*info = (struct rc_cq_info){
		.cqn = cqn,
		.depth = cq->depth,
		.pending = cq_pending(cq),
		.users = __atomic_load_n(&cq->users, __ATOMIC_RELAXED),
		.overrun = rc_cq_overrun(cq),
	};
	return 0;
}

bool
rc_cq_next(const struct rc_dev *dev, uint64_t *cursor, struct rc_cq_info *info)
{
	while (*cursor < dev->limits.max_cq) {
		if (rc_cq_query(dev, (*cursor)++, info) == 0)
			return true;
	}
	return false;
}

/* --- the poller --- */

/* Copy n entries from index `from` on; they may wrap around the ring's end. */
static void
copy_out(const struct rc_cq *cq, const struct rc_cq_ring *r, uint32_t from, struct wc *wc,
	uint32_t n)
{
	uint32_t first = RTE_MIN(n, cq->mask + 1 - (from & cq->mask));

	memcpy(wc, &r->wcs[from & cq->mask], first * sizeof(*wc));
	if (unlikely(n > first))
		memcpy(wc + first, r->wcs, (n - first) * sizeof(*wc));
}

static unsigned int
ring_take(struct rc_cq *cq, struct rc_cq_ring *r, struct wc *wc, unsigned int n, bool *passed)
{
	uint32_t tail = r->tail, ready = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) - tail;

	if (unlikely(__atomic_load_n(&r->fence_head, __ATOMIC_RELAXED) != r->fence_tail))
		ready = rc_cq_fence_limit(r, ready, passed);
	if (ready < n)
		n = ready;
	if (n == 0)
		return 0;
	copy_out(cq, r, tail, wc, n);
	__atomic_store_n(&r->tail, tail + n, __ATOMIC_RELEASE);
	return n;
}

/* Poll each ring once. Each call begins with the ring after that of the last call. */
static unsigned int
cq_take(struct rc_cq *cq, struct wc *wc, unsigned int n, bool *passed)
{
	unsigned int i, at = cq->turn, got = 0;
	struct rc_cq_ring *r;

	for (i = 0; i < cq->workers && got < n; i++) {
		r = rc_cq_ring(cq, at);
		if (r != NULL)
			got += ring_take(cq, r, wc + got, n - got, passed);
		at = at + 1 == cq->workers ? 0 : at + 1;
	}
	return got;
}

int
rc_cq_poll(struct rc_dev *dev, uint32_t cqn, struct wc *wc, unsigned int n)
{
	struct rc_cq *cq = rc_cq_at(dev, cqn);
	unsigned int got;
	bool passed;

	if (cq == NULL)
		return -ENOENT;
	do { /* after passing a fence, look again: 0 may be returned only if all rings are empty */
		passed = false;
		got = cq_take(cq, wc, n, &passed);
	} while (unlikely(passed) && got == 0 && n != 0);
	RTE_ASSERT(got <= n);
	cq->turn = cq->turn + 1 == cq->workers ? 0 : cq->turn + 1;
	rc_cq_check(cq);
	/* completions written before the overrun are still delivered */
	if (got == 0 && n != 0 && rc_cq_overrun(cq))
		return -EIO;
	return got;
}

int
rc_cq_arm(struct rc_dev *dev, uint32_t cqn, bool solicited_only)
{
	struct rc_cq *cq = rc_cq_at(dev, cqn);
	uint8_t arm = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY;

	if (cq == NULL)
		return -ENOENT;
	if (__atomic_load_n(&cq->armed, __ATOMIC_RELAXED) < arm)
		__atomic_store_n(&cq->armed, arm, __ATOMIC_RELAXED);
	/*
	 * Store .armed, then let the caller's next poll load the rings' .head; acquire and release
	 * cannot order a store before a later load. Pairs with rc_cq_notify(): a client that arms,
	 * then polls nothing, will get the event.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

static int
cq_set_awaited(struct rc_dev *dev, uint32_t cqn, uint8_t how)
{
	struct rc_cq *cq = rc_cq_at(dev, cqn);

	if (cq == NULL)
		return -ENOENT;
	__atomic_store_n(&cq->awaited, how, __ATOMIC_RELAXED);
	/*
	 * store .awaited, then let the caller's next poll load the rings' .head, as in rc_cq_arm();
	 * pairs with rc_cq_notify()
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

int
rc_cq_await(struct rc_dev *dev, uint32_t cqn)
{
	return cq_set_awaited(dev, cqn, CQ_AWAITED_ONCE);
}

int
rc_cq_follow(struct rc_dev *dev, uint32_t cqn)
{
	return cq_set_awaited(dev, cqn, CQ_AWAITED_ALWAYS);
}

/* --- a worker --- */

struct rc_cq_ring *
rc_cq_ring_make(struct rc_dev *dev, struct rc_cq *cq, unsigned int worker)
{
	struct rc_cq_ring *r = rc_cq_ring(cq, worker), *other = NULL;

	if (r != NULL)
		return r;
	r = mem_zalloc(dev->alloc, sizeof(*r) + ((size_t)cq->mask + 1) * sizeof(r->wcs[0]),
		CACHE_LINE);
	if (r == NULL)
		return NULL;
	r->cq = cq;
	if (__atomic_compare_exchange_n(&cq->rings[worker], &other, r, false, __ATOMIC_ACQ_REL,
		    __ATOMIC_ACQUIRE))
		return r;
	mem_free(dev->alloc, r);
	return other;
}

int
rc_cq_hold(struct rc_worker *w, uint32_t cqn, const char *what, struct rc_cq **held,
	struct error *err)
{
	struct rc_cq *cq = rc_cq_at(w->dev, cqn);

	if (cq == NULL)
		return rc_no_cq(what, cqn, err);
	if (rc_cq_overrun(cq))
		return error_set(err, EIO, "%s: completion queue %u has overrun", what, cqn);
	if (rc_cq_ring_make(w->dev, cq, w->id) == NULL)
		return error_set(err, ENOMEM, "%s: no memory for %u completions", what, cq->depth);
	__atomic_fetch_add(&cq->users, 1, __ATOMIC_RELAXED);
	*held = cq;
	return 0;
}

void
rc_cq_release(struct rc_cq *cq)
{
	__atomic_fetch_sub(&cq->users, 1, __ATOMIC_RELEASE);
}

static void
cq_overflow(struct rc_cq *cq, struct rc_worker *w)
{
	if (__atomic_exchange_n(&cq->overrun, 1, __ATOMIC_RELAXED) != 0)
		return;
	w->errors |= RC_CQ_OVERRUN;
	rc_event(w, EVENT_CQ_ERR, cq->cqn);
}

static void
count_failure(struct rc_qp *qp, const struct wc *wc)
{
	bool flushed = wc->status == WC_WR_FLUSH_ERR;

	if ((wc->opcode & WC_RECV) != 0) {
		rc_add(qp, resp_cqe_flush_error, flushed);
		rc_add(qp, resp_cqe_error, !flushed);
	} else {
		rc_add(qp, req_cqe_flush_error, flushed);
		rc_add(qp, req_cqe_error, !flushed);
	}
}

void
rc_cq_add_any(struct rc_cq_ring *r, uint32_t head, struct rc_qp *qp, struct wc wc, bool solicited)
{
	struct rc_worker *w = qp->worker;
	struct rc_cq_batch b = { r, head };
	bool failed = wc.status != WC_SUCCESS;

	if (failed)
		count_failure(qp, &wc);
	rc_cq_end(&b, w, solicited);
	r->tail_seen = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
	b = rc_cq_begin(r->cq, w);
	if (b.head != b.end) {
		rc_cq_write(r, b.head++, wc);
		rc_cq_end(&b, w, solicited || failed);
		return;
	}
	cq_overflow(r->cq, w); /* unless this worker or another has done so already */
	/* have rc_cq_overruns() move the QP to ERR, unless it is there and flushing already */
	if (qp->state != QPS_ERR)
		w->errors |= RC_CQ_OVERRUN;
}

/* Tell the poller of a CQ that waits for completions. */
static void
cq_tell_poller(struct rc_worker *w, struct rc_cq *cq, uint8_t notify)
{
	if (__atomic_load_n(&cq->awaited, __ATOMIC_RELAXED) == CQ_AWAITED_ALWAYS)
		w->config.completed(w->config.event_arg, cq->cqn,
			(notify & CQ_ARMED_SOLICITED) != 0);
	else if (__atomic_exchange_n(&cq->awaited, 0, __ATOMIC_RELAXED) != 0)
		w->config.awaited(w->config.event_arg);
}

void
rc_cq_notify(struct rc_worker *w)
{
	struct rc_cq_ring *r;

	if (w->notify == NULL)
		return;
	/*
	 * store the rings' .head (a release store cannot order it), then load .armed and .awaited:
	 * the other half of rc_cq_arm() and cq_set_awaited(), once for all completions of a run
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while ((r = w->notify) != NULL) {
		w->notify = r->notify_next;
		/* each completion is of the kind CQ_ARMED_ANY */
		if ((__atomic_load_n(&r->cq->armed, __ATOMIC_RELAXED) & r->notify) &&
			__atomic_exchange_n(&r->cq->armed, 0, __ATOMIC_RELAXED) != 0)
			rc_event(w, EVENT_CQ_COMPLETION, r->cq->cqn);
		if (__atomic_load_n(&r->cq->awaited, __ATOMIC_RELAXED) != 0)
			cq_tell_poller(w, r->cq, r->notify);
		r->notify = 0;
	}
}
