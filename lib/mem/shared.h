/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_SHARED_H
#define MEM_SHARED_H

/**
 * @file
 * Memory that another program shares already: it has mapped a file in memory (tmpfs, memfd,
 * hugetlbfs) and passes a descriptor of it. The descriptor is open for writing, which proves that
 * the program may write what polca will write for it.
 *
 * The program is not trusted: the file may be of any kind, and shrink at any time.
 */

#include "mem/backing.h"

/** Map the bytes from offset @p attr->offset of the file on; the offset need not be aligned. */
int shared_map(struct backing *b, const struct mem_mr_attr *attr, struct error *err);

#endif
