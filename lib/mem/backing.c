/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/close_apart.h"
#include "base/file_kind.h"
#include "mem/backing.h"
#include "mem/lost.h"
#include "mem/mirror.h"
#include "mem/shared.h"

#define HUGEPAGE ((uint64_t)2 << 20)

#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

static bool
round_up(uint64_t length, uint64_t page, size_t *rounded)
{
	if (length > SIZE_MAX - page)
		return false;
	*rounded = (length + page - 1) / page * page;
	return true;
}

static int
numa_check(int node, struct error *err)
{
	int last = numa_available() < 0 ? 0 : numa_max_node();

	if (node < -1 || node > last)
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

/*
 * Map b->map_len bytes, and fault in all pages now, so that no worker takes a page fault.
 *
 * @param advice  MADV_POPULATE_READ or _WRITE. @return 0, or a negative errno and the failed *step
 */
static int
map_pages(struct backing *b, const struct mem_mr_attr *attr, int flags, int fd, uint64_t offset,
	int advice, const char **step)
{
	int rc;

	*step = "mmap";
	b->base = mmap(NULL, b->map_len, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
	if (b->base == MAP_FAILED)
		return -errno;
	numa_prefer(b->base, b->map_len, attr->numa_node);
	*step = "cannot fault it in"; /* for example a sparse file on a full disk */
	/* Kernels before 5.14 do not know the advice: their pages fault in at the first touch. */
	if (madvise(b->base, b->map_len, advice) != 0 && errno != EINVAL) {
		rc = -errno;
		munmap(b->base, b->map_len);
		return rc;
	}
	b->map = b->base;
	return 0;
}

static int
map_anonymous(struct backing *b, const struct mem_mr_attr *attr, uint64_t page, int flags)
{
	const char *step;

	if (!round_up(attr->length, page, &b->map_len))
		return -ENOMEM;
	return map_pages(b, attr, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0, MADV_POPULATE_WRITE,
		&step);
}

static int
open_anonymous(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	int rc;

	rc = numa_check(attr->numa_node, err);
	if (rc != 0)
		return rc;
	if (attr->hugepages && map_anonymous(b, attr, HUGEPAGE, MAP_HUGETLB | MAP_HUGE_2MB) == 0) {
		b->hugepages = true;
		return 0;
	}
	rc = map_anonymous(b, attr, (uint64_t)sysconf(_SC_PAGESIZE), 0);
	if (rc != 0)
		return error_set(err, -rc, "length: no memory for %" PRIu64 " bytes: %s",
			attr->length, strerror(-rc));
	return 0;
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

static int
open_file(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	bool writable = (fcntl(attr->fd, F_GETFL) & O_ACCMODE) == O_RDWR;
	struct statfs fs;
	const char *step;
	struct statx st;
	int rc;

	rc = numa_check(attr->numa_node, err);
	if (rc != 0)
		return rc;
	if (!writable && (attr->access & MEM_ACCESS_LOCAL_WRITE) != 0)
		return error_set(err, EACCES,
			"file: not open for reading and writing, which LOCAL_WRITE needs");
	if (file_known(attr->fd, &st) != 0)
		return error_set(err, errno, "file: %s", strerror(errno));
	if (file_is_served_by_program(&st))
		return error_set(err, EINVAL,
			"file: a program serves its file system (FUSE), and could make this process "
			"wait for its pages; allowed: files on disks and in memory");
	/* only of files in memory: others' file systems may never answer */
	if (fd_in_memory(attr->fd) && fstatfs(attr->fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC) {
		page = (uint64_t)fs.f_bsize;
		b->hugepages = true;
	}
	if (attr->offset % page != 0)
		return error_set(err, EINVAL,
			"offset: got %" PRIu64 ", must be a multiple of the page size, %" PRIu64,
			attr->offset, page);
	/* Touching a page past the end of a file raises SIGBUS. */
	if (attr->offset > st.stx_size || attr->length > st.stx_size - attr->offset)
		return error_set(err, EINVAL,
			"length: %" PRIu64 " bytes from offset %" PRIu64
			" are not in the file, which has %" PRIu64,
			attr->length, attr->offset, (uint64_t)st.stx_size);
	if (!round_up(attr->length, page, &b->map_len))
		return error_set(err, EINVAL, "length: got %" PRIu64, attr->length);
	/*
	 * A read-only file is mapped privately: local stores go to a copy, the file is not changed.
	 */
	rc = map_pages(b, attr, writable ? MAP_SHARED : MAP_PRIVATE, attr->fd, attr->offset,
		writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ, &step);
	if (rc != 0)
		return error_set(err, -rc, "file: %s: %s", step, strerror(-rc));
	b->watched = lost_watch(b->map, b->map_len, page);
	if (b->watched == 0) {
		munmap(b->map, b->map_len);
		return error_set_limit(err, ENOSPC, "path: too many regions of files");
	}
	return 0;
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
		return open_anonymous(b, attr, err);
	case MEM_FILE:
		return open_file(b, attr, err);
	case MEM_EXTERNAL:
		return open_external(b, attr, err);
	case MEM_MIRROR:
		return mirror_map(b, attr, err);
	case MEM_SHARED:
		return shared_map(b, attr, err);
	}
	return error_set(err, EINVAL, "backing: got %d", (int)attr->backing);
}

/* Ask the kernel: a preferred node may have been full. */
static int
node_of(void *addr)
{
	int node = -1;

	return get_mempolicy(&node, NULL, 0, addr, MPOL_F_NODE | MPOL_F_ADDR) == 0 ? node : -1;
}

int
backing_open(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	int rc;

	memset(b, 0, sizeof(*b));
	rc = open_any(b, attr, err);
	if (rc == 0)
		b->numa_node = node_of(b->base);
	return rc;
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
