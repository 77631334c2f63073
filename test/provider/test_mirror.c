/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Registration of a program's memory: its pages move into the mirror and back, in place, under
 * threads that write to them.
 */

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mirror.h"
#include "mirror_file.h"
#include "move.h"

#define BYTES      (64 * PAGE)
#define THREADS    4
#define ROUNDS     300
#define HUGE_BYTES ((size_t)2 << 20)
#define WRITES     1000000 /* unless the first argument says another number */

static void
test_both_sides_see_the_same_bytes(void **state)
{
	uint8_t *p = make_anonymous(BYTES), *other;
	size_t i;

	(void)state;
	for (i = 0; i < BYTES; i++)
		p[i] = (uint8_t)(i * 7);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	other = map_mirror(p, BYTES);
	assert_memory_equal(p, other, BYTES);
	other[5] = 200;
	assert_int_equal(p[5], 200);
	p[PAGE] = 201;
	assert_int_equal(other[PAGE], 201);
	mirror_release(file, (uintptr_t)p, BYTES);
	/* private again, with the bytes it had, and gone from the file */
	assert_int_equal(p[5], 200);
	assert_int_equal(p[PAGE + 1], (uint8_t)((PAGE + 1) * 7));
	assert_false(has_page(p));
	p[5] = 1;
	assert_int_equal(other[5], 0);
	munmap(other, BYTES);
	munmap(p, BYTES);
}

/* Pages stay as long as a region lies on them, wherever regions begin and end. */
static void
test_regions_that_overlap(void **state)
{
	uint8_t *p = make_anonymous(8 * PAGE);

	(void)state;
	memset(p, 1, 8 * PAGE);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, 4 * PAGE), 0);
	assert_int_equal(mirror_hold(file, (uintptr_t)p + 2 * PAGE + 100, 2 * PAGE), 0);
	assert_int_equal(mirror_hold(file, (uintptr_t)p + 10, 20), 0);
	mirror_release(file, (uintptr_t)p, 4 * PAGE);
	assert_true(has_page(p)); /* of the third */
	assert_false(has_page(p + PAGE));
	assert_true(has_page(p + 2 * PAGE));
	assert_true(has_page(p + 4 * PAGE));
	assert_false(has_page(p + 5 * PAGE));
	mirror_release(file, (uintptr_t)p + 10, 20);
	assert_false(has_page(p));
	mirror_release(file, (uintptr_t)p + 2 * PAGE + 100, 2 * PAGE);
	assert_false(has_page(p + 2 * PAGE));
	for (size_t i = 0; i < 8 * PAGE; i++)
		assert_int_equal(p[i], 1);
	munmap(p, 8 * PAGE);
}

/* The neighbours of a small object on the heap stay in use. */
static void
test_heap_objects(void **state)
{
	char *before = malloc(64), *object = malloc(100), *after = malloc(64);

	(void)state;
	strcpy(before, "before");
	strcpy(object, "object");
	strcpy(after, "after");
	assert_int_equal(mirror_hold(file, (uintptr_t)object, 100), 0);
	assert_string_equal(before, "before");
	strcpy(after, "still after");
	mirror_release(file, (uintptr_t)object, 100);
	assert_string_equal(object, "object");
	assert_string_equal(after, "still after");
	free(before);
	free(object);
	free(after);
}

/* A program's .data is a private mapping of its file. */
static void
test_static_data(void **state)
{
	static uint8_t data[3 * PAGE] = { 1, 2, 3 };
	uint8_t *seen;

	(void)state;
	data[2 * PAGE] = 7;
	assert_int_equal(mirror_hold(file, (uintptr_t)data, sizeof(data)), 0);
	assert_true(has_page(data));
	assert_int_equal(data[1], 2);
	seen = map_mirror((uint8_t *)((uintptr_t)data & ~(PAGE - 1)), 4 * PAGE);
	data[2] = 9;
	assert_int_equal(seen[((uintptr_t)data & (PAGE - 1)) + 2], 9);
	munmap(seen, 4 * PAGE);
	mirror_release(file, (uintptr_t)data, sizeof(data));
	assert_false(has_page(data));
	assert_int_equal(data[2], 9);
	assert_int_equal(data[2 * PAGE], 7);
}

