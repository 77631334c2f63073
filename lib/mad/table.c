/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The sessions of a worker: a pool sized at creation, a hash table over it, and an entry for each
 * address with sessions, which limits how many of them one stranger can have.
 *
 * A session is half-open until its peer has proven that it receives our packets. Addresses are
 * ranked by their number of half-open sessions. When the pool is empty, the oldest lingering
 * session is reclaimed first, then the oldest half-open session of an address with the highest
 * rank, so that an address that floods us displaces its own sessions first. Everything is O(1).
 */

#include <errno.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_prefetch.h>

#include "mad/core.h"

TAILQ_HEAD(rank, mad_peer_entry);

struct mad_table {
	struct mad_session *sessions;
	struct mad_session **buckets;
	uint64_t *live; /* a bit for each of .sessions, so that walks skip 64 at a time */
	struct mad_session *free; /* list linked by .chain */
	uint32_t size;
	uint32_t used;
	uint32_t mask;
	struct mad_session_list linger; /* over all addresses, oldest first */
	struct mad_peer_entry *peers;
	struct mad_peer_entry **peer_buckets;
	struct mad_peer_entry *peer_free;
	uint32_t num_peers;
	struct rank idle_peers; /* proven addresses without sessions and bytes, oldest first */
	struct rank *rank; /* index: number of half-open sessions, 0..max_sessions_per_peer */
	uint32_t top; /* no address has a higher rank */
	size_t memory;
};

/* --- set-up --- */

static void *
session_table_alloc(struct mad_worker *w, size_t n, size_t size)
{
	void *mem = mem_zalloc(w->config.alloc, n * size, 64);

	if (mem != NULL)
		w->table->memory += n * size;
	return mem;
}

/*
 * One entry per session, and one per chunk: each body (body.c) may be its address's only holding.
 */
static uint32_t
peers_needed(const struct mad_worker *w)
{
	return w->limits.max_sessions + (uint32_t)(w->limits.max_bytes / MAD_CHUNK);
}

static void
timer_expired(struct timer *timer, uint64_t now)
{
	struct mad_session *s =
		(struct mad_session *)((char *)timer - offsetof(struct mad_session, timer));

	s->w->now = now;
	mad_session_settle(s);
	if (s->state == MAD_STATE_LINGER)
		mad_session_free(s);
	else
		s->protocol->expire(s);
}

static void
fill_pools(struct mad_worker *w)
{
	struct mad_table *t = w->table;
	struct mad_session *s;
	uint32_t i;

	for (i = t->size; i-- > 0;) {
		s = &t->sessions[i];
		s->w = w;
		s->index = i;
		timer_init(&s->timer, timer_expired);
		s->chain = t->free;
		t->free = s;
	}
	for (i = t->num_peers; i-- > 0;) {
		t->peers[i].chain = t->peer_free;
		t->peer_free = &t->peers[i];
	}
	for (i = 0; i <= w->limits.max_sessions_per_peer; i++)
		TAILQ_INIT(&t->rank[i]);
	TAILQ_INIT(&t->linger);
	TAILQ_INIT(&t->idle_peers);
}

int
mad_table_create(struct mad_worker *w)
{
	struct mad_table *t = mem_zalloc(w->config.alloc, sizeof(*t), 64);

	if (t == NULL)
		return -ENOMEM;
	w->table = t;
	t->size = w->limits.max_sessions;
	t->num_peers = peers_needed(w);
	t->mask = rte_align32pow2(t->num_peers) - 1;
	t->sessions = session_table_alloc(w, t->size, sizeof(*t->sessions));
	t->buckets = session_table_alloc(w, (size_t)t->mask + 1, sizeof(*t->buckets));
	t->live = session_table_alloc(w, t->size / 64 + 1, sizeof(*t->live));
	t->peers = session_table_alloc(w, t->num_peers, sizeof(*t->peers));
	t->peer_buckets = session_table_alloc(w, (size_t)t->mask + 1, sizeof(*t->peer_buckets));
	t->rank = session_table_alloc(w, w->limits.max_sessions_per_peer + 1, sizeof(*t->rank));
	if (t->sessions == NULL || t->buckets == NULL || t->live == NULL || t->peers == NULL ||
		t->peer_buckets == NULL || t->rank == NULL)
		return -ENOMEM;
	fill_pools(w);
	return 0;
}

