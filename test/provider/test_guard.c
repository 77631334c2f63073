/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * System calls of another thread that write into pages while they move: they wait, if this user may
 * open /dev/userfaultfd, as root's do. Each user is a child, with a /dev of its own.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
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
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mirror.h"
#include "mirror_file.h"

#define DEVICE   "/dev/userfaultfd"
#define BYTES    (16 * PAGE)
#define ROUNDS   3000
#define NOBODY   65534
#define SPINNERS 4 /* more than there are CPUs, so that they are interrupted */
#define NO_FAULT 0
#define FAULTED  10
#define SKIPPED  77

struct caller {
	uint8_t *pages;
	bool stop;
	uint64_t calls;
	uint64_t failed;
};

/* read() writes to the pages from inside the kernel. */
static void *
caller_run(void *arg)
{
	struct caller *c = arg;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		if (read(zero, c->pages, BYTES) != (ssize_t)BYTES)
			c->failed++;
		__atomic_store_n(&c->calls, c->calls + 1, __ATOMIC_RELAXED);
	}
	close(zero);
	return NULL;
}

static int
move_under_calls(void)
{
	struct caller c = { .pages = make_anonymous(BYTES) };
	pthread_t thread;
	int i, rc = 0;

	if (pthread_create(&thread, NULL, caller_run, &c) != 0)
		return 1;
	for (i = 0; rc == 0 && (i < ROUNDS || __atomic_load_n(&c.calls, __ATOMIC_RELAXED) < ROUNDS);
		i++) {
		rc = mirror_hold(file, (uintptr_t)c.pages, BYTES);
		if (rc == 0)
			mirror_release(file, (uintptr_t)c.pages, BYTES);
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%llu of %llu calls failed\n", (unsigned long long)c.failed,
		(unsigned long long)c.calls);
	fflush(stdout);
	return rc != 0 ? 1 : c.failed == 0 ? NO_FAULT : FAULTED;
}

/* The kernel writes to the page with a thread's descriptor when it interrupts the thread (rseq). */
static void *volatile descriptor;

static void *
spinner_run(void *stop)
{
	descriptor = __builtin_thread_pointer();
	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

static int
move_under_interrupts(void)
{
	pthread_t thread[SPINNERS];
	uintptr_t page[SPINNERS];
	bool stop = false;
	int i, rc = 0;

	for (i = 0; i < SPINNERS; i++) {
		descriptor = NULL;
		if (pthread_create(&thread[i], NULL, spinner_run, &stop) != 0)
			return 1;
		while (descriptor == NULL)
			sched_yield();
		page[i] = (uintptr_t)descriptor & ~(PAGE - 1);
	}
	for (i = 0; rc == 0 && i < ROUNDS; i++) {
		rc = mirror_hold(file, page[i % SPINNERS], PAGE);
		if (rc == 0)
			mirror_release(file, page[i % SPINNERS], PAGE);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < SPINNERS; i++)
		pthread_join(thread[i], NULL);
	return rc != 0 ? 1 : NO_FAULT;
}

/* A node of the same device, of this mode, in the place of the host's. */
static bool
place_device(mode_t mode)
{
	char path[] = "/tmp/polca-test-XXXXXX", node[64];
	struct stat st;
	bool placed;

	if (stat(DEVICE, &st) != 0 || unshare(CLONE_NEWNS) != 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mkdtemp(path) == NULL)
		return false;
	snprintf(node, sizeof(node), "%s/node", path);
	placed = mknod(node, S_IFCHR | mode, st.st_rdev) == 0 && chmod(node, mode) == 0 &&
		mount(node, DEVICE, NULL, MS_BIND, NULL) == 0;
	unlink(node);
	rmdir(path);
	return placed;
}

/* @return what the child says that is an ordinary user, with a device of this mode */
static int
ordinary_user(mode_t mode, int (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (!place_device(mode))
			_exit(SKIPPED);
		if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
			_exit(1);
		_exit(run());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
test_calls_wait_with_the_device(void **state)
{
	int rc = ordinary_user(0666, move_under_calls);

	(void)state;
	if (rc == SKIPPED)
		skip(); /* not root, or no such device */
	assert_int_equal(rc, NO_FAULT);
}

static void
test_interrupts_wait_with_the_device(void **state)
{
	int rc = ordinary_user(0666, move_under_interrupts);

	(void)state;
	if (rc == SKIPPED)
		skip();
	assert_int_equal(rc, NO_FAULT);
}

/* What docs/verbs.md says remains without it: no byte is lost, but calls may fail. */
static void
test_calls_may_fail_without_it(void **state)
{
	int rc = ordinary_user(0600, move_under_calls);

	(void)state;
	if (rc == SKIPPED)
		skip();
	assert_true(rc == NO_FAULT || rc == FAULTED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_wait_with_the_device),
		cmocka_unit_test(test_interrupts_wait_with_the_device),
		cmocka_unit_test(test_calls_may_fail_without_it),
	};

	return cmocka_run_group_tests_name("provider guard", tests, mirror_setup, mirror_teardown);
}
