/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Just o->iterations messages, as many on each queue pair: the other end counts, and has not a
 * receive more.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "bench.h"

/* A group of requests whose last one is signaled. */
static int
post_group(struct load *l, uint32_t qp, struct error *err)
{
	uint32_t k;
	int ret = 0;

	if (l->left[qp] == 0)
		return 0;
	l->left[qp] -= l->o->signal_every;
	for (k = 0; k < l->o->signal_every && ret == 0; k++)
		ret = load_post_send(l, qp, err);
	return ret;
}

static void
sent(struct load *l, uint32_t qp)
{
	if (l->done == l->o->iterations)
		l->ended = rte_rdtsc();
	if (!l->stopping)
		post_group(l, qp, NULL);
}

int
counted_create(struct load *l, struct error *err)
{
	l->left = calloc(l->o->qps, sizeof(*l->left));
	l->sent = sent;
	return l->left != NULL ? 0 : error_set(err, ENOMEM, "no memory for %u queue pairs",
			l->o->qps);
}

void
counted_begin(struct load *l)
{
	uint32_t qp;

	l->ended = 0;
	for (qp = 0; qp < l->qps; qp++)
		l->left[qp] = l->o->iterations / l->qps;
}

int
counted_send(struct load *l, struct error *err)
{
	uint32_t i, qp;
	int ret = 0;

	for (i = 0; i < l->o->depth / l->o->signal_every && ret == 0; i++)
		for (qp = 0; qp < l->qps && ret == 0; qp++)
			ret = post_group(l, qp, err);
	return ret;
}
