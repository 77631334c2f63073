/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A load keeps an endpoint's send and receive queues full on one worker. It posts requests in
 * groups of o->signal_every and signals only the last, whose completion completes the whole group.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "base/plural.h"
#include "traffic/bench.h"

#define POLL_BURST 32

/* wr_id: receive flag, offset of the message, index of the queue pair */
#define ID_RECV    (UINT64_C(1) << 63)
#define ID_QP_BITS 20
/* clang-format off */
#define ID_QP(id)  ((uint32_t)(id) & ((1u << ID_QP_BITS) - 1))
#define ID_AT(id)  (((id) & ~ID_RECV) >> ID_QP_BITS)
/* clang-format on */

static const enum wr_opcode opcodes[] = {
	[BENCH_SEND] = WR_SEND,
	[BENCH_WRITE] = WR_RDMA_WRITE,
	[BENCH_READ] = WR_RDMA_READ,
	[BENCH_ATOMIC] = WR_ATOMIC_FETCH_AND_ADD,
};

static inline void
load_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* With --check, messages are sent from the beginning of the region and arrive in slots. */
static bool
from_beginning(const struct load *l)
{
	return l->slot != NULL && (l->o->verb == BENCH_SEND || l->o->verb == BENCH_WRITE);
}

/* Set all fields of a request except addresses, ID and flags. */
static void
prepare_request(struct load *l)
{
	const struct bench_options *o = l->o;

	l->sge = (struct sge){ .length = l->size, .lkey = l->end->mr.key };
	l->wr = (struct send_wr){
		.opcode = o->atomic != 0 ? WR_ATOMIC_CMP_AND_SWP : opcodes[o->verb],
		.num_sge = 1,
		.sg_list = &l->sge,
		.rkey = l->peer->key,
		.compare_add = 1,
		.swap = 1,
	};
	l->recv_sge = (struct sge){ .length = l->stride, .lkey = l->end->mr.key };
	l->recv_wr = (struct recv_wr){ .num_sge = 1, .sg_list = &l->recv_sge };
	l->va = l->end->mr.va;
	l->remote_va = l->peer->va;
	l->signal_every = o->signal_every;
	if (l->size > o->inline_size)
		return;
	l->wr.num_sge = 0;
	l->wr.inline_len = l->size;
}

/* Signal the last request of each group. */
static inline uint32_t
signal_flag(struct load *l, uint32_t qp)
{
	if (l->signal_every == 1)
		return SEND_SIGNALED;
	if (++l->since_signal[qp] < l->signal_every)
		return 0;
	l->since_signal[qp] = 0;
	return SEND_SIGNALED;
}

/* With --check: the source is the beginning of the region, or the target is a slot. */
static uint64_t __rte_noinline
place_checked(struct load *l, uint32_t qp)
{
	bool beginning = from_beginning(l);
	/* the receive decides where a Send arrives */
	uint64_t at = beginning && l->o->verb == BENCH_SEND ? 0 : memory_next(l, qp);

	l->sge.addr = l->va + (beginning ? 0 : at);
	l->wr.remote_addr = l->remote_va + (l->o->verb == BENCH_READ ? 0 : at);
	return at;
}

static inline uint64_t
load_place(struct load *l, uint32_t qp)
{
	uint64_t at;

	if (unlikely(l->slot != NULL))
		return place_checked(l, qp);
	at = memory_next(l, qp);
	l->sge.addr = l->va + at;
	l->wr.remote_addr = l->remote_va + at;
	return at;
}

static inline int
load_post_one(struct load *l, uint32_t qp, struct error *err)
{
	struct send_wr *wr = &l->wr;
	int ret;

	wr->wr_id = load_place(l, qp) << ID_QP_BITS | qp;
	wr->send_flags = signal_flag(l, qp);
	if (wr->num_sge == 0) {
		wr->send_flags |= SEND_INLINE;
		wr->inline_data = l->end->mr.base + (l->sge.addr - l->va);
	}
	ret = rc_post_send(l->rc, l->qpn[qp], wr, err);
	if (unlikely(ret != 0))
		load_count(&l->failed, 1);
	else
		l->posted++;
	return ret;
}

int
load_post_send(struct load *l, uint32_t qp, struct error *err)
{
	return load_post_one(l, qp, err);
}

/* Post a group whose last request is signaled. With --iterations, the last group may be smaller. */
static inline int
load_post_group(struct load *l, uint32_t qp, struct error *err)
{
	uint32_t k, n = l->signal_every;
	int ret = 0;

	if (unlikely(l->left[qp] < n)) {
		if (l->left[qp] == 0)
			return 0;
		n = (uint32_t)l->left[qp];
		l->since_signal[qp] = l->signal_every - n;
	}
	l->left[qp] -= n;
	for (k = 0; k < n && ret == 0; k++)
		ret = load_post_one(l, qp, err);
	return ret;
}

/* Receives are as long as the run's longest message, so they are posted once for all sizes. */
static inline int
load_post_recv(struct load *l, uint32_t qp, struct error *err)
{
	uint64_t at = memory_next(l, qp);
	int ret;

	l->recv_sge.addr = l->va + at;
	l->recv_wr.wr_id = ID_RECV | at << ID_QP_BITS | qp;
	ret = rc_post_recv(l->rc, l->qpn[qp], &l->recv_wr, err);
	if (unlikely(ret != 0))
		load_count(&l->failed, 1);
	return ret;
}

static void
load_fail(struct load *l, const struct wc *wc)
{
	if (l->failed == 0)
		l->first_failure = *wc;
	load_count(&l->failed, 1);
}

