/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/close_apart.h"
#include "mem/lost.h"
#include "mem/present.h"
#include "mem/shared.h"

/*
 * Only files in memory: an access to others may wait for a disk, for another machine, or for the
 * program itself (FUSE), and a worker must never wait. The file system of others is not even asked.
 *
 * @param page  bytes of its pages
 */
static int
shared_check_kind(int fd, uint64_t *size, uint64_t *page, bool *huge, struct error *err)
{
	struct statfs fs;
	struct stat st;

	if (!fd_in_memory(fd))
		return error_set(err, EINVAL,
			"file: not in memory; shared memory must be a memfd, or on tmpfs or hugetlbfs");
	if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0)
		return error_set(err, errno, "file: %s", strerror(errno));
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return error_set(err, EACCES, "file: not open for reading and writing");
	*huge = fs.f_type == HUGETLBFS_MAGIC;
	*page = *huge ? (uint64_t)fs.f_bsize : (uint64_t)sysconf(_SC_PAGESIZE);
	*size = (uint64_t)st.st_size;
	return 0;
}

/*
 * Have the pages mapped. Touching one past the end raises SIGBUS; one that is not there would be
 * charged to us. Of hugetlbfs nothing tells what is there; whoever maps its pages reserves them.
 */
static int
shared_take_pages(int fd, void *map, uint64_t from, uint64_t to, bool huge, struct error *err)
{
	if (!huge && !present_pages(fd, from, map, to - from))
		return error_set(err, EFAULT,
			"file: not all pages from offset 0x%" PRIx64 " to 0x%" PRIx64 " are there",
			from, to);
	/* unlike MAP_POPULATE, this fails if a page is gone meanwhile */
	if (madvise(map, to - from, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
		return error_set(err, errno, "file: cannot fault it in: %s", strerror(errno));
	return 0;
}

int
shared_map(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	uint64_t size, page, from, to;
	bool huge;
	void *map;
	int rc = shared_check_kind(attr->fd, &size, &page, &huge, err);

	if (rc != 0)
		return rc;
	if (attr->offset > size || attr->length > size - attr->offset)
		return error_set(err, EINVAL,
			"length: %" PRIu64 " bytes from offset %" PRIu64
			" are not in the file, which has %" PRIu64,
			attr->length, attr->offset, size);
	from = attr->offset / page * page;
	to = (attr->offset + attr->length + page - 1) / page * page;
	rc = present_check_bytes(attr, to - from, err);
	if (rc != 0)
		return rc;
	map = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_SHARED, attr->fd, (off_t)from);
	if (map == MAP_FAILED)
		return error_set(err, errno, "file: mmap: %s", strerror(errno));
	rc = shared_take_pages(attr->fd, map, from, to, huge, err);
	if (rc != 0)
		goto unmap;
	b->watched = lost_watch(map, to - from, page);
	if (b->watched == 0) {
		rc = error_set_limit(err, ENOSPC, "file: too many regions of files");
		goto unmap;
	}
	b->map = map;
	b->map_len = to - from;
	b->base = (uint8_t *)map + (attr->offset - from);
	b->hugepages = huge;
	return 0;

unmap:
	munmap(map, to - from);
	return rc;
}
