/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The sessions of a worker: a pool sized at creation, a hash table over it, and an entry for each
 * address with sessions, which limits how many of them one stranger can have. Addresses and their
 * prefixes are ranked by their sessions; session_give_way.c makes room by these ranks.
 */

#include <errno.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "mad/session_table.h"

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
 * One entry per session, and one per chunk: each body (request_body.c) may be all that its address
 * has.
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
	if (unlikely(s->trace != NULL && s->state != MAD_STATE_LINGER))
		mad_trace_event(s, MAD_STEP_TIMEOUT, 0);
	if (s->state == MAD_STATE_LINGER)
		mad_session_free(s);
	else
		s->protocol->expire(s);
	mad_session_check(s);
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
		LIST_INSERT_HEAD(&t->free, &s->link, chain);
	}
	for (i = t->num_peers; i-- > 0;)
		LIST_INSERT_HEAD(&t->peer_free, &t->peers[i].link, chain);
	for (i = 0; i <= t->by_address.mask; i++) {
		share_holder_init(&t->prefixes[i].half_open);
		share_holder_init(&t->prefixes[i].answering);
		share_holder_init(&t->prefixes[i].bodies);
	}
	TAILQ_INIT(&t->linger);
	TAILQ_INIT(&t->idle_peers);
}

static int
ranks_create(struct mad_worker *w, struct mad_ranks *r)
{
	const uint32_t of_address = w->limits.max_sessions_per_peer;
	const uint32_t of_all = w->limits.max_sessions;

	if (share_rank_create(&r->address, w->config.alloc, of_address) != 0 ||
		share_rank_create(&r->prefix, w->config.alloc, of_all) != 0)
		return -ENOMEM;
	w->table->memory += (of_address + of_all + 2) * sizeof(struct share_holders);
	return 0;
}

static void
ranks_destroy(struct mad_ranks *r, const struct allocator *alloc)
{
	share_rank_destroy(&r->address, alloc);
	share_rank_destroy(&r->prefix, alloc);
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
	t->sessions = session_table_alloc(w, t->size, sizeof(*t->sessions));
	t->live = session_table_alloc(w, t->size / 64 + 1, sizeof(*t->live));
	t->peers = session_table_alloc(w, t->num_peers, sizeof(*t->peers));
	if (t->sessions == NULL || t->live == NULL || t->peers == NULL ||
		ranks_create(w, &t->half_open) != 0 || ranks_create(w, &t->answering) != 0 ||
		hash_create(&t->by_key, w->config.alloc, t->num_peers) != 0 ||
		hash_create(&t->by_address, w->config.alloc, t->num_peers) != 0)
		return -ENOMEM;
	t->prefixes = session_table_alloc(w, t->by_address.mask + 1, sizeof(*t->prefixes));
	if (t->prefixes == NULL)
		return -ENOMEM;
	t->memory += 2 * (t->by_key.mask + 1) * sizeof(struct hash_chain);
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
	mem_free(alloc, t->by_key.buckets);
	mem_free(alloc, t->live);
	mem_free(alloc, t->peers);
	mem_free(alloc, t->by_address.buckets);
	mem_free(alloc, t->prefixes);
	ranks_destroy(&t->half_open, alloc);
	ranks_destroy(&t->answering, alloc);
	mem_free(alloc, t);
	w->table = NULL;
}

/* --- addresses --- */

static uint64_t
peer_hash(const struct mad_worker *w, const union gid *addr)
{
	struct mad_key key = { .addr = *addr };

	return mad_hash(w->config.hash_key, &key);
}

struct mad_peer_entry *
mad_peer_find(const struct mad_worker *w, const union gid *addr)
{
	struct mad_peer_entry *p;
	struct hash_link *l;
	uint64_t hash = peer_hash(w, addr);

	HASH_FOREACH(l, &w->table->by_address, hash) {
		p = container_of(l, struct mad_peer_entry, link);
		if (gid_equal(&p->addr, addr))
			return p;
	}
	return NULL;
}

struct mad_prefix *
mad_prefix_of(const struct mad_worker *w, const union gid *addr)
{
	const union gid prefix = gid_prefix(addr);

	return &w->table->prefixes[peer_hash(w, &prefix) & w->table->by_address.mask];
}

