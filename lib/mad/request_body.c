/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Bodies: requests being reassembled, in chunks of a pool allocated at creation. The first chunk is
 * like a file's inode: direct slots for the first megabyte, then slots that point to chunks of
 * slots. Memory grows with the data received, never by what a PayloadLength announces, so a peer
 * cannot reserve memory by a promise.
 *
 * Addresses are ranked by the chunks of their half-open sessions, and so are prefixes. When the
 * pool is empty, the oldest request of the address with most gives way, or of the prefix with most,
 * if that has more than half of all.
 */

#include <errno.h>

#include <rte_common.h>

#include "mad/core.h"

struct mad_pool {
	uint8_t *memory;
	uint8_t *free; /* list through the first word */
	uint64_t chunks;
	uint64_t used;
	/* by chunks of bodies that may give way: */
	struct share_rank strangers;
	struct share_rank prefixes;
	uint32_t gives_way; /* all of them */
};

struct mad_body {
	uint64_t length;
	uint64_t bytes; /* of its chunks, including this one */
	struct mad_peer_entry *peer;
	uint64_t gives_way; /* 1: counted in mad_pool.strangers */
	uint8_t *slot[];
};

#define SLOTS      ((MAD_CHUNK - sizeof(struct mad_body)) / sizeof(uint8_t *))
#define DIRECT     256
#define INDIRECT   (MAD_CHUNK / sizeof(uint8_t *)) /* chunks behind an indirect slot */
#define CHUNKS_MAX (DIRECT + (SLOTS - DIRECT) * INDIRECT)

/* --- the pool --- */

int
mad_pool_create(struct mad_worker *w)
{
	const struct allocator *alloc = w->config.alloc;
	struct mad_pool *pool = mem_zalloc(alloc, sizeof(*pool), 64);
	uint64_t i, most;

	if (pool == NULL)
		return -ENOMEM;
	w->pool = pool;
	pool->chunks = w->limits.max_bytes / MAD_CHUNK;
	if (pool->chunks == 0)
		return 0;
	pool->memory = mem_zalloc(alloc, pool->chunks * MAD_CHUNK, 64);
	most = RTE_MIN(pool->chunks, w->limits.max_bytes_per_peer / MAD_CHUNK);
	if (pool->memory == NULL ||
		share_rank_create(&pool->strangers, alloc, (uint32_t)most) != 0 ||
		share_rank_create(&pool->prefixes, alloc, (uint32_t)pool->chunks) != 0)
		return -ENOMEM;
	for (i = pool->chunks; i-- > 0;) {
		memcpy(pool->memory + i * MAD_CHUNK, &pool->free, sizeof(pool->free));
		pool->free = pool->memory + i * MAD_CHUNK;
	}
	return 0;
}

void
mad_pool_destroy(struct mad_worker *w)
{
	if (w->pool == NULL)
		return;
	share_rank_destroy(&w->pool->strangers, w->config.alloc);
	share_rank_destroy(&w->pool->prefixes, w->config.alloc);
	mem_free(w->config.alloc, w->pool->memory);
	mem_free(w->config.alloc, w->pool);
	w->pool = NULL;
}

void
mad_pool_memory(const struct mad_worker *w, uint64_t *used, uint64_t *total)
{
	*used = w->pool->used * MAD_CHUNK;
	*total = w->pool->chunks * MAD_CHUNK;
}

/* --- giving way --- */

#define BODY_OF_ITEM(item)   container_of(item, struct mad_session, body_item)
#define BODY_OF_PREFIX(item) container_of(item, struct mad_session, prefix_body_item)
#define SMALL                4 /* chunks: the longest GetMulti needs three */

static uint32_t
body_chunks(const struct mad_body *b)
{
	return (uint32_t)(b->bytes / MAD_CHUNK);
}

static void
body_rank_add(struct mad_session *s)
{
	struct mad_pool *pool = s->w->pool;

	share_add(&pool->strangers, &s->peer->bodies, &s->body_item);
	share_add(&pool->prefixes, &s->peer->prefix->bodies, &s->prefix_body_item);
	pool->gives_way++;
}