void
mad_table_destroy(struct mad_worker *w)
{
	const struct allocator *alloc = w->config.alloc;
	struct mad_table *t = w->table;

	if (t == NULL)
		return;
	mem_free(alloc, t->sessions);
	mem_free(alloc, t->buckets);
	mem_free(alloc, t->live);
	mem_free(alloc, t->peers);
	mem_free(alloc, t->peer_buckets);
	mem_free(alloc, t->rank);
	mem_free(alloc, t);
	w->table = NULL;
}

/* --- addresses --- */

static uint32_t
peer_bucket(const struct mad_worker *w, const union gid *addr)
{
	struct mad_key key = { .addr = *addr };

	return (uint32_t)mad_hash(w->config.hash_key, &key) & w->table->mask;
}

static struct mad_peer_entry *
peer_find(const struct mad_worker *w, const union gid *addr)
{
	struct mad_peer_entry *p = w->table->peer_buckets[peer_bucket(w, addr)];

	while (p != NULL && !gid_equal(&p->addr, addr))
		p = p->chain;
	return p;
}

static void
peer_remove(struct mad_worker *w, struct mad_peer_entry *p)
{
	struct mad_table *t = w->table;
	struct mad_peer_entry **at = &t->peer_buckets[peer_bucket(w, &p->addr)];

	while (*at != p)
		at = &(*at)->chain;
	*at = p->chain;
	TAILQ_REMOVE(&t->rank[0], p, rank_link);
	p->chain = t->peer_free;
	t->peer_free = p;
}

/* The address gets a session again, or is about to be removed. */
static void
peer_wake(struct mad_table *t, struct mad_peer_entry *p)
{
	if (p->idle)
		TAILQ_REMOVE(&t->idle_peers, p, idle_link);
	p->idle = false;
}

static struct mad_peer_entry *
peer_add(struct mad_worker *w, const union gid *addr)
{
	struct mad_table *t = w->table;
	struct mad_peer_entry *p = TAILQ_FIRST(&t->idle_peers);
	struct mad_peer_entry **head;

	if (t->peer_free == NULL && p != NULL) {
		peer_wake(t, p);
		peer_remove(w, p);
	}
	p = t->peer_free;
	if (p == NULL)
		return NULL;
	t->peer_free = p->chain;
	memset(p, 0, sizeof(*p));
	p->addr = *addr;
	TAILQ_INIT(&p->half_open_list);
	TAILQ_INIT(&p->linger_list);
	head = &t->peer_buckets[peer_bucket(w, addr)];
	p->chain = *head;
	*head = p;
	TAILQ_INSERT_TAIL(&t->rank[0], p, rank_link);
	return p;
}

static void
peer_forget(struct mad_worker *w, struct mad_peer_entry *p)
{
	if (p->sessions != 0 || p->bytes != 0 || p->idle)
		return;
	if (p->proven_until <= w->now) {
		peer_remove(w, p);
		return;
	}
	p->idle = true;
	TAILQ_INSERT_TAIL(&w->table->idle_peers, p, idle_link);
}

static void
peer_rank(struct mad_table *t, struct mad_peer_entry *p, int change)
{
	TAILQ_REMOVE(&t->rank[p->half_open], p, rank_link);
	p->half_open += change;
	TAILQ_INSERT_TAIL(&t->rank[p->half_open], p, rank_link);
	if (p->half_open > t->top)
		t->top = p->half_open;
	while (t->top > 0 && TAILQ_EMPTY(&t->rank[t->top]))
		t->top--;
}

