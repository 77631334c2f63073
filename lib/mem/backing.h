/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_BACKING_H
#define MEM_BACKING_H

/* Map and unmap the memory of a region. */

#include "mem/mem.h"

struct backing {
	uint8_t *base;
	void *map; /* backing_close() unmaps it; NULL: the caller's memory (MEM_EXTERNAL) */
	size_t map_len;
	struct mirror_map *mirror; /* NULL: the mapping is not one of a mirror's */
	bool hugepages;
	uint32_t watched; /* place of lost.h; 0: not a file */
	int numa_node; /* of byte 0; -1: the kernel does not report it */
};

int backing_open(struct backing *b, const struct mem_mr_attr *attr, struct error *err);
void backing_close(struct backing *b);

#endif
