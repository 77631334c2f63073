/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Domains and regions: registration rules, backings, deregistration and its grace period. */

#include <fcntl.h>
#include <numa.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

static struct mem_mr_attr
anonymous(const struct fixture *f, uint64_t length)
{
	return (struct mem_mr_attr){
		.pd = f->pd,
		.access = ALL,
		.length = length,
		.va = UINT64_MAX,
		.backing = MEM_ANONYMOUS,
		.numa_node = -1,
	};
}

static void
assert_refused(struct fixture *f, const struct mem_mr_attr *attr, int rc, const char *field)
{
	struct mem_mr_info info;

	memset(&f->err, 0, sizeof(f->err));
	assert_int_equal(mem_mr_register(f->mem, attr, &info, &f->err), rc);
	assert_memory_equal(f->err.text, field, strlen(field)); /* names the parameter */
}

static void
test_table_sizes_are_checked(void **state)
{
	struct mem_config c = { 1, 1, 0, &allocator_malloc, &rng_kernel, { NULL, NULL, NULL } };
	struct mem *mem = mem_create(&c);

	(void)state;
	assert_non_null(mem); /* no windows at all is fine */
	mem_destroy(mem);
	c.max_pd = 0;
	assert_null(mem_create(&c));
	c.max_pd = 1;
	c.max_mr = 0;
	assert_null(mem_create(&c));
	c.max_mr = 1 << 21;
	c.max_mw = (1 << 21) + 1;
	assert_null(mem_create(&c));
	c.max_mr = UINT32_MAX;
	c.max_mw = 2;
	assert_null(mem_create(&c));
}

static int countdown;

static void *
failing_alloc(void *arg, size_t size, size_t align)
{
	return countdown-- > 0 ? allocator_malloc.alloc(arg, size, align) : NULL;
}

static void
failing_free(void *arg, void *mem)
{
	allocator_malloc.free(arg, mem);
}

static void
test_allocator_that_fails_anywhere(void **state)
{
	const struct allocator alloc = { failing_alloc, failing_free, NULL };
	struct mem_config c = { 4, 4, 4, &alloc, &rng_kernel, { NULL, NULL, NULL } };
	struct mem *mem;
	int i;

	(void)state;
	for (i = 0;; i++) {
		countdown = i;
		mem = mem_create(&c);
		if (mem != NULL)
			break;
	}
	assert_in_range(i, 5, 20);
	mem_destroy(mem);
}

static void
test_domains_run_out_and_come_back(void **state)
{
	struct fixture *f = *state;
	uint32_t pd[4], i, more;

	for (i = 0; i < 3; i++) { /* the fixture has one of the four */
		assert_int_equal(mem_pd_alloc(f->mem, &pd[i], NULL), 0);
		assert_int_not_equal(pd[i], 0);
		assert_int_not_equal(pd[i], f->pd);
	}
	assert_int_equal(mem_pd_alloc(f->mem, &more, &f->err), -ENOMEM);
	assert_int_equal(mem_pd_free(f->mem, pd[1], NULL), 0);
	assert_int_equal(mem_pd_free(f->mem, pd[1], NULL), -ENOENT);
	assert_int_equal(mem_pd_hold(f->mem, pd[1]), -ENOENT);
	assert_int_equal(mem_pd_alloc(f->mem, &more, NULL), 0);
	assert_int_equal(mem_pd_free(f->mem, 0, NULL), -ENOENT);
	assert_int_equal(mem_pd_free(f->mem, 5, NULL), -ENOENT);
	assert_int_equal(mem_pd_free(f->mem, UINT32_MAX, NULL), -ENOENT);
}

