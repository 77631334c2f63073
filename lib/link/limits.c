/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Limits on what any stranger can make a worker send. */

#include <rte_random.h>

#include "base/siphash.h"
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

void
limits_init(struct link_worker *w)
{
	uint64_t answer = w->link->cfg.hz / ANSWERS_PER_S;
	unsigned int kind, source;
	struct worker_port *o;

	w->answer_key = rte_rand();
	token_bucket_init(&w->requests, w->link->cfg.hz / REQUESTS_PER_S, REQUESTS_BURST);
	token_bucket_init(&w->moves, w->link->cfg.hz / MOVES_PER_S, MOVES_BURST);
	WORKER_FOREACH_PORT(o, w)
		for (kind = 0; kind < ANSWERS; kind++)
			for (source = 0; source < ANSWER_SOURCES; source++)
				token_bucket_init(&o->limits.answers[kind][source], answer,
					ANSWERS_BURST);
}

bool
link_may_answer(struct link_worker *w, const struct link_port *p, enum answer kind,
	const union gid *source)
{
	uint64_t hash = siphash_words(w->answer_key, source->word, 2);

	return token_bucket_take(&w->port[p->index].limits.answers[kind][hash % ANSWER_SOURCES],
		w->now);
}
