/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_COUNTED_H
#define TEST_COUNTED_H

/*
 * An allocator that counts what has not been given back, fails when the test wants it to, and
 * overwrites what is given back, so that whoever still reads it fails.
 */

#include <limits.h>
#include <malloc.h>
#include <string.h>

#include "base/env.h"

struct counted {
	struct allocator alloc; /* of counted_init() */
	unsigned int held;
	unsigned int left; /* allocations before the memory is used up; UINT_MAX: no end */
};

static inline void *
counted_alloc(void *arg, size_t size, size_t align)
{
	struct counted *c = arg;
	void *mem;

	if (c->left == 0)
		return NULL;
	c->left -= c->left != UINT_MAX;
	mem = allocator_malloc.alloc(allocator_malloc.arg, size, align);
	c->held += mem != NULL;
	return mem;
}

static inline void
counted_free(void *arg, void *mem)
{
	struct counted *c = arg;

	c->held -= mem != NULL;
	if (mem != NULL)
		memset(mem, 0xDD, malloc_usable_size(mem));
	allocator_malloc.free(allocator_malloc.arg, mem);
}

static inline void
counted_init(struct counted *c)
{
	*c = (struct counted){ .alloc = { counted_alloc, counted_free, c }, .left = UINT_MAX };
}

#endif
