/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* polca-bench's histogram of samples: its percentiles compared with those of a sorted list. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../app/polca-bench/histogram.h"

#define SAMPLES 100000

static void
test_nothing_is_all_zeroes(void **state)
{
	struct histogram *h = histogram_create();

	(void)state;
	assert_int_equal(histogram_count(h), 0);
	assert_int_equal(histogram_min(h), 0);
	assert_int_equal(histogram_max(h), 0);
	assert_true(histogram_percentile(h, 99.99) == 0);
	assert_true(histogram_stdev(h) == 0);
	histogram_destroy(h);
}

static void
test_small_values_are_exact(void **state)
{
	struct histogram *h = histogram_create();
	uint64_t v;

	(void)state;
	for (v = 1; v <= 200; v++)
		histogram_add(h, v);
	assert_int_equal(histogram_min(h), 1);
	assert_int_equal(histogram_max(h), 200);
	assert_true(histogram_mean(h) == 100.5);
	assert_true(histogram_percentile(h, 50) == 100);
	assert_true(histogram_percentile(h, 99) == 198);
	assert_true(histogram_percentile(h, 99.5) == 199);
	assert_true(histogram_percentile(h, 99.99) == 200);
	/* standard deviation of 1..n: sqrt((n * n - 1) / 12 * n / (n - 1)) */
	assert_true(fabs(histogram_stdev(h) - 57.879) < 0.001);
	histogram_destroy(h);
}

static int
histogram_by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A percentile differs from the sample of that rank by at most 1/128, for values of any size. */
static void
test_percentiles_of_wide_values(void **state)
{
	static const double percents[] = { 0.01, 1, 50, 90, 99, 99.9, 99.99, 100 };
	static uint64_t sample[SAMPLES];
	struct histogram *h = histogram_create();
	uint64_t x = 1, want;
	unsigned int i;

	(void)state;
	for (i = 0; i < SAMPLES; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		sample[i] = x >> 24 >> (x & 31); /* values of 8 to 40 bits */
		histogram_add(h, sample[i]);
	}
	qsort(sample, SAMPLES, sizeof(*sample), histogram_by_value);
	for (i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		want = sample[(unsigned int)ceil(percents[i] / 100 * SAMPLES) - 1];
		assert_true(fabs(histogram_percentile(h, percents[i]) - (double)want) <=
			(double)want / 128 + 0.5);
	}
	assert_int_equal(histogram_min(h), sample[0]);
	assert_int_equal(histogram_max(h), sample[SAMPLES - 1]);
	histogram_destroy(h);
}

static void
test_the_largest_value_of_all(void **state)
{
	struct histogram *h = histogram_create();

	(void)state;
	histogram_add(h, UINT64_MAX);
	assert_true(histogram_max(h) == UINT64_MAX);
	assert_true(histogram_percentile(h, 50) == (double)UINT64_MAX);
	histogram_reset(h);
	assert_int_equal(histogram_count(h), 0);
	assert_int_equal(histogram_max(h), 0);
	histogram_destroy(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_all_zeroes),
		cmocka_unit_test(test_small_values_are_exact),
		cmocka_unit_test(test_percentiles_of_wide_values),
		cmocka_unit_test(test_the_largest_value_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