static void
body_rank_change(struct mad_session *s, int chunks)
{
	struct mad_pool *pool = s->w->pool;

	share_rank_change(&pool->strangers, &s->peer->bodies, chunks);
	share_rank_change(&pool->prefixes, &s->peer->prefix->bodies, chunks);
	pool->gives_way += (uint32_t)chunks;
}

void
mad_body_settle(struct mad_session *s)
{
	struct mad_pool *pool = s->w->pool;

	if (s->body == NULL || !s->body->gives_way)
		return;
	s->body->gives_way = false;
	body_rank_change(s, 1 - (int)body_chunks(s->body));
	share_remove(&pool->strangers, &s->peer->bodies, &s->body_item);
	share_remove(&pool->prefixes, &s->peer->prefix->bodies, &s->prefix_body_item);
	pool->gives_way--;
}

/* The oldest request of this address but @p s. */
static struct mad_session *
oldest_body(const struct share_holder *address, const struct mad_session *s)
{
	struct share_item *item;

	TAILQ_FOREACH(item, &address->items, link)
		if (BODY_OF_ITEM(item) != s)
			return BODY_OF_ITEM(item);
	return NULL;
}

static struct mad_session *
oldest_body_of_prefix(const struct share_holder *prefix, const struct mad_session *s)
{
	struct share_item *item;

	TAILQ_FOREACH(item, &prefix->items, link)
		if (BODY_OF_PREFIX(item) != s)
			return BODY_OF_PREFIX(item);
	return NULL;
}

/*
 * Anti-exhaustion: end the oldest request of the address that has most, unless this session's
 * address has as much itself. Who has little may take it from anybody: a flood of short requests
 * does not keep out another short one.
 */
static bool
make_body_room(struct mad_session *s)
{
	const struct mad_pool *pool = s->w->pool;
	const struct share_holder *most = share_most(&pool->strangers);
	const struct share_holder *prefix = share_most(&pool->prefixes);
	const struct mad_peer_entry *greediest;
	struct mad_session *victim;

	if (most == NULL ||
		(s->half_open && s->peer->bodies.count >= RTE_MAX(most->count, (uint32_t)SMALL)))
		return false;
	greediest = container_of(most, struct mad_peer_entry, bodies);
	if (share_prefix_first(prefix, &greediest->prefix->bodies, pool->gives_way))
		victim = oldest_body_of_prefix(prefix, s);
	else
		victim = oldest_body(most, s);
	if (victim == NULL)
		return false;
	mad_session_reclaim(victim);
	return true;
}

/* --- chunks --- */

static uint8_t *
chunk_take(struct mad_session *s)
{
	struct mad_worker *w = s->w;
	struct mad_pool *pool = w->pool;
	uint8_t *chunk;

	if (s->peer != NULL && s->peer->bytes + MAD_CHUNK > w->limits.max_bytes_per_peer)
		return NULL;
	if (pool->free == NULL && !make_body_room(s))
		return NULL;
	chunk = pool->free;
	memcpy(&pool->free, chunk, sizeof(pool->free));
	pool->used++;
	mad_peer_charge(s->peer, MAD_CHUNK);
	return chunk;
}

static void
chunk_give(struct mad_worker *w, uint8_t *chunk)
{
	memcpy(chunk, &w->pool->free, sizeof(w->pool->free));
	w->pool->free = chunk;
	w->pool->used--;
}

uint8_t *
mad_chunk_get(struct mad_session *s)
{
	return chunk_take(s);
}

void
mad_chunk_put(struct mad_session *s, uint8_t *chunk)
{
	chunk_give(s->w, chunk);
	/* the entry lives on while the session does */
	mad_peer_discharge(s->w, s->peer, MAD_CHUNK);
}

/* --- a body --- */

