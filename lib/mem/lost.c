/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <signal.h>

#include "base/atomic.h"
#include "base/fault.h"
#include "mem/backing.h"

/* A mapping that is watched. Its entry stays in the list, and is used again for another mapping. */
struct watched {
	uintptr_t from, to; /* [from, to); to is 0 while nothing is watched, and is written last */
	size_t page;
	bool lost;
	struct watched *next, *next_unused;
};

/* The signal handler reads the list on any thread; the control thread writes it. */
static struct watched *list, *unused;
static uint32_t count;

/* async-signal-safe */
static bool
replace_page(struct watched *w, uintptr_t addr)
{
	void *page = (void *)(addr - addr % w->page);

	/* what is written to this page does not reach the file, which no longer has it */
	if (mmap(page, w->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == MAP_FAILED)
		return false;
	if (!__atomic_exchange_n(&w->lost, true, __ATOMIC_ACQ_REL))
		__atomic_fetch_add(&count, 1, __ATOMIC_ACQ_REL);
	return true;
}

static bool
lost_fault(const struct fault *f)
{
	uintptr_t addr = (uintptr_t)f->addr;
	struct watched *w = f->sig == SIGBUS ? ACQUIRE_GET(list) : NULL;

	for (; w != NULL; w = w->next)
		if (addr < ACQUIRE_GET(w->to) && addr >= w->from)
			return replace_page(w, addr);
	return false;
}

struct watched *
lost_watch(void *map, size_t len, size_t page)
{
	struct watched *w = unused;

	fault_add(lost_fault);
	if (w != NULL) {
		unused = w->next_unused;
	} else {
		w = calloc(1, sizeof(*w));
		if (w == NULL)
			return NULL;
		w->next = list;
		RELEASE_SET(list, w);
	}
	w->from = (uintptr_t)map;
	w->page = page;
	w->lost = false;
	RELEASE_SET(w->to, (uintptr_t)map + len);
	return w;
}

void
lost_unwatch(struct watched *w)
{
	if (w == NULL)
		return;
	RELEASE_SET(w->to, 0);
	w->next_unused = unused;
	unused = w;
}

bool
lost_found(const struct watched *w)
{
	return w != NULL && ACQUIRE_GET(w->lost);
}

uint32_t
lost_count(void)
{
	return ACQUIRE_GET(count);
}
