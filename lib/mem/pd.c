/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Protection domains: a number and a reference count. Numbers start at 1, so that a zeroed
 * structure names no domain. The count is atomic because a worker may create a QP in a domain
 * while the control thread frees it.
 */

#include <errno.h>

#include "mem/pd.h"
#include "mem/table.h"

static int
pd_alloc(struct mem *mem, bool (*get)(struct index_fifo *, uint32_t *), uint32_t *pd,
	struct error *err)
{
	uint32_t index;

	if (!get(&mem->free_pd, &index))
		return error_set_limit(err, ENOMEM,
			"pd: all %u protection domains are in use (limits.max_pd)", mem->max_pd);
	RELEASE_SET(mem->pd_refs[index], 0);
	*pd = index + 1;
	return 0;
}

int
mem_pd_alloc(struct mem *mem, uint32_t *pd, struct error *err)
{
	return pd_alloc(mem, index_get, pd, err);
}

int
mem_pd_alloc_top(struct mem *mem, uint32_t *pd, struct error *err)
{
	return pd_alloc(mem, index_get_top, pd, err);
}

/* The reference count of a domain; PD_FREE for a number out of range. */
static uint32_t *
pd_refs(struct mem *mem, uint32_t pd)
{
	static uint32_t none = PD_FREE;

	return pd >= 1 && pd <= mem->max_pd ? &mem->pd_refs[pd - 1] : &none;
}

int
mem_pd_free(struct mem *mem, uint32_t pd, struct error *err)
{
	uint32_t refs = 0;

	if (!__atomic_compare_exchange_n(pd_refs(mem, pd), &refs, PD_FREE, false, __ATOMIC_ACQ_REL,
		    __ATOMIC_ACQUIRE)) {
		if (refs == PD_FREE)
			return error_set(err, ENOENT, "pd: no protection domain %u", pd);
		return error_set(err, EBUSY,
			"pd: protection domain %u still has %u regions, windows, QPs or SRQs", pd,
			refs);
	}
	index_put(&mem->free_pd, pd - 1);
	return 0;
}

bool
mem_pd_next(const struct mem *mem, uint64_t *cursor, struct mem_pd_info *info)
{
	uint32_t refs;

	while (*cursor < mem->max_pd) {
		refs = RELAXED_GET(mem->pd_refs[(*cursor)++]);
		if (refs == PD_FREE)
			continue;
		*info = (struct mem_pd_info){ (uint32_t)*cursor, refs };
		return true;
	}
	return false;
}

int
mem_pd_hold(struct mem *mem, uint32_t pd)
{
	uint32_t *refs = pd_refs(mem, pd);
	uint32_t n = RELAXED_GET(*refs);

	do {
		if (n == PD_FREE)
			return -ENOENT;
	} while (!__atomic_compare_exchange_n(refs, &n, n + 1, false, __ATOMIC_ACQ_REL,
		__ATOMIC_RELAXED));
	return 0;
}

void
mem_pd_release(struct mem *mem, uint32_t pd)
{
	uint32_t refs = __atomic_fetch_sub(pd_refs(mem, pd), 1, __ATOMIC_RELEASE);

	RTE_SET_USED(refs);
	RTE_ASSERT(refs > 0 && refs != PD_FREE);
}
