/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <signal.h>

#include <rte_common.h>

#include "base/atomic.h"
#include "base/fault.h"
#include "mem/backing.h"

#define BLOCK_PLACES 4096
#define BLOCKS       1024 /* together as many places as limits.max_mr can allow regions */

/* to is 0 while the place is free, and is written last. */
struct place {
	uintptr_t from, to; /* [from, to) */
	size_t page;
	bool lost;
};

/*
 * The signal handler reads them on any thread; the control thread writes them. A block is made when
 * all places before it are in use, and stays.
 */
static struct place *blocks[BLOCKS];
static uint32_t lowest_free; /* no place before it is free */
static uint32_t count;

static struct place *
place_at(uint32_t i)
{
	return &ACQUIRE_GET(blocks[i / BLOCK_PLACES])[i % BLOCK_PLACES];
}

/* async-signal-safe */
static bool
replace_page(struct place *p, uintptr_t addr)
{
	void *page = (void *)(addr - addr % p->page);

	/* what is written to this page does not reach the file, which no longer has it */
	if (mmap(page, p->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == MAP_FAILED)
		return false;
	if (!__atomic_exchange_n(&p->lost, true, __ATOMIC_ACQ_REL))
		__atomic_fetch_add(&count, 1, __ATOMIC_ACQ_REL);
	return true;
}

static bool
lost_fault(const struct fault *f)
{
	uintptr_t addr = (uintptr_t)f->addr;
	struct place *p, *end;
	uint32_t i;

	for (i = 0; f->sig == SIGBUS && i < BLOCKS && (p = ACQUIRE_GET(blocks[i])) != NULL; i++)
		for (end = p + BLOCK_PLACES; p < end; p++)
			if (addr < ACQUIRE_GET(p->to) && addr >= p->from)
				return replace_page(p, addr);
	return false;
}

/* A free place; -1: there is no memory for one. */
static int64_t
place_find(void)
{
	uint32_t i;

	for (i = lowest_free; i < BLOCKS * BLOCK_PLACES; i++) {
		if (blocks[i / BLOCK_PLACES] == NULL) {
			struct place *block = calloc(BLOCK_PLACES, sizeof(*block));

			if (block == NULL)
				return -1;
			RELEASE_SET(blocks[i / BLOCK_PLACES], block);
		}
		if (place_at(i)->to == 0)
			return i;
	}
	return -1;
}

uint32_t
lost_watch(void *map, size_t len, size_t page)
{
	int64_t i = place_find();
	struct place *p;

	if (i < 0)
		return 0;
	fault_add(lost_fault);
	lowest_free = (uint32_t)i + 1;
	p = place_at((uint32_t)i);
	p->from = (uintptr_t)map;
	p->page = page;
	p->lost = false;
	RELEASE_SET(p->to, (uintptr_t)map + len);
	return (uint32_t)i + 1;
}

void
lost_unwatch(uint32_t place)
{
	if (place == 0)
		return;
	RELEASE_SET(place_at(place - 1)->to, 0);
	lowest_free = RTE_MIN(lowest_free, place - 1);
}

bool
lost_found(uint32_t place)
{
	return place != 0 && ACQUIRE_GET(place_at(place - 1)->lost);
}

uint32_t
lost_count(void)
{
	return ACQUIRE_GET(count);
}
