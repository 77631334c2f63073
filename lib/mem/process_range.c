/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/capability.h"
#include "mem/process_range.h"

/* --- capabilities --- */

/*
 * For map_files, for mappings of other users' programs, and for their directories. Only who makes
 * the calls here has them effective, and only for these.
 */
#define NEEDED                                                                                     \
	(CAPABILITY(CAP_CHECKPOINT_RESTORE) | CAPABILITY(CAP_SYS_PTRACE) |                         \
		CAPABILITY(CAP_DAC_READ_SEARCH))

static int
set_not_permitted(struct error *err)
{
	return error_set(err, EPERM,
		"no path or descriptor of the program leads to its file, and polca lacks the "
		"capabilities to open it by the address: add the drop-in verbs.conf to "
		"polca.service, or keep a descriptor of the file open (docs/verbs.md)");
}

bool
process_range_permitted(struct error *err)
{
	if (capabilities_permitted(NEEDED))
		return true;
	set_not_permitted(err);
	return false;
}

int
process_directory_open(pid_t pid)
{
	struct capabilities before;
	char path[32];
	int fd;

	if (!capabilities_raise(NEEDED, &before))
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	capabilities_restore(&before);
	return fd;
}

/* --- the list of mappings --- */

/* The offset in its file that a mapping gives an address. */
static uint64_t
file_offset(const struct process_mapping *m, uint64_t addr)
{
	return m->offset + (addr - m->from);
}

/* The next mapping that ends after an address. @return false: there is none */
static bool
read_mapping(FILE *list, uint64_t at, char **line, size_t *size, struct process_mapping *m)
{
	unsigned int major_number, minor_number;

	/* a whole line, however long: its end is a path, which may look like a mapping */
	while (getline(line, size, list) > 0) {
		if (sscanf(*line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64,
			    &m->from, &m->to, m->perms, &m->offset, &major_number, &minor_number,
			    &m->inode) != 7)
			return false;
		m->device = makedev(major_number, minor_number);
		if (m->to > at)
			return true;
	}
	return false;
}

/* The part of the range from `at` on is this mapping's, if it continues the file of the first. */
static int
check_mapping(const struct process_range *r, const struct process_mapping *m, uint64_t at,
	struct error *err)
{
	if (m->from > at)
		return error_set(err, EFAULT, "addr: nothing is mapped at 0x%" PRIx64, at);
	if (strncmp(m->perms, "rw", 2) != 0 || m->perms[3] != 's')
		return error_set(err, EACCES,
			"addr: the mapping at 0x%" PRIx64
			" must be shared, for reading and writing; it is %s",
			at, m->perms);
	if (at != r->addr &&
		(m->device != r->first.device || m->inode != r->first.inode ||
			file_offset(m, at) != file_offset(&r->first, at)))
		return error_set(err, EINVAL,
			"addr: the bytes from 0x%" PRIx64
			" on do not follow those before them in one file",
			at);
	return 0;
}

static int
walk_mappings(struct process_range *r, FILE *list, struct error *err)
{
	uint64_t at = r->addr, end = r->addr + r->length;
	struct process_mapping m = { 0 };
	unsigned int num = 0;
	char *line = NULL;
	size_t size = 0;
	int rc = 0;

	for (; at < end && rc == 0; at = m.to) {
		if (!read_mapping(list, at, &line, &size, &m))
			rc = error_set(err, EFAULT, "addr: nothing is mapped at 0x%" PRIx64, at);
		else if (++num > PROCESS_RANGE_MAPPINGS)
			rc = error_set(err, EINVAL,
				"length: the region lies in more than %u mappings",
				PROCESS_RANGE_MAPPINGS);
		else
			rc = check_mapping(r, &m, at, err);
		if (rc == 0 && at == r->addr)
			r->first = m;
	}
	free(line);
	return rc;
}

/* From its beginning: by a new stream, as an old one may keep what it has read before. */
static int
read_mappings(struct process_range *r, struct error *err)
{
	int copy = lseek(r->maps, 0, SEEK_SET) == 0 ? fcntl(r->maps, F_DUPFD_CLOEXEC, 0) : -1, rc;
	FILE *list = copy >= 0 ? fdopen(copy, "r") : NULL;

	if (list == NULL) {
		rc = error_set(err, errno, "the program's mappings: %m");
		if (copy >= 0)
			close(copy);
		return rc;
	}
	rc = walk_mappings(r, list, err);
	fclose(list);
	return rc;
}

/*
 * A program that has been given rights by its file (set-user-ID, capabilities), or that hides its
 * memory, has root's files here.
 */
