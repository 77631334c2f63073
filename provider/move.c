/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Moving pages. The old ones are write-protected by userfaultfd; their bytes are copied to new
 * pages; and one system call puts the new pages in the place of the old ones. Who has written
 * meanwhile waits, tries again, and finds the new page.
 *
 * Pages of a file are made by a write to it, and then one mmap() replaces the old mapping. Others,
 * those with a memory policy, which only a mapping can set, and those of a program whose files are
 * limited in size, are mapped aside before the copy, and one mremap() moves them, with their page
 * tables.
 *
 * In the guarded section: no heap, no stdio, no signal handler, and no page that holds this
 * thread's stack, or the thread would wait for itself. All memory calls are system calls proper:
 * programs with registration caches patch mmap() and mremap() of the C library, and some lose
 * mremap()'s last argument.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "move.h"
#include "signals.h"

#define HUGE_PAGE ((uintptr_t)2 << 20)
#define STEP      (2 * HUGE_PAGE) /* bounds how long a writer waits */

/* Of Linux 6.4; Debian 12's headers do not have it. */
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif

static int guard_fd = -1;
static bool guard_holds_absent; /* pages that are not there yet, too */
static bool old_kernel; /* do not ask for that */
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
raw_populate(void *addr, size_t length, int advice)
{
	return syscall(SYS_madvise, addr, length, advice) == 0 ? 0 : errno;
}

/* New pages of a file are not zeroed before, as they are if a mapping faults them in. */
static int
raw_write(int file, uintptr_t addr, size_t length)
{
	uintptr_t end = addr + length;
	ssize_t n;

	for (; addr < end; addr += (uintptr_t)n) {
		n = syscall(SYS_pwrite64, file, addr, end - addr, (off_t)addr);
		if (n <= 0)
			return n < 0 ? errno : ENOSPC;
	}
	return 0;
}

/* --- the guard --- */

static bool
guard_agree(int fd, uint64_t features)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features =
			features | UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};

	return ioctl(fd, UFFDIO_API, &api) == 0;
}

