/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Programs with a limit on the size of files, programs that have no descriptor left, and programs
 * that close what they have not opened.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "../open_descriptors.h"
#include "mappings.h"
#include "mirror.h"
#include "mirror_file.h"
#include "move.h"

#define PAGES  40
#define BYTES  (PAGES * PAGE)
#define NOBODY 65534

/* In and out again, with all bytes. */
static void
hold_and_release(uint8_t *p)
{
	uint8_t *polca;

	memset(p, 7, BYTES);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	polca = map_mirror(p, BYTES);
	assert_int_equal(polca[BYTES - 1], 7);
	polca[0] = 9;
	assert_int_equal(p[0], 9);
	munmap(polca, BYTES);
	mirror_release(file, (uintptr_t)p, BYTES);
	assert_int_equal(p[0], 9);
	assert_int_equal(p[BYTES - 1], 7);
	assert_false(has_page(p));
}

/* The mirror's addresses are beyond any limit: a write there would be SIGXFSZ. */
static void
test_limit_on_the_size_of_files(void **state)
{
	struct rlimit before, limit;
	uint8_t *p = make_anonymous(BYTES);

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 1 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	hold_and_release(p);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	munmap(p, BYTES);
}

static unsigned int file_limit_signals;
static uint32_t *counted;

static void
count_file_limit_signal(int number)
{
	(void)number;
	__atomic_fetch_add(&file_limit_signals, 1, __ATOMIC_RELAXED);
}

/* @return how often, until .counted is taken away */
static void *
count_in_memory(void *arg)
{
	uint32_t *at, n = 0;

	(void)arg;
	while ((at = __atomic_load_n(&counted, __ATOMIC_RELAXED)) != NULL)
		__atomic_store_n(at, ++n, __ATOMIC_RELAXED);
	return (void *)(uintptr_t)n;
}

/* Each move fails once, is made in another way, and loses no write. No signal is delivered. */
static void
test_limit_while_another_thread_writes(void **state)
{
	struct sigaction count = { .sa_handler = count_file_limit_signal }, before_action;
	uint32_t *p = (uint32_t *)make_anonymous(BYTES), before_moves;
	struct rlimit before, limit;
	pthread_t thread;
	void *written;
	int i;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 1 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(sigaction(SIGXFSZ, &count, &before_action), 0);
	counted = p;
	assert_int_equal(pthread_create(&thread, NULL, count_in_memory, NULL), 0);
	for (i = 0; i < 100; i++) {
		before_moves = __atomic_load_n(p, __ATOMIC_RELAXED);
		assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
		mirror_release(file, (uintptr_t)p, BYTES);
		assert_true(__atomic_load_n(p, __ATOMIC_RELAXED) >= before_moves);
	}
	__atomic_store_n(&counted, NULL, __ATOMIC_RELAXED);
	pthread_join(thread, &written);
	assert_int_equal(*p, (uintptr_t)written);
	assert_int_equal(file_limit_signals, 0);
	sigaction(SIGXFSZ, &before_action, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	munmap(p, BYTES);
}

/* All but its own, as daemons do; then it has other files in their places. */
static int
open_text(void)
{
	return open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
}

/* Of a kind whose ioctl() has other errors than those of text. */
static int
open_epoll(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

static void
close_all_descriptors(int (*open_another)(void))
{
	uint8_t *p = make_anonymous(BYTES);
	int fd, opened = 0;

	hold_and_release(p);
	for (fd = STDERR_FILENO + 1; fd < 64; fd++)
		if (fd != file)
			close(fd);
	hold_and_release(p);
	for (fd = STDERR_FILENO + 1; fd < 64; fd++)
		if (fd != file)
			close(fd);
	while (opened < 16 && open_another() >= 0)
		opened++;
	hold_and_release(p);
	munmap(p, BYTES);
}

static void
test_program_closes_all_descriptors(void **state)
{
	(void)state;
	close_all_descriptors(open_text);
	close_all_descriptors(open_epoll);
}

static void *
wait_for_post(void *arg)
{
	assert_int_equal(sem_wait(arg), 0);
	return NULL;
}

/* The userfaultfd, which other threads need, is closed with all others. */
static void
test_program_with_threads_closes_all_descriptors(void **state)
{
	pthread_t thread;
	sem_t end;

	(void)state;
	assert_int_equal(sem_init(&end, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_post, &end), 0);
	close_all_descriptors(open_text);
	close_all_descriptors(open_epoll);
	assert_int_equal(sem_post(&end), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	sem_destroy(&end);
}

/* The same while memory is held, also by the mirror's own descriptor. */
static void
test_program_closes_descriptors_of_held_memory(void **state)
{
	uint8_t *p = make_anonymous(BYTES);
	int fd;

	(void)state;
	memset(p, 7, BYTES);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	for (fd = STDERR_FILENO + 1; fd < 64; fd++)
		if (fd != file)
			close(fd);
	for (fd = 0; fd >= 0 && fd < 16;)
		fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	mirror_release(file, (uintptr_t)p, BYTES);
	assert_false(has_page(p));
	assert_int_equal(p[BYTES - 1], 7);
	munmap(p, BYTES);
}

/* --- no descriptor is left --- */

static struct rlimit descriptors;

static void
allow_descriptors(bool allow)
{
	struct rlimit none;

	if (descriptors.rlim_max == 0)
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	none = descriptors;
	none.rlim_cur = 1; /* which is in use */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, allow ? &descriptors : &none), 0);
}

/* @return what the child of this process has seen in the byte; it writes another one there */
static int
child_replaces(uint8_t *p)
{
	int status, pid = fork();

	if (pid == 0) {
		int seen = p[0];

		p[0] = 99;
		_exit(seen);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/*
 * Nothing moves while the list of mappings cannot be opened. The pages stay where they are, with
 * their bytes, leave a child alone, and are moved back when there is a descriptor again.
 */
static void
test_no_descriptor_to_move_back(void **state)
{
	uint8_t *p = make_anonymous(BYTES), *other = make_anonymous(PAGE);
	unsigned int before = open_descriptors();

	(void)state;
	memset(p, 7, BYTES);
	mappings_read_text(true);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), 0);
	allow_descriptors(false);
	mirror_release(file, (uintptr_t)p, BYTES);
	allow_descriptors(true);
	assert_true(has_page(p));
	assert_int_equal(child_replaces(p), 7);
	assert_int_equal(p[0], 7);
	assert_int_equal(mirror_hold(file, (uintptr_t)other, PAGE), 0);
	assert_false(has_page(p));
	assert_int_equal(p[0], 7);
	mirror_release(file, (uintptr_t)other, PAGE);
	mappings_read_text(false);
	assert_int_equal(open_descriptors(), before);
	munmap(other, PAGE);
	munmap(p, BYTES);
}

static void
test_no_descriptor_to_register(void **state)
{
	uint8_t *p = make_anonymous(BYTES);

	(void)state;
	memset(p, 7, BYTES);
	allow_descriptors(false);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), EMFILE);
	allow_descriptors(true);
	assert_false(has_page(p));
	assert_int_equal(p[0], 7);
	hold_and_release(p);
	munmap(p, BYTES);
}