/* Hold a page of a private mapping of a file, as static data are. @return mirror_hold()'s */
static int
hold_private_file(void)
{
	FILE *f = tmpfile();
	uint8_t *p;
	int rc;

	assert_int_equal(ftruncate(fileno(f), (off_t)PAGE), 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(f), 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	p[0] = 3;
	rc = mirror_hold(file, (uintptr_t)p, PAGE);
	assert_int_equal(has_page(p), rc == 0);
	assert_int_equal(p[0], 3);
	p[0] = 4;
	mirror_release(file, (uintptr_t)p, PAGE);
	assert_int_equal(p[0], 4);
	munmap(p, PAGE);
	fclose(f);
	return rc;
}

/* The guard is for anonymous memory only: with other threads about, static data are refused. */
static void *
static_data_are_refused(void *arg)
{
	assert_int_equal(hold_private_file(), EPERM);
	return arg;
}

static void
test_static_data_with_other_threads(void **state)
{
	pthread_t thread;
	struct stat task;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, static_data_are_refused, NULL), 0);
	/* detached: the C library does not notice that one thread is left */
	assert_int_equal(pthread_detach(thread), 0);
	while (stat("/proc/self/task", &task) == 0 && task.st_nlink > 3)
		sched_yield();
	assert_int_equal(hold_private_file(), 0);
}

/* Memory that the kernel may back by huge pages, from an address that is not one's begin. */
static void
test_transparent_huge_pages(void **state)
{
	size_t bytes = (size_t)8 << 20, i;
	uint8_t *p = make_anonymous(bytes);

	(void)state;
	madvise(p, bytes, MADV_HUGEPAGE); /* a kernel without them has small pages here */
	for (i = 0; i < bytes; i += PAGE)
		p[i] = (uint8_t)(i / PAGE * 3);
	assert_int_equal(mirror_hold(file, (uintptr_t)p + PAGE, bytes - 2 * PAGE), 0);
	assert_false(has_page(p));
	assert_true(has_page(p + PAGE));
	assert_true(has_page(p + bytes - 2 * PAGE));
	assert_false(has_page(p + bytes - PAGE));
	for (i = 0; i < bytes; i += PAGE)
		assert_int_equal(p[i], (uint8_t)(i / PAGE * 3));
	mirror_release(file, (uintptr_t)p + PAGE, bytes - 2 * PAGE);
	assert_false(has_page(p + PAGE));
	for (i = 0; i < bytes; i += PAGE)
		assert_int_equal(p[i], (uint8_t)(i / PAGE * 3));
	munmap(p, bytes);
}

/* --- what cannot be moved is refused by name --- */

static void
expect_refused(uint8_t *p, size_t bytes)
{
	memset(p, 3, bytes);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, bytes), EFAULT);
	assert_int_equal(p[bytes - 1], 3);
	p[0] = 4;
}

static void
test_other_kinds_are_refused(void **state)
{
	uint8_t *stack = alloca(3 * PAGE); /* not in a sanitizer's copy of the frame */
	uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	expect_refused(p, BYTES);
	munmap(p, BYTES);
	expect_refused(stack, 3 * PAGE);
}

/* Other programs see what is written to a shared mapping of a file: its pages must stay. */
static void
test_shared_file_is_refused(void **state)
{
	FILE *f = tmpfile();
	uint8_t *p, last;

	(void)state;
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), (off_t)(2 * PAGE)), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	expect_refused(p, 2 * PAGE);
	p[2 * PAGE - 1] = 9;
	assert_int_equal(pread(fileno(f), &last, 1, (off_t)(2 * PAGE - 1)), 1);
	assert_int_equal(last, 9);
	munmap(p, 2 * PAGE);
	fclose(f);
}