void
mad_peer_charge(struct mad_peer_entry *p, uint64_t bytes)
{
	if (p != NULL)
		p->bytes += bytes;
}

void
mad_peer_discharge(struct mad_worker *w, struct mad_peer_entry *p, uint64_t bytes)
{
	if (p == NULL)
		return;
	p->bytes -= bytes;
	peer_forget(w, p);
}

/* --- half-open and lingering --- */

static void
set_half_open(struct mad_session *s)
{
	s->half_open = true;
	TAILQ_INSERT_TAIL(&s->peer->half_open_list, s, peer_link);
	peer_rank(s->w->table, s->peer, 1);
}

void
mad_session_proven(struct mad_session *s)
{
	if (!s->half_open)
		return;
	s->half_open = false;
	TAILQ_REMOVE(&s->peer->half_open_list, s, peer_link);
	peer_rank(s->w->table, s->peer, -1);
}

void
mad_address_proven(struct mad_session *s)
{
	if (s->peer != NULL)
		s->peer->proven_until = s->w->now + mad_ms(s->w, MAD_PROOF_MS);
}

bool
mad_address_is_proven(const struct mad_session *s)
{
	return s->peer == NULL || s->peer->proven_until > s->w->now;
}

void
mad_session_reclaimable(struct mad_session *s)
{
	mad_session_proven(s);
	s->state = MAD_STATE_LINGER;
	TAILQ_INSERT_TAIL(&s->w->table->linger, s, linger_link);
	if (s->peer != NULL)
		TAILQ_INSERT_TAIL(&s->peer->linger_list, s, peer_link);
}

static const struct mad_result reclaimed = { .end = MAD_END_REFUSED, .error = -ENOSPC };

static bool
reclaim_half_open(struct mad_worker *w, const struct mad_peer_entry *newcomer)
{
	struct mad_table *t = w->table;
	uint32_t own = newcomer != NULL ? newcomer->half_open : 0;
	struct mad_peer_entry *p;
	struct mad_session *s;

	if (t->top <= own)
		return false;
	p = TAILQ_FIRST(&t->rank[t->top]);
	TAILQ_FOREACH(s, &p->half_open_list, peer_link) {
		if (s->busy)
			continue; /* its agent is being called; true for at most two sessions */
		mad_session_end(s, &reclaimed);
		return true;
	}
	return false;
}

/* Make room for a session of this address. @param p  NULL: no entry yet, or the call is our own */
static bool
session_make_room(struct mad_worker *w, const struct mad_peer_entry *p)
{
	struct mad_table *t = w->table;

	if (p != NULL && p->sessions >= w->limits.max_sessions_per_peer) {
		if (TAILQ_EMPTY(&p->linger_list))
			return false;
		mad_session_free(TAILQ_FIRST(&p->linger_list));
		return true;
	}
	if (t->free != NULL)
		return true;
	if (!TAILQ_EMPTY(&t->linger)) {
		mad_session_free(TAILQ_FIRST(&t->linger));
		return true;
	}
	return reclaim_half_open(w, p);
}

/* --- sessions --- */

struct mad_session *
mad_session_find(struct mad_worker *w, const struct mad_key *key, uint64_t hash)
{
	struct mad_session *s = w->table->buckets[hash & w->table->mask];
	const char *line = (const char *)s;

	/* prefetch at once what the protocol will read */
	if (s != NULL)
		for (; line < (const char *)s->mad; line += 64)
			rte_prefetch0(line);
	while (s != NULL && !(s->hash == hash && mad_key_equal(&s->key, key)))
		s = s->chain;
	return s;
}

struct mad_session *
mad_session_of(const struct mad_worker *w, mad_handle h)
{
	uint32_t index = (uint32_t)h - 1;
	struct mad_session *s;

	if (index >= w->table->size)
		return NULL;
	s = &w->table->sessions[index];
	return s->state != MAD_STATE_FREE && s->generation == h >> 32 ? s : NULL;
}

