/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Memory that a program shares by a file: the provider finds a descriptor with which the program
 * may write it, whether the file has a path or only a descriptor; else it says why not.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "mappings.h"
#include "mirror_file.h"
#include "share.h"

static int
memory_file(void)
{
	int fd = memfd_create("shared", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(8 * PAGE)), 0);
	return fd;
}

static uint8_t *
map_file(int fd, size_t pages, off_t page)
{
	uint8_t *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		page * (off_t)PAGE);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* The descriptor is of the file, may write it, and byte at p is the one at the offset. */
static void
expect_shared(uint8_t *p, size_t bytes, uint64_t offset)
{
	uint64_t at = 0;
	uint8_t byte = (uint8_t)(*p + 1);
	int fd = share_open(file, (uintptr_t)p, bytes, &at);

	assert_true(fd >= 0);
	assert_int_equal(at, offset);
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	assert_int_equal(*p, byte);
	close(fd);
}

static void
test_memfd_by_its_descriptor(void **state)
{
	int fd = memory_file();
	uint8_t *p = map_file(fd, 4, 2);

	(void)state;
	expect_shared(p, 4 * PAGE, 2 * PAGE);
	expect_shared(p + PAGE + 5, 10, 3 * PAGE + 5);
	munmap(p, 4 * PAGE);
	close(fd);
}

static void
test_file_by_its_path(void **state)
{
	char path[] = "/dev/shm/polca-test-share-XXXXXX";
	int fd = mkstemp(path);
	uint8_t *p;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(2 * PAGE)), 0);
	p = map_file(fd, 2, 0);
	close(fd);
	expect_shared(p, 2 * PAGE, 0);
	unlink(path);
	munmap(p, 2 * PAGE);
}

/* Two mappings of one file, and two files, side by side. */
static void
test_mappings_side_by_side(void **state)
{
	int fd = memory_file(), other = memory_file();
	uint8_t *p = map_file(fd, 4, 0);
	uint64_t at;

	(void)state;
	assert_int_equal(madvise(p + PAGE, PAGE, MADV_DONTDUMP), 0);
	expect_shared(p, 4 * PAGE, 0);
	mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	assert_int_equal(share_open(file, (uintptr_t)p, 4 * PAGE, &at), -ENOENT);
	mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, other,
		2 * (off_t)PAGE);
	assert_int_equal(share_open(file, (uintptr_t)p, 4 * PAGE, &at), -ENOENT);
	munmap(p, 4 * PAGE);
	close(fd);
	close(other);
}

static void
test_other_memory_is_not_shared(void **state)
{
	uint8_t *p = make_anonymous(PAGE), *mirrored = map_mirror(p, PAGE);
	int fd = memory_file();
	uint8_t *read_only = map_file(fd, 1, 0);
	uint64_t at;

	(void)state;
	assert_int_equal(share_open(file, (uintptr_t)p, PAGE, &at), -ENOENT);
	assert_int_equal(share_open(file, (uintptr_t)mirrored, PAGE, &at), -ENOENT);
	assert_int_equal(share_open(file, 4096, PAGE, &at), -ENOENT);
	assert_int_equal(share_open(file, UINTPTR_MAX - 5, 10, &at), -ENOENT);
	mprotect(read_only, PAGE, PROT_READ);
	assert_int_equal(share_open(file, (uintptr_t)read_only, PAGE, &at), -ENOENT);
	munmap(read_only, PAGE);
	munmap(mirrored, PAGE);
	munmap(p, PAGE);
	close(fd);
}

/* The pages behind the file's end are not there; the file is not grown for them. */
static void
test_file_shorter_than_its_mapping(void **state)
{
	int fd = memory_file();
	uint8_t *p = map_file(fd, 8, 0);
	uint64_t at;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
	assert_int_equal(share_open(file, (uintptr_t)p, 8 * PAGE, &at), -EFAULT);
	expect_shared(p, PAGE, 0);
	munmap(p, 8 * PAGE);
	close(fd);
}

/* A descriptor for reading proves nothing, and a path that now names another file is not used. */
static void
test_no_descriptor_for_writing(void **state)
{
	char path[] = "/dev/shm/polca-test-share-XXXXXX";
	int fd = mkstemp(path), other;
	uint64_t at;
	uint8_t *p;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
	p = map_file(fd, 1, 0);
	close(fd);
	unlink(path);
	other = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(other >= 0);
	fd = share_open(file, (uintptr_t)p, PAGE, &at);
	if (fd >= 0) { /* by /proc/self/map_files, where the user has the capability for it */
		close(fd);
		expect_shared(p, PAGE, 0);
	} else {
		assert_int_equal(fd, -EACCES);
		assert_int_equal(at, 0);
	}
	close(other);
	unlink(path);
	munmap(p, PAGE);
}

/* The file could be opened: the table of descriptors is full, which is no EFAULT. */
static void
test_no_descriptor_is_left(void **state)
{
	struct rlimit before, none;
	int fd = memory_file();
	uint8_t *p = map_file(fd, 1, 0);
	uint64_t at;

	(void)state;
	expect_shared(p, PAGE, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 1, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	/* before Linux 6.11 the list of mappings cannot be opened, either: the mirror refuses */
	assert_true(share_open(file, (uintptr_t)p, PAGE, &at) == -EMFILE ||
		mappings_open(&(struct mappings){ 0 }) == EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	expect_shared(p, PAGE, 0);
	munmap(p, PAGE);
	close(fd);
}

/* The first System V segment of a host has the identifier, and so the inode, 0. */
static void
test_segment_whose_inode_is_0(void **state)
{
	struct mappings list;
	struct mapping m;
	uint64_t at;
	uint8_t *p;
	int id, fd;

	(void)state;
	if (unshare(CLONE_NEWIPC) != 0)
		skip();
	id = shmget(IPC_PRIVATE, PAGE, 0600);
	assert_int_equal(id, 0);
	p = shmat(id, NULL, 0);
	assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
	assert_int_equal(mappings_open(&list), 0);
	assert_true(mappings_next(&list, (uintptr_t)p, &m));
	mappings_close(&list);
	assert_int_equal(m.inode, 0);
	fd = share_open(file, (uintptr_t)p, PAGE, &at);
	if (fd >= 0)
		close(fd);
	else
		assert_int_equal(fd, -EACCES);
	shmdt(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memfd_by_its_descriptor),
		cmocka_unit_test(test_file_by_its_path),
		cmocka_unit_test(test_mappings_side_by_side),
		cmocka_unit_test(test_other_memory_is_not_shared),
		cmocka_unit_test(test_file_shorter_than_its_mapping),
		cmocka_unit_test(test_no_descriptor_for_writing),
		cmocka_unit_test(test_no_descriptor_is_left),
		cmocka_unit_test(test_segment_whose_inode_is_0),
	};

	return cmocka_run_group_tests_name("provider share", tests, mirror_setup, mirror_teardown);
}