static void
test_holes_and_read_only_pages_are_refused(void **state)
{
	uint8_t *p = make_anonymous(4 * PAGE);

	(void)state;
	memset(p, 3, 4 * PAGE);
	munmap(p + 2 * PAGE, PAGE);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, 4 * PAGE), EFAULT);
	assert_false(has_page(p)); /* all or nothing */
	assert_int_equal(mirror_hold(file, (uintptr_t)p, 0), EINVAL);
	assert_int_equal(mirror_hold(file, UINTPTR_MAX - 10, 100), EINVAL);
	mprotect(p, PAGE, PROT_READ);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, PAGE), EFAULT);
	assert_int_equal(p[0], 3);
	munmap(p, 4 * PAGE);
}

/* --- other threads --- */

struct writer {
	volatile uint64_t *words;
	uint64_t count; /* of writes to each word; atomic */
	const bool *stop;
};

static uint64_t writes_wanted = WRITES;

/* Increments words of its own in every page. */
static void *
writer_run(void *arg)
{
	struct writer *w = arg;
	size_t i;

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < BYTES / PAGE; i++)
			w->words[i * PAGE / sizeof(uint64_t)]++;
		__atomic_store_n(&w->count, w->count + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static uint64_t
writes_done(const struct writer writer[THREADS])
{
	uint64_t least = UINT64_MAX, count;
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		count = __atomic_load_n(&writer[i].count, __ATOMIC_RELAXED);
		least = count < least ? count : least;
	}
	return least * (BYTES / PAGE) * THREADS;
}

/* Pages that writers write to while they move: what is special about them. */
enum writers_pages {
	PAGES_PLAIN,
	PAGES_HUGE, /* in one that is transparently huge */
	PAGES_LOCKED,
	PAGES_BOUND, /* to a NUMA node */
};

static size_t
bytes_of_pages(enum writers_pages kind)
{
	return kind == PAGES_HUGE ? HUGE_BYTES : BYTES;
}

/* One huge page, as far as the kernel has one. */
static uint8_t *
make_huge_page(void)
{
	uint8_t *p = make_anonymous(2 * HUGE_BYTES), *huge;
	size_t before = -(uintptr_t)p & (HUGE_BYTES - 1);

	huge = p + before;
	if (before > 0)
		munmap(p, before);
	munmap(huge + HUGE_BYTES, HUGE_BYTES - before);
	madvise(huge, HUGE_BYTES, MADV_HUGEPAGE);
	huge[0] = 0;
	return huge;
}

static uint8_t *
make_pages(enum writers_pages kind)
{
	uint8_t *p = kind == PAGES_HUGE ? make_huge_page() : make_anonymous(BYTES);
	unsigned long node = 1; /* the first */

	if (kind == PAGES_LOCKED)
		assert_int_equal(mlock(p, BYTES), 0);
	if (kind == PAGES_BOUND)
		assert_int_equal(syscall(SYS_mbind, p, BYTES, MPOL_BIND, &node, 8 * sizeof(node),
					 0),
			0);
	return p;
}

static void
expect_no_write_lost(enum writers_pages kind)
{
	uint8_t *p = make_pages(kind);
	struct writer writer[THREADS];
	pthread_t thread[THREADS];
	bool stop = false;
	unsigned int i, round;

	for (i = 0; i < THREADS; i++) {
		writer[i] = (struct writer){ (uint64_t *)(void *)p + i, 0, &stop };
		assert_int_equal(pthread_create(&thread[i], NULL, writer_run, &writer[i]), 0);
	}
	for (round = 0; round < ROUNDS || writes_done(writer) < writes_wanted; round++) {
		assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
		mirror_release(file, (uintptr_t)p, BYTES);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_true(writer[i].count > 0);
		for (size_t page = 0; page < BYTES / PAGE; page++)
			assert_int_equal(writer[i].words[page * PAGE / sizeof(uint64_t)],
				writer[i].count);
	}
	munmap(p, bytes_of_pages(kind));
}