static void
test_domain_in_use_is_not_freed(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, ALL, 0, 64), mw;

	assert_int_equal(mem_pd_free(f->mem, f->pd, NULL), -EBUSY); /* region */
	assert_int_equal(mem_mr_deregister(f->mem, key, NULL), -EAGAIN);
	assert_int_equal(mem_pd_free(f->mem, f->pd, NULL),
		-EBUSY); /* deregistered, but its grace period is not over */
	deregister(f, key);
	mw = window(f, MEM_MW_TYPE_2);
	assert_int_equal(mem_pd_free(f->mem, f->pd, NULL), -EBUSY); /* window */
	assert_int_equal(mem_mw_free(f->mem, mw, NULL), 0);
	assert_int_equal(mem_pd_hold(f->mem, f->pd), 0);
	assert_int_equal(mem_pd_free(f->mem, f->pd, NULL), -EBUSY); /* QP or SRQ */
	mem_pd_release(f->mem, f->pd);
	assert_int_equal(mem_pd_free(f->mem, f->pd, NULL), 0);
}

static void
test_refused_registration_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 4096);
	uint64_t cursor = 0;
	struct mem_mr_info info;

	a.length = 0;
	assert_refused(f, &a, -EINVAL, "length");
	a = anonymous(f, 4096);
	a.pd = f->pd + 1;
	assert_refused(f, &a, -ENOENT, "pd");
	a = anonymous(f, 4096);
	a.access = 0x40;
	assert_refused(f, &a, -EINVAL, "access");
	a.access = RW; /* ibv_reg_mr: needs local write */
	assert_refused(f, &a, -EINVAL, "access");
	a.access = RA;
	assert_refused(f, &a, -EINVAL, "access");
	a = anonymous(f, 4096);
	a.va = (uint64_t)0 - 4095; /* ends one byte above 2^64 */
	a.access = RR;
	assert_refused(f, &a, -EINVAL, "va");
	a = anonymous(f, 4096);
	a.va = 0x1001; /* atomics would be unaligned on the host */
	assert_refused(f, &a, -EINVAL, "va");
	a = anonymous(f, 4096);
	a.access |= ZERO;
	a.va = 0x1000;
	assert_refused(f, &a, -EINVAL, "va");
	a = anonymous(f, UINT64_MAX / 2);
	assert_refused(f, &a, -ENOMEM, "length");
	a = anonymous(f, UINT64_MAX);
	a.va = 0;
	assert_refused(f, &a, -ENOMEM, "length");
	a = anonymous(f, 4096);
	a.numa_node = 4095;
	assert_refused(f, &a, -EINVAL, "numa_node");
	a.numa_node = -2;
	assert_refused(f, &a, -EINVAL, "numa_node");
	a = anonymous(f, 4096);
	a.backing = MEM_EXTERNAL;
	assert_refused(f, &a, -EINVAL, "base");
	a.base = f->bytes;
	a.length = UINT64_MAX;
	assert_refused(f, &a, -EINVAL, "base");
	a = anonymous(f, 4096);
	a.backing = MEM_FILE;
	a.access = RR;
	a.fd = -1;
	assert_refused(f, &a, -EBADF, "file");
	assert_false(mem_mr_next(f->mem, &cursor, &info));
	assert_int_equal(mem_pd_free(f->mem, f->pd, NULL),
		0); /* no registration that failed holds it */
}

static void
test_regions_run_out_and_come_back(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 4096);
	uint32_t key[8], i;

	for (i = 0; i < 8; i++)
		key[i] = region(f, RR, 0, 64);
	assert_refused(f, &a, -ENOMEM, "mr");
	assert_int_equal(mem_mr_deregister(f->mem, key[3], NULL), -EAGAIN);
	assert_refused(f, &a, -ENOMEM, "mr"); /* still in its grace period */
	deregister(f, key[3]);
	key[3] = region(f, RR, 0, 64);
	for (i = 0; i < 8; i++)
		assert_int_equal(access_at(f, key[i], 0, 64, RR), MEM_OK);
}

