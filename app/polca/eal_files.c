/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * With eal.multi_process, memory consists of files in hugetlbfs, PREFIXmap_N, and the pages stay taken
 * as long as the files are there. The EAL removes those that nobody holds when the next process starts,
 * also after a kill, but leaves them at its own end.
 */

#include <dirent.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "eal.h"

static void
remove_files(const char *path, const char *begin)
{
	DIR *dir = opendir(path);
	struct dirent *d;

	if (dir == NULL)
		return;
	while ((d = readdir(dir)) != NULL)
		if (strncmp(d->d_name, begin, strlen(begin)) == 0 && d->d_type != DT_DIR)
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

	snprintf(begin, sizeof(begin), "%smap_", eal_arg_value(a, "--file-prefix"));
	if (huge_dir != NULL)
		remove_files(huge_dir, begin);
	if (mounts == NULL)
		return;
	while ((m = getmntent(mounts)) != NULL)
		if (strcmp(m->mnt_type, "hugetlbfs") == 0)
			remove_files(m->mnt_dir, begin);
	endmntent(mounts);
}

void
eal_files_remove(const struct eal_args *a)
{
	static const char *const names[] = { "fbarray_", "hugepage_", "mp_socket", "config" };
	unsigned int i;

	/* config goes last: it is locked by us, and keeps another primary with this prefix away */
	remove_hugepages(a);
	for (i = 0; i < RTE_DIM(names); i++)
		remove_files(rte_eal_get_runtime_dir(), names[i]);
}
