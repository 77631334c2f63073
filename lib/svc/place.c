/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Places of connections: a lock-free chain of free places, shared by all workers. The head is
 * changed by compare and swap and carries a tag against ABA.
 *
 * Anti-exhaustion: an established connection does not give way, so an address takes a place only
 * while it leaves places for others. Its number is raised before it is compared, so that workers
 * that take places at the same time do not exceed it together.
 */

#include <errno.h>

#include <rte_debug.h>

#include "base/share.h"
#include "base/siphash.h"
#include "svc/private.h"

#define TAG 0x100000000u

#define HELD_MIN 4096 /* so that two addresses of a small service rarely have the same number */

int
svc_places_create(struct svc_places *p, const struct svc_env *env, uint32_t n, uint32_t most)
{
	uint32_t i, held = HELD_MIN;

	while (held < n)
		held *= 2;
	p->next = mem_zalloc(env->alloc, n * sizeof(p->next[0]), SVC_CACHE_LINE);
	p->held = mem_zalloc(env->alloc, held * sizeof(p->held[0]), SVC_CACHE_LINE);
	if (p->next == NULL || p->held == NULL)
		return -ENOMEM;
	p->left = n;
	p->most = most;
	p->held_mask = held - 1;
	p->hash_key = (uint64_t)rng_u32(env->rng) << 32 | rng_u32(env->rng);
	for (i = 0; i < n; i++)
		p->next[i] = i + 1 < n ? i + 2 : 0;
	p->head = 1;
	return 0;
}

void
svc_places_destroy(struct svc_places *p, const struct allocator *alloc)
{
	mem_free(alloc, p->held);
	mem_free(alloc, p->next);
	p->held = p->next = NULL;
}

bool
svc_places_left(const struct svc_places *p)
{
	return (uint32_t)__atomic_load_n(&p->head, __ATOMIC_RELAXED) != 0;
}

uint32_t *
svc_places_of(const struct svc_places *p, const union gid *addr)
{
	return &p->held[siphash_words(p->hash_key, addr->word, 2) & p->held_mask];
}

bool
svc_places_admit(const struct svc_places *p, uint32_t held)
{
	if (p->most != 0)
		return held < p->most;
	return share_leaves_room(held, __atomic_load_n(&p->left, __ATOMIC_RELAXED));
}

static int64_t
chain_take(struct svc_places *p)
{
	uint64_t head = __atomic_load_n(&p->head, __ATOMIC_ACQUIRE), to;

	do {
		if ((uint32_t)head == 0)
			return -ENOSPC;
		to = ((head & ~(uint64_t)UINT32_MAX) + TAG) |
			__atomic_load_n(&p->next[(uint32_t)head - 1], __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&p->head, &head, to, false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE));
	return (int64_t)(uint32_t)head - 1;
}

static void
chain_give(struct svc_places *p, uint32_t place)
{
	uint64_t head = __atomic_load_n(&p->head, __ATOMIC_RELAXED), to;

	do {
		__atomic_store_n(&p->next[place], (uint32_t)head, __ATOMIC_RELAXED);
		to = ((head & ~(uint64_t)UINT32_MAX) + TAG) | (place + 1);
	} while (!__atomic_compare_exchange_n(&p->head, &head, to, false, __ATOMIC_ACQ_REL,
		__ATOMIC_RELAXED));
}

static void
held_less(uint32_t *held)
{
	if (held != NULL)
		__atomic_fetch_sub(held, 1, __ATOMIC_RELAXED);
}

int64_t
svc_place_take(struct svc_places *p, uint32_t *held)
{
	int64_t place = -ENOSPC;

	if (!svc_places_left(p))
		return place;
	if (held != NULL && !svc_places_admit(p, __atomic_fetch_add(held, 1, __ATOMIC_RELAXED)))
		place = -EDQUOT;
	else
		place = chain_take(p);
	if (place < 0)
		held_less(held);
	else
		__atomic_fetch_sub(&p->left, 1, __ATOMIC_RELAXED);
	return place;
}

void
svc_place_give(struct svc_places *p, uint32_t place, uint32_t *held)
{
	RTE_ASSERT(held == NULL || __atomic_load_n(held, __ATOMIC_RELAXED) > 0);
	held_less(held);
	__atomic_fetch_add(&p->left, 1, __ATOMIC_RELAXED);
	chain_give(p, place);
}
