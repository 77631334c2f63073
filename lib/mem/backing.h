/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_BACKING_H
#define MEM_BACKING_H

/* Where a region's bytes come from, and how they go back. */

#include "mem/mem.h"

struct backing {
	uint8_t *base;
	void *map; /* NULL: not ours to unmap */
	size_t map_len;
	bool hugepages;
	int numa_node; /* of byte 0; -1: the kernel does not say */
};

/* @param any  the node when .numa_node is -1; -1: whichever */
int backing_open(struct backing *b, const struct mem_mr_attr *attr, int any, struct error *err);
void backing_close(struct backing *b);

#endif
