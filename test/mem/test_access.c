/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The check of every access to a region: key, domain, rights, range (rc-transport 6, row 7). */

#include "fixture.h"

#define VA UINT64_C(0x7f0000001000)

static void
test_every_byte_inside_and_none_outside(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, LW | RR, VA, 4096);

	assert_int_equal(lands(f, QPN, key, VA, 1, RR), 0);
	assert_int_equal(lands(f, QPN, key, VA, 4096, RR), 0);
	assert_int_equal(lands(f, QPN, key, VA + 4095, 1, RR), 4095);
	assert_int_equal(lands(f, QPN, key, VA + 17, 100, RR), 17);
	assert_int_equal(access_at(f, key, VA, 4097, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, VA + 1, 4096, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, VA + 4096, 1, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, VA - 1, 1, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, VA - 1, 2, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, 0, 1, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, UINT64_MAX, 1, RR), MEM_BAD_RANGE);
}

static void
test_length_that_wraps_2_64_is_out_of_range(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, LW | RR, VA, 4096);

	assert_int_equal(access_at(f, key, VA, UINT64_MAX, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, VA + 1, UINT64_MAX, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, VA + 10, (uint64_t)0 - 5, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, VA + 4095, (uint64_t)0 - 4095, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, VA, (uint64_t)1 << 63, RR), MEM_BAD_RANGE);
}

static void
test_region_that_ends_at_2_64(void **state)
{
	struct fixture *f = *state;
	const uint64_t va = (uint64_t)0 - 4096;
	uint32_t key = region(f, LW | RR, va, 4096);

	assert_int_equal(lands(f, QPN, key, va, 4096, RR), 0);
	assert_int_equal(lands(f, QPN, key, UINT64_MAX, 1, RR), 4095);
	assert_int_equal(access_at(f, key, UINT64_MAX, 2, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, va, 4097, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, 0, 1, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, 0, UINT64_MAX, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, va - 1, 1, RR), MEM_BAD_RANGE);
}

static void
test_zero_based_region_starts_at_0(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, LW | RR | ZERO, 0, 4096);

	assert_int_equal(lands(f, QPN, key, 0, 4096, RR), 0);
	assert_int_equal(lands(f, QPN, key, 100, 1, RR), 100);
	assert_int_equal(access_at(f, key, 4096, 1, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, (uintptr_t)f->bytes, 1, RR), MEM_BAD_RANGE);
	assert_int_equal(access_at(f, key, UINT64_MAX, 1, RR), MEM_BAD_RANGE);
}

static void
test_each_right_allows_only_itself(void **state)
{
	struct fixture *f = *state;
	uint32_t none = region(f, 0, VA, 4096), lw = region(f, LW, VA, 4096);
	uint32_t rr = region(f, RR, VA, 4096), rw = region(f, LW | RW, VA, 4096);
	uint32_t ra = region(f, LW | RA, VA, 4096), bind = region(f, LW | BIND, VA, 4096);
	const struct {
		uint32_t key;
		uint32_t allowed; /* of LW, RW, RR, RA */
	} rows[] = { { none, 0 }, { lw, LW }, { rr, RR }, { rw, LW | RW }, { ra, LW | RA },
		{ bind, LW } };
	uint32_t i, right;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(access_at(f, rows[i].key, VA, 8, 0), MEM_OK); /* local read */
		for (right = LW; right <= RA; right <<= 1)
			assert_int_equal(access_at(f, rows[i].key, VA, 8, right),
				(rows[i].allowed & right) != 0 ? MEM_OK : MEM_BAD_RIGHTS);
	}
}

static void
test_missing_right_is_reported_before_wrong_range(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, RR, VA, 4096);

	assert_int_equal(access_at(f, key, VA + 5000, 8, RW), MEM_BAD_RIGHTS);
	assert_int_equal(access_at(f, key, VA + 5000, 8, RR), MEM_BAD_RANGE);
}

static void
test_key_is_invalid_in_another_domain(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, ALL, VA, 4096), other;
	uint8_t *host;

	assert_int_equal(mem_pd_alloc(f->mem, &other, NULL), 0);
	assert_int_equal(mem_access(f->mem, key, f->pd, QPN, VA, 8, RR, &host), MEM_OK);
	assert_int_equal(mem_access(f->mem, key, other, QPN, VA, 8, RR, &host), MEM_BAD_KEY);
	assert_int_equal(mem_access(f->mem, key, 0, QPN, VA, 8, RR, &host), MEM_BAD_KEY);
	assert_int_equal(mem_access(f->mem, key, other, QPN, VA, 8, 0, &host), MEM_BAD_KEY);
}

static void
test_every_qp_of_the_domain_may_use_a_region(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, ALL, VA, 4096);

	assert_int_equal(access_by(f, 1, key, VA, 8, RR), MEM_OK);
	assert_int_equal(access_by(f, 0xffffff, key, VA, 8, RR), MEM_OK);
}

static void
test_key_must_match_in_every_bit(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, ALL, VA, 4096), i;

	for (i = 0; i < 32; i++)
		assert_int_equal(access_at(f, key ^ (UINT32_C(1) << i), VA, 8, RR), MEM_BAD_KEY);
	for (i = 1; i < 256; i++)
		assert_int_equal(access_at(f, key ^ i, VA, 8, RR), MEM_BAD_KEY);
}

static void
test_no_key_works_in_an_empty_table(void **state)
{
	struct fixture *f = *state;
	uint64_t key;

	for (key = 0; key <= UINT32_MAX; key += 65521)
		assert_int_equal(access_at(f, (uint32_t)key, 0, 1, 0), MEM_BAD_KEY);
	assert_int_equal(access_at(f, 0, 0, 1, 0), MEM_BAD_KEY);
	assert_int_equal(access_at(f, UINT32_MAX, 0, 1, 0), MEM_BAD_KEY);
}

