/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The choice of QPs that move automatically: those of which nearly all packets come by hand-off
 * from one other worker. Only packets received by hand-off are counted; the tick decides.
 *
 * Only ports with a receive queue for each worker count. With fewer queues one worker must receive
 * for the others, and hand-off is how those get their share of the work.
 */

#include "engine/worker.h"

#define ENOUGH      64 /* packets to count before a QP may move */
#define STALE_TICKS WORKER_TICK_HZ /* a count that took longer is discarded */

static uint32_t
rehome_received(const struct worker *w, uint32_t qpn)
{
	struct rc_qp_received r;

	return rc_qp_received(w->rc, qpn, &r) == 0 ? (uint32_t)r.packets : 0;
}

/*
 * Begin to count, with the current packet as the first. Several QPs may share an entry: one keeps
 * it until its count is stale.
 */
static void
rehome_count_from(struct worker *w, struct handed *h, unsigned int from, uint32_t qpn)
{
	uint32_t tick = w->rehome.tick;

	if (h->qpn != qpn && h->count != 0 && tick - h->tick < STALE_TICKS)
		return;
	*h = (struct handed){
		.qpn = qpn,
		.from = (uint16_t)from,
		.count = 1,
		.base = rehome_received(w, qpn) - 1,
		.rest = h->qpn == qpn ? h->rest : tick,
		.tick = tick,
	};
}

void
rehome_note(struct worker *w, unsigned int from, const struct packet *pkt)
{
	struct rehome *r = &w->rehome;
	struct handed *h = rehome_entry(&w->rehome, pkt->dest_qpn);

	RTE_ASSERT(from < w->workers && pkt->port < LINK_PORTS_MAX);
	if (unlikely(!r->enabled || !r->steered[pkt->port]))
		return;
	if (unlikely(h->qpn != pkt->dest_qpn || h->count == 0)) {
		rehome_count_from(w, h, from, pkt->dest_qpn);
		return;
	}
	if (h->from != from) /* not counted, so it lowers the share of h->from */
		return;
	if (++h->count == ENOUGH && r->num_due < REHOME_DUE)
		r->due[r->num_due++] = pkt->dest_qpn;
	else if (unlikely(h->count > 2 * ENOUGH)) /* due[] was full: count again */
		h->count = 0;
}

/* --- the tick --- */

/* Moving average of the share of time in which this worker was busy. */
static void
measure_load(struct worker *w, uint64_t now)
{
	struct rehome *r = &w->rehome;
	uint64_t busy = w->stats.busy_cycles - r->tick_busy, time = now - r->tick_time;
	uint64_t load =
		time == 0 ? 0 : RTE_MIN(busy * REHOME_LOAD_ONE / time, (uint64_t)REHOME_LOAD_ONE);

	r->tick_busy = w->stats.busy_cycles;
	r->tick_time = now;
	__atomic_store_n(&w->stats.load, rehome_mean_load(w->stats.load, load), __ATOMIC_RELAXED);
}

/*
 * A nearly always busy worker receives no QPs from one that is less than half as busy: there,
 * hand-off relieves the busy worker.
 */
static bool
rehome_has_time(const struct worker *w, unsigned int to)
{
	uint64_t load = relaxed(&w->engine->worker[to]->stats.load);

	return !rehome_is_busy(load) || load / 2 < w->stats.load;
}

/*
 * Move with a probability of one quarter. On a link whose queues are joined one to one, packets
 * arrive at the queue with the sender's number: if both ends always moved, they would swap workers
 * for ever.
 */
static bool
rehome_by_chance(uint64_t now)
{
	return (now >> 5 & 3) == 0;
}

static void
rehome_consider(struct worker *w, uint32_t qpn, uint64_t now)
{
	struct handed *h = rehome_entry(&w->rehome, qpn);
	uint32_t total;

	if (h->qpn != qpn || h->count < ENOUGH)
		return; /* the QP has just moved, or another QP has the entry */
	total = rehome_received(w, qpn) - h->base;
	if (w->rehome.tick - h->tick < STALE_TICKS && h->count >= REHOME_SHARE(total) &&
		(int32_t)(w->rehome.tick - h->rest) >= 0 && rehome_has_time(w, h->from) &&
		rehome_by_chance(now))
		rehome_offer(w, qpn, h->from, NULL);
	h->count = 0; /* count again if it stays */
}

void
rehome_tick(struct worker *w, uint64_t now)
{
	struct rehome *r = &w->rehome;
	unsigned int i;

	if (!r->enabled)
		return;
	r->tick++;
	measure_load(w, now);
	for (i = 0; i < r->num_due; i++)
		rehome_consider(w, r->due[i], now + i * 32);
	r->num_due = 0;
}
