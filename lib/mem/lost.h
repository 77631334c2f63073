/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_LOST_H
#define MEM_LOST_H

/*
 * Mapped files whose owner shortens them: the next access to a lost page raises SIGBUS. An empty
 * page takes its place, so that the access succeeds, and the mapping counts as lost.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Control thread: watch a mapping. @return its place; 0: all places are taken */
uint32_t lost_watch(void *map, size_t len, size_t page);
/** Control thread: no worker uses the mapping any more. Place 0 is none. */
void lost_unwatch(uint32_t place);
bool lost_found(uint32_t place);
/** Rises with each mapping that is lost. */
uint32_t lost_count(void);

#endif
