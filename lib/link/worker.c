/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A worker's share of the ports: its queues, batches, counters and timed work.
 */

#include <rte_debug.h>
#include <rte_malloc.h>
#include <rte_random.h>

#include "base/siphash.h"
#include "link/lids.h"
#include "link/private.h"

/* Limit of ARP, ND or ICMP answers to one source, from one port by one worker: anybody may ask */
#define ANSWERS_PER_S 1000
#define ANSWERS_BURST 128
/* Limit of ARP and ND requests that we send */
#define REQUESTS_PER_S 500
#define REQUESTS_BURST 64
/* Limit of those to the old MAC of a neighbour that another MAC claims to be */
#define MOVES_PER_S 100
#define MOVES_BURST 32

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

static void
init_limits(struct link_worker *w)
{
	uint64_t answer = w->link->cfg.hz / ANSWERS_PER_S;
	unsigned int i, kind, source;

	w->answer_key = rte_rand();
	token_bucket_init(&w->requests, w->link->cfg.hz / REQUESTS_PER_S, REQUESTS_BURST);
	token_bucket_init(&w->moves, w->link->cfg.hz / MOVES_PER_S, MOVES_BURST);
	for (i = 0; i < w->link->num_ports; i++)
		for (kind = 0; kind < ANSWERS; kind++)
			for (source = 0; source < ANSWER_SOURCES; source++)
				token_bucket_init(&w->limits[i].answers[kind][source], answer,
					ANSWERS_BURST);
}

bool
link_may_answer(struct link_worker *w, const struct link_port *p, enum answer kind,
	const union gid *source)
{
	uint64_t hash = siphash_words(w->answer_key, source->word, 2);

	return token_bucket_take(&w->limits[p->index].answers[kind][hash % ANSWER_SOURCES], w->now);
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

static bool
has_ib(const struct link *l)
{
	const struct link_port *p;

	LINK_FOREACH_PORT(p, l)
		if (p->cfg.ib)
			return true;
	return false;
}

struct link_worker *
link_worker_create(struct link *l, unsigned int worker, struct error *err)
{
	unsigned int i, n = l->num_ports;
	bool smps = worker == 0 && has_ib(l);
	struct link_worker *w;

	RTE_ASSERT(worker < l->cfg.workers);
	w = rte_zmalloc("link_worker", sizeof(*w) + n * sizeof(w->tx_ports[0]),
		RTE_CACHE_LINE_SIZE);
	if (w == NULL)
		goto no_memory;
	w->link = l;
	w->id = worker;
	for (i = 0; i < n; i++)
		w->tx[i] = &w->tx_ports[i];
	w->rx = rte_zmalloc("link_rx", num_queues(l) * sizeof(w->rx[0]), 0);
	w->handoff = rte_zmalloc("link_handoff", n * l->cfg.workers * sizeof(w->handoff[0]), 0);
	w->limits = rte_zmalloc("link_limits", n * sizeof(w->limits[0]), 0);
	w->counters = rte_zmalloc("link_counters", n * sizeof(w->counters[0]), RTE_CACHE_LINE_SIZE);
	w->self = rte_zmalloc("link_self", SELF_QUEUE * sizeof(w->self[0]), 0);
	if (smps)
		w->vl15 = rte_zmalloc("link_vl15", n * sizeof(w->vl15[0]), RTE_CACHE_LINE_SIZE);
	if ((smps && w->vl15 == NULL) || w->self == NULL || w->rx == NULL || w->handoff == NULL ||
		w->limits == NULL || w->counters == NULL)
		goto no_memory;
	assign_rx(w);
	assign_handoff(w);
	init_limits(w);
	tx_init(w);
	if (w->id == 0)
		state_announce(w);
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
	rte_free(w->limits);
	rte_free(w->counters);
	rte_free(w->self);
	rte_free(w->vl15);
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
	return &w->counters[port];
}
