/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Codes of MTU, rate and life (sa-multipacket B10), and their selectors.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sa/select.h"

static void
test_rates_are_ordered_by_their_gigabits(void **state)
{
	/* code, tenths of Gb/s: the sheet's list */
	static const struct {
		uint8_t code;
		unsigned int rate;
	} rates[] = { { 2, 25 }, { 3, 100 }, { 4, 300 }, { 5, 50 }, { 6, 200 }, { 7, 400 },
		{ 8, 600 }, { 9, 800 }, { 10, 1200 }, { 11, 140 }, { 12, 560 }, { 13, 1120 },
		{ 14, 1680 }, { 15, 250 }, { 16, 1000 }, { 17, 2000 }, { 18, 3000 }, { 19, 280 },
		{ 20, 500 }, { 21, 4000 }, { 22, 6000 }, { 23, 8000 } };
	unsigned int i, k, n = sizeof(rates) / sizeof(rates[0]);

	(void)state;
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++) {
			uint8_t have = rates[i].code;

			assert_int_equal(rate_min(rates[i].code, rates[k].code),
				rates[i].rate <= rates[k].rate ? rates[i].code : rates[k].code);
			assert_int_equal(select_rate(SELECT_GREATER, rates[k].code, &have),
				rates[i].rate > rates[k].rate);
			have = rates[i].code;
			assert_int_equal(select_rate(SELECT_EXACTLY, rates[k].code, &have),
				rates[i].rate >= rates[k].rate);
			assert_int_equal(satisfies_rate(SELECT_LESS, rates[k].code, rates[i].code),
				rates[i].rate < rates[k].rate);
			assert_int_equal(satisfies_rate(SELECT_EXACTLY, rates[k].code,
						 rates[i].code),
				i == k);
		}
	assert_false(rate_known(0));
	assert_false(rate_known(1));
	assert_false(rate_known(24));
	assert_int_equal(rate_min(0, 7), 7); /* no limit */
}

static void
test_rate_of_a_link(void **state)
{
	static const struct {
		uint8_t width;
		uint8_t speed;
		uint8_t ext;
		uint8_t code;
	} links[] = { { 1, 1, 0, 2 }, { 2, 1, 0, 3 }, { 8, 1, 0, 4 }, { 2, 2, 0, 6 },
		{ 4, 2, 0, 7 }, { 2, 4, 0, 7 }, { 8, 4, 0, 10 }, { 1, 4, 1, 11 }, { 2, 4, 1, 12 },
		{ 2, 4, 2, 16 }, { 16, 4, 2, 20 }, { 2, 4, 4, 17 }, { 2, 4, 8, 21 }, { 0, 4, 0, 0 },
		{ 2, 0, 0, 0 },
		{ 0xFF, 0xF, 0xF, 17 } /* nonsense: the widest bit known is 2x, NDR */ };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		assert_int_equal(rate_of_link(links[i].width, links[i].speed, links[i].ext),
			links[i].code);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_are_ordered_by_their_gigabits),
		cmocka_unit_test(test_rate_of_a_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
