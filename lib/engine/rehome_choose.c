/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Which queue pairs move by themselves: those of which nearly all packets come by way of one other
 * worker. Counted only where packets are taken over, looked at in the tick.
 *
 * Only of ports with a receive queue for each worker: where there are fewer, one worker receives
 * for others, and that is how these have a share of the work.
 */

#include "engine/worker.h"

#define ENOUGH       64 /* packets before anything is said of them */
#define SHARE(n)     ((n) - (n) / 8) /* of n so many are nearly all */
#define REST_TICKS   WORKER_TICK_HZ /* a QP that has come stays at least so long */
#define STALE_TICKS  WORKER_TICK_HZ /* what was counted in longer than this says nothing */
#define LOAD_ONE     256 /* a worker that is always busy */

static struct handed *
rehome_entry(const struct worker *w, uint32_t qpn)
{
	return &w->rehome.handed[qpn & w->rehome.handed_mask];
}

static uint32_t
rehome_received(const struct worker *w, uint32_t qpn)
{
	struct rc_qp_received r;

	return rc_qp_received(w->rc, qpn, &r) == 0 ? (uint32_t)r.packets : 0;
}

/* Counting begins, with the packet at hand. One QP at a time has the entry, until it is stale. */
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
	struct handed *h = rehome_entry(w, pkt->dest_qpn);

	if (unlikely(!r->enabled || !r->steered[pkt->port]))
		return;
	if (unlikely(h->qpn != pkt->dest_qpn || h->count == 0)) {
		rehome_count_from(w, h, from, pkt->dest_qpn);
		return;
	}
	if (h->from != from) /* lowers the other's share */
		return;
	if (++h->count == ENOUGH && r->num_due < REHOME_DUE)
		r->due[r->num_due++] = pkt->dest_qpn;
	else if (unlikely(h->count > 2 * ENOUGH)) /* the tick had no time for it */
		h->count = 0;
}

void
rehome_settle(struct worker *w, uint32_t qpn)
{
	*rehome_entry(w, qpn) = (struct handed){ .qpn = qpn, .rest = w->rehome.tick + REST_TICKS };
}

/* --- the tick --- */

/* The share of time this worker had work, over the last ticks. */
static void
measure_load(struct worker *w, uint64_t now)
{
	struct rehome *r = &w->rehome;
	uint64_t busy = w->stats.busy_cycles - r->tick_busy, time = now - r->tick_time;
	uint64_t load = time == 0 ? 0 : RTE_MIN(busy * LOAD_ONE / time, (uint64_t)LOAD_ONE);

	r->tick_busy = w->stats.busy_cycles;
	r->tick_time = now;
	__atomic_store_n(&w->stats.load, (w->stats.load * 7 + load + 4) / 8, __ATOMIC_RELAXED);
}

/* A worker that is always busy gets nothing from one that is not: handing over is then the help. */
static bool
rehome_has_time(const struct worker *w, unsigned int to)
{
	uint64_t load = relaxed(&w->engine->worker[to]->stats.load);

	return load < SHARE(LOAD_ONE) || load / 2 < w->stats.load;
}

/*
 * By chance, so that the two ends of a link whose queues are joined one to one, and where packets
 * arrive at the queue they were sent from, do not change places for ever.
 */
static bool
rehome_by_chance(uint64_t now)
{
	return (now >> 5 & 3) == 0;
}

static void
rehome_consider(struct worker *w, uint32_t qpn, uint64_t now)
{
	struct handed *h = rehome_entry(w, qpn);
	uint32_t total;

	if (h->qpn != qpn || h->count < ENOUGH)
		return; /* it has come, or another QP has the entry */
	total = rehome_received(w, qpn) - h->base;
	if (w->rehome.tick - h->tick < STALE_TICKS && h->count >= SHARE(total) &&
			(int32_t)(w->rehome.tick - h->rest) >= 0 && rehome_has_time(w, h->from) &&
			rehome_by_chance(now))
		rehome_offer(w, qpn, h->from, NULL);
	h->count = 0; /* counted anew, if it stays */
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
