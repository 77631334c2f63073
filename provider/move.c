/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Moving pages. New pages are mapped aside and filled in; the old ones are write-protected by
 * userfaultfd; their bytes are copied; and one mremap() puts the new pages, with their page
 * tables, in the place of the old ones. Who has written meanwhile waits, tries again, and finds
 * the new page.
 *
 * In the guarded section: no heap, no stdio, no signal handler, and no page that holds this
 * thread's stack, or the thread would wait for itself. All memory calls are system calls proper:
 * programs with registration caches patch mmap() and mremap() of the C library, and some lose
 * mremap()'s last argument.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "move.h"

#define HUGE_PAGE ((uintptr_t)2 << 20)
#define STEP      (8 * HUGE_PAGE) /* bounds how long a writer waits */

static int guard_fd = -1;
static unsigned int quiet_threads; /* atomic */
static __thread bool quiet;

/* --- system calls --- */

static void *
raw_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, addr, length, protection, flags, fd, offset);
}

static int
raw_munmap(void *addr, size_t length)
{
	return (int)syscall(SYS_munmap, addr, length);
}

static bool
raw_replace(void *from, size_t length, void *to)
{
	return (void *)syscall(SYS_mremap, from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
		       to) == to;
}

static int
raw_populate(void *addr, size_t length)
{
	return syscall(SYS_madvise, addr, length, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
}

/* --- the guard --- */

static bool
guard_handshake(int fd)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};

	return ioctl(fd, UFFDIO_API, &api) == 0;
}

/* Without privileges, system calls that write into a guarded page fail instead of waiting. */
static bool
guard_open(void)
{
	if (guard_fd >= 0)
		return true;
	guard_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (guard_fd < 0)
		guard_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (guard_fd < 0)
		return false;
	if (guard_handshake(guard_fd))
		return true;
	close(guard_fd);
	guard_fd = -1;
	return false;
}

void
move_forget_guard(void)
{
	if (guard_fd >= 0)
		close(guard_fd);
	guard_fd = -1;
	__atomic_store_n(&quiet_threads, 0, __ATOMIC_RELAXED);
}

void
move_thread_is_quiet(void)
{
	quiet = true;
	__atomic_fetch_add(&quiet_threads, 1, __ATOMIC_RELAXED);
}

/*
 * True if other threads may write to the program's pages. With one thread of the program, which is
 * here, no further one can begin.
 */
static bool
others_may_write(void)
{
	unsigned int own = __atomic_load_n(&quiet_threads, __ATOMIC_RELAXED) + !quiet;
	struct stat st;

	if (__libc_single_threaded)
		return false;
	/* the directory has a link for each thread, and two of its own */
	return stat("/proc/self/task", &st) != 0 || st.st_nlink > 2 + own;
}

bool
move_is_safe(void)
{
	return !others_may_write() || guard_open();
}

static bool
guard_raise(uintptr_t addr, size_t length)
{
	struct uffdio_register reg = {
		.range = { addr, length },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect protect = {
		.range = { addr, length },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	return ioctl(guard_fd, UFFDIO_REGISTER, &reg) == 0 &&
		ioctl(guard_fd, UFFDIO_WRITEPROTECT, &protect) == 0;
}

/* Whatever happened: no thread keeps waiting. Old pages that are still there open again. */
static void
guard_lower(uintptr_t addr, size_t length, bool moved)
{
	struct uffdio_writeprotect open = { .range = { addr, length } };
	struct uffdio_range range = { addr, length };

	if (!moved) {
		ioctl(guard_fd, UFFDIO_WRITEPROTECT, &open);
		ioctl(guard_fd, UFFDIO_UNREGISTER, &range);
	}
	ioctl(guard_fd, UFFDIO_WAKE, &range);
}

/* --- one step --- */

/* New pages, at a place that agrees with the address modulo a huge page. */
struct aside {
	char *map;
	size_t map_length;
	char *pages;
};

static int
aside_map(struct aside *a, int file, uintptr_t addr, size_t length)
{
	int rc;

	a->map_length = length + HUGE_PAGE;
	a->map = raw_mmap(NULL, a->map_length, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->map == MAP_FAILED)
		return errno;
	a->pages = a->map + ((addr - (uintptr_t)a->map) & (HUGE_PAGE - 1));
	if (raw_mmap(a->pages, length, PROT_READ | PROT_WRITE,
		    MAP_FIXED | (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), file,
		    file < 0 ? 0 : (off_t)addr) == MAP_FAILED)
		rc = errno;
	else
		rc = raw_populate(a->pages, length);
	if (rc != 0)
		raw_munmap(a->map, a->map_length);
	return rc;
}

/* What is left around the pages. Not the gap that the pages have left: it may be in use again. */
static void
aside_unmap(const struct aside *a, size_t length, bool moved)
{
	size_t before = (size_t)(a->pages - a->map);

	if (!moved) {
		raw_munmap(a->map, a->map_length);
		return;
	}
	if (before > 0)
		raw_munmap(a->map, before);
	if (before < HUGE_PAGE)
		raw_munmap(a->pages + length, HUGE_PAGE - before);
}

static int
move_step(int file, uintptr_t addr, size_t length, bool guarded)
{
	struct aside aside = { NULL, 0, NULL };
	sigset_t all, before;
	bool moved = false;
	int rc;

	rc = raw_populate((void *)addr, length);
	if (rc == 0)
		rc = aside_map(&aside, file, addr, length);
	if (rc != 0)
		return rc;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (guarded && !guard_raise(addr, length)) {
		rc = EPERM;
	} else {
		memcpy(aside.pages, (const void *)addr, length);
		moved = raw_replace(aside.pages, length, (void *)addr);
		rc = moved ? 0 : errno;
	}
	if (guarded)
		guard_lower(addr, length, moved);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	aside_unmap(&aside, length, moved);
	return rc;
}

int
move_pages_to(int file, uintptr_t addr, size_t length)
{
	uintptr_t end = addr + length, next, here = (uintptr_t)__builtin_frame_address(0);
	bool guarded = others_may_write();
	int rc = 0;

	/* this thread's stack, with room for the calls below; no region is on the provider's own */
	if (!quiet && here + HUGE_PAGE / 32 > addr && here < end + HUGE_PAGE / 8)
		return EFAULT;
	if (guarded && !guard_open())
		return EPERM;
	for (; addr < end && rc == 0; addr = next) {
		next = (addr + STEP) & ~(HUGE_PAGE - 1);
		if (next > end)
			next = end;
		rc = move_step(file, addr, next - addr, guarded);
	}
	return rc;
}
