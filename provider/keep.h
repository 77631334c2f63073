/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_KEEP_H
#define PROVIDER_KEEP_H

/**
 * @file
 * What a mapping has besides bytes, and must have after its pages were replaced: protection,
 * mlock() and mbind().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEEP_NODES 1024 /* the most that Linux can have */

struct keep {
	int protection;
	bool locked;
	bool has_policy; /**< of its own, not the thread's */
	int policy;
	unsigned long nodes[KEEP_NODES / (8 * sizeof(unsigned long))];
};

/** Read what the mapping at @p addr has. */
void keep_read(struct keep *k, uintptr_t addr, int protection);
/** Give pages that are not there yet the policy: it decides where they will be. */
void keep_policy(const struct keep *k, void *pages, size_t length);
/** Lock pages that have taken the place of locked ones. */
void keep_lock(const struct keep *k, void *pages, size_t length);
/** A file keeps a policy where it had pages: remove it, for those who use the offsets later. */
void keep_clear_policy(int file, uintptr_t addr, size_t length);

#endif
