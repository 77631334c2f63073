/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A worker's share of the ports: its queues, batches, counters and timed work.
 */

#include "link/lids.h"
#include "link/control.h"

/*
 * Worker i serves queue i of each port, and i + workers, ... where a device has more queues than we
 * have workers.
 */
static void
assign_rx(struct link_worker *w)
{
	struct link_port *p;
	unsigned int q;

	LINK_FOREACH_PORT(p, w->link)
		for (q = w->id; q < p->nrx; q += w->link->cfg.workers)
			w->rx[w->num_rx++] = (struct rx_queue){ .port = p, .queue = q };
}

static void
assign_handoff(struct link_worker *w)
{
	struct link_port *p;
	unsigned int other, owner;

	LINK_FOREACH_PORT(p, w->link) {
		for (other = 0; other < w->link->cfg.workers; other++) {
			/*
			 * the other worker has no queue, or its queue may sleep: then worker 0
			 * sends
			 */
			owner = other >= p->ntx ? other % p->ntx : 0;
			if (p->tx_ring[other] != NULL && owner == w->id)
				w->handoff[w->num_handoff++] = (struct tx_handoff){
					.ring = p->tx_ring[other],
					.ring_left = &p->tx_ring_left[other],
					.port = p->index,
				};
		}
	}
}

static unsigned int
num_queues(const struct link *l)
{
	const struct link_port *p;
	unsigned int n = 0;

	LINK_FOREACH_PORT(p, l)
		n += p->nrx;
	return n;
}

struct link_worker *
link_worker_create(struct link *l, unsigned int worker, struct error *err)
{
	unsigned int n = l->num_ports;
	struct link_worker *w;

	RTE_ASSERT(worker < l->cfg.workers);
	w = rte_zmalloc("link_worker", sizeof(*w) + n * sizeof(w->port[0]), RTE_CACHE_LINE_SIZE);
	if (w == NULL)
		goto no_memory;
	w->link = l;
	w->end = w->port + n;
	w->id = worker;
	w->rx = rte_zmalloc("link_rx", num_queues(l) * sizeof(w->rx[0]), 0);
	w->handoff = rte_zmalloc("link_handoff", n * l->cfg.workers * sizeof(w->handoff[0]), 0);
	if (w->rx == NULL || w->handoff == NULL)
		goto no_memory;
	assign_rx(w);
	assign_handoff(w);
	limits_init(w);
	tx_init(w);
	if (worker == 0) {
		tx_vl15_init(w);
		state_announce(w);
	}
	return w;

no_memory:
	error_set(err, ENOMEM, "worker %u: no memory for its ports", worker);
	link_worker_destroy(w);
	return NULL;
}

void
link_worker_tell(struct link_worker *w, link_tell_fn tell, void *arg)
{
	w->tell = tell;
	w->tell_arg = arg;
}

void
link_worker_destroy(struct link_worker *w)
{
	if (w == NULL)
		return;
	tx_fini(w);
	rte_free(w->rx);
	rte_free(w->handoff);
	rte_free(w);
}

void
link_tick(struct link_worker *w, uint64_t now)
{
	w->now = now;
	if (w->id == 0) {
		state_tick(w, now);
		neigh_tick(w, now);
		lids_tick(w, now);
	}
	icmp_tick(w, now);
	neigh_warn(w, now);
}

struct link_counters *
link_worker_counters(struct link_worker *w, unsigned int port)
{
	RTE_ASSERT(port < w->link->num_ports);
	return &w->port[port].counters;
}
