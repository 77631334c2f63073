/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The check every remote access and every scatter/gather element goes through (rc-transport 6,
 * row 7).
 */

#include <rte_common.h>

#include "mem/table.h"

/* Decode the record's index from the key, and store it in *hint. NULL: outside the table. */
static const struct mem_record *__rte_noinline
record_find(const struct mem *mem, uint32_t key, uint32_t *hint)
{
	uint32_t index = key_index(&mem->keys, key);

	if (index >= mem->records.num)
		return NULL;
	*hint = index;
	return &mem->records.record[index];
}

/* As mem_access_again(), and also decodes the key when the hint is wrong and names the error. */
enum mem_verdict
mem_access_hint(const struct mem *mem, uint32_t *hint, uint32_t key, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, uint32_t access, uint8_t **host)
{
	const struct mem_record *r = &mem->records.record[*hint];
	uint32_t need = mem_need(access);
	struct mem_view v;
	uint64_t offset;

	if (unlikely(*hint >= mem->records.num || !record_read(r, key, &v))) {
		r = record_find(mem, key, hint);
		if (r == NULL || !record_read(r, key, &v))
			return MEM_BAD_KEY;
	}
	if (unlikely(v.pd != pd || (v.qpn != MEM_QPN_ANY && v.qpn != qpn)))
		return MEM_BAD_KEY;
	if (unlikely((v.rights & need) != need)) {
		/* a window has an R_Key only: used as an L_Key, its key is unknown */
		if ((v.rights & MEM_RIGHT_LOCAL_READ) == 0 && (need & MEM_ACCESS_REMOTE) == 0)
			return MEM_BAD_KEY;
		return MEM_BAD_RIGHTS;
	}
	/* a va below v.va makes offset huge, so neither comparison can wrap */
	offset = va - v.va;
	if (unlikely(offset > v.length || len > v.length - offset))
		return MEM_BAD_RANGE;
	*host = v.base + offset;
	return MEM_OK;
}

enum mem_verdict
mem_access(const struct mem *mem, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t va,
	uint64_t len, uint32_t access, uint8_t **host)
{
	uint32_t hint = key_index(&mem->keys, key);

	return mem_access_hint(mem, &hint, key, pd, qpn, va, len, access, host);
}