static void
test_no_key_repeats_in_ten_thousand_registrations(void **state)
{
	struct fixture *f = *state;
	uint8_t *seen = calloc(UINT32_C(1) << 29, 1);
	uint32_t i, key;

	assert_non_null(seen);
	for (i = 0; i < 10000; i++) {
		key = region(f, RR, 0, 64);
		assert_int_equal(seen[key / 8] & (1 << (key % 8)), 0);
		seen[key / 8] |= (uint8_t)(1 << (key % 8));
		deregister(f, key);
	}
	free(seen);
}

static void
test_anonymous_memory_is_zeroed_and_unmapped_at_the_end(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 3 * 4096 + 5);
	struct mem_mr_info info;
	uint64_t i;

	a.numa_node = 0;
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	assert_true(info.va == (uintptr_t)info.base);
	assert_int_equal(info.length, 3 * 4096 + 5);
	assert_false(info.hugepages);
	for (i = 0; i < info.length; i++)
		assert_int_equal(info.base[i], 0);
	memset(info.base, 0xff, info.length);
	assert_int_equal(access_at(f, info.key, info.va, info.length, RW), MEM_OK);
	deregister(f, info.key);
	assert_false(is_mapped(info.base));
	assert_false(is_mapped(info.base + 3 * 4096));
}

/*
 * On a host with one NUMA node it is node 0. The suite bare-metal tests hosts with more nodes. An
 * emulator of programs (qemu-aarch64) reports none.
 */
static void
test_region_reports_its_numa_node(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 4096);
	struct mem_mr_info info;

	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	if (numa_available() < 0) {
		assert_int_equal(info.numa_node, -1);
		return;
	}
	assert_in_range(info.numa_node, 0, numa_max_node());
	a.numa_node = numa_max_node();
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	assert_int_equal(info.numa_node, numa_max_node());
}

/* With and without hugepages the region works, and reports which pages it has. */
static void
test_region_works_with_and_without_hugepages(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 100000);
	struct mem_mr_info info;

	a.hugepages = true;
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	if (info.hugepages)
		assert_int_equal((uintptr_t)info.base % (2 << 20), 0);
	memset(info.base, 1, info.length);
	deregister(f, info.key);
	assert_false(is_mapped(info.base));
}

static void
test_bytes_stay_until_the_grace_period_is_over(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 4096);
	struct mem_mr_info info, gone;
	uint64_t cursor = 0;
	int i;

	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	info.base[7] = 77;
	for (i = 0; i < 3; i++) {
		assert_int_equal(mem_mr_deregister(f->mem, info.key, &f->err), -EAGAIN);
		assert_true(is_mapped(info.base));
		assert_int_equal(info.base[7], 77);
		assert_int_equal(access_at(f, info.key, info.va, 1, RR), MEM_BAD_KEY);
	}
	assert_int_equal(f->grace.started, 1); /* one period, not one for each call */
	assert_int_equal(mem_mr_query(f->mem, info.key, &gone), -ENOENT);
	assert_false(mem_mr_next(f->mem, &cursor, &gone));
	grace_passes(f);
	assert_true(is_mapped(info.base)); /* unmapped only when deregister is called again */
	assert_int_equal(mem_mr_deregister(f->mem, info.key, &f->err), 0);
	assert_false(is_mapped(info.base));
	assert_int_equal(mem_mr_deregister(f->mem, info.key, &f->err), -ENOENT);
}

static void
test_without_grace_hooks_memory_is_freed_at_once(void **state)
{
	struct mem_config c = { 1, 1, 1, &allocator_malloc, &rng_kernel, { NULL, NULL, NULL } };
	struct mem_mr_attr a = { .length = 4096, .access = RR, .numa_node = -1 };
	struct mem *mem = mem_create(&c);
	struct mem_mr_info info;

	(void)state;
	assert_int_equal(mem_pd_alloc(mem, &a.pd, NULL), 0);
	assert_int_equal(mem_mr_register(mem, &a, &info, NULL), 0);
	assert_int_equal(mem_mr_deregister(mem, info.key, NULL), 0);
	assert_true(mem_grace_done(mem, 0));
	mem_destroy(mem);
}

