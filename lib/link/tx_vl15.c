/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * VL15's transmit buffer: SMPs of a native IB port have a batch of their own with reserved mbufs,
 * so that neither data nor QP1 datagrams delay them (seed 004).
 */

#include "link/private.h"

/* Replace the reserved mbufs that were sent, as far as the pool has any. */
static void
vl15_refill(struct tx_port *t)
{
	struct rte_mbuf *m;

	while (t->num_cached + t->num < LINK_BURST && rte_mempool_get(t->mp, (void **)&m) == 0) {
		memcpy(&m->rearm_data, &t->rearm, sizeof(t->rearm));
		m->ol_flags = 0;
		tx_cache_put(t, m);
	}
}

static uint8_t *
smp_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct link_worker *w = container_of(sink, struct link_worker, smp_sink);
	struct tx_port *t = &w->port[path->av.port].vl15;

	tx_take_back(w); /* first, because its place would be filled */
	vl15_refill(t);
	return tx_port_reserve(w, t, path, len);
}

static void
smp_commit(struct tx_sink *sink)
{
	struct link_worker *w = container_of(sink, struct link_worker, smp_sink);

	w->sink.commit(&w->sink);
}

/* Worker 0 has a TX queue of every port, so VL15 needs no ring to another worker. */
void
tx_vl15_init(struct link_worker *w)
{
	struct worker_port *o;

	WORKER_FOREACH_PORT(o, w) {
		if (!w->link->port[o->tx.port].cfg.ib)
			continue;
		tx_port_init(w, &o->vl15, o->tx.port);
		vl15_refill(&o->vl15);
		o->tx.vl15 = &o->vl15;
		w->smp_sink.reserve = smp_reserve;
		w->smp_sink.commit = smp_commit;
	}
}

struct tx_sink *
link_smp_sink(struct link_worker *w)
{
	return w->smp_sink.reserve != NULL ? &w->smp_sink : NULL;
}
