/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Neighbours: resolution, confirmation and moves to another MAC, by worker 0. neigh.h says which
 * thread may write which field.
 */

#include "link/neigh.h"
#include "link/control.h"

#define RETRY_MIN_MS    100 /* first retry; doubles up to */
#define RETRY_MAX_SHIFT 5 /* 3.2 s */
#define REACHABLE_MS    30000 /* RFC 4861 REACHABLE_TIME */
#define PROBE_MS        1000 /* RFC 4861 RETRANS_TIMER */
#define UNICAST_PROBES  3 /* RFC 4861 MAX_UNICAST_SOLICIT, then as many by broadcast or multicast */
#define PROBES          6
#define MOVE_PROBES     3 /* questions to the old MAC before an entry moves (a choice) */
#define MOVE_MS         100 /* between them */
#define KEPT_MS         1000 /* after an entry was kept, until another claim is looked at */
#define TICK_ENTRIES    2048 /* a tick must be short: further entries wait for the next one */

static void
neigh_ask(struct link_worker *w, const struct neigh *n, uint64_t mac)
{
	struct link_port *p = &w->link->port[n->port];

	if (gid_is_ipv4(&n->gid))
		arp_send(w, p, &n->source, &n->gid, mac);
	else
		nd_solicit(w, p, &n->source, &n->gid, mac);
}

static void
neigh_move_end(struct neigh *n)
{
	n->move_probes = 0;
	RELAXED_SET(n->moving, 0);
}

/*
 * A resolved entry is confirmed from time to time, by unicast first; it is cleared if nobody
 * answers.
 */
static void
neigh_confirm(struct link_worker *w, struct neigh *n, uint64_t *mac, uint64_t now)
{
	uint64_t fresh_until = RELAXED_GET(n->confirmed) + link_ms(w->link, REACHABLE_MS);
	uint64_t word = RELAXED_GET(*mac);

	if (now < fresh_until) {
		n->probes = 0;
		n->next = fresh_until;
	} else if (n->probes == PROBES) {
		RELAXED_SET(*mac, 0);
		neigh_move_end(n);
		n->probes = 0;
		n->next = now + link_ms(w->link, RETRY_MIN_MS);
		neigh_tell(w, LINK_NEIGHBOUR_LOST, n->port, &n->gid, 0);
	} else if (token_bucket_take(&w->requests, now)) {
		neigh_ask(w, n, n->probes < UNICAST_PROBES ? word : 0);
		n->probes++;
		n->next = now + link_ms(w->link, PROBE_MS);
	}
}

static void
neigh_resolve(struct link_worker *w, struct neigh *n, uint64_t now)
{
	if (!token_bucket_take(&w->requests, now))
		return;
	neigh_ask(w, n, 0);
	n->next = now + link_ms(w->link, RETRY_MIN_MS << n->probes);
	if (n->probes < RETRY_MAX_SHIFT)
		n->probes++;
}

/*
 * Another MAC claims the address: ask the old one. If it answers, it keeps the address; otherwise
 * the entry moves.
 */
static void
neigh_move(struct link_worker *w, struct neigh *n, uint64_t *mac, uint64_t now)
{
	uint64_t word = RELAXED_GET(*mac), to;

	if (n->move_probes > 0 && RELAXED_GET(n->confirmed) >= n->move_began) {
		link_count(w, n->port, neighbour_kept, 1);
		neigh_move_end(n);
		n->move_next = now + link_ms(w->link, KEPT_MS);
	} else if (now < n->move_next) {
		return;
	} else if (n->move_probes < MOVE_PROBES) {
		/* claims are not trusted: they must not use up the requests that resolve others */
		if (!token_bucket_take(&w->moves, now))
			return;
		if (n->move_probes++ == 0)
			n->move_began = now;
		neigh_ask(w, n, word);
		n->move_next = now + link_ms(w->link, MOVE_MS);
	} else {
		to = RELAXED_GET(n->moving);
		RELAXED_SET(*mac, to);
		RELAXED_SET(n->confirmed, now);
		link_count(w, n->port, neighbour_moved, 1);
		neigh_tell(w, LINK_NEIGHBOUR_MOVED, n->port, &n->gid, to);
		neigh_move_end(n);
	}
}

static void
neigh_entry_tick(struct link_worker *w, uint32_t i, uint64_t now)
{
	struct neigh_table *t = w->link->neigh;
	struct neigh *n = &t->entry[i];

	if (!neigh_is_present(n) || n->permanent || !w->link->port[n->port].attr->up)
		return;
	if (RELAXED_GET(n->moving) != 0)
		neigh_move(w, n, &t->mac[i], now);
	if (now >= n->next) {
		if (neigh_is_resolved(t, i))
			neigh_confirm(w, n, &t->mac[i], now);
		else
			neigh_resolve(w, n, now);
	}
	neigh_entry_check(t, i);
	RTE_ASSERT(n->probes <= PROBES && n->move_probes <= MOVE_PROBES);
	/* only questions about a claim count as move_probes */
	RTE_ASSERT(n->move_probes == 0 || RELAXED_GET(n->moving) != 0);
}

void
neigh_new(struct link_worker *w, uint64_t now)
{
	struct neigh_table *t = w->link->neigh;
	uint32_t made = ACQUIRE_GET(t->made);

	while (w->neigh_seen != made)
		neigh_entry_tick(w, t->order[w->neigh_seen++ % NEIGH_MAX], now);
	link_tx_flush(w, now);
}

void
neigh_tick(struct link_worker *w, uint64_t now)
{
	struct neigh_table *t = w->link->neigh;
	uint32_t count = ACQUIRE_GET(t->count);
	uint32_t n = RTE_MIN(count, (uint32_t)TICK_ENTRIES);

	RELAXED_SET(t->now, now);
	while (n-- > 0) {
		if (w->neigh_cursor >= count)
			w->neigh_cursor = 0;
		neigh_entry_tick(w, w->neigh_cursor++, now);
	}
}
