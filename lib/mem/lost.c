/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <signal.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/fault.h"
#include "mem/lost.h"

#define PLACES 4096

/*
 * The signal handler reads it on any thread; the control thread writes it. to is 0 while the place
 * is free, and is written last.
 */
static struct {
	uintptr_t from, to; /* [from, to) */
	size_t page;
	bool lost;
} places[PLACES];
static uint32_t count;

/* async-signal-safe */
static bool
replace_page(uint32_t i, uintptr_t addr)
{
	void *page = (void *)(addr - addr % places[i].page);

	/* what is written to this page does not reach the file, which no longer has it */
	if (mmap(page, places[i].page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;
	if (!__atomic_exchange_n(&places[i].lost, true, __ATOMIC_ACQ_REL))
		__atomic_fetch_add(&count, 1, __ATOMIC_ACQ_REL);
	return true;
}

static bool
lost_fault(const struct fault *f)
{
	uintptr_t addr = (uintptr_t)f->addr;
	uint32_t i;

	for (i = 0; f->sig == SIGBUS && i < PLACES; i++)
		if (addr < ACQUIRE_GET(places[i].to) && addr >= places[i].from)
			return replace_page(i, addr);
	return false;
}

uint32_t
lost_watch(void *map, size_t len, size_t page)
{
	uint32_t i;

	for (i = 0; i < PLACES && places[i].to != 0; i++)
		;
	if (i == PLACES)
		return 0;
	fault_add(lost_fault);
	places[i].from = (uintptr_t)map;
	places[i].page = page;
	places[i].lost = false;
	RELEASE_SET(places[i].to, (uintptr_t)map + len);
	return i + 1;
}

void
lost_unwatch(uint32_t place)
{
	if (place != 0)
		RELEASE_SET(places[place - 1].to, 0);
}

bool
lost_found(uint32_t place)
{
	return place != 0 && ACQUIRE_GET(places[place - 1].lost);
}

uint32_t
lost_count(void)
{
	return ACQUIRE_GET(count);
}
