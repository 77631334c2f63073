/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "traffic/loss.h"
#include "traffic/loss_gap.h"

#define SEED UINT64_C(0x9E3779B97F4A7C15)

/* The filter of one receive queue, used by one lcore. */
struct loss_queue {
	uint32_t one_of;
	bool on;
	uint64_t left; /* packets up to the next one that is lost, which counts */
	uint64_t state;
	uint64_t lost;
	uint16_t port, queue;
	const struct rte_eth_rxtx_callback *callback;
} __rte_cache_aligned;

struct loss {
	struct loss_queue queue[ROLES * BENCH_WORKERS_MAX];
	unsigned int queues;
};

/* Drop those packets of a burst whose turn it is. @return the number of packets that remain */
static uint16_t __rte_noinline
lose_some(struct loss_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	while (q->left <= n) {
		unsigned int at = q->left - 1;

		rte_pktmbuf_free(pkts[at]);
		memmove(&pkts[at], &pkts[at + 1], (n - at - 1) * sizeof(pkts[0]));
		n--;
		q->lost++;
		q->left = at + loss_gap(&q->state, q->one_of);
	}
	q->left -= n;
	return n;
}

static uint16_t
loss_on_receive(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max,
	void *arg)
{
	struct loss_queue *q = arg;

	RTE_SET_USED(port);
	RTE_SET_USED(queue);
	RTE_SET_USED(max);
	if (!q->on)
		return n;
	if (unlikely(q->left <= n))
		return lose_some(q, pkts, n);
	q->left -= n;
	return n;
}

static int
add_queue(struct loss *l, uint16_t port, uint16_t queue, uint32_t one_of)
{
	struct loss_queue *q = &l->queue[l->queues++];

	*q = (struct loss_queue){ .one_of = one_of, .port = port, .queue = queue };
	q->state = SEED * l->queues;
	q->left = loss_gap(&q->state, one_of);
	q->callback = rte_eth_add_rx_callback(port, queue, loss_on_receive, q);
	return q->callback != NULL ? 0 : -ENOTSUP;
}

struct loss *
loss_create(const struct endpoint end[ROLES], uint32_t one_of, struct error *err)
{
	struct loss *l = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*l));
	unsigned int i, w;
	int ret = l != NULL ? 0 : -ENOMEM;

	if (l != NULL)
		memset(l, 0, sizeof(*l));
	for (i = 0; i < ROLES && ret == 0; i++)
		for (w = 0; w < end[i].workers && ret == 0; w++)
			ret = add_queue(l, link_ethdev(engine_link(end[i].engine), end[i].port),
				(uint16_t)w, one_of);
	if (ret == 0)
		return l;
	error_set(err, -ret, "--loss: no filter before a receive queue: %s", strerror(-ret));
	loss_destroy(l);
	return NULL;
}

void
loss_destroy(struct loss *l)
{
	unsigned int i;

	if (l == NULL)
		return;
	for (i = 0; i < l->queues; i++)
		if (l->queue[i].callback != NULL)
			rte_eth_remove_rx_callback(l->queue[i].port, l->queue[i].queue,
				l->queue[i].callback);
	free(l);
}

void
loss_set(struct loss *l, bool on)
{
	unsigned int i;

	for (i = 0; i < l->queues; i++)
		l->queue[i].on = on;
}

uint64_t
loss_count(const struct loss *l)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < l->queues; i++)
		sum += l->queue[i].lost;
	return sum;
}