static void
test_destroy_frees_all_regions(void **state)
{
	struct mem_config c = { 1, 2, 1, &allocator_malloc, &rng_kernel, { NULL, NULL, NULL } };
	struct mem_mr_attr a = { .length = 4096, .access = RR, .numa_node = -1 };
	struct mem *mem = mem_create(&c);
	struct mem_mr_info info;

	(void)state;
	assert_int_equal(mem_pd_alloc(mem, &a.pd, NULL), 0);
	assert_int_equal(mem_mr_register(mem, &a, &info, NULL), 0);
	mem_destroy(mem);
	assert_false(is_mapped(info.base));
}

static void
test_query_and_walk_report_the_same(void **state)
{
	struct fixture *f = *state;
	uint64_t cursor = 0;
	uint32_t keys[3], n = 0;
	struct mem_mr_info info, again;

	keys[0] = region(f, RR, 0x1000, 64);
	keys[1] = region(f, LW | RW, 0x2000, 128);
	keys[2] = region(f, ALL | ZERO, 0, 256);
	deregister(f, keys[1]);
	while (mem_mr_next(f->mem, &cursor, &info)) {
		assert_true(info.key == keys[0] || info.key == keys[2]);
		assert_int_equal(mem_mr_query(f->mem, info.key, &again), 0);
		assert_int_equal(again.key, info.key);
		assert_int_equal(again.length, info.length);
		n++;
	}
	assert_int_equal(n, 2);
	assert_int_equal(mem_mr_query(f->mem, keys[2], &info), 0);
	assert_int_equal(info.length, 256);
	assert_int_equal(info.va, 0);
	assert_int_equal(info.access, ALL | ZERO);
	assert_int_equal(info.pd, f->pd);
	assert_ptr_equal(info.base, f->bytes);
}

/* --- files --- */

static void
file_create(char *path, size_t size)
{
	uint8_t page[4096];
	size_t i;
	int fd;

	strcpy(path, "/tmp/polca-test-mr-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	for (i = 0; i < size; i += sizeof(page)) {
		memset(page, (int)(i / sizeof(page)) + 1, sizeof(page));
		assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	}
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

static void
test_file_is_shared_both_ways(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 5000);
	struct mem_mr_info info;
	char path[64];
	uint8_t byte;

	file_create(path, 3 * 4096);
	a.backing = MEM_FILE;
	a.fd = open(path, O_RDWR);
	a.offset = 4096;
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	assert_int_equal(info.base[0], 2);
	assert_int_equal(info.base[4999], 3);
	info.base[10] = 0x5a;
	assert_int_equal(pread(a.fd, &byte, 1, 4096 + 10), 1);
	assert_int_equal(byte, 0x5a);
	byte = 0xa5;
	assert_int_equal(pwrite(a.fd, &byte, 1, 4096 + 20), 1);
	close(a.fd); /* the region needs it no longer */
	assert_int_equal(info.base[20], 0xa5);
	deregister(f, info.key);
	assert_false(is_mapped(info.base));
	unlink(path);
}

/*
 * A file that is shortened later: accesses go to empty pages, then the region is closed. Others are
 * not.
 */
