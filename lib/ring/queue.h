/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RING_QUEUE_H
#define RING_QUEUE_H

/**
 * @file
 * Both ends of a ring of fixed entries in shared memory. One producer and one consumer, each with a
 * private view: where the entries are, how many, and its own index. Indices run freely, an entry is
 * at the index modulo the ring's size.
 *
 * Neither end believes the other's index: a difference beyond the ring's size, which an honest
 * partner never shows, counts as a full ring for the producer and as a ring full of entries for the
 * consumer. So a partner that writes anything at all gets or loses entries of its own ring, and
 * nobody leaves the ring's memory.
 */

#include <stdbool.h>

#include "ring/layout.h"

/*
 * An end asserts what only its own mistake can make wrong, never what the partner wrote; and only
 * in builds with RTE_ENABLE_ASSERT. The provider is linked without DPDK: this is the C library's.
 */
#ifdef RTE_ENABLE_ASSERT
#include <assert.h>
#define RING_ASSERT(cond) assert(cond)
#else
#define RING_ASSERT(cond)                                                                          \
	do {                                                                                       \
	} while (0)
#endif

/** One end of a ring; private memory. */
struct ring_end {
	uint8_t *entries;
	uint32_t mask;
	uint32_t stride; /**< bytes of an entry */
	uint32_t index; /**< own: the producer's head, the consumer's tail */
	uint32_t seen; /**< producer: the consumer's tail, as last read */
	uint32_t *own; /**< shared: where .index is published */
	const uint32_t *others; /**< shared: the partner's index */
};

/** The ring has a power of two of entries of whole 64-bit words, and an index of each end. */
static inline void
ring_end_check(const struct ring_end *r)
{
	RING_ASSERT(r->entries != NULL && ((r->mask + 1) & r->mask) == 0);
	RING_ASSERT(r->stride > 0 && r->stride % sizeof(uint64_t) == 0);
	RING_ASSERT(r->own != NULL && r->others != NULL && r->own != r->others);
	(void)r;
}

static inline void
ring_end_init(struct ring_end *r, void *entries, uint32_t num, uint32_t stride, uint32_t *own,
	const uint32_t *others)
{
	*r = (struct ring_end){
		.entries = (uint8_t *)entries,
		.mask = num - 1,
		.stride = stride,
		.own = own,
		.others = others,
	};
	ring_end_check(r);
}

static inline void *
ring_entry(const struct ring_end *r, uint32_t index)
{
	return r->entries + (uint64_t)(index & r->mask) * r->stride;
}

static inline void
ring_publish(struct ring_end *r)
{
	ring_end_check(r);
	__atomic_store_n(r->own, r->index, __ATOMIC_RELEASE);
}

/* --- producer --- */

/** Free entries, up to the ring's size. */
static inline uint32_t
ring_room(struct ring_end *r)
{
	uint32_t used;

	r->seen = __atomic_load_n(r->others, __ATOMIC_ACQUIRE);
	used = r->index - r->seen;
	return used > r->mask ? 0 : r->mask + 1 - used;
}

/** True if an entry is free; reads the partner's index only if it must. */
static inline bool
ring_has_room(struct ring_end *r)
{
	return r->index - r->seen <= r->mask || ring_room(r) > 0;
}

/** Free entries; reads the partner's index only if fewer than @p wanted are known to be free. */
static inline uint32_t
ring_room_for(struct ring_end *r, uint32_t wanted)
{
	uint32_t used = r->index - r->seen;

	return used <= r->mask && r->mask + 1 - used >= wanted ? r->mask + 1 - used : ring_room(r);
}

/** The next entry to fill; then increment .index, and publish once for all. */
static inline void *
ring_next_free(const struct ring_end *r)
{
	return ring_entry(r, r->index);
}

/**
 * Own the line of the next entry, so that the write to it need not wait until the consumer's CPU
 * has given it up. A prefetch for reading would not do, and the compiler makes no other for every
 * CPU.
 */
static inline void
ring_prefetch_free(const struct ring_end *r)
{
	const uint8_t *entry = (const uint8_t *)ring_next_free(r);

#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*entry));
#else
	__builtin_prefetch(entry, 1);
#endif
}

/* --- consumer --- */

/** Entries to take, up to the ring's size. */
static inline uint32_t
ring_ready(const struct ring_end *r)
{
	uint32_t n = __atomic_load_n(r->others, __ATOMIC_ACQUIRE) - r->index;

	return n > r->mask ? r->mask + 1 : n;
}

/** The oldest entry; then increment .index, and publish once for all. */
static inline const void *
ring_oldest(const struct ring_end *r)
{
	return ring_entry(r, r->index);
}

/** Fetch the lines of the oldest @p n entries at the same time. */
static inline void
ring_prefetch_oldest(const struct ring_end *r, uint32_t n)
{
	/* the caller takes the first one at once */
	for (uint32_t i = 1; i < n; i++)
		__builtin_prefetch(ring_entry(r, r->index + i));
}

/* --- words that the partner may change at any time --- */

/**
 * Copy @p words 64-bit words, each of which is read exactly once. Both are aligned to 8 bytes.
 */
static inline void
ring_copy_once(void *to, const void *from, uint32_t words)
{
	const uint64_t *src = (const uint64_t *)from;
	uint64_t *dst = (uint64_t *)to;
	uint32_t i;

	RING_ASSERT(((uintptr_t)to | (uintptr_t)from) % sizeof(uint64_t) == 0);
	for (i = 0; i < words; i++)
		dst[i] = __atomic_load_n(&src[i], __ATOMIC_RELAXED);
}

/** Likewise two words. */
static inline void
ring_copy_pair(void *to, const void *from)
{
	const uint64_t *src = (const uint64_t *)from;
	uint64_t *dst = (uint64_t *)to;

	dst[0] = __atomic_load_n(&src[0], __ATOMIC_RELAXED);
	dst[1] = __atomic_load_n(&src[1], __ATOMIC_RELAXED);
}

/** Likewise the eight words of a line. */
static inline void
ring_copy_line(void *to, const void *from)
{
	const uint64_t *src = (const uint64_t *)from;
	uint64_t *dst = (uint64_t *)to;

	ring_copy_pair(&dst[0], &src[0]);
	ring_copy_pair(&dst[2], &src[2]);
	ring_copy_pair(&dst[4], &src[4]);
	ring_copy_pair(&dst[6], &src[6]);
}

#endif
