/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <linux/magic.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/close_apart.h"
#include "base/file_kind.h"
#include "mem/backing.h"
#include "mem/mirror.h"

#define HUGEPAGE ((uint64_t)2 << 20)

#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

static int
numa_check(int node, struct error *err)
{
	int last;

	if (node == -1)
		return 0;
	last = numa_available() < 0 ? 0 : numa_max_node();
	if (node < 0 || node > last)
		return error_set(err, EINVAL, "numa_node: got %d, this host has 0 to %d (-1: any)",
			node, last);
	return 0;
}

/*
 * The policy is preferred, not strict: if the node has no free page, a strict policy would kill the
 * process at the first touch instead of failing the request.
 */
static void
numa_prefer(void *map, size_t len, int node)
{
	struct bitmask *nodes;

	if (node < 0 || numa_available() < 0)
		return;
	nodes = numa_allocate_nodemask();
	if (nodes == NULL)
		return;
	numa_bitmask_setbit(nodes, (unsigned int)node);
	mbind(map, len, MPOL_PREFERRED, nodes->maskp, nodes->size + 1, 0);
	numa_free_nodemask(nodes);
}

/* Ask the kernel: a preferred node may have been full. */
static int
node_of(void *addr)
{
	int node = -1;

	return get_mempolicy(&node, NULL, 0, addr, MPOL_F_NODE | MPOL_F_ADDR) == 0 ? node : -1;
}

/* True for the memory of a program, which may be in files in memory only. */
static bool
of_program(const struct mem_mr_attr *attr)
{
	return attr->backing == MEM_MIRROR || attr->backing == MEM_SHARED;
}

/* For an error: who registers memory in place has named an address, and no file. */
static const char *
place_name(const struct mem_mr_attr *attr)
{
	return attr->backing == MEM_MIRROR ? "addr" : "file";
}

static int
map_failed(const struct mem_mr_attr *attr, const char *step, struct error *err)
{
	if (attr->backing == MEM_ANONYMOUS)
		return error_set(err, errno, "length: no memory for %" PRIu64 " bytes: %m",
			attr->length);
	return error_set(err, errno, "%s: %s: %m", place_name(attr), step);
}

/* Anonymous memory begins at its first byte, whatever `offset` says. */
static uint64_t
first_byte(const struct mem_mr_attr *attr)
{
	return attr->backing == MEM_ANONYMOUS ? 0 : attr->offset;
}

/*
 * Choose the whole pages that hold the region's bytes. A program can remove pages that it has
 * registered: our next access makes them again, and they are charged to us. So whole pages count,
 * also huge ones of which a region has a byte.
 */
static int
choose_pages(struct backing *b, const struct mem_mr_attr *attr, uint64_t page, struct error *err)
{
	uint64_t offset = first_byte(attr);
	int rc = numa_check(attr->numa_node, err);

	if (rc != 0)
		return rc;
	if (offset > SIZE_MAX - page || attr->length > SIZE_MAX - page - offset) {
		errno = ENOMEM;
		return map_failed(attr, "mmap", err);
	}
	b->from = offset / page * page;
	b->map_len = (offset - b->from + attr->length + page - 1) / page * page;
	if (attr->max_bytes != 0 && b->map_len > attr->max_bytes)
		return error_set_limit(err, ENOMEM,
			"length: got %zu in whole pages, allowed: %" PRIu64
			" more (verbs.mr_mb, verbs.user_mr_mb)",
			b->map_len, attr->max_bytes);
	return 0;
}

/*
 * Map the chosen pages, and fault them in now, so that no worker takes a page fault. The kernel
 * ignores descriptor and offset of anonymous memory.
 *
 * @param advice  MADV_POPULATE_READ or _WRITE
 */
static int
map_pages(struct backing *b, const struct mem_mr_attr *attr, int flags, int advice,
	struct error *err)
{
	void *map = mmap(NULL, b->map_len, PROT_READ | PROT_WRITE, flags, attr->fd, (off_t)b->from);