static void
load_received(struct load *l, const struct wc *wc)
{
	load_count(&l->received, 1);
	if (unlikely(l->slot != NULL))
		memory_check(l, ID_AT(wc->wr_id));
	load_post_recv(l, ID_QP(wc->wr_id), NULL);
}

static void
load_sent(struct load *l, const struct wc *wc)
{
	uint32_t qp = ID_QP(wc->wr_id), n = l->signal_every;

	if (unlikely(l->slot != NULL && l->o->verb == BENCH_READ))
		memory_check(l, ID_AT(wc->wr_id));
	if (unlikely(l->sent != NULL)) {
		l->sent(l, qp);
		return;
	}
	if (unlikely(l->undone != NULL))
		n = iterations_group(l, qp);
	if (unlikely(l->done + n == l->goal))
		l->ended = rte_rdtsc();
	__atomic_store_n(&l->done, l->done + n, __ATOMIC_RELEASE);
	if (likely(!l->stopping))
		load_post_group(l, qp, NULL);
}

unsigned int
load_turn(struct load *l)
{
	struct wc wc[POLL_BURST];
	int i, n;

	n = engine_cq_poll(l->end->engine, l->end->cq[l->worker], wc, POLL_BURST, NULL);
	for (i = 0; i < n; i++) {
		if (unlikely(wc[i].status != WC_SUCCESS))
			load_fail(l, &wc[i]);
		else if ((wc[i].wr_id & ID_RECV) != 0)
			load_received(l, &wc[i]);
		else
			load_sent(l, &wc[i]);
	}
	return n > 0 ? (unsigned int)n : 0;
}

static unsigned int
load_no_turn(struct load *l)
{
	RTE_SET_USED(l);
	return 0;
}

/* Collect the queue pairs that were created on this worker. */
static void
load_collect_qps(struct load *l)
{
	struct rc_qp_info info;
	uint32_t i;

	for (i = 0; i < l->end->qps; i++)
		if (l->end->workers == 1 || rc_qp_query(l->rc, l->end->qpn[i], &info) == 0) {
			l->qpn[l->qps] = l->end->qpn[i];
			l->qp[l->qps++] = i;
		}
}

int
load_create(struct load *l, const struct bench_options *o, struct endpoint *end,
	const struct peer *peer, unsigned int worker, struct error *err)
{
	*l = (struct load){
		.o = o,
		.end = end,
		.peer = peer,
		.worker = worker,
		.rc = end->rc[worker],
		.size = o->size,
	};
	l->sends = endpoint_sends(o, end->role);
	l->receives = endpoint_receives(o, end->role);
	l->since_signal = calloc(o->qps, sizeof(*l->since_signal));
	l->qp = calloc(o->qps, sizeof(*l->qp));
	l->qpn = calloc(o->qps, sizeof(*l->qpn));
	l->left = calloc(o->qps, sizeof(*l->left));
	if (o->iterations > 0 && o->signal_every > 1)
		l->undone = calloc(o->qps, sizeof(*l->undone));
	if (o->check)
		l->slot = calloc(o->qps, sizeof(*l->slot));
	if (l->since_signal == NULL || l->qp == NULL || l->qpn == NULL || l->left == NULL ||
		(o->iterations > 0 && o->signal_every > 1 && l->undone == NULL) ||
		(o->check && l->slot == NULL))
		return error_set(err, ENOMEM, "no memory for %u queue pairs", o->qps);
	load_collect_qps(l);
	memory_share(l);
	l->turn = l->sends || l->receives ? load_turn : load_no_turn;
	return o->mode == BENCH_LAT ? lat_create(l, err) : 0;
}

void
load_destroy(struct load *l)
{
	free(l->since_signal);
	free(l->qp);
	free(l->qpn);
	free(l->slot);
	free(l->left);
	free(l->undone);
	histogram_destroy(l->histogram);
}

int
load_receive(struct load *l, uint32_t size, struct error *err)
{
	bool first = !l->ready;
	uint32_t i, qp;
	int ret = 0;

	l->ready = true;
	l->stopping = false;
	l->size = size;
	l->step = RTE_ALIGN_CEIL(size, RTE_CACHE_LINE_SIZE);
	prepare_request(l);
	l->posted = l->done = l->received = 0;
	if (l->histogram != NULL)
		lat_begin(l);
	iterations_begin(l, l->o->iterations > 0 ? l->count : UINT64_MAX);
	if (!l->receives || !first)
		return 0;
	for (i = 0; i < l->o->rx_depth && ret == 0; i++)
		for (qp = 0; qp < l->qps && ret == 0; qp++)
			ret = load_post_recv(l, qp, err);
	return ret;
}

int
load_send(struct load *l, struct error *err)
{
	uint32_t i, qp, n = l->o->depth / l->o->signal_every;
	int ret = 0;

	if (l->histogram != NULL)
		return lat_send(l, err);
	for (i = 0; l->sends && i < n && ret == 0; i++)
		for (qp = 0; qp < l->qps && ret == 0; qp++)
			ret = load_post_group(l, qp, err);
	return ret;
}

bool
load_idle(const struct load *l)
{
	return l->posted == l->done && !l->waiting;
}

int
load_failure(const struct load *l, struct error *err)
{
	const struct wc *wc = &l->first_failure;

	if (l->wrong > 0)
		return error_set(err, EBADMSG, "%lu messages did not arrive as they were sent",
			l->wrong);
	if (l->failed == 0)
		return 0;
	if (wc->status == WC_SUCCESS)
		return error_set(err, EIO, "%lu work request%s could not be posted", l->failed,
			plural(l->failed));
	return error_set(err, EIO,
		"%lu work request%s failed, the first with %s, on queue pair 0x%06x", l->failed,
		plural(l->failed), wc_status_name(wc->status), wc->qp_num);
}
