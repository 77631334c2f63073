/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The pool of chunks in which requests are reassembled (request_body.c), and who has how much of
 * it.
 */

#include <errno.h>

#include <rte_common.h>

#include "mad/request_body.h"

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
	*used = RELAXED_GET(w->pool->used) * MAD_CHUNK;
	*total = w->pool->chunks * MAD_CHUNK;
}

/* --- ranks --- */

static uint32_t
body_chunks(const struct mad_body *b)
{
	return (uint32_t)(b->bytes / MAD_CHUNK);
}

void
mad_body_rank_add(struct mad_session *s)
{
	struct mad_pool *pool = s->w->pool;

	share_add(&pool->strangers, &s->peer->bodies, &s->body_item);
	share_add(&pool->prefixes, &s->peer->prefix->bodies, &s->prefix_body_item);
	pool->gives_way++;
}

void
mad_body_rank_change(struct mad_session *s, int chunks)
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
	mad_body_rank_change(s, 1 - (int)body_chunks(s->body));
	share_remove(&pool->strangers, &s->peer->bodies, &s->body_item);
	share_remove(&pool->prefixes, &s->peer->prefix->bodies, &s->prefix_body_item);
	pool->gives_way--;
}

/* --- chunks --- */

static void
chunk_give(struct mad_worker *w, uint8_t *chunk)
{
	memcpy(chunk, &w->pool->free, sizeof(w->pool->free));
	w->pool->free = chunk;
	RELAXED_SET(w->pool->used, w->pool->used - 1);
}

void
mad_chunk_put(struct mad_session *s, uint8_t *chunk)
{
	chunk_give(s->w, chunk);
	/* the entry lives on while the session does */
	mad_peer_discharge(s->w, s->peer, MAD_CHUNK);
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