static uint8_t *
body_chunk(struct mad_session *s)
{
	uint8_t *chunk = chunk_take(s);

	if (chunk == NULL)
		return NULL;
	memset(chunk, 0, MAD_CHUNK);
	s->body->bytes += MAD_CHUNK;
	if (s->body->gives_way)
		body_rank_change(s, 1);
	return chunk;
}

static struct mad_body *
body_new(struct mad_session *s)
{
	struct mad_body *b = (struct mad_body *)chunk_take(s);

	if (b == NULL)
		return NULL;
	memset(b, 0, MAD_CHUNK);
	b->bytes = MAD_CHUNK;
	b->peer = s->peer;
	b->gives_way = s->half_open;
	if (b->gives_way)
		body_rank_add(s);
	return b;
}

/* The slot of chunk i; NULL: its chunk of slots does not exist. */
static uint8_t **
body_slot(const struct mad_body *b, uint64_t i)
{
	uint8_t **indirect;

	if (i < DIRECT)
		return (uint8_t **)(uintptr_t)&b->slot[i];
	i -= DIRECT;
	indirect = (uint8_t **)b->slot[DIRECT + i / INDIRECT];
	return indirect != NULL ? &indirect[i % INDIRECT] : NULL;
}

/* Chunk i, allocated if needed; NULL: no memory or too far. */
static uint8_t *
chunk_at(struct mad_session *s, uint64_t i)
{
	struct mad_body *b = s->body;
	uint8_t **slot;

	if (i >= CHUNKS_MAX)
		return NULL;
	slot = body_slot(b, i);
	if (slot == NULL) {
		b->slot[DIRECT + (i - DIRECT) / INDIRECT] = body_chunk(s);
		slot = body_slot(b, i);
	}
	if (slot != NULL && *slot == NULL)
		*slot = body_chunk(s);
	return slot != NULL ? *slot : NULL;
}

/* Store bytes of a request as they come, in any order; bytes between them are 0. */
int
mad_body_write(struct mad_session *s, uint64_t offset, const uint8_t *data, uint32_t len)
{
	uint32_t in, part;
	uint8_t *chunk;

	if (s->body == NULL)
		s->body = body_new(s);
	if (s->body == NULL)
		return -ENOMEM;
	for (; len > 0; offset += part, data += part, len -= part) {
		chunk = chunk_at(s, offset / MAD_CHUNK);
		if (chunk == NULL)
			return -ENOMEM;
		in = offset % MAD_CHUNK;
		part = RTE_MIN(len, MAD_CHUNK - in);
		memcpy(chunk + in, data, part);
	}
	s->body->length = RTE_MAX(s->body->length, offset); /* now the end */
	return 0;
}

void
mad_body_set_length(struct mad_session *s, uint64_t length)
{
	if (s->body != NULL)
		s->body->length = length;
}

uint64_t
mad_body_length(const struct mad_body *b)
{
	return b->length;
}

void
mad_body_read(const struct mad_body *b, uint64_t offset, void *buf, size_t len)
{
	uint8_t *out = buf, **slot;
	size_t in, part;

	for (; len > 0; offset += part, out += part, len -= part) {
		in = offset % MAD_CHUNK;
		part = RTE_MIN(len, MAD_CHUNK - in);
		slot = body_slot(b, offset / MAD_CHUNK);
		if (slot != NULL && *slot != NULL)
			memcpy(out, *slot + in, part);
		else
			memset(out, 0, part);
	}
}

static void
free_slots(struct mad_worker *w, uint8_t **slot, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (slot[i] != NULL)
			chunk_give(w, slot[i]);
}

void
mad_body_free(struct mad_worker *w, struct mad_body *b)
{
	struct mad_peer_entry *peer;
	uint64_t bytes;
	size_t i;

	if (b == NULL)
		return;
	peer = b->peer;
	bytes = b->bytes;
	for (i = DIRECT; i < SLOTS; i++)
		if (b->slot[i] != NULL)
			free_slots(w, (uint8_t **)b->slot[i], INDIRECT);
	free_slots(w, b->slot, SLOTS);
	chunk_give(w, (uint8_t *)b);
	mad_peer_discharge(w, peer, bytes);
}
