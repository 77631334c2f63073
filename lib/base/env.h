/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_ENV_H
#define BASE_ENV_H

/**
 * @file
 * Memory and randomness, which the caller hands to protocol code (design.md rule 3). The
 * engine hands in EAL memory and the kernel's generator; the simulation hands in its own.
 */

#include <stddef.h>
#include <stdint.h>

/** Memory for objects. Set-up paths only; the fast path does not allocate. */
struct allocator {
	/** @return zeroed memory, or NULL */
	void *(*alloc)(void *arg, size_t size, size_t align);
	void (*free)(void *arg, void *mem);
	void *arg;
};

/** Cryptographic randomness: keys, start PSNs, QPN slots. */
struct rng {
	void (*fill)(void *arg, void *buf, size_t len);
	void *arg;
};

/** malloc/free; for tests and tools. */
extern const struct allocator allocator_malloc;
/** The kernel's generator, getrandom(2), buffered per calling thread. */
extern const struct rng rng_kernel;

static inline void *
mem_zalloc(const struct allocator *a, size_t size, size_t align)
{
	return a->alloc(a->arg, size, align);
}

static inline void
mem_free(const struct allocator *a, void *mem)
{
	if (mem != NULL)
		a->free(a->arg, mem);
}

static inline uint64_t
rng_u64(const struct rng *r)
{
	uint64_t v;

	r->fill(r->arg, &v, sizeof(v));
	return v;
}

static inline uint32_t
rng_u32(const struct rng *r)
{
	return (uint32_t)rng_u64(r);
}

#endif
