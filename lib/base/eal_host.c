/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#define ALLOW_EXPERIMENTAL_API /* interrupt handles: experimental here, stable in the next DPDK */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_interrupts.h>

#include "base/eal_host.h"

#define LOOK_US 100

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

static void
stay(void *arg)
{
	uint32_t *there = arg;

	__atomic_store_n(there, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/*
 * Stop the EAL's interrupt thread: block it in a callback. It would otherwise run until the process
 * exits, and walk its sources when one is removed, as rte_eal_cleanup() does with the alarm's.
 * memif (DPDK 22.11) leaves its listening socket's source there, in memory that is unmapped by
 * then.
 */
static void
hold_interrupts(void)
{
	struct rte_intr_handle *h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	static uint32_t there;

	if (h != NULL && rte_intr_type_set(h, RTE_INTR_HANDLE_EXT) == 0 &&
		rte_intr_fd_set(h, eventfd(1, EFD_CLOEXEC)) == 0 &&
		rte_intr_callback_register(h, stay, &there) == 0)
		while (__atomic_load_n(&there, __ATOMIC_ACQUIRE) == 0)
			rte_delay_us_sleep(LOOK_US);
	rte_intr_instance_free(h); /* the EAL has a copy */
}

int
eal_cleanup(void)
{
	hold_interrupts();
	return rte_eal_cleanup();
}
