/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RING_DOORBELL_H
#define RING_DOORBELL_H

/**
 * @file
 * Doorbells: the client's threads tell the worker which queues have new entries.
 *
 * An entry is the queue's slot and a phase bit, which changes with each round of the ring: so the
 * worker sees a new entry without an index. A queue's flag .rung says that the worker will look at
 * it: it is in the ring, or the worker has taken it from there and goes on looking at its index.
 * Only who finds the flag clear puts the queue there, so each is there once at most. The ring has a
 * place for each queue and never overflows, and a queue without work costs nothing.
 *
 * The worker clears the flag before it reads the queue's index for the last time, the client
 * publishes the index before it looks at the flag, and both put a full fence between: one of them
 * sees what the other did.
 *
 * Hostile clients: a slot is masked, and the worker takes a bounded number of entries in a turn. A
 * queue that is rung too often is looked at in vain; one that is never rung waits for ever.
 */

#include <stdbool.h>

#include "ring/layout.h"

#define RING_PHASE 0x80000000u

/** Phase of the entry at this index of a ring with mask + 1 entries; zeroed memory holds none. */
static inline uint32_t
ring_phase(uint32_t index, uint32_t mask)
{
	return (index & (mask + 1)) == 0 ? RING_PHASE : 0;
}

/** The worker's end; private memory. */
struct ring_doorbells {
	uint32_t *entries;
	uint32_t mask; /* places, minus 1; also masks slots */
	uint32_t index;
};

/** Take the oldest doorbell; its queue's flag stays set. @retval false there is none */
static inline bool
ring_doorbell_take(struct ring_doorbells *d, uint32_t *slot)
{
	uint32_t entry = __atomic_load_n(&d->entries[d->index & d->mask], __ATOMIC_ACQUIRE);

	if ((entry & RING_PHASE) != ring_phase(d->index, d->mask))
		return false;
	d->index++;
	*slot = entry & d->mask;
	return true;
}

/** From now on the queue rings again; then read its indices once more. */
static inline void
ring_doorbell_clear(struct ring_queue *queue)
{
	/* full fence: clear, then let the caller read the queue's indices */
	__atomic_exchange_n(&queue->rung, 0, __ATOMIC_SEQ_CST);
}

/** True if ring_doorbell_take() would find one. */
static inline bool
ring_doorbell_waits(const struct ring_doorbells *d)
{
	uint32_t entry = __atomic_load_n(&d->entries[d->index & d->mask], __ATOMIC_RELAXED);

	return (entry & RING_PHASE) == ring_phase(d->index, d->mask);
}

/**
 * Client, any thread: ring for the queue in this slot, whose index has been published.
 *
 * @param next  place of the next doorbell, shared by the client's threads only
 * @retval true  the worker did not look at it: look at ring_segment.asleep
 */
static inline bool
ring_doorbell_ring(uint32_t *entries, uint32_t mask, uint32_t *next, struct ring_queue *queue,
	uint32_t slot)
{
	uint32_t index;

	/*
	 * Store the queue's index, then load .rung. The worker stores .rung
	 * (ring_doorbell_clear()), then loads the index. Acquire and release
	 * cannot order a store before a later load.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&queue->rung, __ATOMIC_RELAXED) != 0 ||
		__atomic_exchange_n(&queue->rung, 1, __ATOMIC_SEQ_CST) != 0)
		return false;
	index = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&entries[index & mask], slot | ring_phase(index, mask), __ATOMIC_SEQ_CST);
	return true;
}

#endif
