/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/plural.h"

static void
test_one_alone_is_singular(void **state)
{
	(void)state;
	assert_string_equal(plural(0), "s");
	assert_string_equal(plural(1), "");
	assert_string_equal(plural(2), "s");
	assert_string_equal(plural((UINT64_C(1) << 32) + 1), "s");
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_alone_is_singular) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
