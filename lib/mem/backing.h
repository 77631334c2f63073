/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef MEM_BACKING_H
#define MEM_BACKING_H

/* Map and unmap the memory of a region. */

/* the system's headers for the whole folder */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/mem.h"

struct backing {
	uint8_t *base;
	void *map; /* backing_close() unmaps it; NULL: the caller's memory (MEM_EXTERNAL) */
	uint64_t from; /* place of .map in its file */
	size_t map_len;
	struct mirror_map *mirror; /* NULL: the mapping is not one of a mirror's */
	bool hugepages;
	struct watched *watched; /* NULL: not a file */
	int numa_node; /* of byte 0, in a mirror of its page; -1: the kernel does not report it */
};

int backing_open(struct backing *b, const struct mem_mr_attr *attr, struct error *err);
void backing_close(struct backing *b);

/*
 * present.c
 *
 * Which pages of a file are there, without a lock of the file: lseek(SEEK_HOLE), fallocate() and
 * F_ADD_SEALS wait for a write() to it by a program that holds it, too, and the bytes of that may
 * come from a page that never comes, of a file system that the program serves (FUSE). A read takes
 * no such lock.
 */
/**
 * True if all pages of a mapping of such a file are there now, in memory or swapped out, and so are
 * not made, and paid for, by us. Of a file that this process may not open for writing, the kernel
 * says yes always.
 *
 * @param offset  of the mapping, in the file
 */
bool present_pages(int fd, uint64_t offset, void *map, size_t length);

/*
 * lost.c
 *
 * Mapped files whose owner shortens them: the next access to a lost page raises SIGBUS. An empty
 * page takes its place, so that the access succeeds, and the mapping counts as lost.
 */
struct watched;
/** Control thread: watch a mapping. @return NULL: no memory */
struct watched *lost_watch(void *map, size_t len, size_t page);
/** Control thread: no worker uses the mapping any more. @param w  NULL: there was none */
void lost_unwatch(struct watched *w);
bool lost_found(const struct watched *w);
/** Rises with each mapping that is lost. */
uint32_t lost_count(void);

#endif