static void
peer_remove(struct mad_worker *w, struct mad_peer_entry *p)
{
	struct mad_table *t = w->table;

	hash_remove(&p->link);
	LIST_INSERT_HEAD(&t->peer_free, &p->link, chain);
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

	if (LIST_EMPTY(&t->peer_free) && p != NULL) {
		peer_wake(t, p);
		peer_remove(w, p);
	}
	if (LIST_EMPTY(&t->peer_free))
		return NULL;
	p = container_of(LIST_FIRST(&t->peer_free), struct mad_peer_entry, link);
	hash_remove(&p->link);
	memset(p, 0, sizeof(*p));
	p->addr = *addr;
	p->prefix = mad_prefix_of(w, addr);
	share_holder_init(&p->half_open);
	share_holder_init(&p->answering);
	share_holder_init(&p->bodies);
	TAILQ_INIT(&p->linger);
	hash_add(&t->by_address, &p->link, peer_hash(w, addr));
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

/* --- half-open, answering and lingering --- */

static void
ranks_add(struct mad_session *s)
{
	struct mad_table *t = s->w->table;
	struct mad_peer_entry *p = s->peer;
	struct mad_ranks *r = s->half_open ? &t->half_open : &t->answering;

	share_add(&r->address, s->half_open ? &p->half_open : &p->answering, &s->peer_item);
	share_add(&r->prefix, s->half_open ? &p->prefix->half_open : &p->prefix->answering,
		&s->prefix_item);
	r->sessions++;
}

static void
ranks_remove(struct mad_session *s)
{
	struct mad_table *t = s->w->table;
	struct mad_peer_entry *p = s->peer;
	struct mad_ranks *r = s->half_open ? &t->half_open : &t->answering;

	share_remove(&r->address, s->half_open ? &p->half_open : &p->answering, &s->peer_item);
	share_remove(&r->prefix, s->half_open ? &p->prefix->half_open : &p->prefix->answering,
		&s->prefix_item);
	r->sessions--;
}

void
mad_session_answers(struct mad_session *s)
{
	if (!s->half_open)
		return;
	ranks_remove(s);
	s->half_open = false;
	ranks_add(s);
}

/* The session ends or lingers: it is no longer among those that its address has open. */
static void
leave_open(struct mad_session *s)
{
	if (s->peer == NULL)
		return;
	ranks_remove(s);
	s->half_open = false;
}

void
mad_address_proven(struct mad_session *s)
{
	mad_session_answers(s);
	s->budget = NULL;
	if (s->peer != NULL)
		s->peer->proven_until = s->w->now + mad_ms(s->w, MAD_PROOF_MS);
}

/* The request has arrived. Until an Ack, its address gets what it has paid for. */
static void
set_budget(struct mad_session *s)
{
	if (s->peer->proven_until > s->w->now)
		return;
	s->own_budget = (struct unproven){ 0 };
	s->budget = &s->own_budget;
	mad_heard(s);
}

void
mad_session_reclaimable(struct mad_session *s)
{
	leave_open(s);
	s->state = MAD_STATE_LINGER;
	TAILQ_INSERT_TAIL(&s->w->table->linger, s, linger_link);
	if (s->peer != NULL)
		TAILQ_INSERT_TAIL(&s->peer->linger, &s->peer_item, link);
}

/* --- sessions --- */

struct mad_session *
mad_session_find(struct mad_worker *w, const struct mad_key *key, uint64_t hash)
{
	struct hash_link *l = LIST_FIRST(hash_bucket(&w->table->by_key, hash));
	struct mad_session *s = NULL;
	const char *line;

	/* prefetch at once what the protocol will read */
	if (l != NULL) {
		s = container_of(l, struct mad_session, link);
		for (line = (const char *)s; line < (const char *)s->mad; line += 64)
			rte_prefetch0(line);
	}
	for (l = hash_find(l, hash); l != NULL; l = hash_find(LIST_NEXT(l, chain), hash)) {
		s = container_of(l, struct mad_session, link);
		if (mad_key_equal(&s->key, key))
			return s;
	}
	return NULL;
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
	s->budget = NULL;
	s->retries = s->w->limits.retries;
	s->retries_left = s->retries;
	s->opened = s->w->now;
	s->lag = 0;
	s->due = s->timer.slot_time; /* nothing to settle from the previous session */
}

struct mad_session *
mad_session_take(struct mad_worker *w, const struct mad_key *key, uint64_t hash, bool stranger)
{
	struct mad_table *t = w->table;
	struct mad_peer_entry *p = NULL;
	struct mad_session *s;

	if (stranger) {
		p = mad_peer_find(w, &key->addr);
		if (p == NULL)
			p = peer_add(w, &key->addr);
		if (p == NULL)
			return NULL;
	}
	s = container_of(LIST_FIRST(&t->free), struct mad_session, link);
	hash_remove(&s->link);
	RELAXED_SET(t->used, t->used + 1);
	t->live[s->index / 64] |= UINT64_C(1) << s->index % 64;
	session_clear(s);
	s->state = MAD_STATE_REQUESTED;
	s->key = *key;
	hash_add(&t->by_key, &s->link, hash);
	if (p != NULL) {
		peer_wake(t, p);
		s->peer = p;
		p->sessions++;
		s->half_open = true;
		ranks_add(s);
		set_budget(s);
	}
	mad_count(w, sessions_opened, 1);
	mad_trace_open(s);
	return s;
}

void
mad_session_free(struct mad_session *s)
{
	struct mad_worker *w = s->w;
	struct mad_table *t = w->table;

	if (unlikely(s->trace != NULL))
		mad_trace_close(s);
	if (s->state == MAD_STATE_LINGER) {
		TAILQ_REMOVE(&t->linger, s, linger_link);
		if (s->peer != NULL)
			TAILQ_REMOVE(&s->peer->linger, &s->peer_item, link);
	} else {
		leave_open(s);
	}
	if (s->queued)
		TAILQ_REMOVE(&w->run_queue, s, run_link);
	s->queued = false;
	s->work = 0;
	timer_disarm(w->config.wheel, &s->timer);
	hash_remove(&s->link);
	s->state = MAD_STATE_FREE;
	s->generation++;
	LIST_INSERT_HEAD(&t->free, &s->link, chain);
	RELAXED_SET(t->used, t->used - 1);
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
	return RELAXED_GET(w->table->used);
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
