/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Regions in a file that another program has passed: of the right kind they are shared byte by
 * byte, all others are refused, and a file that shrinks later harms nobody.
 */

#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "mem/mirror.h"

#define PAGE ((size_t)4096)

static int
share_memory_file(size_t pages)
{
	int fd = memfd_create("shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t page[PAGE];
	size_t i;

	assert_true(fd >= 0);
	for (i = 0; i < pages; i++) {
		memset(page, (int)i + 1, sizeof(page));
		assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	}
	return fd;
}

static int
share(struct fixture *f, int fd, uint64_t offset, uint64_t length, struct mem_mr_info *info)
{
	const struct mem_mr_attr a = {
		.pd = f->pd,
		.access = LW | RW | RR,
		.length = length,
		.va = 0x7000,
		.backing = MEM_SHARED,
		.fd = fd,
		.offset = offset,
		.numa_node = -1,
	};

	return mem_mr_register(f->mem, &a, info, &f->err);
}

static void
share_refused(struct fixture *f, int fd, uint64_t offset, uint64_t length, int rc, const char *why)
{
	struct mem_mr_info info;

	assert_int_equal(share(f, fd, offset, length, &info), rc);
	if (strstr(f->err.text, why) == NULL)
		fail_msg("\"%s\" is not in: %s", why, f->err.text);
}

/* A region begins and ends anywhere, and has the bytes of the file, and no others. */
static void
test_file_is_shared_from_any_byte(void **state)
{
	struct fixture *f = *state;
	int fd = share_memory_file(3);
	struct mem_mr_info info;
	uint8_t byte = 0, *host;

	assert_int_equal(share(f, fd, PAGE - 10, 20, &info), 0);
	assert_int_equal(info.base[9], 1);
	assert_int_equal(info.base[10], 2);
	info.base[10] = 77;
	assert_int_equal(pread(fd, &byte, 1, (off_t)PAGE), 1);
	assert_int_equal(byte, 77);
	close(fd); /* the region needs it no longer */
	assert_int_equal(mem_access(f->mem, info.key, f->pd, QPN, 0x7000 + 19, 1, RW, &host),
		MEM_OK);
	assert_ptr_equal(host, info.base + 19);
	assert_int_not_equal(mem_access(f->mem, info.key, f->pd, QPN, 0x7000 + 20, 1, RW, &host),
		MEM_OK);
	deregister(f, info.key);
}

static void
test_region_must_be_in_the_file(void **state)
{
	struct fixture *f = *state;
	int fd = share_memory_file(2);

	share_refused(f, fd, PAGE, PAGE + 1, -EINVAL, "are not in the file, which has 8192");
	share_refused(f, fd, 2 * PAGE + 1, 1, -EINVAL, "are not in the file");
	share_refused(f, fd, UINT64_MAX - 5, 10, -EINVAL, "are not in the file");
	share_refused(f, fd, 10, UINT64_MAX - 5, -EINVAL, "are not in the file");
	/* a page that is not there would be made by us, and be charged to us */
	assert_int_equal(ftruncate(fd, (off_t)(4 * PAGE)), 0);
	share_refused(f, fd, PAGE, 2 * PAGE, -EFAULT, "not all pages from offset 0x1000 to 0x3000");
	close(fd);
}

/* Who may only read it must not have it written by us. */
static void
test_read_only_descriptor(void **state)
{
	struct fixture *f = *state;
	int fd = share_memory_file(1), read_only;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY);
	assert_true(read_only >= 0);
	share_refused(f, read_only, 0, PAGE, -EACCES, "not open for reading and writing");
	close(read_only);
	read_only = open(path, O_WRONLY);
	share_refused(f, read_only, 0, PAGE, -EACCES, "not open for reading and writing");
	close(read_only);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	share_refused(f, fd, 0, PAGE, -EPERM, "mmap");
	close(fd);
}

static void
test_descriptors_of_other_kinds(void **state)
{
	struct fixture *f = *state;
	int null = open("/dev/null", O_RDWR), directory = open("/dev/shm", O_RDONLY);
	int proc = open("/proc/self/comm", O_RDWR), pair[2], ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(pipe(ends), 0);
	share_refused(f, null, 0, PAGE, -EINVAL, "file: not in memory");
	share_refused(f, directory, 0, PAGE, -EINVAL, "file: not in memory");
	share_refused(f, pair[0], 0, PAGE, -EINVAL, "file: not in memory");
	share_refused(f, ends[0], 0, PAGE, -EINVAL, "file: not in memory");
	share_refused(f, proc, 0, PAGE, -EINVAL, "must be a memfd, or on tmpfs or hugetlbfs");
	close(null);
	close(directory);
	close(proc);
	share_refused(f, null, 0, PAGE, -EINVAL, "file: not in memory");
	for (int i = 0; i < 2; i++) {
		close(pair[i]);
		close(ends[i]);
	}
}

