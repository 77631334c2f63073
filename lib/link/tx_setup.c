/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Set up and release the transmit side of a worker.
 */

#include "link/private.h"

/* The rearm_data that rte_pktmbuf_reset() would write. */
static uint64_t
rearm_word(void)
{
	struct rte_mbuf m = {
		.data_off = RTE_PKTMBUF_HEADROOM,
		.nb_segs = 1,
		.port = RTE_MBUF_PORT_INVALID,
	};
	uint64_t word;

	rte_mbuf_refcnt_set(&m, 1);
	memcpy(&word, &m.rearm_data, sizeof(word));
	return word;
}

void
tx_port_init(const struct link_worker *w, struct tx_port *t, uint16_t port)
{
	const struct link_port *p = &w->link->port[port];

	t->port = port;
	t->ethdev = p->ethdev;
	t->queue = w->id;
	t->way = w->id < p->ntx ? TX_QUEUE : TX_RING;
	t->ring = p->tx_ring[w->id];
	t->mp = p->pool->mp;
	t->rearm = rearm_word();
	t->room = rte_pktmbuf_data_room_size(t->mp) - RTE_PKTMBUF_HEADROOM;
}

void
tx_stop(struct tx_port *t, bool stopped)
{
	if (t->way != TX_RING)
		t->way = stopped ? TX_STOPPED : TX_QUEUE;
	if (t->vl15 != NULL)
		tx_stop(t->vl15, stopped);
}

static void
fini_port(struct tx_port *t)
{
	rte_pktmbuf_free_bulk(t->mbuf, t->num);
	rte_pktmbuf_free_bulk(t->cache, t->num_cached);
}

void
tx_fini(struct link_worker *w)
{
	struct worker_port *o;

	rte_pktmbuf_free(w->mbuf);
	while (w->self_tail != w->self_head)
		rte_pktmbuf_free(w->self[w->self_tail++ % SELF_QUEUE]);
	WORKER_FOREACH_PORT(o, w) {
		fini_port(&o->tx);
		fini_port(&o->vl15);
	}
}
