/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What an end does beside its engine's work: the requester keeps its send queues full, the
 * responder its receive queues.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "bench.h"

#define POLL_BURST 32

static const enum wr_opcode opcodes[] = {
	[BENCH_SEND] = WR_SEND,
	[BENCH_WRITE] = WR_RDMA_WRITE,
	[BENCH_READ] = WR_RDMA_READ,
	[BENCH_ATOMIC] = WR_ATOMIC_FETCH_AND_ADD,
};

static uint32_t
next_place(struct load *l)
{
	uint32_t at = l->offset;

	l->offset += RTE_ALIGN_CEIL(l->o->size, RTE_CACHE_LINE_SIZE);
	if (l->offset + l->o->size > l->o->footprint)
		l->offset = 0;
	return at;
}

static int
post_send(struct load *l, uint32_t qp, struct error *err)
{
	const struct bench_options *o = l->o;
	uint32_t at = next_place(l);
	struct sge sge = { l->end->mr.va + at, o->size, l->end->mr.key };
	struct send_wr wr = {
		.wr_id = qp,
		.opcode = opcodes[o->verb],
		.num_sge = 1,
		.sg_list = &sge,
		.remote_addr = l->peer->mr.va + at,
		.rkey = l->peer->mr.key,
		.compare_add = 1,
	};

	if (o->size <= o->inline_size) {
		wr.send_flags = SEND_INLINE;
		wr.num_sge = 0;
		wr.inline_data = l->end->mr.base + at;
		wr.inline_len = o->size;
	}
	if (++l->since_signal[qp] >= o->signal_every) {
		wr.send_flags |= SEND_SIGNALED;
		l->since_signal[qp] = 0;
	}
	return rc_post_send(l->end->rc, l->end->qpn[qp], &wr, err);
}

static int
post_recv(struct load *l, uint32_t qp, struct error *err)
{
	struct sge sge = { l->end->mr.va + next_place(l), l->o->size, l->end->mr.key };
	struct recv_wr wr = { .wr_id = qp, .num_sge = 1, .sg_list = &sge };

	return rc_post_recv(l->end->rc, l->end->qpn[qp], &wr, err);
}

int
load_create(struct load *l, const struct bench_options *o, struct end *end,
	const struct end *peer, struct error *err)
{
	*l = (struct load){ .o = o, .end = end, .peer = peer };
	l->since_signal = calloc(o->qps, sizeof(*l->since_signal));
	return l->since_signal != NULL ? 0
			: error_set(err, ENOMEM, "no memory for %u queue pairs", o->qps);
}

void
load_destroy(struct load *l)
{
	free(l->since_signal);
}

int
load_start(struct load *l, struct error *err)
{
	bool requester = l->end->role == REQUESTER;
	uint32_t i, qp, n = requester ? l->o->depth : l->o->rx_depth;
	int ret = 0;

	if (!requester && l->o->verb != BENCH_SEND)
		return 0;
	for (i = 0; i < n && ret == 0; i++)
		for (qp = 0; qp < l->o->qps && ret == 0; qp++)
			ret = requester ? post_send(l, qp, err) : post_recv(l, qp, err);
	return ret;
}

unsigned int
load_turn(struct load *l)
{
	bool requester = l->end->role == REQUESTER;
	struct wc wc[POLL_BURST];
	uint32_t k;
	int i, n;

	if (!requester && l->o->verb != BENCH_SEND)
		return 0;
	n = engine_cq_poll(l->end->engine, l->end->cq, wc, POLL_BURST, NULL);
	for (i = 0; i < n; i++) {
		uint32_t qp = (uint32_t)wc[i].wr_id;

		if (unlikely(wc[i].status != WC_SUCCESS)) {
			l->failed++;
			continue;
		}
		if (!requester) {
			l->done++;
			post_recv(l, qp, NULL);
			continue;
		}
		for (k = 0; k < l->o->signal_every; k++)
			post_send(l, qp, NULL);
		l->done += l->o->signal_every;
	}
	return n > 0 ? (unsigned int)n : 0;
}