/* Clear a reused session, except what fill_pools() set, the MAD and the path. */
static void
session_clear(struct mad_session *s)
{
	memset(&s->tx, 0, sizeof(s->tx));
	memset(&s->rx, 0, sizeof(s->rx));
	memset(&s->v1, 0, RTE_MAX(sizeof(s->v1), sizeof(s->rmpp)));
	memset(&s->source, 0, sizeof(s->source));
	memset(&s->taker, 0, sizeof(s->taker));
	s->srtt = 0;
	s->body = NULL;
	s->agent = NULL;
	s->peer = NULL;
	s->delivered = 0;
	s->segments = 0;
	s->resent = 0;
	s->work = 0;
	s->queued = false;
	s->busy = false;
	s->cancelled = false;
	s->no_answer = false;
	s->half_open = false;
	s->retries = s->w->limits.retries;
	s->retries_left = s->retries;
	s->opened = s->w->now;
	s->lag = 0;
	s->due = s->timer.slot_time; /* nothing to settle from the previous session */
}

struct mad_session *
mad_session_new(struct mad_worker *w, const struct mad_key *key, uint64_t hash, bool stranger)
{
	struct mad_table *t = w->table;
	struct mad_peer_entry *p = NULL;
	struct mad_session **bucket, *s;

	if (stranger)
		p = peer_find(w, &key->addr);
	if (!session_make_room(w, p))
		return NULL;
	/* session_make_room() may have reclaimed the address's last session and freed its entry */
	if (stranger) {
		p = peer_find(w, &key->addr);
		if (p == NULL)
			p = peer_add(w, &key->addr);
		if (p == NULL)
			return NULL;
	}
	s = t->free;
	t->free = s->chain;
	t->used++;
	t->live[s->index / 64] |= UINT64_C(1) << s->index % 64;
	session_clear(s);
	s->state = MAD_STATE_REQUESTED;
	s->key = *key;
	s->hash = hash;
	bucket = &t->buckets[hash & t->mask];
	s->chain = *bucket;
	*bucket = s;
	if (p != NULL) {
		peer_wake(t, p);
		s->peer = p;
		p->sessions++;
		set_half_open(s);
	}
	mad_count(w, sessions_opened, 1);
	return s;
}

static void
unchain(struct mad_table *t, struct mad_session *s)
{
	struct mad_session **at = &t->buckets[s->hash & t->mask];

	while (*at != s)
		at = &(*at)->chain;
	*at = s->chain;
}

void
mad_session_free(struct mad_session *s)
{
	struct mad_worker *w = s->w;
	struct mad_table *t = w->table;

	mad_session_proven(s);
	if (s->state == MAD_STATE_LINGER) {
		TAILQ_REMOVE(&t->linger, s, linger_link);
		if (s->peer != NULL)
			TAILQ_REMOVE(&s->peer->linger_list, s, peer_link);
	}
	if (s->queued)
		TAILQ_REMOVE(&w->run_queue, s, run_link);
	s->queued = false;
	s->work = 0;
	timer_disarm(w->config.wheel, &s->timer);
	unchain(t, s);
	s->state = MAD_STATE_FREE;
	s->generation++;
	s->chain = t->free;
	t->free = s;
	t->used--;
	t->live[s->index / 64] &= ~(UINT64_C(1) << s->index % 64);
	if (s->peer != NULL) {
		s->peer->sessions--;
		peer_forget(w, s->peer);
		s->peer = NULL;
	}
}

uint32_t
mad_table_used(const struct mad_worker *w)
{
	return w->table->used;
}

size_t
mad_table_memory(const struct mad_worker *w)
{
	return w->table->memory;
}

struct mad_session *
mad_table_next(const struct mad_worker *w, uint32_t index)
{
	const struct mad_table *t = w->table;
	uint64_t word;

	for (; index < t->size; index = (index / 64 + 1) * 64) {
		word = t->live[index / 64] >> index % 64;
		if (word != 0)
			return &t->sessions[index + (uint32_t)__builtin_ctzll(word)];
	}
	return NULL;
}
