/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * --iterations: share o->iterations messages evenly among the loads that send, and among their
 * queue pairs.
 */

#include <rte_common.h>

#include "traffic/bench.h"

/* True if the load's messages count: of a ping-pong, only the requester's. */
static bool
load_counts(const struct load *l)
{
	return l->sends && l->qps > 0 && !(l->histogram != NULL && l->end->role == RESPONDER);
}

void
iterations_share(struct load *const load[], unsigned int n, const struct bench_options *o)
{
	unsigned int i, place = 0, all = 0;

	for (i = 0; i < n; i++)
		all += load_counts(load[i]);
	for (i = 0; i < n; i++) {
		if (!load_counts(load[i]))
			continue;
		load[i]->count = o->iterations / all + (place < o->iterations % all);
		place++;
	}
}

void
iterations_begin(struct load *l, uint64_t messages)
{
	bool endless = messages == UINT64_MAX;
	uint32_t qp;

	l->ended = 0;
	l->goal = endless ? UINT64_MAX : l->done + messages;
	for (qp = 0; qp < l->qps; qp++) {
		l->left[qp] = endless ? UINT64_MAX : messages / l->qps + (qp < messages % l->qps);
		if (l->undone != NULL)
			l->undone[qp] = l->left[qp];
	}
}

uint32_t
iterations_group(struct load *l, uint32_t qp)
{
	uint32_t n = (uint32_t)RTE_MIN(l->undone[qp], (uint64_t)l->o->signal_every);

	l->undone[qp] -= n;
	return n;
}

bool
iterations_done(const struct load *l)
{
	if (l->count == 0)
		return true;
	if (l->histogram != NULL)
		return __atomic_load_n(&l->turns, __ATOMIC_RELAXED) >= l->count;
	return __atomic_load_n(&l->done, __ATOMIC_ACQUIRE) == l->goal;
}