static void *
wait_for_byte(void *arg)
{
	char byte;

	assert_int_equal(read(*(int *)arg, &byte, 1), 1);
	return NULL;
}

/* With a second thread it takes a userfaultfd: that there is none for a full table is no EPERM. */
static void
test_no_descriptor_for_the_guard(void **state)
{
	uint8_t *p = make_anonymous(BYTES), *first = make_anonymous(PAGE);
	pthread_t thread;
	int ends[2];

	(void)state;
	move_forget_guard();
	memset(p, 7, BYTES);
	assert_int_equal(mirror_hold(file, (uintptr_t)first, PAGE), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_byte, &ends[0]), 0);
	allow_descriptors(false);
	assert_int_equal(mirror_hold(file, (uintptr_t)p, BYTES), EMFILE);
	allow_descriptors(true);
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(has_page(p));
	mirror_release(file, (uintptr_t)first, PAGE);
	hold_and_release(p);
	close(ends[0]);
	close(ends[1]);
	munmap(first, PAGE);
	munmap(p, BYTES);
}

/* As in a container with Docker's profile. @return 0, or a step that failed */
static int
forbid_userfaultfd(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
		setresuid(NOBODY, NOBODY, NOBODY) != 0)
		return 10;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return 11;
	return 0;
}

/* A program with one thread registers its memory, and one with more is told why it cannot. */
static int
register_without_guard(void)
{
	uint8_t *p = make_anonymous(BYTES);
	int rc = forbid_userfaultfd(), text;
	char said[1024] = "";
	pthread_t thread;
	sem_t end;

	if (rc != 0)
		return rc;
	memset(p, 7, BYTES);
	if (mirror_hold(file, (uintptr_t)p, BYTES) != 0)
		return 12;
	mirror_release(file, (uintptr_t)p, BYTES);
	sem_init(&end, 0, 0);
	pthread_create(&thread, NULL, wait_for_post, &end);
	text = memfd_create("said", MFD_CLOEXEC);
	dup2(text, STDERR_FILENO);
	if (mirror_hold(file, (uintptr_t)p, BYTES) != EPERM)
		return 13;
	if (pread(text, said, sizeof(said) - 1, 0) <= 0 ||
		strstr(said, "userfaultfd, which holds them off, is not permitted here") == NULL)
		return 14;
	return p[0] == 7 && p[BYTES - 1] == 7 && has_page(p) == false ? 0 : 15;
}

static void
test_userfaultfd_is_forbidden(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	move_forget_guard();
	pid = fork();
	if (pid == 0)
		_exit(register_without_guard());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_on_the_size_of_files),
		cmocka_unit_test(test_limit_while_another_thread_writes),
		cmocka_unit_test(test_program_closes_all_descriptors),
		cmocka_unit_test(test_program_with_threads_closes_all_descriptors),
		cmocka_unit_test(test_program_closes_descriptors_of_held_memory),
		cmocka_unit_test(test_no_descriptor_to_move_back),
		cmocka_unit_test(test_no_descriptor_to_register),
		cmocka_unit_test(test_no_descriptor_for_the_guard),
		cmocka_unit_test(test_userfaultfd_is_forbidden),
	};

	return cmocka_run_group_tests_name("mirror, limits", tests, mirror_setup, mirror_teardown);
}
