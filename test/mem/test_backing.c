/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Memory that a region cannot have: each reason is refused with the parameter's name. */

#include <fcntl.h>
#include <linux/memfd.h>
#include <unistd.h>

#include "fixture.h"
#include "mem/backing.h"

#define PAGE 4096

static struct mem_mr_attr
backing_file(const struct fixture *f, unsigned int flags)
{
	struct mem_mr_attr a = {
		.pd = f->pd,
		.access = ALL,
		.length = PAGE,
		.va = UINT64_MAX,
		.backing = MEM_FILE,
		.fd = memfd_create("backing", MFD_CLOEXEC | flags),
		.numa_node = -1,
	};

	assert_true(a.fd >= 0);
	assert_int_equal(ftruncate(a.fd, 4 << 20), 0);
	return a;
}

static void
backing_refused(struct fixture *f, const struct mem_mr_attr *a, int rc, const char *why)
{
	struct mem_mr_info info;

	assert_int_equal(mem_mr_register(f->mem, a, &info, &f->err), rc);
	if (strstr(f->err.text, why) == NULL)
		fail_msg("\"%s\" is not in: %s", why, f->err.text);
}

static void
test_numa_node_of_a_file(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = backing_file(f, 0);

	a.numa_node = 4095;
	backing_refused(f, &a, -EINVAL, "numa_node: got 4095");
	close(a.fd);
}

static void
test_backing_that_is_none(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = backing_file(f, 0);

	a.backing = (enum mem_backing)99;
	backing_refused(f, &a, -EINVAL, "backing: got 99");
	close(a.fd);
}

/* Fresh memory has no place in a file. */
static void
test_offset_of_fresh_memory_says_nothing(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = {
		.pd = f->pd,
		.access = ALL,
		.length = PAGE,
		.backing = MEM_ANONYMOUS,
		.offset = UINT64_MAX,
		.numa_node = -1,
	};
	struct backing b;

	assert_int_equal(backing_open(&b, &a, &f->err), 0);
	assert_ptr_equal(b.base, b.map);
	assert_int_equal(b.map_len, PAGE);
	memset(b.base, 1, PAGE);
	backing_close(&b);
}

/* A region of a file of hugepages begins at one of them. */
static void
test_file_of_hugepages(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = backing_file(f, MFD_HUGETLB | MFD_HUGE_2MB);

	a.offset = PAGE;
	backing_refused(f, &a, -EINVAL, "must be a multiple of the page size, 2097152");
	close(a.fd);
}

/* The owner has sealed the file, so nobody may map it to write. */
static void
test_file_that_must_not_be_written(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = backing_file(f, MFD_ALLOW_SEALING);

	assert_int_equal(fcntl(a.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	backing_refused(f, &a, -EPERM, "file: mmap:");
	close(a.fd);
}

/*
 * One user's regions of files do not keep another user from registering: any number is watched. A
 * page that is lost is noticed in each of them, and an entry that is free is used again.
 */
static void
test_any_number_of_files_is_watched(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = backing_file(f, MFD_ALLOW_SEALING);
	struct watched *many[10000], *last;
	uint32_t before = lost_count(), i;
	struct mem_mr_info info;
	volatile uint8_t *page;

	assert_int_equal(pwrite(a.fd, f->bytes, PAGE, 0), PAGE);
	for (i = 0; i < RTE_DIM(many); i++) {
		many[i] = lost_watch(f->bytes, PAGE, PAGE);
		assert_non_null(many[i]);
	}
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	deregister(f, info.key);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0);
	assert_true(page != MAP_FAILED);
	last = lost_watch((void *)(uintptr_t)page, PAGE, PAGE);
	assert_non_null(last);
	assert_int_equal(ftruncate(a.fd, 0), 0);
	page[0] = 1;
	assert_true(lost_found(last));
	assert_int_equal(lost_count(), before + 1);
	for (i = 0; i < RTE_DIM(many); i++)
		assert_false(lost_found(many[i]));
	lost_unwatch(many[77]);
	assert_ptr_equal(lost_watch(f->bytes, PAGE, PAGE), many[77]);
	lost_unwatch(last);
	assert_ptr_equal(lost_watch(f->bytes, PAGE, PAGE), last);
	assert_false(lost_found(last));
	lost_unwatch(last);
	for (i = 0; i < RTE_DIM(many); i++)
		lost_unwatch(many[i]);
	munmap((void *)(uintptr_t)page, PAGE);
	close(a.fd);
}

static void
test_destroying_nothing(void **state)
{
	(void)state;
	mem_destroy(NULL);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_numa_node_of_a_file),
		T(test_backing_that_is_none),
		T(test_offset_of_fresh_memory_says_nothing),
		T(test_file_of_hugepages),
		T(test_file_that_must_not_be_written),
		T(test_any_number_of_files_is_watched),
		cmocka_unit_test(test_destroying_nothing),
	};

	return cmocka_run_group_tests_name("backing", tests, NULL, NULL);
}
