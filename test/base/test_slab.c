/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/slab.h"

/* An allocator that counts its allocations and fails when told to. */
struct counted {
	unsigned int calls, live;
	bool refuse;
};

static void *
slab_counted_alloc(void *arg, size_t size, size_t align)
{
	struct counted *c = arg;

	if (c->refuse)
		return NULL;
	c->calls++;
	c->live++;
	return allocator_malloc.alloc(allocator_malloc.arg, size, align);
}

static void
slab_counted_free(void *arg, void *mem)
{
	struct counted *c = arg;

	c->live--;
	allocator_malloc.free(allocator_malloc.arg, mem);
}

#define COUNTED(c)                                                                                 \
	{                                                                                          \
		slab_counted_alloc, slab_counted_free, &(c)                                        \
	}

static bool
slab_all_zero(const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i] != 0)
			return false;
	return true;
}

/* Objects of sizes around each size class do not overlap, and all memory is freed at the end. */
static void
test_objects_are_zeroed_aligned_and_apart(void **state)
{
	static const size_t sizes[] = { 1, 56, 57, 120, 1016, 1017, 3776, 4096, 65536, 524000,
		524289, 3000000 };
	struct counted c = { .calls = 0 };
	const struct allocator alloc = COUNTED(c);
	struct slab *s = slab_create(&alloc);
	uint8_t *mem[12][5];
	unsigned int i, k, round;

	(void)state;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 12; i++)
			for (k = 0; k < 5; k++) {
				mem[i][k] = slab_alloc(s, sizes[i]);
				assert_non_null(mem[i][k]);
				assert_int_equal((uintptr_t)mem[i][k] % 64, 0);
				assert_true(slab_all_zero(mem[i][k], sizes[i]));
				memset(mem[i][k], (int)(i * 5 + k + 1), sizes[i]);
			}
		for (i = 0; i < 12; i++)
			for (k = 0; k < 5; k++) {
				assert_int_equal(mem[i][k][0], i * 5 + k + 1);
				assert_int_equal(mem[i][k][sizes[i] - 1], i * 5 + k + 1);
			}
		for (i = 0; i < 12; i++)
			for (k = round; k < 5; k++)
				slab_free(mem[i][k], sizes[i]);
		for (i = 0; i < 12; i++)
			for (k = 0; k < round; k++)
				slab_free(mem[i][k], sizes[i]);
	}
	assert_int_equal(c.live, 1);
	slab_destroy(s);
	assert_int_equal(c.live, 0);
}

/*
 * 100,000 objects of 4 KiB: chunks double in size up to 8 MiB, so the first 11 hold 2047 objects,
 * and
 * 49 more hold the rest.
 */
static void
test_many_objects_take_few_allocations(void **state)
{
	struct counted c = { .calls = 0 };
	const struct allocator alloc = COUNTED(c);
	struct slab *s = slab_create(&alloc);
	void **mem = calloc(100000, sizeof(*mem));
	unsigned int i;

	(void)state;
	for (i = 0; i < 100000; i++)
		assert_non_null(mem[i] = slab_alloc(s, 4000));
	assert_in_range(c.calls, 50, 70);
	for (i = 0; i < 100000; i++)
		slab_free(mem[i], 4000);
	assert_int_equal(c.live, 1);
	slab_destroy(s);
	free(mem);
}

/* Objects are an odd number of cache lines apart. */
static void
test_objects_spread_over_the_sets_of_a_cache(void **state)
{
	struct slab *s = slab_create(&allocator_malloc);
	uint8_t *mem[64];
	unsigned int i;
	size_t apart;

	(void)state;
	for (i = 0; i < 64; i++)
		mem[i] = slab_alloc(s, 4096);
	apart = (size_t)labs(mem[63] - mem[62]);
	assert_int_equal(apart % 64, 0);
	assert_int_equal(apart / 64 % 2, 1);
	for (i = 0; i < 64; i++)
		slab_free(mem[i], 4096);
	slab_destroy(s);
}

static void
test_freed_object_is_used_again(void **state)
{
	struct counted c = { .calls = 0 };
	const struct allocator alloc = COUNTED(c);
	struct slab *s = slab_create(&alloc);
	void *mem[8], *again;
	unsigned int i, calls;

	(void)state;
	for (i = 0; i < 8; i++)
		mem[i] = slab_alloc(s, 100);
	calls = c.calls;
	slab_free(mem[3], 100);
	again = slab_alloc(s, 90); /* the same size class */
	assert_ptr_equal(again, mem[3]);
	assert_int_equal(c.calls, calls);
	for (i = 0; i < 8; i++)
		slab_free(mem[i], 100);
	slab_destroy(s);
}

static void
test_failed_allocation_changes_nothing(void **state)
{
	struct counted c = { .calls = 0 };
	const struct allocator alloc = COUNTED(c);
	struct slab *s = slab_create(&alloc);
	void *a, *b;

	(void)state;
	a = slab_alloc(s, 100);
	c.refuse = true;
	assert_null(slab_alloc(s, 100));
	assert_null(slab_alloc(s, 1u << 24));
	assert_null(slab_create(&alloc));
	c.refuse = false;
	b = slab_alloc(s, 100);
	assert_non_null(b);
	slab_free(a, 100);
	slab_free(b, 100);
	slab_free(NULL, 100);
	assert_int_equal(c.live, 1);
	slab_destroy(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects_are_zeroed_aligned_and_apart),
		cmocka_unit_test(test_many_objects_take_few_allocations),
		cmocka_unit_test(test_objects_spread_over_the_sets_of_a_cache),
		cmocka_unit_test(test_freed_object_is_used_again),
		cmocka_unit_test(test_failed_allocation_changes_nothing),
	};

	return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
