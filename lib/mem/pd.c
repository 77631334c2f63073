/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Protection domains: a number and a count of references, which is closed while the domain is free.
 * Numbers start at 1, so that a zeroed structure names no domain. A worker may create a QP in a
 * domain while the control thread frees it.
 */

#include "mem/table.h"

static int
pd_alloc(struct mem *mem, bool top, uint32_t *pd, struct error *err)
{
	uint32_t n, i;

	for (n = 0; n < mem->max_pd; n++) {
		i = top ? mem->max_pd - 1 - n : mem->pd_next++ % mem->max_pd;
		if (RELAXED_GET(mem->pd_refs[i]) != COUNT_CLOSED)
			continue;
		RELEASE_SET(mem->pd_refs[i], 0);
		*pd = i + 1;
		return 0;
	}
	return error_set_limit(err, ENOMEM,
		"pd: all %u protection domains are in use (limits.max_pd)", mem->max_pd);
}

int
mem_pd_alloc(struct mem *mem, uint32_t *pd, struct error *err)
{
	return pd_alloc(mem, false, pd, err);
}

int
mem_pd_alloc_top(struct mem *mem, uint32_t *pd, struct error *err)
{
	return pd_alloc(mem, true, pd, err);
}

/* The reference count of a domain; NULL for a number out of range. */
static uint32_t *
pd_refs(struct mem *mem, uint32_t pd)
{
	return pd >= 1 && pd <= mem->max_pd ? &mem->pd_refs[pd - 1] : NULL;
}

int
mem_pd_free(struct mem *mem, uint32_t pd, struct error *err)
{
	uint32_t *count = pd_refs(mem, pd),
		 refs = count != NULL ? count_close(count) : COUNT_CLOSED;

	if (refs == COUNT_CLOSED)
		return error_set(err, ENOENT, "pd: no protection domain %u", pd);
	if (refs != 0)
		return error_set(err, EBUSY,
			"pd: protection domain %u still has %u regions, windows, QPs or SRQs", pd,
			refs);
	return 0;
}

bool
mem_pd_next(const struct mem *mem, uint64_t *cursor, struct mem_pd_info *info)
{
	uint32_t refs;

	while (*cursor < mem->max_pd) {
		refs = RELAXED_GET(mem->pd_refs[(*cursor)++]);
		if (refs == COUNT_CLOSED)
			continue;
		*info = (struct mem_pd_info){ (uint32_t)*cursor, refs };
		return true;
	}
	return false;
}

int
mem_pd_hold(struct mem *mem, uint32_t pd)
{
	uint32_t *count = pd_refs(mem, pd);

	return count != NULL && count_up(count) ? 0 : -ENOENT;
}

void
mem_pd_release(struct mem *mem, uint32_t pd)
{
	uint32_t *count = pd_refs(mem, pd);

	RTE_ASSERT(count != NULL);
	if (count != NULL)
		count_down(count);
}
