/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/mirror.h"
#include "mem/present.h"

int
mem_mirror_create(struct error *err)
{
	int fd = memfd_create("polca-mirror", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return error_set(err, errno, "no file for the program's memory: %s",
			strerror(errno));
	if (ftruncate(fd, (off_t)MEM_MIRROR_BYTES) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	error_set(err, errno, "no file for the program's memory: %s", strerror(errno));
	close(fd);
	return -ENOMEM;
}

int
mirror_map(struct backing *b, const struct mem_mr_attr *attr, struct error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from, to;
	struct stat mirror;
	void *map;
	int rc;

	if (attr->offset > MEM_MIRROR_BYTES - page ||
		attr->length > MEM_MIRROR_BYTES - page - attr->offset)
		return error_set(err, EINVAL,
			"addr: %" PRIu64 " bytes from 0x%" PRIx64 " on are no program's",
			attr->length, attr->offset);
	from = attr->offset / page * page;
	to = (attr->offset + attr->length + page - 1) / page * page;
	rc = present_check_bytes(attr, to - from, err);
	if (rc != 0)
		return rc;
	if (fstat(attr->fd, &mirror) != 0)
		return error_set(err, errno, "addr: mirror: %s", strerror(errno));
	if (mirror_map_share(b, &mirror, from, to - from)) {
		b->base = (uint8_t *)b->map + (attr->offset - from);
		return 0;
	}
	map = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_SHARED, attr->fd, (off_t)from);
	if (map == MAP_FAILED)
		return error_set(err, errno, "addr: mmap: %s", strerror(errno));
	/*
	 * Pages that are not in the file would be made by our access, and be charged to us. A
	 * program that removes them later gets zeros, as many as it has registered.
	 */
	if (!present_pages(attr->fd, from, map, to - from)) {
		munmap(map, to - from);
		return error_set(err, EFAULT,
			"addr: not all pages from 0x%" PRIx64 " to 0x%" PRIx64
			" are in the program's mirror",
			from, to);
	}
	madvise(map, to - from, MADV_POPULATE_WRITE); /* no worker takes a page fault */
	b->map = map;
	b->map_len = to - from;
	if (mirror_map_add(b, &mirror, from) != 0) {
		munmap(map, to - from);
		return error_set(err, ENOMEM, "no memory for a region of a program");
	}
	b->base = (uint8_t *)map + (attr->offset - from);
	return 0;
}
