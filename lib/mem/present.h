/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_PRESENT_H
#define MEM_PRESENT_H

/**
 * @file
 * Which pages of a file are there, without a lock of the file: lseek(SEEK_HOLE), fallocate() and
 * F_ADD_SEALS wait for a write() to it by a program that holds it, too, and the bytes of that may
 * come from a page that never comes, of a file system that the program serves (FUSE). A read takes
 * no such lock.
 */

#include "mem/mem.h"

/**
 * True if all pages of a mapping of such a file are there now, in memory or swapped out, and so are
 * not made, and paid for, by us. Of a file that this process may not open for writing, the kernel
 * says yes always.
 *
 * @param offset  of the mapping, in the file
 */
bool present_pages(int fd, uint64_t offset, void *map, size_t length);
/** Whole pages of a program's memory, @p bytes in all: 0, or -ENOMEM if they are too many. */
int present_check_bytes(const struct mem_mr_attr *attr, uint64_t bytes, struct error *err);

#endif
