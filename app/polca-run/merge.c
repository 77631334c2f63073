/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Polca's devices beside the kernel's: a tree of links to both, of which SYSFS_PATH can name only
 * one. It is kept for the user's next program, which brings it up to date.
 */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fnv.h"
#include "merge.h"

#define KERNEL "/sys"

bool
kernel_has_rdma(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* A directory of this user's; one that another has made, as in /tmp, may lead anywhere. */
static int
make_own_directory(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) != 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	/* an older one may be open to others, who could put links into it */
	return (st.st_mode & 0077) == 0 || chmod(path, 0700) == 0 ? 0 : -errno;
}

/* Another program that starts at the same time finds the old link or the new one. */
static int
merge_link(const char *target, const char *dir, const char *name)
{
	char path[PATH_MAX], fresh[PATH_MAX], old[PATH_MAX];
	uint64_t unique;
	int rc;
	ssize_t n;

	snprintf(path, sizeof(path), "%.2000s/%.255s", dir, name);
	/* a process of another container may have the same number */
	if (getrandom(&unique, sizeof(unique), 0) != sizeof(unique))
		return -EIO;
	snprintf(fresh, sizeof(fresh), "%.2000s/.%016" PRIx64, dir, unique);
	n = readlink(path, old, sizeof(old) - 1);
	old[n > 0 ? n : 0] = '\0';
	if (strcmp(old, target) == 0)
		return 0;
	if (symlink(target, fresh) != 0)
		return -errno;
	if (rename(fresh, path) == 0)
		return 0;
	rc = -errno;
	unlink(fresh);
	return rc;
}

/* Link to everything in a directory of this tree that the preferred tree, if any, does not have. */
static int
link_all(const char *tree, const char *class, const char *preferred, const char *dir)
{
	char from[PATH_MAX], target[PATH_MAX];
	struct dirent *entry;
	DIR *d;
	int rc = 0;

	snprintf(from, sizeof(from), "%.2000s/class/%s", tree, class);
	d = opendir(from);
	while (d != NULL && rc == 0 && (entry = readdir(d)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		if (preferred != NULL) {
			snprintf(target, sizeof(target), "%.2000s/class/%s/%.255s", preferred,
				class, entry->d_name);
			if (access(target, F_OK) == 0)
				continue;
		}
		snprintf(target, sizeof(target), "%.2000s/%.255s", from, entry->d_name);
		rc = merge_link(target, dir, entry->d_name);
	}
	if (d != NULL)
		closedir(d);
	return rc;
}

/* Devices that are gone. */
static void
remove_dangling(const char *dir)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *d = opendir(dir);

	while (d != NULL && (entry = readdir(d)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.2000s/%.255s", dir, entry->d_name);
		if (access(path, F_OK) != 0)
			unlink(path);
	}
	if (d != NULL)
		closedir(d);
}

static int
merge_class(const char *tree, const char *class, const char *merged)
{
	char dir[PATH_MAX];
	int rc;

	snprintf(dir, sizeof(dir), "%.2000s/class/%s", merged, class);
	rc = make_own_directory(dir);
	if (rc == 0)
		rc = link_all(tree, class, NULL, dir);
	if (rc == 0)
		rc = link_all(KERNEL, class, tree, dir);
	remove_dangling(dir);
	return rc;
}

/*
 * Where this user's files live until the host starts again. After su(1), the variable may be
 * another's.
 */
static void
user_directory(char *path, size_t size)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (dir != NULL && dir[0] == '/' && stat(dir, &st) == 0 && st.st_uid == geteuid())
		snprintf(path, size, "%.200s/polca-run", dir);
	else if (geteuid() == 0)
		snprintf(path, size, "/run/polca-run");
	else
		snprintf(path, size, "/tmp/polca-run-%u", (unsigned int)geteuid());
}

int
merge_trees(const char *tree, char *merged, size_t size)
{
	char top[256], path[PATH_MAX], misc[PATH_MAX];
	int rc;

	user_directory(top, sizeof(top));
	/* the trees of several sockets differ in their names, which must stay short */
	snprintf(merged, size, "%s/%016" PRIx64, top, fnv_add(FNV_START, tree, strlen(tree)));
	snprintf(path, sizeof(path), "%.2000s/class", merged);
	rc = make_own_directory(top);
	if (rc == 0)
		rc = make_own_directory(merged);
	if (rc == 0)
		rc = make_own_directory(path);
	if (rc == 0)
		rc = merge_class(tree, "infiniband", merged);
	if (rc == 0)
		rc = merge_class(tree, "infiniband_verbs", merged);
	if (rc != 0)
		return rc;
	/* of librdmacm */
	snprintf(misc, sizeof(misc), "%.2000s/class/misc", tree);
	return merge_link(misc, path, "misc");
}
