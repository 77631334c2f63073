/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>

#include "base/eal_host.h"

/*
 * Without /sys/module the EAL fails in its VFIO setup, even if no device needs VFIO; without /sys
 * it reports the CPUs in its arguments as unavailable.
 */
int
eal_explain_host(struct error *err)
{
	if (access("/sys/module", F_OK) == 0)
		return 0;
	return error_set(err, ENOENT,
		"DPDK does not start: there is no /sys/module here. Give this container or sandbox "
		"the host's /sys, read-only is enough");
}

static void
runtime_dir_remove_own(void)
{
	rmdir(rte_eal_get_runtime_dir());
}

void
runtime_dir_remove_at_exit(void)
{
	static bool registered;

	if (!registered)
		atexit(runtime_dir_remove_own);
	registered = true;
}

/* @return 4711 for "polca-bench-4711" and name "polca-bench"; 0: not a directory of this name */
static pid_t
pid_of_runtime_dir(const char *file, const char *name)
{
	size_t len = strlen(name);
	char *end;
	long pid;

	if (strncmp(file, name, len) != 0 || file[len] != '-')
		return 0;
	pid = strtol(file + len + 1, &end, 10);
	return *end == '\0' && pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

void
runtime_dir_remove_stale(const char *name)
{
	char path[PATH_MAX], *slash;
	struct dirent *d;
	pid_t pid;
	DIR *dir;

	snprintf(path, sizeof(path), "%s", rte_eal_get_runtime_dir());
	slash = strrchr(path, '/');
	if (slash == NULL)
		return;
	*slash = '\0';
	dir = opendir(path);
	if (dir == NULL)
		return;
	while ((d = readdir(dir)) != NULL) {
		pid = pid_of_runtime_dir(d->d_name, name);
		if (pid != 0 && kill(pid, 0) != 0 && errno == ESRCH)
			unlinkat(dirfd(dir), d->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}