static void
test_no_write_is_lost(void **state)
{
	(void)state;
	expect_no_write_lost(PAGES_PLAIN);
}

static void
test_no_write_to_a_huge_page_is_lost(void **state)
{
	(void)state;
	expect_no_write_lost(PAGES_HUGE);
}

static void
test_no_write_to_locked_pages_is_lost(void **state)
{
	(void)state;
	expect_no_write_lost(PAGES_LOCKED);
}

static void
test_no_write_to_bound_pages_is_lost(void **state)
{
	(void)state;
	expect_no_write_lost(PAGES_BOUND);
}

/* Writes a word of its own once in every page, which nobody has written to before. */
static void *
first_writer_run(void *arg)
{
	volatile uint64_t *words = arg;
	size_t page;

	for (page = 0; page < BYTES / PAGE; page++)
		words[page * PAGE / sizeof(uint64_t)] = page + 1;
	return NULL;
}

static void
expect_first_writes(const uint8_t *p)
{
	const uint64_t *words = (const uint64_t *)(const void *)p;
	size_t page, i;

	for (page = 0; page < BYTES / PAGE; page++)
		for (i = 0; i < THREADS; i++)
			assert_int_equal(words[page * PAGE / sizeof(uint64_t) + i], page + 1);
}

static void
test_no_first_write_is_lost(void **state)
{
	unsigned int i, round;
	pthread_t thread[THREADS];
	uint8_t *p;

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		p = make_anonymous(BYTES);
		for (i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, first_writer_run,
						 p + i * sizeof(uint64_t)),
				0);
		assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
		for (i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		expect_first_writes(p);
		mirror_release(file, (uintptr_t)p, BYTES);
		expect_first_writes(p);
		munmap(p, BYTES);
	}
}

static int
old_kernel_setup(void **state)
{
	(void)state;
	move_as_old_kernel(true);
	return 0;
}

static int
old_kernel_teardown(void **state)
{
	(void)state;
	move_as_old_kernel(false);
	return 0;
}

/* --- fork --- */

static bool child_dies_in_fork, signal_in_fork;

/* Handlers of a child run in the order in which they were made: this one is the first. */
static void
die_in_fork(void)
{
	if (child_dies_in_fork)
		kill(getpid(), SIGKILL);
}

/* And those before a fork in the reverse order: the provider's have run. */
static void
send_signal_in_fork(void)
{
	if (!signal_in_fork)
		return;
	signal_in_fork = false;
	raise(SIGUSR1);
}

static void __attribute__((constructor(200))) watch_forks_first(void)
{
	pthread_atfork(send_signal_in_fork, NULL, die_in_fork);
}

