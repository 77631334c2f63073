/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * All calls are system calls proper, as in move.c: no library in between, and no libnuma.
 */

#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keep.h"

/*
 * msync() that is only to invalidate does nothing to mappings of memory, but is refused where pages
 * are locked (its manual page: EBUSY).
 */
static bool
is_locked(uintptr_t addr)
{
	return syscall(SYS_msync, addr, sysconf(_SC_PAGESIZE), MS_INVALIDATE) != 0 &&
		errno == EBUSY;
}

/* Of a mapping without a policy of its own, the kernel says MPOL_DEFAULT. */
static bool
read_policy(struct keep *k, uintptr_t addr)
{
	memset(k->nodes, 0, sizeof(k->nodes));
	return syscall(SYS_get_mempolicy, &k->policy, k->nodes, KEEP_NODES, addr, MPOL_F_ADDR) ==
		0 &&
		k->policy != MPOL_DEFAULT;
}

void
keep_read(struct keep *k, uintptr_t addr, int protection)
{
	k->protection = protection;
	k->locked = is_locked(addr);
	k->has_policy = read_policy(k, addr);
}

void
keep_policy(const struct keep *k, void *pages, size_t length)
{
	if (k->has_policy)
		syscall(SYS_mbind, pages, length, k->policy, k->nodes, KEEP_NODES, 0);
}

void
keep_lock(const struct keep *k, void *pages, size_t length)
{
	if (k->locked)
		syscall(SYS_mlock, pages, length);
}

void
keep_clear_policy(int file, uintptr_t addr, size_t length)
{
	void *map =
		(void *)syscall(SYS_mmap, NULL, length, PROT_NONE, MAP_SHARED, file, (off_t)addr);

	if (map == MAP_FAILED)
		return;
	/* the kernel skips what does not change the mapping, which is new: change it first */
	syscall(SYS_mbind, map, length, MPOL_LOCAL, NULL, 0, 0);
	syscall(SYS_mbind, map, length, MPOL_DEFAULT, NULL, 0, 0);
	syscall(SYS_munmap, map, length);
}