/* False if the program has closed the guard, also if another file has its number now. */
static bool
guard_is_open(void)
{
	static const char kind[] = "anon_inode:[userfaultfd]";
	char path[32], target[sizeof(kind)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", guard_fd);
	return readlink(path, target, sizeof(target)) == sizeof(kind) - 1 &&
		memcmp(target, kind, sizeof(kind) - 1) == 0;
}

/* A kernel that refuses a feature can be asked again without it. */
static bool
guard_handshake(int fd)
{
	guard_holds_absent = !old_kernel && guard_agree(fd, UFFD_FEATURE_WP_UNPOPULATED);
	return guard_holds_absent || guard_agree(fd, 0);
}

/* Who may open the device need not be privileged. */
static int
guard_of_device(void)
{
	int device = (int)syscall(SYS_openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	int fd = device >= 0 ? ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC) : -1;

	if (device >= 0)
		syscall(SYS_close, device);
	return fd;
}

/* A program that has reached a limit is told so; all else means that it may not. */
static int
guard_error(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM ? error : EPERM;
}

/*
 * Without privileges and without the device, system calls of other threads that write into a
 * guarded page fail (EFAULT) instead of waiting. @return errno value
 */
static int
guard_open(void)
{
	if (guard_fd >= 0)
		return 0;
	guard_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (guard_fd < 0)
		guard_fd = guard_of_device();
	if (guard_fd < 0)
		guard_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (guard_fd < 0)
		return guard_error(errno);
	if (guard_handshake(guard_fd))
		return 0;
	close(guard_fd);
	guard_fd = -1;
	return EPERM;
}

void
move_forget_guard(void)
{
	if (guard_fd >= 0 && guard_is_open())
		close(guard_fd);
	guard_fd = -1;
	__atomic_store_n(&quiet_threads, 0, __ATOMIC_RELAXED);
}

void
move_as_old_kernel(bool on)
{
	move_forget_guard();
	old_kernel = on;
}

void
move_thread_is_quiet(void)
{
	quiet = true;
	__atomic_fetch_add(&quiet_threads, 1, __ATOMIC_RELAXED);
}

void
move_quiet_thread_ends(void)
{
	__atomic_fetch_sub(&quiet_threads, 1, __ATOMIC_RELAXED);
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

/*
 * True if the guard is to be raised. Once it is open, to raise it takes no longer than to count the
 * threads.
 */
static bool
guard_is_due(void)
{
	return guard_fd >= 0 ? !__libc_single_threaded : others_may_write();
}

bool
move_is_safe(void)
{
	return !guard_is_due() || guard_open() == 0;
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

/* --- one step: by a write to the file --- */

/*
 * The pages are mapped many at a time, which the kernel does only for reading, and as the mapping
 * is shared, for writing as well. Those for which that fails are mapped when they are used.
 *
 * A write beyond the program's limit on the size of files (RLIMIT_FSIZE) also sends SIGXFSZ, which
 * is blocked here. It is taken back, and so is one that the program has blocked and not taken yet:
 * the kernel keeps one of them.
 *
 * @return errno value; EFBIG: the limit; nothing is mapped, and the file may have some of the bytes
 */
static int
replace_by_file(int file, uintptr_t addr, size_t length, int protection)
{
	int rc = raw_write(file, addr, length);

	if (rc == EFBIG)
		signal_take_back(SIGXFSZ);
	if (rc != 0)
		return rc;
	return raw_mmap((void *)addr, length, protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
		       file, (off_t)addr) == (void *)addr
		? 0
		: errno;
}

/* --- one step: pages aside --- */

/* New pages; if there can be huge ones, at a place that agrees with the address modulo one. */
struct aside {
	char *map;
	size_t map_length;
	char *pages;
};

static bool
aside_reserve(struct aside *a, uintptr_t addr, size_t length)
{
	if (length < HUGE_PAGE) {
		a->map_length = length;
		a->map = a->pages = NULL;
		return true;
	}
	a->map_length = length + HUGE_PAGE;
	a->map = raw_mmap(NULL, a->map_length, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->map == MAP_FAILED)
		return false;
	a->pages = a->map + ((addr - (uintptr_t)a->map) & (HUGE_PAGE - 1));
	return true;
}

static int
aside_map(struct aside *a, int file, uintptr_t addr, size_t length, const struct keep *keep)
{
	int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	char *pages;
	int rc = 0;

	if (!aside_reserve(a, addr, length))
		return errno;
	pages = raw_mmap(a->pages, length, keep->protection | PROT_READ | PROT_WRITE,
		flags | (a->map != NULL ? MAP_FIXED : 0), file, file < 0 ? 0 : (off_t)addr);
	if (pages == MAP_FAILED) {
		rc = errno;
	} else {
		a->pages = pages;
		if (a->map == NULL)
			a->map = pages;
		keep_policy(keep, pages, length);
		rc = raw_populate(pages, length, MADV_POPULATE_WRITE);
	}
	if (rc != 0 && a->map != NULL)
		raw_munmap(a->map, a->map_length);
	return rc;
}

/* What is left around the pages. Not the gap that the pages have left: it may be in use again. */
static void
aside_unmap(const struct aside *a, size_t length, bool moved)
{
	size_t before = (size_t)(a->pages - a->map), after = a->map_length - length - before;

	if (!moved) {
		raw_munmap(a->map, a->map_length);
		return;
	}
	if (before > 0)
		raw_munmap(a->map, before);
	if (after > 0)
		raw_munmap(a->pages + length, after);
}

static int
replace_by_aside(const struct aside *a, uintptr_t addr, size_t length)
{
	memcpy(a->pages, (const void *)addr, length);
	return raw_replace(a->pages, length, (void *)addr) ? 0 : errno;
}

/* How the pages of a range move. */
struct move {
	struct keep keep;
	int file; /* -1: they become private */
	bool by_write; /* to the file */
	bool guarded; /* other threads must be held off */
};

#define MOVE_GUARD_IS_CLOSED EBADFD /* of move_step(): nothing was moved */

static int
move_step(const struct move *m, uintptr_t addr, size_t length)
{
	struct aside aside = { NULL, 0, NULL };
	sigset_t all, before;
	int rc = 0;

	/*
	 * pwrite() reads a page that is not there as zeros, or fails; memcpy() would end the
	 * program. The guard of kernels before 6.4 holds for pages that are there.
	 */
	if (!m->by_write || (m->guarded && !guard_holds_absent))
		rc = raw_populate((void *)addr, length, MADV_POPULATE_WRITE);
	if (rc == 0 && !m->by_write)
		rc = aside_map(&aside, m->file, addr, length, &m->keep);
	if (rc != 0)
		return rc;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* static data cannot be guarded, and need not be once the other threads have ended */
	if (m->guarded && !guard_raise(addr, length) && others_may_write())
		rc = guard_is_open() ? EPERM : MOVE_GUARD_IS_CLOSED;
	else if (m->by_write)
		rc = replace_by_file(m->file, addr, length, m->keep.protection);
	else
		rc = replace_by_aside(&aside, addr, length);
	if (m->guarded)
		guard_lower(addr, length, rc == 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!m->by_write)
		aside_unmap(&aside, length, rc == 0);
	if (rc == 0)
		keep_lock(&m->keep, (void *)addr, length);
	return rc;
}

/* Once more with a guard that the program has not closed, or by pages aside, if that is why. */
static int
move_step_in_any_way(struct move *m, uintptr_t addr, size_t length)
{
	int rc = move_step(m, addr, length);

	if (rc == MOVE_GUARD_IS_CLOSED) {
		guard_fd = -1;
		rc = guard_open();
		if (rc == 0)
			rc = move_step(m, addr, length);
	}
	if (rc == EFBIG && m->by_write) {
		m->by_write = false;
		rc = move_step(m, addr, length);
	}
	return rc == MOVE_GUARD_IS_CLOSED ? EPERM : rc;
}

/* @param guarded  other threads must be held off */
static int
move_here(int file, uintptr_t addr, size_t length, const struct keep *had, bool guarded)
{
	struct move m = { .keep = *had, .file = file, .guarded = guarded };
	uintptr_t end = addr + length, next;
	int rc = guarded ? guard_open() : 0;

	if (rc != 0)
		return rc;
	m.by_write = file >= 0 && !m.keep.has_policy;
	for (; addr < end && rc == 0; addr = next) {
		next = (addr + STEP) & ~(HUGE_PAGE - 1);
		if (next > end)
			next = end;
		rc = move_step_in_any_way(&m, addr, next - addr);
	}
	return rc;
}

/* --- a thread cannot move its own stack: another does, while it sleeps --- */

struct move_job {
	int file;
	uintptr_t addr;
	size_t length;
	struct keep had;
	pid_t sleeper;
	bool sleeps; /* atomic: it will, and does nothing else before */
	int rc;
};

static bool
is_asleep(pid_t thread)
{
	char path[64], text[256];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	state = strrchr(text, ')'); /* the end of its name, which may be anything */
	return state == NULL || strncmp(state, ") S", 3) == 0;
}

static void *
move_job_main(void *arg)
{
	struct move_job *j = arg;

	quiet = true;
	/* nothing writes to the sleeper's stack any more, neither itself nor the kernel for it */
	while (!__atomic_load_n(&j->sleeps, __ATOMIC_ACQUIRE) || !is_asleep(j->sleeper))
		sched_yield();
	j->rc = move_here(j->file, j->addr, j->length, &j->had, guard_is_due());
	return NULL;
}

/*
 * The signals that are blocked here would else be delivered on the stack. The job is not on it, or
 * the other thread would write to what it moves.
 */
static int
move_by_another_thread(int file, uintptr_t addr, size_t length, const struct keep *had)
{
	struct move_job *j = malloc(sizeof(*j));
	sigset_t all, before;
	pthread_t thread;
	int rc;

	if (j == NULL)
		return ENOMEM;
	*j = (struct move_job){ file, addr, length, *had, gettid(), false, 0 };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	__atomic_fetch_add(&quiet_threads, 2, __ATOMIC_RELAXED); /* this one, which sleeps, too */
	rc = pthread_create(&thread, NULL, move_job_main, j);
	if (rc == 0) {
		__atomic_store_n(&j->sleeps, true, __ATOMIC_RELEASE);
		rc = pthread_join(thread, NULL);
	}
	__atomic_fetch_sub(&quiet_threads, 2, __ATOMIC_RELAXED);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		rc = j->rc;
	free(j);
	return rc;
}

int
move_pages_to(int file, uintptr_t addr, size_t length, const struct keep *had)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	/* this thread's stack, with room for the calls below; no region is on the provider's own */
	if (!quiet && here + HUGE_PAGE / 32 > addr && here < addr + length + HUGE_PAGE / 8)
		return move_by_another_thread(file, addr, length, had);
	return move_here(file, addr, length, had, guard_is_due());
}
