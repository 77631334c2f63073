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
	bool hugepages;
	int numa_node; /* of byte 0; -1: the kernel does not report it */
};

/* @param any  node to prefer when attr->numa_node is -1; -1: no preference */
int backing_open(struct backing *b, const struct mem_mr_attr *attr, int any, struct error *err);
void backing_close(struct backing *b);

#endif