/* Whole pages count: a byte of a page keeps all of it in memory. */
static void
test_whole_pages_are_counted(void **state)
{
	struct fixture *f = *state;
	int fd = share_memory_file(3);
	struct mem_mr_attr a = {
		.pd = f->pd,
		.access = LW,
		.length = 2,
		.va = 0,
		.backing = MEM_SHARED,
		.fd = fd,
		.offset = PAGE - 1,
		.numa_node = -1,
		.max_bytes = 2 * PAGE - 1,
	};
	struct mem_mr_info info;

	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), -ENOMEM);
	assert_non_null(strstr(f->err.text, "got 8192 in whole pages, allowed: 8191 more"));
	a.max_bytes = 2 * PAGE;
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	assert_int_equal(info.map_bytes, 2 * PAGE);
	deregister(f, info.key);
	close(fd);
}

/* Two bytes on two pages of hugetlbfs are 4 MiB. */
static void
test_huge_pages(void **state)
{
	const size_t huge = (size_t)2 << 20;
	struct fixture *f = *state;
	struct mem_mr_info info;
	uint8_t *p, *host;
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);

	if (fd < 0 || ftruncate(fd, (off_t)(2 * huge)) != 0)
		skip(); /* no hugetlbfs */
	p = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		skip(); /* no two such pages are free */
	p[huge] = 7;
	assert_int_equal(share(f, fd, huge - 1, 2, &info), 0);
	assert_true(info.hugepages);
	assert_int_equal(info.map_bytes, 2 * huge);
	assert_int_equal(mem_access(f->mem, info.key, f->pd, QPN, 0x7001, 1, RW, &host), MEM_OK);
	assert_int_equal(*host, 7);
	*host = 8;
	assert_int_equal(p[huge], 8);
	share_refused(f, fd, huge, huge + 1, -EINVAL, "are not in the file");
	assert_int_equal(ftruncate(fd, 0), 0); /* it shrinks: empty pages, and the region is lost */
	*host = 9;
	assert_true(mem_mr_lost(f->mem, &info));
	deregister(f, info.key);
	munmap(p, 2 * huge);
	close(fd);
}

/*
 * Why a program's mirror is not sealed against holes: the seal that refuses them refuses the
 * mappings, too, by which the program's pages come into it.
 */
static void
test_no_seal_refuses_only_holes(void **state)
{
	int fd = share_memory_file(1);

	(void)state;
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE), -1);
	assert_int_equal(errno, EPERM);
	assert_ptr_equal(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(errno, EPERM);
	close(fd);
}

/* Addresses of aarch64 have 48 bits. */
static void
test_mirror_has_all_addresses(void **state)
{
	struct fixture *f = *state;
	const uint64_t last = (UINT64_C(1) << 48) - 2 * PAGE;
	struct stat mirror;
	struct mem_mr_attr a = {
		.pd = f->pd,
		.access = LW,
		.length = PAGE,
		.va = last,
		.backing = MEM_MIRROR,
		.fd = mem_mirror_create(&f->err),
		.offset = last,
		.numa_node = -1,
	};
	struct mem_mr_info info;

	assert_true(a.fd >= 0);
	assert_int_equal(fstat(a.fd, &mirror), 0);
	a.mirror_inode = mirror.st_ino;
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), -EFAULT); /* no page */
	assert_int_equal(pwrite(a.fd, "x", 1, (off_t)last), 1);
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	assert_int_equal(info.base[0], 'x');
	deregister(f, info.key);
	close(a.fd);
}

/* Accesses go to empty pages, and the region is reported as lost. */
static void
test_file_cut_short(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_info info, lost;
	int fd = share_memory_file(3);

	assert_int_equal(share(f, fd, 0, 3 * PAGE, &info), 0);
	assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
	assert_false(mem_mr_lost(f->mem, &lost)); /* nobody has touched what is lost */
	assert_int_equal(info.base[0], 1);
	info.base[2 * PAGE] = 7;
	assert_true(mem_mr_lost(f->mem, &lost));
	assert_int_equal(lost.key, info.key);
	deregister(f, info.key);
	close(fd);
}

#define T(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_file_is_shared_from_any_byte),
		T(test_region_must_be_in_the_file),
		T(test_read_only_descriptor),
		T(test_descriptors_of_other_kinds),
		T(test_whole_pages_are_counted),
		T(test_huge_pages),
		T(test_no_seal_refuses_only_holes),
		T(test_mirror_has_all_addresses),
		T(test_file_cut_short),
	};

	return cmocka_run_group_tests_name("mem shared", tests, NULL, NULL);
}