	if (map == MAP_FAILED)
		return map_failed(attr, "mmap", err);
	b->map = map;
	numa_prefer(map, b->map_len, attr->numa_node);
	/*
	 * A page of another program that is not there would be made by our access, and be charged
	 * to us. Of hugetlbfs nothing tells what is there; whoever maps its pages reserves them.
	 */
	if (of_program(attr) && !b->hugepages && !present_pages(attr->fd, b->from, map, b->map_len))
		return error_set(err, EFAULT,
			"%s: not all pages from %s0x%" PRIx64 " to 0x%" PRIx64 " are there",
			place_name(attr), attr->backing == MEM_MIRROR ? "" : "offset ", b->from,
			b->from + b->map_len);
	/*
	 * This fails if a page is gone meanwhile, or for a sparse file on a full disk. Kernels
	 * before 5.14 do not know the advice: their pages fault in at the first touch.
	 */
	if (madvise(map, b->map_len, advice) != 0 && errno != EINVAL)
		return map_failed(attr, "cannot fault it in", err);
	return 0;
}

static int
open_anonymous(struct backing *b, const struct mem_mr_attr *attr, bool hugepages, struct error *err)
{
	int flags = hugepages ? MAP_HUGETLB | MAP_HUGE_2MB : 0;
	int rc = choose_pages(b, attr, hugepages ? HUGEPAGE : (uint64_t)sysconf(_SC_PAGESIZE), err);

	b->hugepages = hugepages;
	return rc != 0
		? rc
		: map_pages(b, attr, MAP_PRIVATE | MAP_ANONYMOUS | flags, MADV_POPULATE_WRITE, err);
}

/*
 * True if a program serves the file's file system (FUSE). statfs() would ask that program, which
 * may never answer; the kernel's list of mounts does not. A mount that is not in this process's
 * mount namespace is not in the list.
 */
static bool
file_is_served_by_program(const struct statx *st)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	unsigned int major, minor;
	bool served = false;
	char *line = NULL;
	const char *type;
	size_t size = 0;

	while (mounts != NULL && !served && getline(&line, &size, mounts) > 0) {
		type = strstr(line, " - ");
		served = type != NULL && strncmp(type + 3, "fuse", 4) == 0 &&
			sscanf(line, "%*u %*u %u:%u", &major, &minor) == 2 &&
			major == st->stx_dev_major && minor == st->stx_dev_minor;
	}
	free(line);
	if (mounts != NULL)
		fclose(mounts);
	return served;
}

/* Touching a page past the end of a file raises SIGBUS. */
static int
check_place(const struct mem_mr_attr *attr, uint64_t size, struct error *err)
{
	if (attr->offset > size || attr->length > size - attr->offset)
		return error_set(err, EINVAL,
			"length: %" PRIu64 " bytes from offset %" PRIu64
			" are not in the file, which has %" PRIu64,
			attr->length, attr->offset, size);
	return 0;
}

/*
 * A file, and what a program may do with it, are not trusted. The memory of a program is in files
 * in memory only: an access to others may wait for a disk, for another machine, or for the program
 * itself (FUSE), and a worker must never wait. The file system of others is not even asked.
 */
static int
check_file(const struct mem_mr_attr *attr, bool in_memory, bool writable, struct error *err)
{
	struct statx st;

	if (of_program(attr) && !in_memory)
		return error_set(err, EINVAL,
			"file: not in memory; shared memory must be a memfd, or on tmpfs or hugetlbfs");
	if (!writable && (of_program(attr) || (attr->access & MEM_ACCESS_LOCAL_WRITE) != 0))
		return error_set(err, EACCES,
			"file: not open for reading and writing, which LOCAL_WRITE and a program's "
			"memory need");
	if (file_known(attr->fd, &st) != 0)
		return error_set(err, errno, "file: %m");
	if (!in_memory && file_is_served_by_program(&st))
		return error_set(err, EINVAL,
			"file: a program serves its file system (FUSE), and could make this process "
			"wait for its pages; allowed: files on disks and in memory");
	return check_place(attr, st.stx_size, err);
}