/* Memory that ends just before an inaccessible page. It is never unmapped. */
static void *
guarded_alloc(void *arg, size_t size, size_t align)
{
	size_t pages = (size + 4095) / 4096 * 4096;
	uint8_t *map = mmap(NULL, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);

	(void)arg;
	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + pages, 4096, PROT_NONE), 0);
	return map + pages - (size + align - 1) / align * align;
}

static void
guarded_free(void *arg, void *mem)
{
	(void)arg;
	(void)mem;
}

/* 65 regions need 7 index bits, so nearly half of all keys have an index beyond the table. */
static void
test_key_beyond_the_table_reads_nothing(void **state)
{
	const struct allocator guarded = { guarded_alloc, guarded_free, NULL };
	struct mem_config c = { 1, 65, 0, &guarded, &rng_kernel, { NULL, NULL, NULL } };
	struct mem *mem = mem_create(&c);
	uint64_t key;
	uint8_t *host;

	(void)state;
	for (key = 0; key <= UINT32_MAX; key += 65521)
		assert_int_equal(mem_access(mem, (uint32_t)key, 1, QPN, 0, 1, 0, &host),
			MEM_BAD_KEY);
	mem_destroy(mem);
}

/* The empty record of a deregistered region does not match key 0. */
static void
test_key_0_is_no_key(void **state)
{
	/* one record: every key has its index */
	struct mem_config c = { 1, 1, 0, &allocator_malloc, &rng_kernel, { NULL, NULL, NULL } };
	struct mem *mem = mem_create(&c);
	struct mem_mr_attr a = { .length = 64, .access = ALL, .numa_node = -1 };
	struct mem_mr_info info;
	uint8_t *host;

	(void)state;
	assert_int_equal(mem_pd_alloc(mem, &a.pd, NULL), 0);
	assert_int_equal(mem_mr_register(mem, &a, &info, NULL), 0);
	assert_int_equal(mem_access(mem, 0, a.pd, QPN, 0, 8, RR, &host), MEM_BAD_KEY);
	assert_int_equal(mem_mr_deregister(mem, info.key, NULL), 0);
	assert_int_equal(mem_access(mem, 0, a.pd, QPN, 0, 8, RR, &host), MEM_BAD_KEY);
	mem_destroy(mem);
}

/* Of all 2^32 keys exactly one finds the only region. */
static void
test_one_key_in_2_32_works(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, ALL, VA, 4096), upper, found = 0;

	for (upper = 0; upper < 1 << 24; upper++)
		found += access_at(f, upper << 8 | (key & 0xff), VA, 8, RR) == MEM_OK;
	assert_int_equal(found, 1);
}

static void
test_stale_key_fails_at_once_and_for_good(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, ALL, VA, 4096), i, next;

	assert_int_equal(mem_mr_deregister(f->mem, key, NULL), -EAGAIN);
	assert_int_equal(access_at(f, key, VA, 8, RR), MEM_BAD_KEY);
	deregister(f, key);
	for (i = 0; i < 100; i++) { /* each of the 8 records is used many times */
		next = region(f, ALL, VA, 4096);
		assert_int_equal(access_at(f, key, VA, 8, RR), MEM_BAD_KEY);
		assert_int_equal(access_at(f, next, VA, 8, RR), MEM_OK);
		deregister(f, next);
	}
}

/* The hint is where the last key was found. A stale or wrong hint changes no result. */
static void
test_hint_changes_no_verdict(void **state)
{
	struct fixture *f = *state;
	uint32_t a = region(f, ALL, VA, 4096), b = region(f, LW, VA, 2048), hint;
	uint8_t *host;

	for (hint = 0; hint < 100; hint++) {
		uint32_t h = hint;

		assert_int_equal(mem_access_hint(f->mem, &h, a, f->pd, QPN, VA, 4096, RR, &host),
			MEM_OK);
		assert_int_equal(mem_access_hint(f->mem, &h, a, f->pd, QPN, VA, 4097, RR, &host),
			MEM_BAD_RANGE);
		assert_int_equal(mem_access_hint(f->mem, &h, b, f->pd, QPN, VA, 8, RR, &host),
			MEM_BAD_RIGHTS);
		h = hint;
		assert_int_equal(mem_access_hint(f->mem, &h, b ^ 1, f->pd, QPN, VA, 8, LW, &host),
			MEM_BAD_KEY);
	}
	hint = UINT32_MAX;
	assert_int_equal(mem_access_hint(f->mem, &hint, a, f->pd, QPN, VA, 8, RR, &host), MEM_OK);
	assert_int_not_equal(hint, UINT32_MAX);
	/* the region at the hint is deregistered between two accesses */
	deregister(f, a);
	assert_int_equal(mem_access_hint(f->mem, &hint, a, f->pd, QPN, VA, 8, RR, &host),
		MEM_BAD_KEY);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_every_byte_inside_and_none_outside),
		T(test_length_that_wraps_2_64_is_out_of_range),
		T(test_region_that_ends_at_2_64),
		T(test_zero_based_region_starts_at_0),
		T(test_each_right_allows_only_itself),
		T(test_missing_right_is_reported_before_wrong_range),
		T(test_key_is_invalid_in_another_domain),
		T(test_every_qp_of_the_domain_may_use_a_region),
		T(test_key_must_match_in_every_bit),
		T(test_no_key_works_in_an_empty_table),
		cmocka_unit_test(test_key_beyond_the_table_reads_nothing),
		cmocka_unit_test(test_key_0_is_no_key),
		T(test_one_key_in_2_32_works),
		T(test_stale_key_fails_at_once_and_for_good),
		T(test_hint_changes_no_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
