/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_MIRROR_H
#define MEM_MIRROR_H

/**
 * @file
 * Memory of another program, shared in place. The mirror is a sparse file in memory in which the
 * offset is the program's address. The program moves the pages of a region into it before it asks
 * for the registration; regions that overlap, or share a page, then agree by themselves.
 *
 * The program holds the file open and is not trusted. The file is sealed: it cannot shrink, so no
 * access raises SIGBUS. A program that punches holes reads and writes zeros there.
 *
 * A program that registers the same memory again, with another key, gets a region on the mapping
 * that is there already. Control thread only.
 */

#include "mem/backing.h"

/** Addresses of programs are below 2^47 on x86-64, and below 2^48 on aarch64. */
#define MEM_MIRROR_BYTES (UINT64_C(1) << 48)

/** Create a program's mirror. @return its descriptor, or a negative errno */
int mem_mirror_create(struct error *err);

/** Use the mapping of these pages of the mirror with this inode, if a region has it. */
bool mirror_map_share(struct backing *b, uint64_t inode);
/** The region has a new mapping, which others may use. @return -ENOMEM */
int mirror_map_add(struct backing *b, uint64_t inode, struct error *err);
/** A region ends; its last one unmaps. */
void mirror_map_leave(struct mirror_map *m);

#endif
