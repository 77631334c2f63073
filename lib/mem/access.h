/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_ACCESS_H
#define MEM_ACCESS_H

/**
 * @file
 * The check of an access in line, for those who make one a packet. Regions and windows share one
 * array of records, regions first; a record is what an access reads, one cache line each.
 *
 * A record is published and retracted under a sequence word, so that workers read it without a
 * lock and need no pointer to chase. A reader that meets a change half way sees "no such key",
 * which is as true as anything else while the key is changing. The bytes behind a record outlive
 * it by a grace period.
 */

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "mem/mem.h"

#define MEM_QPN_ANY UINT32_MAX
/* Regions only, besides MEM_ACCESS_: gathering from it. A window's key is no L_Key. */
#define MEM_RIGHT_LOCAL_READ 0x80000000u

/** One region or bound window, as an access sees it. */
struct mem_view {
	uint64_t va; /* what the peer calls byte 0 */
	uint64_t length;
	uint8_t *base; /* host address of byte 0 */
	uint32_t pd;
	uint32_t qpn; /* the one that may use it, or MEM_QPN_ANY */
	uint32_t rights; /* MEM_ACCESS_ and MEM_RIGHT_ */
	uint32_t mr_key; /* windows: the region under it */
};

struct mem_record {
	uint64_t id; /* version << 33 | valid << 32 | key */
	struct mem_view view;
} __attribute__((aligned(64)));

#define RECORD_VALID (UINT64_C(1) << 32)
#define RECORD_VERSION (UINT64_C(1) << 33)

/* Read a field that another worker may be writing; the id tells afterwards whether it was. */
#define RECORD_GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define RECORD_SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

/** What struct mem begins with, the rest of which is private. */
struct mem_records {
	struct mem_record *record; /* max_mr, then max_mw */
	uint32_t num;
};

static __rte_always_inline const struct mem_records *
mem_records(const struct mem *mem)
{
	return (const struct mem_records *)(const void *)mem;
}

/* The right to ask for: reading locally has no MEM_ACCESS_ flag. */
static __rte_always_inline uint32_t
mem_need(uint32_t access)
{
	return access != 0 ? access : MEM_RIGHT_LOCAL_READ;
}

/*
 * Is all as it should be, at this place? A record that bears the key is the key's, however it was
 * found.
 */
static __rte_always_inline bool
mem_record_allows(const struct mem_record *r, uint32_t key, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, uint32_t need, uint8_t **host)
{
	uint64_t id = __atomic_load_n(&r->id, __ATOMIC_ACQUIRE);
	uint64_t offset = va - RECORD_GET(r->view.va), length = RECORD_GET(r->view.length);
	uint32_t owner = RECORD_GET(r->view.qpn);

	if (unlikely((uint32_t)id != key || !(id & RECORD_VALID)))
		return false;
	if (unlikely(RECORD_GET(r->view.pd) != pd || (owner != MEM_QPN_ANY && owner != qpn) ||
		    (need & ~RECORD_GET(r->view.rights)) != 0))
		return false;
	/* va below that of byte 0 makes offset huge; neither comparison can wrap */
	if (unlikely(offset > length || len > length - offset))
		return false;
	*host = RECORD_GET(r->view.base) + offset;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return likely(RECORD_GET(r->id) == id);
}

/** mem_access_hint() in line: is it all right where it was the last time? If not, the long way. */
static __rte_always_inline enum mem_verdict
mem_access_again(const struct mem *mem, uint32_t *hint, uint32_t key, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, uint32_t access, uint8_t **host)
{
	const struct mem_records *r = mem_records(mem);

	if (likely(*hint < r->num) &&
		likely(mem_record_allows(&r->record[*hint], key, pd, qpn, va, len,
			mem_need(access), host)))
		return MEM_OK;
	return mem_access_hint(mem, hint, key, pd, qpn, va, len, access, host);
}

#endif
