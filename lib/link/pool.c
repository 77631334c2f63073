/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Packet buffers: ports on one NUMA node with one frame size share a pool. An AF_XDP port registers
 * its pool with the kernel, so it has a pool of its own.
 */

#include <rte_eal.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>

#include "link/private.h"

#define POOL_CACHE 256
/* most buffers that a worker may hold: one and a half mempool caches, RX and TX bursts, hand-off */
#define WORKER_MBUFS 640
/* buffers in AF_XDP's fill and completion rings, each as deep as its descriptors, and a batch */
#define XDP_MBUFS 4096

void
pool_choose(struct link *l, struct link_port *p)
{
	bool own = p->driver_rule->xdp;
	uint32_t data = p->mtu + ETH_LEN + 2 * VLAN_LEN + RTE_ETHER_CRC_LEN;
	struct link_pool *pool;
	uint32_t mbufs;
	unsigned int i;

	data = RTE_MAX(RTE_ALIGN(data, RTE_CACHE_LINE_SIZE), RTE_MAX(p->frame_size, 2048u));
	if (data > UINT16_MAX - RTE_PKTMBUF_HEADROOM)
		data = UINT16_MAX - RTE_PKTMBUF_HEADROOM;
	/* buffers in queues, and buffers that workers hold */
	mbufs = p->nrx * p->rx_desc + l->cfg.workers * WORKER_MBUFS;
	if (p->peer == NULL) /* in a pair, a TX queue is the other port's RX queue */
		mbufs += p->ntx * p->tx_desc;
	if (own)
		mbufs += XDP_MBUFS;
	if (p->cfg.mbufs != 0)
		mbufs = p->cfg.mbufs;
	for (i = own ? l->num_pools : 0; i < l->num_pools; i++)
		if (!l->pool[i].own && l->pool[i].numa_node == p->numa_node &&
			l->pool[i].data_room == data)
			break;
	pool = &l->pool[i];
	if (i == l->num_pools) {
		pool->numa_node = p->numa_node;
		pool->data_room = data;
		pool->own = own;
		l->num_pools++;
	}
	pool->mbufs += mbufs;
	p->pool = pool;
}

static struct rte_mempool *
make_pool(const struct link_pool *pool)
{
	static unsigned int serial;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "polca_mbuf_%u", serial++);
	return rte_pktmbuf_pool_create(name, pool->mbufs,
		RTE_MIN(pool->mbufs / 2, (uint32_t)POOL_CACHE), MBUF_PRIV,
		pool->data_room + RTE_PKTMBUF_HEADROOM, pool->numa_node);
}

/* False if the plugin with the driver of pools is missing: nothing that is linked needs it. */
static bool
pool_driver_is_there(void)
{
	const char *name = rte_mbuf_best_mempool_ops();
	uint32_t i;

	for (i = 0; i < rte_mempool_ops_table.num_ops; i++)
		if (strcmp(rte_mempool_ops_table.ops[i].name, name) == 0)
			return true;
	return false;
}

int
pool_create_all(struct link *l, struct error *err)
{
	struct link_pool *pool;
	unsigned int i;

	for (i = 0; i < l->num_pools; i++) {
		pool = &l->pool[i];
		pool->mp = make_pool(pool);
		if (pool->mp == NULL && pool->numa_node != SOCKET_ID_ANY) {
			pool->numa_node = SOCKET_ID_ANY;
			pool->mp = make_pool(pool);
		}
		if (pool->mp == NULL && !pool_driver_is_there())
			return error_set(err, ENOENT,
				"DPDK has no mempool driver %s, which packet buffers need: install its "
				"plugin librte_mempool_ring (Debian package librte-mempool-ring)",
				rte_mbuf_best_mempool_ops());
		if (pool->mp == NULL)
			return error_set(err, rte_errno,
				"no memory for %u packet buffers of %u bytes (%s): more memory "
				"(EAL -m or hugepages), or fewer mbufs, descriptors or workers",
				pool->mbufs, pool->data_room, rte_strerror(rte_errno));
	}
	return 0;
}

int
link_memory_node(const void *mem)
{
	const struct rte_memseg *seg;

	if (!rte_eal_has_hugepages())
		return -1;
	seg = rte_mem_virt2memseg(mem, NULL);
	return seg != NULL ? seg->socket_id : -1;
}

int
pool_memory_node(const struct link_pool *pool)
{
	const struct rte_mempool_memhdr *chunk = STAILQ_FIRST(&pool->mp->mem_list);

	return chunk != NULL ? link_memory_node(chunk->addr) : -1;
}

/* Called after the ports are closed: buffers still in use then are leaks. */
void
pool_free_all(struct link *l)
{
	unsigned int i, lost;

	for (i = 0; i < l->num_pools; i++) {
		if (l->pool[i].mp == NULL)
			continue;
		/* buffers in the kernel's AF_XDP rings are not returned */
		lost = l->pool[i].own ? 0 : rte_mempool_in_use_count(l->pool[i].mp);
		if (lost > 0)
			LINK_LOG(WARNING, "%u packet buffer%s not given back", lost,
				lost == 1 ? " was" : "s were");
		rte_mempool_free(l->pool[i].mp);
	}
}

struct rte_ring *
mbuf_ring_create(const char *name, unsigned int size, int numa_node)
{
	return rte_ring_create(name, size, numa_node, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

void
mbuf_ring_free(struct rte_ring *ring)
{
	struct rte_mbuf *m;

	while (ring != NULL && rte_ring_sc_dequeue(ring, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(ring);
}
