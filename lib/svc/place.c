/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Places of connections: a lock-free chain of free places, shared by all workers. The head is
 * changed by compare and swap and carries a tag against ABA.
 */

#include <errno.h>

#include "svc/private.h"

#define TAG 0x100000000u

int
svc_places_create(struct svc_places *p, const struct allocator *alloc, uint32_t n)
{
	uint32_t i;

	p->next = mem_zalloc(alloc, n * sizeof(p->next[0]), SVC_CACHE_LINE);
	if (p->next == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		p->next[i] = i + 1 < n ? i + 2 : 0;
	p->head = 1;
	return 0;
}

void
svc_places_destroy(struct svc_places *p, const struct allocator *alloc)
{
	mem_free(alloc, p->next);
	p->next = NULL;
}

bool
svc_places_left(const struct svc_places *p)
{
	return (uint32_t)__atomic_load_n(&p->head, __ATOMIC_RELAXED) != 0;
}

int64_t
svc_place_take(struct svc_places *p)
{
	uint64_t head = __atomic_load_n(&p->head, __ATOMIC_ACQUIRE), to;

	do {
		if ((uint32_t)head == 0)
			return -1;
		to = ((head & ~(uint64_t)UINT32_MAX) + TAG) |
			__atomic_load_n(&p->next[(uint32_t)head - 1], __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&p->head, &head, to, false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE));
	return (int64_t)(uint32_t)head - 1;
}

void
svc_place_give(struct svc_places *p, uint32_t place)
{
	uint64_t head = __atomic_load_n(&p->head, __ATOMIC_RELAXED), to;

	do {
		__atomic_store_n(&p->next[place], (uint32_t)head, __ATOMIC_RELAXED);
		to = ((head & ~(uint64_t)UINT32_MAX) + TAG) | (place + 1);
	} while (!__atomic_compare_exchange_n(&p->head, &head, to, false, __ATOMIC_ACQ_REL,
		__ATOMIC_RELAXED));
}
