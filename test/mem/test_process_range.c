/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A file that another process has mapped shared and writable is opened by its addresses. The other
 * process is a child, which changes its mappings between the steps; or it is this one. What opens
 * a file needs root's capabilities; without them only the checks before run.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem/process_range.h"

#define PAGE  ((size_t)4096)
#define PAGES 40

static struct error err;

static void
range_fails(int rc, int error, const char *text)
{
	assert_int_equal(rc, error);
	if (strstr(err.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

/* @return a file of so many pages, each with its number */
static int
numbered_file(size_t pages)
{
	int fd = memfd_create("numbered", MFD_CLOEXEC);
	uint8_t number;

	assert_true(fd >= 0 && ftruncate(fd, (off_t)(pages * PAGE)) == 0);
	for (number = 0; number < pages; number++)
		assert_int_equal(pwrite(fd, &number, 1, (off_t)(number * PAGE)), 1);
	return fd;
}

static uint8_t *
map_at(uint8_t *at, size_t pages, int protection, int flags, int fd, size_t first)
{
	uint8_t *p = mmap(at, pages * PAGE, protection, flags | (at != NULL ? MAP_FIXED : 0), fd,
		(off_t)(first * PAGE));

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

#define READ_WRITE (PROT_READ | PROT_WRITE)

static int
own_directory(void)
{
	int fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int
find(struct process_range *r, int process, const uint8_t *p, size_t bytes)
{
	err.text[0] = '\0';
	return process_range_find(r, process, geteuid(), (uintptr_t)p, bytes, &err);
}

static int
open_all(int process, const uint8_t *p, size_t bytes, uint64_t *offset)
{
	err.text[0] = '\0';
	return process_range_file(process, geteuid(), (uintptr_t)p, bytes, offset, &err);
}

/* The file is the one that is mapped at p: a byte that is written to it is seen there. */
static void
expect_file(int process, uint8_t *p, size_t bytes, uint64_t offset)
{
	uint8_t byte = (uint8_t)(*p + 1);
	uint64_t at;
	int fd = open_all(process, p, bytes, &at);

	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(at, offset);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	assert_int_equal(*p, byte);
	close(fd);
}

static void
test_files_without_a_name(void **state)
{
	int process = own_directory(), fd, id;
	char path[] = "/dev/shm/polca-test-range-XXXXXX";
	uint8_t *p;

	(void)state;
	if (!process_range_permitted(NULL))
		skip();
	p = map_at(NULL, 4, READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect_file(process, p, 4 * PAGE, 0);
	expect_file(process, p + PAGE + 5, 10, PAGE + 5);
	munmap(p, 4 * PAGE);

	fd = numbered_file(4);
	p = map_at(NULL, 2, READ_WRITE, MAP_SHARED, fd, 2);
	close(fd);
	expect_file(process, p + 1, PAGE, 2 * PAGE + 1);
	munmap(p, 2 * PAGE);

	fd = mkstemp(path);
	assert_true(fd >= 0 && ftruncate(fd, (off_t)PAGE) == 0 && unlink(path) == 0);
	p = map_at(NULL, 1, READ_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	expect_file(process, p, PAGE, 0);
	munmap(p, PAGE);

	id = shmget(IPC_PRIVATE, 2 * PAGE, 0600);
	assert_true(id >= 0);
	p = shmat(id, NULL, 0);
	assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
	expect_file(process, p, 2 * PAGE, 0);
	shmdt(p);
	close(process);
}

static void
test_only_shared_and_writable(void **state)
{
	int process = own_directory(), fd = numbered_file(PAGES);
	struct process_range r;
	uint8_t *p = map_at(NULL, 6, READ_WRITE, MAP_SHARED, fd, 0);

	(void)state;
	map_at(p + PAGE, 1, READ_WRITE, MAP_PRIVATE, fd, 1);
	map_at(p + 2 * PAGE, 1, PROT_READ, MAP_SHARED, fd, 2);
	map_at(p + 3 * PAGE, 1, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p + 4 * PAGE, PAGE);
	assert_int_equal(find(&r, process, p, PAGE), 0);
	process_range_close(&r);
	range_fails(find(&r, process, p, 2 * PAGE), -EACCES, "it is rw-p");
	range_fails(find(&r, process, p + PAGE, 1), -EACCES, "it is rw-p");
	range_fails(find(&r, process, p + 2 * PAGE, 1), -EACCES, "it is r--s");
	range_fails(find(&r, process, p + 3 * PAGE, 1), -EACCES, "it is rw-p");
	range_fails(find(&r, process, p + 4 * PAGE, 1), -EFAULT, "nothing is mapped");
	range_fails(find(&r, process, p, 0), -EINVAL, "no 0 bytes");
	range_fails(find(&r, process, (uint8_t *)(UINTPTR_MAX - 5), 10), -EINVAL, "no 10 bytes");
	range_fails(find(&r, process, (uint8_t *)(UINTPTR_MAX - 50), 10), -EFAULT,
		"nothing is mapped");
	munmap(p, 6 * PAGE);
	close(fd);
	close(process);
}

/* Several mappings, if the bytes of one file follow one another; and not too many. */
static void
test_mappings_side_by_side(void **state)
{
	int process = own_directory(), fd = numbered_file(PAGES), other = numbered_file(PAGES);
	uint8_t *p = map_at(NULL, PAGES, READ_WRITE, MAP_SHARED, fd, 0);
	const size_t most = PROCESS_RANGE_MAPPINGS;
	struct process_range r;
	size_t i;

	(void)state;
	for (i = 0; i < PAGES; i += 2)
		assert_int_equal(madvise(p + i * PAGE, PAGE, MADV_DONTDUMP), 0);
	assert_int_equal(find(&r, process, p, most * PAGE), 0);
	process_range_close(&r);
	range_fails(find(&r, process, p, (most + 1) * PAGE), -EINVAL, "in more than 16 mappings");
	map_at(p + 2 * PAGE, 1, READ_WRITE, MAP_SHARED, fd, 5);
	range_fails(find(&r, process, p, 3 * PAGE), -EINVAL, "do not follow those before");
	map_at(p + 2 * PAGE, 1, READ_WRITE, MAP_SHARED, other, 2);
	range_fails(find(&r, process, p, 3 * PAGE), -EINVAL, "do not follow those before");
	munmap(p, PAGES * PAGE);
	close(other);
	close(fd);
	close(process);
}

/* The name of a file may be long, and look like lines of the list. */
static void
test_name_that_looks_like_a_mapping(void **state)
{
	int process = own_directory(), top = open("/dev/shm", O_PATH | O_DIRECTORY), dirs[2], fd, i;
	char name[256], line[128], path[64] = "/dev/shm/polca-test-range-XXXXXX";
	uint8_t *p = map_at(NULL, 2, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *long_name;
	struct process_range r;

	(void)state;
	assert_non_null(mkdtemp(path));
	close(top);
	top = dirs[0] = open(path, O_PATH | O_DIRECTORY);
	snprintf(line, sizeof(line), "%lx-%lx rw-s 00000000 00:01 7 ", (unsigned long)(uintptr_t)p,
		(unsigned long)((uintptr_t)p + 2 * PAGE));
	for (size_t at = 0; at < sizeof(name) - 1; at++)
		name[at] = line[at % strlen(line)];
	name[sizeof(name) - 1] = '\0';
	for (i = 0; i < 14; i++) {
		assert_int_equal(mkdirat(dirs[0], name, 0700), 0);
		dirs[1] = openat(dirs[0], name, O_PATH | O_DIRECTORY);
		if (dirs[0] != top)
			close(dirs[0]);
		dirs[0] = dirs[1];
	}
	fd = openat(dirs[0], name, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0 && ftruncate(fd, (off_t)PAGE) == 0);
	munmap(p + PAGE, PAGE);
	long_name = map_at(NULL, 1, READ_WRITE, MAP_SHARED, fd, 0);
	range_fails(find(&r, process, p, PAGE), -EACCES, "it is rw-p");
	assert_int_equal(find(&r, process, long_name, PAGE), 0);
	process_range_close(&r);
	munmap(long_name, PAGE);
	munmap(p, PAGE);
	close(fd);
	close(dirs[0]);
	close(top);
	close(process);
	snprintf(line, sizeof(line), "rm -r %s", path);
	assert_int_equal(system(line), 0);
}

/* --- a process that changes its mappings between the steps --- */

struct swapper {
	pid_t pid;
	int process;
	int tell[2], told[2];
	uint8_t *p; /* two pages of .own */
	int own, other;
};

enum swap {
	SWAP_READ_ONLY,
	SWAP_OTHER,
	SWAP_PRIVATE,
	SWAP_UNMAP,
	SWAP_OWN,
	SWAP_USER,
	SWAP_HIDE,
	SWAP_END,
};

static void
swap_mapping(struct swapper *s, enum swap to)
{
	switch (to) {
	case SWAP_READ_ONLY:
		mprotect(s->p, PAGE, PROT_READ);
		break;
	case SWAP_OTHER:
		map_at(s->p, 2, READ_WRITE, MAP_SHARED, s->other, 0);
		break;
	case SWAP_PRIVATE:
		map_at(s->p, 2, READ_WRITE, MAP_PRIVATE, s->own, 0);
		break;
	case SWAP_UNMAP:
		munmap(s->p + PAGE, PAGE);
		break;
	case SWAP_OWN:
		map_at(s->p, 2, READ_WRITE, MAP_SHARED, s->own, 0);
		break;
	case SWAP_USER: /* who changes it hides its memory at first */
		if (setresuid(1, 1, 1) == 0)
			prctl(PR_SET_DUMPABLE, 1);
		break;
	case SWAP_HIDE:
		prctl(PR_SET_DUMPABLE, 0);
		break;
	case SWAP_END:
		_exit(0);
	}
}

static void
swapper_start(struct swapper *s)
{
	char path[32], to;

	s->own = numbered_file(2);
	s->other = numbered_file(2);
	s->p = map_at(NULL, 2, READ_WRITE, MAP_SHARED, s->own, 0);
	assert_true(pipe(s->tell) == 0 && pipe(s->told) == 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	while (s->pid == 0) {
		if (read(s->tell[0], &to, 1) != 1)
			_exit(1);
		swap_mapping(s, (enum swap)to);
		if (write(s->told[1], &to, 1) != 1)
			_exit(1);
	}
	snprintf(path, sizeof(path), "/proc/%d", (int)s->pid);
	s->process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->process >= 0);
}

static void
swapper_tell(const struct swapper *s, enum swap to)
{
	char byte = (char)to;

	assert_int_equal(write(s->tell[1], &byte, 1), 1);
	if (to != SWAP_END)
		assert_int_equal(read(s->told[0], &byte, 1), 1);
	else
		assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
}

static void
swapper_stop(struct swapper *s, bool ended)
{
	unsigned int i;

	if (!ended)
		swapper_tell(s, SWAP_END);
	munmap(s->p, 2 * PAGE);
	close(s->process);
	close(s->own);
	close(s->other);
	for (i = 0; i < 2; i++) {
		close(s->tell[i]);
		close(s->told[i]);
	}
}

/* What has been opened counts only if it is still mapped as it must be. */
static void
test_mapping_changes_after_the_open(void **state)
{
	static const struct {
		enum swap to;
		int error;
		const char *text;
	} cases[] = {
		{ SWAP_READ_ONLY, -EACCES, "it is r--s" },
		{ SWAP_OTHER, -EACCES, "has changed meanwhile" },
		{ SWAP_PRIVATE, -EACCES, "it is rw-p" },
		{ SWAP_UNMAP, -EFAULT, "nothing is mapped" },
		{ SWAP_END, -EFAULT, "nothing is mapped" },
	};
	struct process_range r;
	struct swapper s;
	unsigned int i;
	int fd;

	(void)state;
	if (!process_range_permitted(NULL))
		skip();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		swapper_start(&s);
		assert_int_equal(find(&r, s.process, s.p, 2 * PAGE), 0);
		fd = process_range_open(&r, &err);
		assert_true(fd >= 0);
		assert_int_equal(process_range_confirm(&r, fd, &err), 0);
		swapper_tell(&s, cases[i].to);
		range_fails(process_range_confirm(&r, fd, &err), cases[i].error, cases[i].text);
		close(fd);
		process_range_close(&r);
		swapper_stop(&s, cases[i].to == SWAP_END);
	}
}

/* Another file is there while it is opened, and the first one is back when it is confirmed. */
static void
test_mapping_is_exchanged_during_the_open(void **state)
{
	struct process_range r;
	struct swapper s;
	int fd;

	(void)state;
	if (!process_range_permitted(NULL))
		skip();
	swapper_start(&s);
	assert_int_equal(find(&r, s.process, s.p, 2 * PAGE), 0);
	swapper_tell(&s, SWAP_OTHER);
	fd = process_range_open(&r, &err);
	assert_true(fd >= 0);
	swapper_tell(&s, SWAP_OWN);
	range_fails(process_range_confirm(&r, fd, &err), -EACCES, "has changed meanwhile");
	close(fd);
	swapper_tell(&s, SWAP_UNMAP);
	range_fails(process_range_open(&r, &err), -ENOENT, "has changed");
	process_range_close(&r);
	swapper_stop(&s, false);
}

/* One that hides its memory, as a program with rights of its file does, or has ended. */
static void
test_process_that_is_not_the_users(void **state)
{
	struct process_range r;
	struct swapper s;

	(void)state;
	swapper_start(&s);
	range_fails(process_range_find(&r, s.process, geteuid() + 1, (uintptr_t)s.p, PAGE, &err),
		-EACCES, "has changed its user");
	if (geteuid() == 0) {
		swapper_tell(&s, SWAP_USER);
		range_fails(find(&r, s.process, s.p, PAGE), -EACCES, "has changed its user");
		assert_int_equal(process_range_find(&r, s.process, 1, (uintptr_t)s.p, PAGE, &err),
			0);
		process_range_close(&r);
		swapper_tell(&s, SWAP_HIDE);
		range_fails(process_range_find(&r, s.process, 1, (uintptr_t)s.p, PAGE, &err),
			-EACCES, "hides its memory");
	}
	swapper_tell(&s, SWAP_END);
	assert_true(find(&r, s.process, s.p, PAGE) < 0);
	swapper_stop(&s, true);
}

static void
test_file_of_another_user(void **state)
{
	int process = own_directory(), fd;
	uint64_t offset;
	uint8_t *p;

	(void)state;
	if (!process_range_permitted(NULL) || geteuid() != 0)
		skip();
	setfsuid(1);
	fd = numbered_file(1);
	setfsuid(0);
	p = map_at(NULL, 1, READ_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	range_fails(open_all(process, p, PAGE, &offset), -EACCES, "belongs to user 1");
	munmap(p, PAGE);
	close(process);
}

/* A file on a disk, of which only the name is opened, and a device. */
static void
test_files_that_are_not_in_memory(void **state)
{
	int process = own_directory(), fd = open("/dev/zero", O_RDWR);
	char path[] = "polca-test-range-XXXXXX";
	uint64_t offset;
	uint8_t *p;

	(void)state;
	if (!process_range_permitted(NULL))
		skip();
	close(fd);
	fd = mkstemp(path);
	assert_true(fd >= 0 && ftruncate(fd, (off_t)PAGE) == 0 && unlink(path) == 0);
	p = map_at(NULL, 1, READ_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	range_fails(open_all(process, p, PAGE, &offset), -EINVAL, "not in memory");
	munmap(p, PAGE);
	close(process);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_without_a_name),
		cmocka_unit_test(test_only_shared_and_writable),
		cmocka_unit_test(test_mappings_side_by_side),
		cmocka_unit_test(test_name_that_looks_like_a_mapping),
		cmocka_unit_test(test_mapping_changes_after_the_open),
		cmocka_unit_test(test_mapping_is_exchanged_during_the_open),
		cmocka_unit_test(test_process_that_is_not_the_users),
		cmocka_unit_test(test_file_of_another_user),
		cmocka_unit_test(test_files_that_are_not_in_memory),
	};

	return cmocka_run_group_tests_name("mem process_range", tests, NULL, NULL);
}
