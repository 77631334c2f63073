/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* polca-bench --loss: which packets are lost. Also the median and quantiles of a few values. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../app/polca-bench/traffic/loss_gap.h"
#include "../../app/polca-bench/median.h"

#define LOSSES 200000

/* Gaps have a geometric distribution: the mean is N, and a fraction 1/e is longer than N. */
static void
test_one_of_n_at_random(void **state)
{
	static const uint32_t rates[] = { 2, 64, 4096 };
	uint64_t random = 1, sum, longer, gap;
	unsigned int r, i;
	double n, want;

	(void)state;
	for (r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
		n = rates[r];
		want = pow(1 - 1 / n, n);
		for (i = 0, sum = 0, longer = 0; i < LOSSES; i++) {
			gap = loss_gap(&random, rates[r]);
			assert_true(gap >= 1);
			sum += gap;
			longer += gap > rates[r];
		}
		assert_true(fabs((double)sum / LOSSES / n - 1) < 0.02);
		assert_true(fabs((double)longer / LOSSES - want) < 0.02);
	}
}

static void
test_losses_are_reproducible(void **state)
{
	uint64_t a = 42, b = 42, other = 43;
	unsigned int i, same = 0;

	(void)state;
	for (i = 0; i < 1000; i++) {
		uint64_t gap = loss_gap(&a, 4096);

		assert_int_equal(gap, loss_gap(&b, 4096));
		same += gap == loss_gap(&other, 4096);
	}
	assert_true(same < 10);
}

static void
test_median_and_quantiles(void **state)
{
	double v[] = { 5, 1, 4, 2, 3 }, hundred[100];
	unsigned int i;

	(void)state;
	assert_true(median(v, 5) == 3);
	assert_true(isnan(median(v, 0)));
	for (i = 0; i < 100; i++)
		hundred[i] = 100 - i;
	assert_true(quantile(hundred, 100, 0) == 1);
	assert_true(quantile(hundred, 100, 0.99) == 100);
	assert_true(quantile(hundred, 100, 1) == 100);
	assert_true(quantile(hundred, 100, 0.9) == 91);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_of_n_at_random),
		cmocka_unit_test(test_losses_are_reproducible),
		cmocka_unit_test(test_median_and_quantiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
