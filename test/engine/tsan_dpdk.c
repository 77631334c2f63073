/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "base/tsan.h"
#include "tsan_dpdk.h"

#ifndef POLCA_TSAN

void
tsan_use_mbuf_pools(void)
{
}

void
tsan_watch_ports(void)
{
}

#else

#include <errno.h>
#include <stdio.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_ring.h>

/* --- a mempool like DPDK's "ring_mp_mc" --- */

static int
tsan_pool_alloc(struct rte_mempool *mp)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "T_%s", mp->name);
	mp->pool_data = rte_ring_create(name, rte_align32pow2(mp->size + 1), mp->socket_id, 0);
	return mp->pool_data != NULL ? 0 : -rte_errno;
}

static void
tsan_pool_free(struct rte_mempool *mp)
{
	rte_ring_free(mp->pool_data);
}

static int
tsan_pool_put(struct rte_mempool *mp, void *const *objs, unsigned int n)
{
	return rte_ring_mp_enqueue_bulk(mp->pool_data, objs, n, NULL) == n ? 0 : -ENOBUFS;
}

static int
tsan_pool_get(struct rte_mempool *mp, void **objs, unsigned int n)
{
	return rte_ring_mc_dequeue_bulk(mp->pool_data, objs, n, NULL) == n ? 0 : -ENOBUFS;
}

static unsigned int
tsan_pool_count(const struct rte_mempool *mp)
{
	return rte_ring_count(mp->pool_data);
}

static const struct rte_mempool_ops tsan_pool_ops = {
	.name = "tsan",
	.alloc = tsan_pool_alloc,
	.free = tsan_pool_free,
	.enqueue = tsan_pool_put,
	.dequeue = tsan_pool_get,
	.get_count = tsan_pool_count,
};

void
tsan_use_mbuf_pools(void)
{
	static bool registered;

	if (!registered)
		rte_mempool_register_ops(&tsan_pool_ops);
	registered = true;
	rte_mbuf_set_user_mempool_ops(tsan_pool_ops.name);
}

/* --- the ring driver --- */

static uint16_t
tsan_received(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max,
	void *arg)
{
	struct rte_mbuf *m;
	uint16_t i;

	RTE_SET_USED(port);
	RTE_SET_USED(queue);
	RTE_SET_USED(max);
	RTE_SET_USED(arg);
	for (i = 0; i < n; i++)
		for (m = pkts[i]; m != NULL; m = m->next)
			tsan_acquire(m);
	return n;
}

static uint16_t
tsan_sending(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	struct rte_mbuf *m;
	uint16_t i;

	RTE_SET_USED(port);
	RTE_SET_USED(queue);
	RTE_SET_USED(arg);
	for (i = 0; i < n; i++)
		for (m = pkts[i]; m != NULL; m = m->next)
			tsan_release(m);
	return n;
}

/* A queue with a callback of ours. */
struct watched_queue {
	uint16_t port, queue;
	const struct rte_eth_rxtx_callback *rx, *tx; /* one of them */
};
static struct watched_queue watched[256];
static unsigned int num_watched;

/*
 * A port that is closed and made again still has its callbacks. DPDK never frees one: a worker
 * might be in it, but none runs here.
 */
static void
forget_ports(void)
{
	const struct watched_queue *w;

	while (num_watched > 0) {
		w = &watched[--num_watched];
		if (w->rx != NULL && rte_eth_remove_rx_callback(w->port, w->queue, w->rx) == 0)
			rte_free((void *)(uintptr_t)w->rx);
		if (w->tx != NULL && rte_eth_remove_tx_callback(w->port, w->queue, w->tx) == 0)
			rte_free((void *)(uintptr_t)w->tx);
	}
}

static void
watch_queue(struct watched_queue w)
{
	RTE_VERIFY(num_watched < RTE_DIM(watched));
	watched[num_watched++] = w;
}

void
tsan_watch_ports(void)
{
	struct rte_eth_dev_info info;
	uint16_t p, q;

	forget_ports();
	RTE_ETH_FOREACH_DEV(p) {
		if (rte_eth_dev_info_get(p, &info) != 0)
			continue;
		for (q = 0; q < info.nb_rx_queues; q++)
			watch_queue((struct watched_queue){ p, q,
				rte_eth_add_rx_callback(p, q, tsan_received, NULL), NULL });
		for (q = 0; q < info.nb_tx_queues; q++)
			watch_queue((struct watched_queue){ p, q, NULL,
				rte_eth_add_tx_callback(p, q, tsan_sending, NULL) });
	}
}

#endif
