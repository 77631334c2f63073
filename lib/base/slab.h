/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_SLAB_H
#define BASE_SLAB_H

/**
 * @file
 * A slab allocator for many objects of a few sizes. It takes large chunks from another
 * allocator, so a million objects need few allocations and lie close together; a freed object is
 * reused for the next of its size class. Chunks grow with the number of objects, so that few
 * objects take little memory; an empty chunk is returned.
 *
 * Objects are aligned to cache lines and an odd number of lines apart, so that the same field of
 * many objects is spread over all sets of a cache.
 *
 * Set-up paths only. Any thread may allocate and free; a spinlock protects the slab.
 */

#include <stddef.h>

#include "base/env.h"

struct slab;

struct slab *slab_create(const struct allocator *alloc);
/** All objects must have been freed. */
void slab_destroy(struct slab *s);

/** @return zeroed memory, or NULL */
void *slab_alloc(struct slab *s, size_t size);
/** @param size  as passed to slab_alloc(); the object knows its slab */
void slab_free(void *mem, size_t size);

#endif
