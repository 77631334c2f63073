/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Turns of a worker's clients. A look is three loads: two of an array of all clients, and one of
 * the client's segment, whose line seldom stays in the first cache. The looks at 64 clients take
 * about 170 ns, so a turn makes an eighth of them.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clients_private.h"

#define LITTLE 2 /* most requests that are little */
/*
 * A client that comes back after more turns than these has waited for so long anyway that a long
 * turn of the others makes little difference. So one request now and then holds nobody up.
 */
#define LITTLE_TURNS 32
#define QUIET_TURNS  128 /* without work, until a client leaves the list */

static const struct client_share full_share = { .requests = 64, .send = 2, .completions = 128 };
/* one send, or receives enough for what may come meanwhile */
static const struct client_share short_share = { .requests = 8, .send = 8, .completions = 16 };

/* A doorbell that nobody rings. */
static const uint32_t no_bell;
#define NO_LOOK ((struct client_look){ &no_bell, 0, NULL })

void
client_turns_init(struct worker *w)
{
	TAILQ_INIT(&w->clients.turns);
	TAILQ_INIT(&w->clients.completing);
}

void
client_turns_free(struct worker *w)
{
	free(w->clients.looks);
	w->clients.looks = NULL;
}

int
client_turns_reserve(struct worker *w, struct client_look **looks, uint32_t *num)
{
	*num = RTE_ALIGN_CEIL(w->clients.num + 1, CLIENT_LOOKS_AT_ONCE);
	*looks = malloc(*num * sizeof(**looks));
	return *looks != NULL ? 0 : -ENOMEM;
}

static void
client_look_at(struct worker *w, struct verbs_client *c)
{
	const struct ring_doorbells *d = &c->doorbells;

	w->clients.looks[c->look] = (struct client_look){
		.bell = &d->entries[d->index & d->mask],
		.silent = ring_phase(d->index, d->mask) ^ RING_PHASE,
		.client = c,
	};
}

struct client_look *
client_turns_join(struct worker *w, struct verbs_client *c, struct client_look *looks, uint32_t num)
{
	struct worker_clients *wc = &w->clients;
	struct client_look *before = wc->looks;
	uint32_t i;

	RTE_ASSERT(wc->num < num);
	if (wc->num > 0)
		memcpy(looks, before, wc->num * sizeof(*looks));
	for (i = wc->num; i < num; i++)
		looks[i] = NO_LOOK;
	wc->looks = looks;
	wc->num_looks = num;
	c->look = wc->num++;
	client_look_at(w, c);
	return before;
}

void
client_turns_leave(struct worker *w, struct verbs_client *c)
{
	struct worker_clients *wc = &w->clients;
	struct client_look *last = &wc->looks[--wc->num];

	if (c->takes_turns)
		TAILQ_REMOVE(&wc->turns, c, turn_link);
	c->takes_turns = false;
	wc->looks[c->look] = *last;
	last->client->look = c->look;
	*last = NO_LOOK;
	if (wc->little == c)
		wc->little = NULL;
}

static inline uint32_t
client_look_rung(const struct client_look *l)
{
	return (__atomic_load_n(l->bell, __ATOMIC_RELAXED) ^ l->silent) & RING_PHASE;
}

void
client_turns_hear(struct worker *w, struct verbs_client *c)
{
	struct client_look *l = &w->clients.looks[c->look];

	c->takes_turns = true;
	TAILQ_INSERT_TAIL(&w->clients.turns, c, turn_link);
	l->bell = &no_bell;
	l->silent = 0;
}

static void __rte_noinline
client_turns_begin(struct worker *w, uint32_t at)
{
	const struct client_look *l = &w->clients.looks[at];
	uint32_t i;

	for (i = 0; i < CLIENT_LOOKS_AT_ONCE; i++, l++)
		if (client_look_rung(l) != 0)
			client_turns_hear(w, l->client);
}

void
client_turns_look(struct worker *w)
{
	struct worker_clients *wc = &w->clients;
	uint32_t n = RTE_ALIGN_CEIL(wc->num_looks / CLIENT_LOOK_TURNS, CLIENT_LOOKS_AT_ONCE);
	uint32_t at = wc->next_look, i, j, rung;
	const struct client_look *l;

	if (wc->little_turns > 0)
		wc->little_turns--;
	for (i = 0; i < n; i += CLIENT_LOOKS_AT_ONCE) {
		if (at >= wc->num_looks)
			at = 0;
		rung = 0;
		l = &wc->looks[at];
#pragma GCC unroll 8
		for (j = 0; j < CLIENT_LOOKS_AT_ONCE; j++)
			rung |= client_look_rung(&l[j]);
		if (unlikely(rung != 0))
			client_turns_begin(w, at);
		at += CLIENT_LOOKS_AT_ONCE;
	}
	wc->next_look = at;
}

void
client_turns_again(struct worker *w, struct verbs_client *c, bool worked)
{
	c->quiet = worked ? 0 : c->quiet + 1;
	c->takes_turns = c->quiet <= QUIET_TURNS;
	if (c->takes_turns)
		TAILQ_INSERT_TAIL(&w->clients.turns, c, turn_link);
	else
		client_look_at(w, c);
}

void
client_turns_had(struct worker *w, struct verbs_client *c, uint32_t requests)
{
	if (requests == 0 || requests > LITTLE)
		return;
	w->clients.little = c;
	w->clients.little_turns = LITTLE_TURNS;
}

const struct client_share *
client_share_of(const struct worker *w, const struct verbs_client *c)
{
	return w->clients.little_turns > 0 && w->clients.little != c ? &short_share : &full_share;
}
