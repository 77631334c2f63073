/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "mem/table.h"

struct mem_place
mem_access_find(const struct mem *mem, uint32_t *hint, uint32_t key, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, uint32_t access)
{
	struct mem_place place = { NULL, MEM_BAD_KEY };
	uint32_t index = key_index(&mem->keys, key);

	if (index >= mem->records.num)
		return place;
	*hint = index;
	place.verdict = mem_record_check(&mem->records.record[index], key, pd, qpn, va, len, access,
		&place.host);
	return place;
}
