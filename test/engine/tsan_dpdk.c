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

void
tsan_watch_ports(void)
{
	struct rte_eth_dev_info info;
	uint16_t port, queue;

	RTE_ETH_FOREACH_DEV(port) {
		if (rte_eth_dev_info_get(port, &info) != 0)
			continue;
		for (queue = 0; queue < info.nb_rx_queues; queue++)
			rte_eth_add_rx_callback(port, queue, tsan_received, NULL);
		for (queue = 0; queue < info.nb_tx_queues; queue++)
			rte_eth_add_tx_callback(port, queue, tsan_sending, NULL);
	}
}

#endif
