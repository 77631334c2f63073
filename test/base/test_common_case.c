/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The switch of the common cases: by the environment, and in builds with checks only. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/common_case.h"

static void
test_environment_turns_common_cases_off(void **state)
{
	const char *value = getenv("POLCA_GENERAL_CASE");
	bool off = value != NULL && strcmp(value, "1") == 0;

	(void)state;
#ifndef RTE_ENABLE_ASSERT
	off = false;
#endif
	assert_int_equal(general_case, off);
	assert_int_equal(COMMON_CASE(true), !off);
	assert_false(COMMON_CASE(false));
}

#ifdef RTE_ENABLE_ASSERT
static void
test_switch_changes_what_a_condition_gives(void **state)
{
	bool was = general_case;

	(void)state;
	general_case = true;
	assert_false(COMMON_CASE(true));
	general_case = false;
	assert_true(COMMON_CASE(true));
	general_case = was;
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment_turns_common_cases_off),
#ifdef RTE_ENABLE_ASSERT
		cmocka_unit_test(test_switch_changes_what_a_condition_gives),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
