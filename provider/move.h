/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_MOVE_H
#define PROVIDER_MOVE_H

/**
 * @file
 * Replace pages under a running program.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keep.h"

/**
 * Put what stands at [addr, addr + length) into other pages, in place: those of a file at the
 * offset that is the address, or private anonymous ones (file -1). Page aligned. Threads that
 * write there meanwhile wait, threads that read do not. All of it is in one mapping, whose policy
 * and lock the new pages get.
 *
 * @param had  keep_read() of the mapping
 * @return errno value; EPERM: other threads could not be held off
 */
int move_pages_to(int file, uintptr_t addr, size_t length, const struct keep *had);
/** The calling thread is the provider's own: it writes to no pages of the program. */
void move_thread_is_quiet(void);
/** Such a thread ends. */
void move_quiet_thread_ends(void);
/** True if move_pages_to() can hold other threads off, or there are none. */
bool move_is_safe(void);
/** In a forked child, which has one thread and none of its parent's guards. */
void move_forget_guard(void);
/** For tests: guard as kernels before 6.4 do. */
void move_as_old_kernel(bool on);

#endif
