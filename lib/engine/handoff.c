/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Hand-off of packets to other workers. One SPSC ring per ordered pair of workers carries pointers
 * to parsed packets, which are in their mbufs' private areas, so nothing is parsed twice. If a ring
 * is full, the packet is dropped and counted; a worker never waits (design.md rule 1). SMPs of
 * native IB ports use separate rings to worker 0, as deep as a VL15 buffer, so that a flood of data
 * or of QP1 datagrams cannot displace them (seed 004).
 */

#include "engine/worker.h"

static bool
has_vl15(const struct engine *e)
{
	unsigned int i = 0;

	while (i < e->config.link.num_ports && !e->config.link.port[i].ib)
		i++;
	return i < e->config.link.num_ports;
}

static int
create_smp_rings(struct engine *e, struct error *err)
{
	struct worker *w = e->worker[0];
	unsigned int from;

	for (from = 1; from < e->num_workers && has_vl15(e); from++) {
		w->smps_in[from] = engine_ring("smps", sizeof(struct packet *),
			rte_align32pow2(e->config.sma.vl15_buffer + 1),
			(int)rte_lcore_to_socket_id(w->lcore), RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (w->smps_in[from] == NULL)
			return error_set(err, ENOMEM,
				"no memory for hand-off rings of SMPs: lower sma.vl15_buffer");
	}
	return 0;
}

int
handoff_create(struct engine *e, struct error *err)
{
	unsigned int from, to;

	for (to = 0; to < e->num_workers; to++) {
		struct worker *w = e->worker[to];

		for (from = 0; from < e->num_workers; from++) {
			if (from == to)
				continue;
			w->in[from] = engine_ring("handoff", sizeof(struct packet *),
				e->config.handoff_ring, (int)rte_lcore_to_socket_id(w->lcore),
				RING_F_SP_ENQ | RING_F_SC_DEQ);
			if (w->in[from] == NULL)
				return error_set(err, ENOMEM,
					"no memory for hand-off rings of %u entries between %u workers: "
					"raise eal.memory_mb or lower workers.handoff_ring",
					e->config.handoff_ring, e->num_workers);
		}
	}
	return create_smp_rings(e, err);
}

static void
destroy_smp_rings(struct worker *w)
{
	struct packet *pkts[LINK_BURST];
	unsigned int from, n;

	for (from = 1; w != NULL && from < w->workers; from++) {
		if (w->smps_in[from] == NULL)
			continue;
		while ((n = handoff_take_smps(w, from, pkts)) > 0)
			link_free(pkts, n);
		engine_ring_free(w->smps_in[from]);
		w->smps_in[from] = NULL;
	}
}

void
handoff_destroy(struct engine *e)
{
	struct packet *pkts[LINK_BURST];
	unsigned int from, to, n;

	destroy_smp_rings(e->worker[0]);
	for (to = 0; to < e->num_workers; to++) {
		struct worker *w = e->worker[to];

		for (from = 0; w != NULL && from < e->num_workers; from++) {
			if (w->in[from] == NULL)
				continue;
			while ((n = handoff_take(w, from, pkts)) > 0)
				link_free(pkts, n);
			engine_ring_free(w->in[from]);
			w->in[from] = NULL;
		}
	}
}

void
handoff_stage(struct worker *w, unsigned int to, struct packet *pkt)
{
	struct handoff_burst *o = &w->out[to];

	RTE_ASSERT(to < w->workers && to != w->id && o->n < LINK_BURST);
	if (o->n == 0)
		w->out_dirty[w->num_dirty++] = (uint16_t)to;
	o->pkt[o->n++] = pkt;
	handoff_check(w);
}

void
handoff_drop(struct worker *w, struct packet **pkts, unsigned int n)
{
	unsigned int i;

	w->stats.handoff_full += n;
	for (i = 0; i < n; i++)
		worker_count(w, pkts[i], VERDICT_HANDOFF_FULL);
	link_free(pkts, n);
}

/* @return packets sent; the others are dropped */
static unsigned int
handoff_send(struct worker *w, unsigned int to, struct packet **pkts, unsigned int n)
{
	struct worker *peer = w->engine->worker[to];
	unsigned int sent;

	sent = rte_ring_sp_enqueue_burst(peer->in[w->id], (void *const *)pkts, n, NULL);
	if (unlikely(sent < n))
		handoff_drop(w, pkts + sent, n - sent);
	/*
	 * a relaxed load is enough: a worker checks its rings before it sleeps, and sleeps are
	 * short
	 */
	if (unlikely(__atomic_load_n(&peer->asleep, __ATOMIC_RELAXED) != 0))
		idle_wake(peer);
	return sent;
}

void
handoff_flush(struct worker *w)
{
	struct handoff_burst *o;
	unsigned int i;

	for (i = 0; i < w->num_dirty; i++) {
		o = &w->out[w->out_dirty[i]];
		w->stats.handoff_out += handoff_send(w, w->out_dirty[i], o->pkt, o->n);
		o->n = 0;
	}
	w->num_dirty = 0;
	handoff_check(w);
}

void
handoff_smp(struct worker *w, struct packet *pkt)
{
	struct worker *peer = w->engine->worker[0];

	if (rte_ring_sp_enqueue(peer->smps_in[w->id], pkt) != 0) {
		worker_count(w, pkt, VERDICT_VL15_DROPPED);
		link_free(&pkt, 1);
		return;
	}
	w->stats.handoff_out++;
	if (unlikely(__atomic_load_n(&peer->asleep, __ATOMIC_RELAXED) != 0))
		idle_wake(peer);
	handoff_check(w);
}

unsigned int
handoff_take_smps(struct worker *w, unsigned int from, struct packet **pkts)
{
	unsigned int n =
		rte_ring_sc_dequeue_burst(w->smps_in[from], (void **)pkts, LINK_BURST, NULL);

	w->stats.handoff_in += n;
	handoff_check(w);
	return n;
}

void
handoff_again(struct worker *w, unsigned int to, struct packet *pkt)
{
	w->stats.handoff_again += handoff_send(w, to, &pkt, 1);
	handoff_check(w);
}

unsigned int
handoff_take(struct worker *w, unsigned int from, struct packet **pkts)
{
	unsigned int n;

	RTE_ASSERT(from < w->workers && from != w->id);
	n = rte_ring_sc_dequeue_burst(w->in[from], (void **)pkts, LINK_BURST, NULL);
	w->stats.handoff_in += n;
	w->taken[from] += n;
	handoff_check(w);
	return n;
}
