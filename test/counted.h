/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_COUNTED_H
#define TEST_COUNTED_H

/* An allocator that counts what has not been given back. */

#include "base/env.h"

struct counted {
	struct allocator alloc; /* of counted_init() */
	unsigned int held;
};

static inline void *
counted_alloc(void *arg, size_t size, size_t align)
{
	struct counted *c = arg;
	void *mem = allocator_malloc.alloc(allocator_malloc.arg, size, align);

	c->held += mem != NULL;
	return mem;
}

static inline void
counted_free(void *arg, void *mem)
{
	struct counted *c = arg;

	c->held -= mem != NULL;
	allocator_malloc.free(allocator_malloc.arg, mem);
}

static inline void
counted_init(struct counted *c)
{
	*c = (struct counted){ .alloc = { counted_alloc, counted_free, c } };
}

#endif
