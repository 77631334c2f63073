/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_PD_H
#define MEM_PD_H

/** @file Which protection domains there are: control thread. */

#include <stdbool.h>
#include <stdint.h>

struct mem;

struct mem_pd_info {
	uint32_t pd;
	uint32_t users; /**< regions, windows, QPs and SRQs in it */
};

/** The next domain there is; *cursor is 0 at first. @retval false  there are no more */
bool mem_pd_next(const struct mem *mem, uint32_t *cursor, struct mem_pd_info *info);

#endif
