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

#include "mad/request_body.h"

/* --- giving way --- */

#define BODY_OF_ITEM(item)   container_of(item, struct mad_session, body_item)
#define BODY_OF_PREFIX(item) container_of(item, struct mad_session, prefix_body_item)
#define SMALL                4 /* chunks: the longest GetMulti needs three */

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
	RELAXED_SET(pool->used, pool->used + 1);
	mad_peer_charge(s->peer, MAD_CHUNK);
	return chunk;
}

uint8_t *
mad_chunk_get(struct mad_session *s)
{
	return chunk_take(s);
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
		mad_body_rank_change(s, 1);
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
		mad_body_rank_add(s);
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

	RTE_ASSERT(offset <= b->length && len <= b->length - offset);
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
