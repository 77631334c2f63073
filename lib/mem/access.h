/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_ACCESS_H
#define MEM_ACCESS_H

/**
 * @file
 * The check every remote access and every scatter/gather element goes through (rc-transport 6,
 * row 7), on any worker. Regions and windows share one array of records, regions first. A record is
 * one cache line and holds all that a check reads.
 *
 * The writer publishes and retracts a record under its sequence word (.id), so workers read it
 * without a lock and without following pointers. A reader that overlaps a change reports "no such
 * key". The memory behind a retracted record stays mapped for a grace period.
 */

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_debug.h>

#include "base/atomic.h"
#include "base/common_case.h"
#include "mem/mem.h"

#define MEM_QPN_ANY UINT32_MAX
/* Local read: every region's record has this right, no window's has it (a window has no L_Key). */
#define MEM_RIGHT_LOCAL_READ 0x80000000u

/** One region or bound window, as an access sees it. */
struct mem_view {
	uint64_t va; /* virtual address of byte 0, as peers and WQEs give it */
	uint64_t length;
	uint8_t *base; /* host address of byte 0 */
	uint32_t pd;
	uint32_t qpn; /* the only QP that may use it, or MEM_QPN_ANY */
	uint32_t rights; /* MEM_ACCESS_ and MEM_RIGHT_ */
	uint32_t mr_key; /* of the region; a window: of the region it is bound to */
};

struct mem_record {
	uint64_t id; /* version << 33 | valid << 32 | key */
	/*
	 * A reader compares .id before and after it reads these fields. Their release store makes
	 * the record's retraction visible before the new value; their acquire load keeps the second
	 * load of .id behind it. So whoever reads a new value under an old .id sees that .id has
	 * changed.
	 */
	struct mem_view view;
} __attribute__((aligned(64)));

#define RECORD_VALID   (UINT64_C(1) << 32)
#define RECORD_VERSION (UINT64_C(1) << 33)

/** The first member of struct mem; the rest of struct mem is private. */
struct mem_records {
	struct mem_record *record; /* max_mr, then max_mw */
	uint32_t num;
};

/* The rules of an access (rc-transport 6, row 7). Sets *host if the verdict is MEM_OK. */
static __rte_always_inline enum mem_verdict
mem_view_check(const struct mem_view *v, uint32_t pd, uint32_t qpn, uint64_t va, uint64_t len,
	uint32_t access, uint8_t **host)
{
	uint64_t offset = va - ACQUIRE_GET(v->va), length = ACQUIRE_GET(v->length);
	uint32_t owner = ACQUIRE_GET(v->qpn), rights;
	/* a local read has no MEM_ACCESS_ flag */
	uint32_t need = access != 0 ? access : MEM_RIGHT_LOCAL_READ;

	RTE_ASSERT(len > 0 && (need & (need - 1)) == 0);
	if (unlikely(ACQUIRE_GET(v->pd) != pd || (owner != MEM_QPN_ANY && owner != qpn)))
		return MEM_BAD_KEY;
	rights = ACQUIRE_GET(v->rights);
	if (unlikely((need & ~rights) != 0)) {
		/* a window has an R_Key only: used as an L_Key, its key is unknown */
		if ((rights & MEM_RIGHT_LOCAL_READ) == 0 && (need & MEM_ACCESS_REMOTE) == 0)
			return MEM_BAD_KEY;
		return MEM_BAD_RIGHTS;
	}
	/* a va below byte 0 makes offset huge, so neither comparison can wrap */
	if (unlikely(offset > length || len > length - offset))
		return MEM_BAD_RANGE;
	*host = ACQUIRE_GET(v->base) + offset;
	return MEM_OK;
}

/*
 * Check an access against a record, which need not be looked up by the key: its .id holds the whole
 * key. MEM_BAD_KEY also if it has another key, or none, or has changed meanwhile.
 */
static __rte_always_inline enum mem_verdict
mem_record_check(const struct mem_record *r, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t va,
	uint64_t len, uint32_t access, uint8_t **host)
{
	uint64_t id = ACQUIRE_GET(r->id);
	enum mem_verdict v;

	if (unlikely((uint32_t)id != key || !(id & RECORD_VALID)))
		return MEM_BAD_KEY;
	v = mem_view_check(&r->view, pd, qpn, va, len, access, host);
	return likely(RELAXED_GET(r->id) == id) ? v : MEM_BAD_KEY;
}

/** Where an access goes: two registers. */
struct mem_place {
	uint8_t *host;
	enum mem_verdict verdict;
};

/*
 * Private to mem_access_hint(): decode the key to find its record, and store its index in *hint. By
 * value: a pointer to a local of a function that checks an access would cost each packet a stack
 * canary.
 */
struct mem_place mem_access_find(const struct mem *mem, uint32_t *hint, uint32_t key, uint32_t pd,
	uint32_t qpn, uint64_t va, uint64_t len, uint32_t access);

/**
 * Check an access and translate its address. Inline is its most common case: the record at *hint
 * carries the key and allows the access.
 *
 * @param hint    caches the key's table index, for a caller that uses the same key repeatedly; any
 *   value at first
 * @param access  the one MEM_ACCESS_ right needed; 0: local read
 * @param len     > 0; callers skip the check for a zero-length access, which needs none
 * @param host    host address of va; valid until the worker's next quiescent state
 */
static __rte_always_inline enum mem_verdict
mem_access_hint(const struct mem *mem, uint32_t *hint, uint32_t key, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, uint32_t access, uint8_t **host)
{
	const struct mem_records *r = (const void *)mem;
	struct mem_place place;

	if (likely(COMMON_CASE(*hint < r->num)) &&
		likely(mem_record_check(&r->record[*hint], key, pd, qpn, va, len, access, host) ==
			MEM_OK))
		return MEM_OK;
	place = mem_access_find(mem, hint, key, pd, qpn, va, len, access);
	*host = place.host;
	return place.verdict;
}

#endif
