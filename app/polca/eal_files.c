/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * With eal.multi_process, memory consists of files in hugetlbfs, PREFIXmap_N, and their pages stay
 * in use while the files exist. The EAL removes files without a user when the next process starts,
 * also after a kill, but not when it ends itself: this file does that.
 */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "eal.h"

/*
 * Release our own locks, which would look like another process's. The memory is already unmapped.
 */
static void
unlock_hugepages(const char *begin)
{
	DIR *dir = opendir("/proc/self/fd");
	char target[PATH_MAX];
	const char *name;
	struct dirent *d;
	ssize_t n;

	if (dir == NULL)
		return;
	while ((d = readdir(dir)) != NULL) {
		n = readlinkat(dirfd(dir), d->d_name, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		name = strrchr(target, '/');
		if (name != NULL && strncmp(name + 1, begin, strlen(begin)) == 0)
			flock(atoi(d->d_name), LOCK_UN);
	}
	closedir(dir);
}

/*
 * True if a process uses the hugepage file. Users hold a shared lock on it; the EAL tests this in
 * the same way.
 */
static bool
hugepage_file_in_use(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool held;

	if (fd < 0)
		return true;
	held = flock(fd, LOCK_EX | LOCK_NB) != 0;
	close(fd);
	return held;
}

static void
remove_eal_files(const char *path, const char *begin, bool keep_held)
{
	DIR *dir = opendir(path);
	struct dirent *d;

	if (dir == NULL)
		return;
	while ((d = readdir(dir)) != NULL)
		if (strncmp(d->d_name, begin, strlen(begin)) == 0 && d->d_type != DT_DIR &&
			!(keep_held && hugepage_file_in_use(dirfd(dir), d->d_name)))
			unlinkat(dirfd(dir), d->d_name, 0);
	closedir(dir);
}

static void
remove_hugepages(const struct eal_args *a)
{
	const char *huge_dir = eal_arg_value(a, "--huge-dir");
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	const struct mntent *m;
	char begin[NAME_MAX];

	/* the last part of the runtime directory is the prefix, whichever option set it */
	snprintf(begin, sizeof(begin), "%smap_", strrchr(rte_eal_get_runtime_dir(), '/') + 1);
	unlock_hugepages(begin);
	if (huge_dir != NULL)
		remove_eal_files(huge_dir, begin, true);
	if (mounts == NULL)
		return;
	while ((m = getmntent(mounts)) != NULL)
		if (strcmp(m->mnt_type, "hugetlbfs") == 0)
			remove_eal_files(m->mnt_dir, begin, true);
	endmntent(mounts);
}

void
eal_files_remove(const struct eal_args *a)
{
	static const char *const names[] = { "fbarray_", "hugepage_", "mp_socket", "config" };
	unsigned int i;

	/*
	 * remove config last: we hold its lock, which keeps other primary processes with this
	 * prefix away
	 */
	remove_hugepages(a);
	for (i = 0; i < RTE_DIM(names); i++)
		remove_eal_files(rte_eal_get_runtime_dir(), names[i], false);
}
