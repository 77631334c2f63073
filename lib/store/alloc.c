/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <string.h>

#include "store/private.h"

void *
store_alloc(struct store *s, uint32_t size)
{
	void *mem = mem_zalloc(s->config.alloc, size, 8);

	if (mem != NULL)
		stat_add(s, bytes, size);
	return mem;
}

void
store_free(struct store *s, void *mem, uint32_t size)
{
	mem_free(s->config.alloc, mem);
	stat_set(s, bytes, s->stats.bytes - size);
}

int
blocks_reserve(struct store *s, struct blocks *b, size_t n)
{
	size_t room = b->room > 0 ? b->room : 64;
	struct block *at;

	if (b->n + n <= b->room)
		return 0;
	while (room < b->n + n)
		room *= 2;
	at = mem_zalloc(s->config.alloc, room * sizeof(*at), 8);
	if (at == NULL)
		return -ENOMEM;
	if (b->n > 0)
		memcpy(at, b->at, b->n * sizeof(*at));
	mem_free(s->config.alloc, b->at);
	b->at = at;
	b->room = room;
	return 0;
}

void
blocks_free(struct store *s, struct blocks *b)
{
	mem_free(s->config.alloc, b->at);
	*b = (struct blocks){ 0 };
}
