/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_TABLE_H
#define MEM_TABLE_H

/*
 * Private to lib/mem: the tables of domains, regions and windows. Layout of a record: access.h.
 */

#include <stddef.h>

#include "mem/access.h"
#include "mem/backing.h"
#include "mem/key.h"

/* All fields of struct mem_view */
#define VIEW_FIELDS(X) X(va) X(length) X(base) X(pd) X(qpn) X(rights) X(mr_key)

static __rte_always_inline bool
record_read(const struct mem_record *r, uint32_t key, struct mem_view *v)
{
	uint64_t id = ACQUIRE_GET(r->id);

	if (unlikely((id & (RECORD_VERSION - 1)) != (RECORD_VALID | key)))
		return false;
#define READ(field) v->field = ACQUIRE_GET(r->view.field);
	VIEW_FIELDS(READ)
#undef READ
	return likely(RELAXED_GET(r->id) == id);
}

/*
 * Make readers fail. A record has one writer at a time: the control thread for a region, the lcore
 * that claimed it for a window.
 */
static inline void
record_retract(struct mem_record *r)
{
	uint64_t version = RELAXED_GET(r->id) / RECORD_VERSION;

	RELAXED_SET(r->id, (version + 1) * RECORD_VERSION);
}

static inline void
record_publish(struct mem_record *r, uint32_t key, const struct mem_view *v)
{
	record_retract(r);
#define WRITE(field) RELEASE_SET(r->view.field, v->field);
	VIEW_FIELDS(WRITE)
#undef WRITE
	RELEASE_SET(r->id, RELAXED_GET(r->id) | RECORD_VALID | key);
}

/*
 * Free table indices, first in first out, so that an index is reused as late as possible. Control
 * thread only.
 */
struct index_fifo {
	uint32_t *ring;
	uint32_t size;
	uint32_t head;
	uint32_t count;
};

static inline bool
index_get(struct index_fifo *f, uint32_t *index)
{
	if (f->count == 0)
		return false;
	*index = f->ring[f->head];
	f->head = f->head + 1 == f->size ? 0 : f->head + 1;
	f->count--;
	return true;
}

static inline void
index_put(struct index_fifo *f, uint32_t index)
{
	RTE_ASSERT(f->count < f->size); /* or it was put twice */
	f->ring[(f->head + (uint64_t)f->count) % f->size] = index;
	f->count++;
}

/*
 * Counts of references: to a domain, and of the windows bound to a region. Workers count while the
 * control thread closes a count that is 0.
 */
#define COUNT_CLOSED 0x80000000u

/** @retval false  it is closed */
static inline bool
count_up(uint32_t *count)
{
	uint32_t n = RELAXED_GET(*count);

	do {
		if (n == COUNT_CLOSED)
			return false;
	} while (!__atomic_compare_exchange_n(count, &n, n + 1, false, __ATOMIC_ACQ_REL,
		__ATOMIC_RELAXED));
	return true;
}

static inline void
count_down(uint32_t *count)
{
	uint32_t n = __atomic_fetch_sub(count, 1, __ATOMIC_RELEASE);

	RTE_SET_USED(n);
	RTE_ASSERT(n > 0 && n != COUNT_CLOSED);
}

/** @return 0: it is closed now; else what it was */
static inline uint32_t
count_close(uint32_t *count)
{
	uint32_t n = 0;

	__atomic_compare_exchange_n(count, &n, COUNT_CLOSED, false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE);
	return n;
}

enum mr_state {
	MR_FREE,
	MR_LIVE,
	MR_DYING, /* record retracted; memory is released after the grace period */
};

struct mem_mr {
	enum mr_state state;
	struct mem_mr_info info; /* .lost: mem_mr_lost() has returned it */
	uint32_t serial; /* of the next key */
	/* number bound to it; closed: deregistered */
	uint32_t windows;
	uint64_t token;
	struct backing backing;
};

/*
 * A window's state is one word. An lcore claims a window with one compare-and-swap before it
 * changes it, and mem_qp_gone() finds a QP's windows by scanning a compact array.
 */
#define MW_FREE         0u
#define MW_UNBOUND      1u
#define MW_BOUND_TYPE_1 2u
#define MW_CLAIMED      3u /* an lcore is changing it */
#define MW_DYING        4u /* freed, waiting for the grace period */
#define MW_BOUND_QP     0x01000000u /* | QPN: bound type 2 window */

struct mem_mw {
	enum mem_mw_type type;
	uint32_t key; /* current one, bound or not */
	uint32_t serial; /* of the next key */
	uint32_t pd;
	uint64_t token;
};

#define QP_BUCKETS 1024

struct mem {
	struct mem_records records; /* must be first: mem_access_hint() casts */
	struct key_space keys;

	uint32_t max_pd;
	uint32_t max_mr;
	uint32_t max_mw;
	struct mem_grace grace;
	const struct allocator *alloc;

	uint32_t *pd_refs;
	uint32_t pd_next; /* where mem_pd_alloc() looks next: a number is used again late */
	struct mem_mr *mrs;
	struct mem_mw *mws;
	uint32_t *mw_states;
	struct index_fifo free_mr;
	struct index_fifo free_mw;
	uint32_t lost_seen; /* lost_count() when no region was found */
	uint32_t qp_windows[QP_BUCKETS]; /* bound type 2 windows by QPN modulo; atomic */
};

_Static_assert(offsetof(struct mem, records) == 0, "mem_access_hint()");

static inline uint32_t *
qp_bucket(struct mem *mem, uint32_t qpn)
{
	return &mem->qp_windows[qpn % QP_BUCKETS];
}

/** ibv_reg_mr(3), ibv_bind_mw(3): remote writes and Atomics need a region with local write. */
static inline bool
access_needs_local_write(uint32_t access)
{
	return (access & (MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_ATOMIC)) != 0;
}

/** The responder checks an Atomic's alignment on the VA, so VA and host address must agree. */
static inline bool
access_misaligned(uint32_t access, uint64_t va, const uint8_t *base)
{
	return (access & MEM_ACCESS_REMOTE_ATOMIC) != 0 && (va - (uintptr_t)base) % 8 != 0;
}

/** The index's next key. Skips keys whose upper 24 bits are 0: many programs take 0 as "no key". */
static inline uint32_t
key_issue(const struct key_space *k, uint32_t index, uint32_t *serial)
{
	uint32_t key;

	do
		key = key_make(k, index, (*serial)++);
	while (key >> 8 == 0);
	return key;
}

/** @return token of a grace period that starts now; 0 when none is needed */
static inline uint64_t
mem_grace_start(const struct mem *mem)
{
	return mem->grace.start != NULL ? mem->grace.start(mem->grace.arg) : 0;
}

#endif
