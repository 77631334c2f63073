/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mappings.h"
#include "share.h"

static bool
is_the_file(const struct stat *st, const struct mapping *m)
{
	return S_ISREG(st->st_mode) && st->st_ino == m->inode && st->st_dev == m->device;
}

/* Look before opening: a path may have become something else, and opening a device acts. */
static int
open_path(const char *path, const struct mapping *m)
{
	struct stat st;
	int fd;

	if (stat(path, &st) != 0 || !is_the_file(&st, m))
		return -1;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &st) != 0 || !is_the_file(&st, m))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool
is_open_for_both(int fd, const struct mapping *m)
{
	struct stat st;

	return fstat(fd, &st) == 0 && is_the_file(&st, m) &&
		(fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* Another thread may close the descriptor, and open something else, before it is copied. */
static int
own_copy(int fd, const struct mapping *m)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy >= 0 && !is_open_for_both(copy, m)) {
		close(copy);
		copy = -1;
	}
	return copy;
}

/* A descriptor of it that the program has, as for a memfd, which has no path. */
static int
find_descriptor(const struct mapping *m)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int fd, found = -1;

	while (dir != NULL && found < 0 && (entry = readdir(dir)) != NULL) {
		fd = atoi(entry->d_name);
		if (entry->d_name[0] != '.' && is_open_for_both(fd, m))
			found = own_copy(fd, m);
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

/* Of a mapping without a name and a descriptor; the kernel wants a capability of the program. */
static int
open_mapping(const struct mapping *m)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)m->from,
		(unsigned long)m->to);
	return open_path(path, m);
}

static int
open_file_of(const struct mapping *m)
{
	int fd = m->name[0] == '/' ? open_path(m->name, m) : -1;

	if (fd < 0)
		fd = find_descriptor(m);
	return fd >= 0 ? fd : open_mapping(m);
}

/* True if the file's bytes follow one another in all of the range; m is where it begins. */
static bool
is_one_file(struct mappings *list, const struct mapping *m, uintptr_t to)
{
	struct mapping next;
	uintptr_t at;

	for (at = m->to; at < to; at = next.to)
		if (!mappings_next(list, at, &next) || next.from != at || !next.shared ||
			next.inode != m->inode || next.device != m->device ||
			next.offset != m->offset + (at - m->from) ||
			(next.protection & PROT_WRITE) == 0)
			return false;
	return true;
}

static bool
find_shared(int mirror_fd, uintptr_t addr, size_t length, struct mapping *m)
{
	struct mappings list;
	struct stat mirror;
	bool found;

	if (length == 0 || addr + length < addr || fstat(mirror_fd, &mirror) != 0 ||
		mappings_open(&list) != 0)
		return false;
	found = mappings_next(&list, addr, m) && m->from <= addr && m->shared &&
		(m->inode != mirror.st_ino || m->device != mirror.st_dev) &&
		(m->protection & PROT_READ) != 0 && (m->protection & PROT_WRITE) != 0 &&
		is_one_file(&list, m, addr + length);
	mappings_close(&list);
	return found;
}

/* The program pays for the pages, not polca; and what has no page fails here. */
static int
populate(uintptr_t addr, size_t length)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = addr & ~(page - 1);

	return syscall(SYS_madvise, from, addr + length - from, MADV_POPULATE_WRITE) == 0 ? 0
											  : errno;
}

/* A program without a free descriptor is told so, and not that its file cannot be opened. */
static int
no_descriptor_left(int mirror_fd)
{
	int spare = fcntl(mirror_fd, F_DUPFD_CLOEXEC, 0);

	if (spare < 0)
		return errno;
	close(spare);
	return 0;
}

static void
share_refuse(const struct mapping *m, uintptr_t addr, size_t length, const char *why)
{
	fprintf(stderr, "polca: memory from %#lx to %#lx (%s, shared) cannot be registered: %s\n",
		(unsigned long)addr, (unsigned long)(addr + length), m->name, why);
}

int
share_open(int mirror_fd, uintptr_t addr, size_t length, uint64_t *offset)
{
	struct mapping m;
	int fd, rc;

	if (!find_shared(mirror_fd, addr, length, &m))
		return -ENOENT;
	rc = populate(addr, length);
	if (rc != 0) {
		share_refuse(&m, addr, length, strerror(rc));
		return -EFAULT;
	}
	*offset = m.offset + (addr - m.from);
	fd = open_file_of(&m);
	if (fd < 0) {
		rc = no_descriptor_left(mirror_fd);
		if (rc == 0)
			return -EACCES;
		share_refuse(&m, addr, length, strerror(rc));
		return -rc;
	}
	if (fcntl(fd, F_GET_SEALS) >= 0)
		return fd;
	close(fd);
	share_refuse(&m, addr, length,
		"file: not in memory; shared memory must be a memfd, or on tmpfs or hugetlbfs");
	return -EFAULT;
}