static int64_t
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* @return what the child returns after it has written to its copy */
static int
child_writes(volatile uint8_t *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		bool same = p[0] == 7 && p[PAGE] == 7;

		p[0] = 8;
		p[PAGE] = 8;
		_exit(same && p[0] == 8 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
test_a_child_has_its_own_copy(void **state)
{
	uint8_t *p = make_anonymous(BYTES), *other;

	(void)state;
	memset(p, 7, BYTES);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	other = map_mirror(p, BYTES);
	assert_int_equal(child_writes(p), 0);
	assert_int_equal(p[0], 7);
	assert_int_equal(p[PAGE], 7);
	p[1] = 9; /* the parent's is still shared */
	assert_int_equal(other[1], 9);
	mirror_release(file, (uintptr_t)p, BYTES);
	munmap(other, BYTES);
	munmap(p, BYTES);
}

/* What the parent writes once fork() has returned, beside its region, too, is not the child's. */
static void
test_a_child_has_what_was_there_at_the_fork(void **state)
{
	size_t bytes = (size_t)64 << 20, i;
	uint8_t *p = make_anonymous(bytes);
	int status, round;
	pid_t pid;

	(void)state;
	for (round = 0; round < 5; round++) {
		memset(p, 7, bytes);
		assert_int_equal(mirror_hold(file, (uintptr_t)p + 64, bytes - 128), 0);
		pid = fork();
		if (pid == 0) {
			for (i = 0; i < bytes && p[i] == 7; i++)
				;
			_exit(i == bytes ? 0 : 1);
		}
		p[bytes - 1] = p[bytes / 2] = p[0] = 8;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		mirror_release(file, (uintptr_t)p + 64, bytes - 128);
	}
	munmap(p, bytes);
}

struct fork_outcome {
	const char *failed;
	int status; /* of the child */
};

/* A thread has a heap of its own, whose rest begins behind what it has allocated last. */
static void *
fork_with_registered_heap(void *arg)
{
	/* volatile: or the compiler leaves out what is not used */
	void *volatile parts = malloc(512), *volatile apart = malloc(2 * PAGE);
	uint8_t *p = malloc(100), *page;
	struct fork_outcome *o = arg;
	uint8_t before[PAGE];
	pid_t pid;

	memset(p, 7, 100);
	page = (uint8_t *)((uintptr_t)p & ~(PAGE - 1));
	free(parts); /* the parent lists its parts there; its child would allocate from the rest */
	if (mirror_hold(file, (uintptr_t)p, 100) != 0)
		o->failed = "it cannot be held";
	memcpy(before, page, PAGE);
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, &o->status, 0);
	if (memcmp(page, before, PAGE) != 0)
		o->failed = "the child has written to its parent's heap";
	mirror_release(file, (uintptr_t)p, 100);
	free(p);
	free(apart);
	return NULL;
}

/* What the child allocates to leave the mirror is not in the pages that it leaves. */
static void
test_a_child_does_not_touch_its_parents_heap(void **state)
{
	struct fork_outcome o = { NULL, -1 };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, fork_with_registered_heap, &o), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (o.failed != NULL)
		fail_msg("%s", o.failed);
	assert_int_equal(o.status, 0);
}

static void
fork_in_handler(int number)
{
	int status;
	pid_t pid = fork();

	(void)number;
	if (pid == 0)
		_exit(0);
	waitpid(pid, &status, 0);
}

/* A signal that arrives meanwhile is delivered when the provider has let go of its locks. */
static void
test_a_signal_during_a_fork(void **state)
{
	struct sigaction forks = { .sa_handler = fork_in_handler }, before;
	uint8_t *p = make_anonymous(BYTES);
	int status;
	pid_t pid;

	(void)state;
	memset(p, 7, BYTES);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	assert_int_equal(sigaction(SIGUSR1, &forks, &before), 0);
	signal_in_fork = true;
	pid = fork();
	if (pid == 0)
		_exit(p[0] == 7 ? 0 : 1);
	assert_false(signal_in_fork);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sigaction(SIGUSR1, &before, NULL);
	mirror_release(file, (uintptr_t)p, BYTES);
	munmap(p, BYTES);
}

/* It may be killed before it has its copies: then there is nobody to wait for. */
static void
test_a_fork_whose_child_is_killed(void **state)
{
	uint8_t *p = make_anonymous(BYTES);
	int64_t begin = seconds_now();
	int status;
	pid_t pid;

	(void)state;
	memset(p, 7, BYTES);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	child_dies_in_fork = true;
	pid = fork();
	child_dies_in_fork = false;
	assert_true(pid > 0);
	assert_true(seconds_now() - begin < 9); /* of the 10 that a fork waits at most */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	p[0] = 8;
	mirror_release(file, (uintptr_t)p, BYTES);
	munmap(p, BYTES);
}

