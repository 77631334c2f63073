/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_MIRROR_H
#define PROVIDER_MIRROR_H

/**
 * @file
 * Registration of memory that the program got from anywhere: its private anonymous pages become, in
 * place, pages of the mirror file, at the offset that is their address; polca maps the same file.
 *
 * Pages stay in the mirror as long as a region lies on them, and are then moved back.
 */

#include <stddef.h>
#include <stdint.h>

/** @return errno value; EFAULT: a line on standard error names the mapping that cannot be moved */
int mirror_hold(int mirror_fd, uintptr_t addr, size_t length);
#define MIRROR_SHARED (-1) /**< no errno value */

/** The same, but MIRROR_SHARED, without a line, if another file shares the memory at @p addr. */
int mirror_hold_unless_shared(int mirror_fd, uintptr_t addr, size_t length);
void mirror_release(int mirror_fd, uintptr_t addr, size_t length);

#endif
