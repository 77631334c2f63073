/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_SLAB_H
#define BASE_SLAB_H

/**
 * @file
 * Many objects of a few sizes, cut from big chunks of an allocator: a million of them cost few
 * allocations, lie close together, and what is freed serves the next of its size. Chunks grow with
 * the number of objects, so that a few objects take little; an empty chunk goes back.
 *
 * Objects are aligned to cache lines and an odd number of lines apart, so that the same field of
 * many objects does not fall into the same few sets of a cache.
 *
 * Set-up paths only. Any thread may free what another took (a lock that nobody else waits for).
 */

#include <stddef.h>

#include "base/env.h"

struct slab;

struct slab *slab_create(const struct allocator *alloc);
/** All objects must have been freed. */
void slab_destroy(struct slab *s);

/** @return zeroed memory, or NULL */
void *slab_alloc(struct slab *s, size_t size);
/** @param size  as it was asked for; the slab that it came from is known */
void slab_free(void *mem, size_t size);

#endif