/* A program may free its memory before it deregisters it: no page may stay in the file. */
static void
test_unmapped_before_release(void **state)
{
	uint8_t *p = make_anonymous(BYTES);

	(void)state;
	memset(p, 7, BYTES);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	munmap(p + PAGE, 8 * PAGE);
	mirror_release(file, (uintptr_t)p, BYTES);
	assert_false(has_page(p));
	assert_false(has_page(p + 2 * PAGE));
	assert_int_equal(p[0], 7);
	assert_int_equal(p[9 * PAGE], 7);
	munmap(p, BYTES);
}

/* mremap() takes the mirror's pages to other addresses, as realloc() of large blocks does. */
static void
test_moved_before_release(void **state)
{
	uint8_t *p = make_anonymous(BYTES), *to = make_anonymous(BYTES), *moved;

	(void)state;
	memset(p, 7, BYTES);
	p[3 * PAGE] = 8;
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	moved = mremap(p + PAGE, BYTES - PAGE, BYTES - PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	assert_ptr_equal(moved, to);
	assert_int_equal(child_writes(moved), 0);
	assert_int_equal(moved[0], 7);
	mirror_release(file, (uintptr_t)p, BYTES);
	assert_false(has_page(p));
	assert_false(has_page(p + 3 * PAGE));
	assert_int_equal(p[0], 7);
	assert_int_equal(moved[0], 7);
	assert_int_equal(moved[2 * PAGE], 8);
	munmap(to, BYTES);
	munmap(p, PAGE);
}

/* Memory for private pages is short: they stay in the mirror, until there is some. */
static void
test_no_memory_to_move_back(void **state)
{
	struct rlimit before, none;
	uint8_t *p = make_anonymous(BYTES), *other = make_anonymous(PAGE);

	(void)state;
	memset(p, 7, BYTES);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = (struct rlimit){ PAGE, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	mirror_release(file, (uintptr_t)p, BYTES);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_true(has_page(p));
	assert_int_equal(child_writes(p), 0);
	assert_int_equal(p[0], 7);
	assert_int_equal(mirror_hold(file, (uintptr_t)other, PAGE), 0);
	assert_false(has_page(p));
	assert_int_equal(p[0], 7);
	mirror_release(file, (uintptr_t)other, PAGE);
	munmap(other, PAGE);
	munmap(p, BYTES);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_sides_see_the_same_bytes),
		cmocka_unit_test(test_regions_that_overlap),
		cmocka_unit_test(test_heap_objects),
		cmocka_unit_test(test_static_data),
		cmocka_unit_test(test_static_data_with_other_threads),
		cmocka_unit_test(test_transparent_huge_pages),
		cmocka_unit_test(test_other_kinds_are_refused),
		cmocka_unit_test(test_shared_file_is_refused),
		cmocka_unit_test(test_holes_and_read_only_pages_are_refused),
		cmocka_unit_test(test_no_write_is_lost),
		cmocka_unit_test(test_no_write_to_a_huge_page_is_lost),
		cmocka_unit_test(test_no_write_to_locked_pages_is_lost),
		cmocka_unit_test(test_no_write_to_bound_pages_is_lost),
		cmocka_unit_test(test_no_first_write_is_lost),
		cmocka_unit_test_setup_teardown(test_no_write_is_lost, old_kernel_setup,
			old_kernel_teardown),
		cmocka_unit_test_setup_teardown(test_no_first_write_is_lost, old_kernel_setup,
			old_kernel_teardown),
		cmocka_unit_test(test_a_child_has_its_own_copy),
		cmocka_unit_test(test_a_child_has_what_was_there_at_the_fork),
		cmocka_unit_test(test_a_child_does_not_touch_its_parents_heap),
		cmocka_unit_test(test_a_signal_during_a_fork),
		cmocka_unit_test(test_a_fork_whose_child_is_killed),
		cmocka_unit_test(test_unmapped_before_release),
		cmocka_unit_test(test_moved_before_release),
		cmocka_unit_test(test_no_memory_to_move_back),
	};

	if (argc > 1)
		writes_wanted = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("provider mirror", tests, mirror_setup, mirror_teardown);
}