static void
test_file_cut_short_is_lost(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 3 * 4096);
	struct mem_mr_info info, whole, lost;
	uint8_t *host;
	char path[64];

	assert_int_equal(mem_mr_register(f->mem, &a, &whole, &f->err), 0);
	file_create(path, 3 * 4096);
	a.backing = MEM_FILE;
	a.fd = open(path, O_RDWR);
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	close(a.fd);
	assert_false(mem_mr_lost(f->mem, &lost));
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(info.base[4095], 1);
	assert_false(mem_mr_lost(f->mem, &lost)); /* nobody has touched what is lost */
	assert_int_equal(info.base[4096], 0);
	info.base[2 * 4096] = 7;
	assert_int_equal(info.base[2 * 4096], 7);
	assert_true(mem_mr_lost(f->mem, &lost));
	assert_int_equal(lost.key, info.key);
	assert_true(lost.lost);
	assert_false(mem_mr_lost(f->mem, &lost));
	/* open until its queue pairs have ended, so that none fails with an access error first */
	assert_int_equal(mem_access(f->mem, info.key, f->pd, 1, info.va, 1, 0, &host), MEM_OK);
	mem_mr_close_lost(f->mem, info.key);
	assert_int_equal(mem_access(f->mem, info.key, f->pd, 1, info.va, 1, 0, &host), MEM_BAD_KEY);
	assert_int_equal(mem_access(f->mem, whole.key, f->pd, 1, whole.va, 1, 0, &host), MEM_OK);
	deregister(f, info.key);
	assert_false(is_mapped(info.base));
	unlink(path);
}

/* Access to a page behind the end of a file raises SIGBUS, so such a region is refused. */
static void
test_file_must_hold_the_whole_region(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 4096);
	struct mem_mr_info info;
	char path[64];

	file_create(path, 8192);
	a.backing = MEM_FILE;
	a.fd = open(path, O_RDWR);
	a.length = 8193;
	assert_refused(f, &a, -EINVAL, "length");
	a.length = UINT64_MAX;
	a.va = 0;
	assert_refused(f, &a, -EINVAL, "length");
	a.va = UINT64_MAX;
	a.length = 4097;
	a.offset = 4096;
	assert_refused(f, &a, -EINVAL, "length");
	a.length = 1;
	a.offset = 8192;
	assert_refused(f, &a, -EINVAL, "length");
	a.offset = 12288;
	assert_refused(f, &a, -EINVAL, "length");
	a.offset = UINT64_MAX - 4095;
	assert_refused(f, &a, -EINVAL, "length");
	a.offset = 100;
	assert_refused(f, &a, -EINVAL, "offset");
	a.offset = 4096;
	a.length = 4096;
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	close(a.fd);
	unlink(path);
}

static void
test_read_only_file_is_never_written(void **state)
{
	struct fixture *f = *state;
	struct mem_mr_attr a = anonymous(f, 4096);
	struct mem_mr_info info;
	char path[64];
	uint8_t byte;

	file_create(path, 4096);
	a.backing = MEM_FILE;
	a.fd = open(path, O_RDONLY);
	assert_refused(f, &a, -EACCES, "file"); /* local write is requested */
	a.access = RR;
	assert_int_equal(mem_mr_register(f->mem, &a, &info, &f->err), 0);
	assert_int_equal(info.base[0], 1);
	info.base[0] = 9; /* no crash, and the file does not change */
	assert_int_equal(pread(a.fd, &byte, 1, 0), 1);
	assert_int_equal(byte, 1);
	close(a.fd);
	unlink(path);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_sizes_are_checked),
		cmocka_unit_test(test_allocator_that_fails_anywhere),
		T(test_domains_run_out_and_come_back),
		T(test_domain_in_use_is_not_freed),
		T(test_refused_registration_changes_nothing),
		T(test_regions_run_out_and_come_back),
		T(test_no_key_repeats_in_ten_thousand_registrations),
		T(test_anonymous_memory_is_zeroed_and_unmapped_at_the_end),
		T(test_region_reports_its_numa_node),
		T(test_region_works_with_and_without_hugepages),
		T(test_bytes_stay_until_the_grace_period_is_over),
		cmocka_unit_test(test_without_grace_hooks_memory_is_freed_at_once),
		cmocka_unit_test(test_destroy_frees_all_regions),
		T(test_query_and_walk_report_the_same),
		T(test_file_is_shared_both_ways),
		T(test_file_must_hold_the_whole_region),
		T(test_file_cut_short_is_lost),
		T(test_read_only_file_is_never_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