/* Polca has made and sealed this file: only the place in it is a program's choice. */
static int
open_mirror(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	int rc;

	if (attr->offset > MEM_MIRROR_BYTES || attr->length > MEM_MIRROR_BYTES - attr->offset)
		return error_set(err, EINVAL,
			"addr: %" PRIu64 " bytes from 0x%" PRIx64
			" end beyond a program's last address",
			attr->length, attr->offset);
	rc = choose_pages(b, attr, (uint64_t)sysconf(_SC_PAGESIZE), err);
	if (rc != 0 || mirror_map_share(b, attr->mirror_inode))
		return rc;
	rc = map_pages(b, attr, MAP_SHARED, MADV_POPULATE_WRITE, err);
	if (rc != 0)
		return rc;
	b->numa_node = node_of(b->map);
	return mirror_map_add(b, attr->mirror_inode, err);
}

static int
open_file(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	bool writable = (fcntl(attr->fd, F_GETFL) & O_ACCMODE) == O_RDWR;
	bool in_memory = fd_in_memory(attr->fd);
	struct statfs fs;
	int rc = check_file(attr, in_memory, writable, err);

	if (rc != 0)
		return rc;
	if (in_memory && fstatfs(attr->fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC) {
		page = (uint64_t)fs.f_bsize;
		b->hugepages = true;
	}
	if (!of_program(attr) && attr->offset % page != 0)
		return error_set(err, EINVAL,
			"offset: got %" PRIu64 ", must be a multiple of the page size, %" PRIu64,
			attr->offset, page);
	rc = choose_pages(b, attr, page, err);
	if (rc != 0)
		return rc;
	/*
	 * A read-only file is mapped privately: local stores go to a copy, the file is not changed.
	 */
	rc = map_pages(b, attr, writable ? MAP_SHARED : MAP_PRIVATE,
		writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ, err);
	if (rc != 0)
		return rc;
	b->watched = lost_watch(b->map, b->map_len, page);
	return b->watched != NULL ? 0
				  : error_set(err, ENOMEM, "file: no memory to watch its pages");
}

static int
open_external(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	if (attr->base == NULL || attr->length > UINTPTR_MAX - (uintptr_t)attr->base)
		return error_set(err, EINVAL, "base: no %" PRIu64 " bytes at %p", attr->length,
			attr->base);
	b->base = attr->base;
	return 0;
}

static int
open_any(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	switch (attr->backing) {
	case MEM_ANONYMOUS:
		if (attr->hugepages && open_anonymous(b, attr, true, NULL) == 0)
			return 0;
		backing_close(b);
		return open_anonymous(b, attr, false, err);
	case MEM_MIRROR:
		return open_mirror(b, attr, err);
	case MEM_FILE:
	case MEM_SHARED:
		return open_file(b, attr, err);
	case MEM_EXTERNAL:
		return open_external(b, attr, err);
	}
	return error_set(err, EINVAL, "backing: got %d", (int)attr->backing);
}

int
backing_open(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	int rc;

	memset(b, 0, sizeof(*b));
	rc = open_any(b, attr, err);
	if (rc != 0) {
		backing_close(b);
		return rc;
	}
	if (b->map != NULL)
		b->base = (uint8_t *)b->map + (first_byte(attr) - b->from);
	if (b->mirror == NULL)
		b->numa_node = node_of(b->base);
	return 0;
}

void
backing_close(struct backing *b)
{
	lost_unwatch(b->watched);
	if (b->mirror != NULL)
		mirror_map_leave(b->mirror);
	else if (b->map != NULL)
		munmap(b->map, b->map_len);
	memset(b, 0, sizeof(*b));
}
