/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Allocator, random generator, error text, verdict names and token bucket. */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/env.h"
#include "base/error.h"
#include "base/token_bucket.h"
#include "base/verdict.h"

static void
test_memory_is_zeroed_and_aligned(void **state)
{
	const size_t aligns[] = { 0, 1, 8, 64, 4096 };
	unsigned int i, j, round;
	uint8_t *p;

	(void)state;
	for (i = 0; i < sizeof(aligns) / sizeof(aligns[0]); i++) {
		for (round = 0; round < 3;
			round++) { /* later rounds get memory that was written to */
			p = mem_zalloc(&allocator_malloc, 777, aligns[i]);
			assert_non_null(p);
			if (aligns[i] > 0)
				assert_int_equal((uintptr_t)p % aligns[i], 0);
			for (j = 0; j < 777; j++)
				assert_int_equal(p[j], 0);
			memset(p, 0xff, 777);
			mem_free(&allocator_malloc, p);
		}
	}
	mem_free(&allocator_malloc, NULL);
}

static void
test_memory_of_no_byte_is_there(void **state)
{
	void *p = mem_zalloc(&allocator_malloc, 0, 0);

	(void)state;
	assert_non_null(p); /* NULL always means that memory has run out */
	mem_free(&allocator_malloc, p);
}

static void
test_random_words_do_not_repeat(void **state)
{
	uint64_t seen[2000];
	unsigned int i, j;

	(void)state;
	for (i = 0; i < 2000; i++) {
		seen[i] = rng_u64(&rng_kernel);
		for (j = 0; j < i; j++)
			assert_true(seen[j] != seen[i]);
	}
}

static void
test_random_fill_covers_every_byte(void **state)
{
	const size_t lens[] = { 1, 7, 255, 256, 257, 5000 };
	uint8_t buf[5002], ored[5000];
	unsigned int i, j, round;

	(void)state;
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		memset(ored, 0, sizeof(ored));
		for (round = 0; round < 40; round++) {
			memset(buf, 0, sizeof(buf));
			rng_kernel.fill(rng_kernel.arg, buf + 1, lens[i]);
			assert_int_equal(buf[0], 0); /* not a byte before or behind */
			assert_int_equal(buf[1 + lens[i]], 0);
			for (j = 0; j < lens[i]; j++)
				ored[j] |= buf[1 + j];
		}
		for (j = 0; j < lens[i]; j++)
			assert_int_not_equal(ored[j], 0);
	}
}

static void *
draw(void *arg)
{
	*(uint64_t *)arg = rng_u64(&rng_kernel);
	return NULL;
}

static void
test_random_buffer_is_per_thread(void **state)
{
	pthread_t thread;
	uint64_t a = rng_u64(&rng_kernel), b = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, draw, &b), 0);
	pthread_join(thread, NULL);
	assert_true(a != b && b != 0);
	assert_true(rng_u64(&rng_kernel) != b);
}

static void
test_error_says_why_and_returns_errno(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(error_set(&err, EINVAL, "path_mtu: got %u", 77), -EINVAL);
	assert_string_equal(err.text, "path_mtu: got 77");
	assert_int_equal(error_set(NULL, ENOENT, "no %s", "room"), -ENOENT);
}

static void
test_every_verdict_has_a_unique_name(void **state)
{
	unsigned int i, j;

	(void)state;
	for (i = 0; i < VERDICT_COUNT; i++) {
		assert_non_null(verdict_infos[i].name);
		assert_true(verdict_infos[i].name[0] != '\0');
		assert_true(verdict_infos[i].help[0] != '\0');
		for (j = 0; j < i; j++)
			assert_string_not_equal(verdict_infos[i].name, verdict_infos[j].name);
	}
}

static void
test_token_bucket_burst_then_rate(void **state)
{
	struct token_bucket b;
	unsigned int i, taken = 0;
	uint64_t now;

	(void)state;
	token_bucket_init(&b, 100, 5);
	for (i = 0; i < 5; i++)
		assert_true(token_bucket_take(&b, 1000));
	assert_false(token_bucket_take(&b, 1000));
	assert_false(token_bucket_take(&b, 1099));
	assert_true(token_bucket_take(&b, 1100)); /* one back after one interval */
	assert_false(token_bucket_take(&b, 1100));
	for (i = 0; i < 5; i++) /* never more than the burst, however long nothing was taken */
		assert_true(token_bucket_take(&b, 1000000));
	assert_false(token_bucket_take(&b, 1000000));
	for (now = 1000001; now <= 1010000; now++)
		taken += token_bucket_take(&b, now);
	assert_int_equal(taken, 100);
}

static void
test_token_bucket_without_limit(void **state)
{
	struct token_bucket b;
	unsigned int i;

	(void)state;
	token_bucket_init(&b, 0, 1);
	for (i = 0; i < 1000; i++)
		assert_true(token_bucket_take(&b, 5));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_zeroed_and_aligned),
		cmocka_unit_test(test_memory_of_no_byte_is_there),
		cmocka_unit_test(test_random_words_do_not_repeat),
		cmocka_unit_test(test_random_fill_covers_every_byte),
		cmocka_unit_test(test_random_buffer_is_per_thread),
		cmocka_unit_test(test_error_says_why_and_returns_errno),
		cmocka_unit_test(test_every_verdict_has_a_unique_name),
		cmocka_unit_test(test_token_bucket_burst_then_rate),
		cmocka_unit_test(test_token_bucket_without_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