static int
check_owner(int process, uid_t uid, struct error *err)
{
	struct stat st;

	if (fstatat(process, "maps", &st, 0) != 0)
		return error_set(err, errno, "the program: %m");
	if (st.st_uid != uid)
		return error_set(err, EACCES,
			"the program has changed its user, or hides its memory (PR_SET_DUMPABLE)");
	return 0;
}

int
process_range_find(struct process_range *r, int process, uid_t uid, uint64_t addr, uint64_t length,
	struct error *err)
{
	int rc;

	*r = (struct process_range){
		.process = process,
		.uid = uid,
		.addr = addr,
		.length = length,
	};
	if (length == 0 || addr + length < addr)
		return error_set(err, EINVAL,
			"length: no %" PRIu64 " bytes are mapped from 0x%" PRIx64 " on", length,
			addr);
	r->maps = openat(process, "maps", O_RDONLY | O_CLOEXEC);
	if (r->maps < 0 && errno == EACCES)
		return set_not_permitted(err);
	if (r->maps < 0)
		return error_set(err, errno, "the program's mappings: %m");
	rc = check_owner(process, uid, err);
	if (rc == 0)
		rc = read_mappings(r, err);
	if (rc != 0)
		process_range_close(r);
	return rc;
}

void
process_range_close(const struct process_range *r)
{
	close(r->maps);
}

/* --- the file --- */

/* To name a file does not open it: a device does not notice, and no program is asked. */
static int
name_mapped_file(const struct process_range *r, struct error *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "map_files/%" PRIx64 "-%" PRIx64, r->first.from, r->first.to);
	fd = openat(r->process, path, O_PATH | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == EPERM || errno == EACCES)
		return set_not_permitted(err);
	return error_set(err, errno, "addr: the mapping at 0x%" PRIx64 " has changed: %m", r->addr);
}

/*
 * Mappings of other files may be for reading only, and the program may exchange them while polca
 * looks. But what belongs to the program's user was never kept from it.
 */
static int
check_mapped_file(int fd, uid_t uid, struct error *err)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) != 0)
		return error_set(err, errno, "file: %m");
	if (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC)
		return error_set(err, EINVAL,
			"file: not in memory; shared memory must be a memfd, or on tmpfs or hugetlbfs");
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return error_set(err, EINVAL, "file: not a regular file");
	if (st.st_uid != uid)
		return error_set(err, EACCES,
			"file: belongs to user %u, not to the program's: keep a descriptor of it open",
			(unsigned int)st.st_uid);
	return 0;
}

static int
open_named_file(int name, uid_t uid, struct error *err)
{
	char path[64];
	int fd, rc = check_mapped_file(name, uid, err);

	if (rc != 0)
		return rc;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return error_set(err, errno,
		"file: its mode does not let polca's user read and write it (%m): keep a "
		"descriptor of it open");
}

int
process_range_open(const struct process_range *r, struct error *err)
{
	int name = name_mapped_file(r, err), fd;

	if (name < 0)
		return name;
	fd = open_named_file(name, r->uid, err);
	close(name);
	return fd;
}

int
process_range_confirm(const struct process_range *r, int fd, struct error *err)
{
	struct process_range now = *r;
	struct stat st;
	int rc;

	if (fstat(fd, &st) != 0)
		return error_set(err, errno, "file: %m");
	rc = read_mappings(&now, err);
	if (rc != 0)
		return rc;
	if (now.first.device != st.st_dev || now.first.inode != st.st_ino ||
		file_offset(&now.first, r->addr) != file_offset(&r->first, r->addr))
		return error_set(err, EACCES,
			"addr: the mapping at 0x%" PRIx64 " has changed meanwhile", r->addr);
	return 0;
}

static int
find_and_open(int process, uid_t uid, uint64_t addr, uint64_t length, uint64_t *offset,
	struct error *err)
{
	struct process_range r;
	int fd, rc = process_range_find(&r, process, uid, addr, length, err);

	if (rc != 0)
		return rc;
	*offset = file_offset(&r.first, addr);
	fd = process_range_open(&r, err);
	rc = fd < 0 ? fd : process_range_confirm(&r, fd, err);
	process_range_close(&r);
	if (rc == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

int
process_range_file(int process, uid_t uid, uint64_t addr, uint64_t length, uint64_t *offset,
	struct error *err)
{
	struct capabilities before;
	int fd;

	if (!capabilities_raise(NEEDED, &before))
		return set_not_permitted(err);
	fd = find_and_open(process, uid, addr, length, offset, err);
	capabilities_restore(&before);
	return fd;
}
