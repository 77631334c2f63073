/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Which session gives way when a new one needs a place or memory.
 *
 * A session is half-open until its peer has answered packets of ours. Addresses and their prefixes
 * are ranked by their number of half-open sessions. When the pool is empty, the oldest lingering
 * session is reclaimed first, then the oldest half-open session of the address with the highest
 * rank, or of the prefix if no address has two, so that who floods us displaces its own sessions
 * first. The last resort, when none is half-open, is the oldest session of the address, then of the
 * prefix, with most, if that has more than its fair share and the newcomer's has less. A prefix
 * with more than half of all comes before addresses of others. Everything is O(1).
 */

#include <errno.h>

#include <rte_common.h>

#include "mad/session_table.h"

#define SESSION_OF_ITEM(item)   container_of(item, struct mad_session, peer_item)
#define SESSION_OF_PREFIX(item) container_of(item, struct mad_session, prefix_item)

void
mad_session_reclaim(struct mad_session *s)
{
	static const struct mad_result reclaimed = { .end = MAD_END_REFUSED, .error = -ENOSPC };

	mad_count(s->w, sessions_reclaimed, 1);
	limit_peer_note(&s->w->limited.reclaimed, s->key.addr.raw);
	mad_session_end(s, &reclaimed);
}

/* The oldest session of an address whose agent or taker is not being called (at most two are). */
static struct mad_session *
oldest_of_address(const struct share_holder *address)
{
	struct share_item *item;

	TAILQ_FOREACH(item, &address->items, link)
		if (!SESSION_OF_ITEM(item)->busy)
			return SESSION_OF_ITEM(item);
	return NULL;
}

static struct mad_session *
oldest_of_prefix(const struct share_holder *prefix)
{
	struct share_item *item;

	TAILQ_FOREACH(item, &prefix->items, link)
		if (!SESSION_OF_PREFIX(item)->busy)
			return SESSION_OF_PREFIX(item);
	return NULL;
}

static const struct share_holder *
prefix_holder(const struct mad_session *s)
{
	return s->half_open ? &s->peer->prefix->half_open : &s->peer->prefix->answering;
}

/*
 * End the oldest session of the address with most of a kind, or of the prefix with most.
 *
 * @param address_may  most sessions that an address may have without being the one that gives way
 * @param prefix_may   the same of a prefix
 */
static bool
reclaim_of_most(const struct mad_ranks *r, uint32_t address_may, uint32_t prefix_may)
{
	const struct share_holder *address = share_most(&r->address);
	const struct share_holder *prefix = share_most(&r->prefix);
	struct mad_session *s = NULL, *of_prefix = NULL;

	if (address == NULL)
		return false;
	if (address->count > address_may)
		s = oldest_of_address(address);
	if (prefix->count > prefix_may)
		of_prefix = oldest_of_prefix(prefix);
	if (s == NULL ||
		(of_prefix != NULL && share_prefix_first(prefix, prefix_holder(s), r->sessions)))
		s = of_prefix;
	if (s == NULL)
		return false;
	mad_session_reclaim(s);
	return true;
}

/*
 * Reclaim a half-open session. If each address has one at most, the prefix with most gives way, or
 * the oldest of all if no prefix has two.
 *
 * @param p     the newcomer's address; NULL: no entry yet
 * @param held  half-open sessions that it has besides the newcomer
 */
static bool
reclaim_half_open(struct mad_worker *w, const struct mad_peer_entry *p, uint32_t held)
{
	const struct mad_ranks *r = &w->table->half_open;
	const uint32_t of_prefix = p != NULL ? p->prefix->half_open.count : 0;

	return reclaim_of_most(r, RTE_MAX(held, 1u), held == 0 ? 1 : RTE_MAX(of_prefix, 1u)) ||
		reclaim_of_most(r, held, UINT32_MAX);
}

/*
 * Last resort, when the pool is full of sessions whose peers answer: who guesses Acks gets them,
 * too. An address, or a prefix, that has more than its fair share loses its oldest one.
 */
static bool
reclaim_unfair(struct mad_worker *w, const union gid *addr, const struct mad_peer_entry *p)
{
	const struct mad_table *t = w->table;
	const struct mad_ranks *r = &t->answering;
	const struct mad_prefix *prefix = addr != NULL ? mad_prefix_of(w, addr) : NULL;
	uint32_t fair = share_fair(&r->address, t->size, p != NULL ? &p->answering : NULL);
	uint32_t fair_prefix =
		share_fair(&r->prefix, t->size, prefix != NULL ? &prefix->answering : NULL);
	uint32_t address_may = UINT32_MAX, prefix_may = UINT32_MAX;

	if (p == NULL || p->sessions < fair)
		address_may = RTE_MAX(fair, 1u);
	if (prefix == NULL || prefix->half_open.count + prefix->answering.count < fair_prefix)
		prefix_may = RTE_MAX(fair_prefix, 1u);
	return reclaim_of_most(r, address_may, prefix_may);
}

/*
 * Make room for a session.
 *
 * @param addr  of the peer; NULL: the call is our own
 * @param p     its entry; NULL: none yet
 */
static bool
session_make_room(struct mad_worker *w, const union gid *addr, const struct mad_peer_entry *p)
{
	struct mad_table *t = w->table;

	if (p != NULL && p->sessions >= w->limits.max_sessions_per_peer) {
		if (TAILQ_EMPTY(&p->linger))
			return false;
		mad_session_free(SESSION_OF_ITEM(TAILQ_FIRST(&p->linger)));
		return true;
	}
	if (!LIST_EMPTY(&t->free))
		return true;
	if (!TAILQ_EMPTY(&t->linger)) {
		mad_session_free(TAILQ_FIRST(&t->linger));
		return true;
	}
	return reclaim_half_open(w, p, p != NULL ? p->half_open.count : 0) ||
		reclaim_unfair(w, addr, p);
}

int
mad_give_way(struct mad_worker *w, mad_handle h, bool proven)
{
	struct mad_session *s = mad_session_of(w, h);

	if (s == NULL || s->state == MAD_STATE_LINGER)
		return -ENOENT;
	if (s->busy || (!s->half_open && !proven))
		return -EBUSY;
	mad_session_reclaim(s);
	return 0;
}

bool
mad_make_room(struct mad_worker *w, mad_handle h)
{
	const struct mad_session *s = mad_session_of(w, h);

	if (s == NULL || s->peer == NULL)
		return false;
	return reclaim_half_open(w, s->peer, s->peer->half_open.count - s->half_open);
}

struct mad_session *
mad_session_new(struct mad_worker *w, const struct mad_key *key, uint64_t hash, bool stranger)
{
	const struct mad_peer_entry *p = stranger ? mad_peer_find(w, &key->addr) : NULL;

	if (!session_make_room(w, stranger ? &key->addr : NULL, p))
		return NULL;
	/* p is no longer valid: its last session may have given way */
	return mad_session_take(w, key, hash, stranger);
}
