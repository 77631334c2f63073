/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_PD_H
#define MEM_PD_H

/** @file List the protection domains: control thread only. */

#include <stdbool.h>
#include <stdint.h>

struct mem;

struct mem_pd_info {
	uint32_t pd;
	uint32_t users; /**< regions, windows, QPs and SRQs in it */
};

/** Walk the domains: *cursor 0 starts. @retval false at the end */
bool mem_pd_next(const struct mem *mem, uint64_t *cursor, struct mem_pd_info *info);

#endif
