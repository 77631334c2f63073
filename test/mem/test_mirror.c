/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Regions in the mirror of a program: those of the same bytes have one mapping. */

#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "mem/mirror.h"

#define PAGE ((size_t)4096)
#define AT   (UINT64_C(0x7f12) << 32)

/* @return a mirror in which the program has put so many pages at AT */
static int
mirror_of_pages(size_t pages)
{
	int fd = mem_mirror_create(NULL);
	uint8_t page[PAGE];
	size_t i;

	assert_true(fd >= 0);
	for (i = 0; i < pages; i++) {
		memset(page, (int)i + 1, sizeof(page));
		assert_int_equal(pwrite(fd, page, sizeof(page), (off_t)(AT + i * PAGE)), PAGE);
	}
	return fd;
}

static uint64_t
inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static struct mem_mr_attr
mirror_attr(const struct fixture *f, int fd, uint64_t addr, uint64_t length)
{
	return (struct mem_mr_attr){
		.pd = f->pd,
		.access = LW | RW,
		.length = length,
		.va = addr,
		.backing = MEM_MIRROR,
		.fd = fd,
		.mirror_inode = inode_of(fd),
		.offset = addr,
		.numa_node = -1,
	};
}

static void
mirror_region(struct fixture *f, int fd, uint64_t addr, uint64_t length, struct mem_mr_info *info)
{
	const struct mem_mr_attr a = mirror_attr(f, fd, addr, length);

	assert_int_equal(mem_mr_register(f->mem, &a, info, &f->err), 0);
}

/* What a program may register counts in whole pages (verbs.mr_mb). */
static void
test_limit_counts_whole_pages(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_info info;
	int fd = mirror_of_pages(2);
	struct mem_mr_attr a = mirror_attr(f, fd, AT + PAGE - 1, 2); /* a byte of each page */

	a.max_bytes = 2 * PAGE - 1;
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), -ENOMEM);
	assert_non_null(strstr(f->err.text, "length: got 8192 in whole pages, allowed: 8191 more"));
	a.max_bytes++;
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	deregister(f, info.key);
	close(fd);
}

static void
mirror_refused(struct fixture *f, int fd, uint64_t addr, uint64_t length, int rc, const char *text)
{
	const struct mem_mr_attr a = mirror_attr(f, fd, addr, length);
	struct mem_mr_info info;

	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), rc);
	assert_string_equal(f->err.text, text);
}

/* A program calls ibv_reg_mr(addr, length): it knows of no file, and of no offset. */
static void
test_refusals_speak_of_addresses(void **state)
{
	struct fixture *f = *state;
	int fd = mirror_of_pages(1), empty = open("/dev/null", O_RDWR);

	mirror_refused(f, fd, AT + 8, PAGE, -EFAULT,
		"addr: not all pages from 0x7f1200000000 to 0x7f1200002000 are there");
	mirror_refused(f, fd, MEM_MIRROR_BYTES - PAGE, PAGE + 1, -EINVAL,
		"addr: 4097 bytes from 0xfffffffff000 end beyond a program's last address");
	mirror_refused(f, fd, UINT64_MAX - 5, 10, -EINVAL,
		"addr: 10 bytes from 0xfffffffffffffffa end beyond a program's last address");
	mirror_refused(f, empty, AT, PAGE, -ENODEV, "addr: mmap: No such device");
	close(fd);
	close(empty);
}

/* Each has its own key and ends by itself; the last one that ends unmaps. */
static void
test_same_bytes_are_mapped_once(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_info first, again, inside;
	int fd = mirror_of_pages(2);

	mirror_region(f, fd, AT, 2 * PAGE, &first);
	mirror_region(f, fd, AT, 2 * PAGE, &again);
	mirror_region(f, fd, AT + 8, 2 * PAGE - 16, &inside); /* of the same pages */
	assert_int_not_equal(first.key, again.key);
	assert_ptr_equal(again.base, first.base);
	assert_ptr_equal(inside.base, first.base + 8);
	deregister(f, first.key);
	again.base[PAGE] = 77;
	assert_int_equal(inside.base[PAGE - 8], 77);
	deregister(f, inside.key);
	assert_int_equal(again.base[0], 1);
	deregister(f, again.key);
	assert_false(is_mapped(again.base));
	close(fd);
}

static void
test_other_bytes_are_mapped_apart(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_info first, less, other;
	int fd = mirror_of_pages(2), second = mirror_of_pages(2);

	mirror_region(f, fd, AT, 2 * PAGE, &first);
	mirror_region(f, fd, AT, PAGE, &less);
	mirror_region(f, second, AT, 2 * PAGE, &other);
	assert_ptr_not_equal(less.base, first.base);
	assert_ptr_not_equal(other.base, first.base);
	first.base[0] = 99;
	assert_int_equal(less.base[0], 99);
	assert_int_equal(other.base[0], 1);
	deregister(f, first.key);
	assert_false(is_mapped(first.base));
	assert_int_equal(less.base[0], 99);
	deregister(f, less.key);
	deregister(f, other.key);
	close(fd);
	close(second);
}

/* The descriptor of a mirror is closed, and another mirror gets its number. */
static void
test_another_mirror_with_the_same_descriptor(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_info first, other, again;
	int fd = mirror_of_pages(2), copy = dup(fd), second;

	mirror_region(f, fd, AT, 2 * PAGE, &first);
	first.base[0] = 99;
	close(fd);
	second = mirror_of_pages(2);
	assert_int_equal(second, fd);
	mirror_region(f, second, AT, 2 * PAGE, &other);
	assert_ptr_not_equal(other.base, first.base);
	assert_int_equal(other.base[0], 1);
	/* whatever its descriptor is, the first mirror is still mapped once */
	mirror_region(f, copy, AT, 2 * PAGE, &again);
	assert_ptr_equal(again.base, first.base);
	deregister(f, first.key);
	deregister(f, other.key);
	assert_int_equal(again.base[0], 99);
	deregister(f, again.key);
	assert_false(is_mapped(first.base));
	close(second);
	close(copy);
}

#define T(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_limit_counts_whole_pages),
		T(test_refusals_speak_of_addresses),
		T(test_same_bytes_are_mapped_once),
		T(test_other_bytes_are_mapped_apart),
		T(test_another_mirror_with_the_same_descriptor),
	};

	return cmocka_run_group_tests_name("mem mirror", tests, NULL, NULL);
}
