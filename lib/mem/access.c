/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The check every remote access and every scatter/gather element goes through (rc-transport 6,
 * row 7).
 */

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

/* If the record at the hint does not have the key, decode the key to find its record. */
enum mem_verdict
mem_access_hint(const struct mem *mem, uint32_t *hint, uint32_t key, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, uint32_t access, uint8_t **host)
{
	const struct mem_record *r = &mem->records.record[*hint];
	uint32_t need = mem_need(access);
	enum mem_verdict v;

	if (likely(*hint < mem->records.num) &&
		likely(mem_record_check(r, key, pd, qpn, va, len, need, host, &v)))
		return v;
	r = record_find(mem, key, hint);
	if (r != NULL && mem_record_check(r, key, pd, qpn, va, len, need, host, &v))
		return v;
	return MEM_BAD_KEY;
}

struct mem_place
mem_access_place(const struct mem *mem, uint32_t *hint, uint32_t key, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, uint32_t access)
{
	struct mem_place place = { .host = NULL };

	place.verdict = mem_access_hint(mem, hint, key, pd, qpn, va, len, access, &place.host);
	return place;
}
