/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Log components by name or shell pattern, and the error for a pattern that matches none. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log_level.h"

static int one, two;

static void
log_level_expect_refused(const char *pattern, const char *text)
{
	struct error err = { .text = "" };

	assert_int_equal(log_component_check(pattern, &err), -EINVAL);
	assert_string_equal(err.text, text);
	assert_int_equal(log_level_set(pattern, RTE_LOG_DEBUG, &err), -EINVAL);
	assert_string_equal(err.text, text);
}

static void
test_level_is_set_where_the_pattern_matches(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(log_level_set("polca.o*", RTE_LOG_DEBUG, &err), 0);
	assert_int_equal(rte_log_get_level(one), RTE_LOG_DEBUG);
	assert_int_equal(rte_log_get_level(two), RTE_LOG_ERR);
	assert_int_equal(log_level_set("polca.two", RTE_LOG_INFO, &err), 0);
	assert_int_equal(rte_log_get_level(one), RTE_LOG_DEBUG);
	assert_int_equal(rte_log_get_level(two), RTE_LOG_INFO);
	rte_log_set_level(one, RTE_LOG_ERR);
	rte_log_set_level(two, RTE_LOG_ERR);
}

static void
test_components_of_the_same_kind_are_named(void **state)
{
	(void)state;
	log_level_expect_refused("polca.tow",
		"got \"polca.tow\", allowed polca.one, polca.two (all: polca-ctl log level get)");
	log_level_expect_refused("zoo.cat",
		"got \"zoo.cat\", allowed zoo.ape (all: polca-ctl log level get)");
}

/* If no component is of the pattern's kind, or it names no kind, the error lists our components. */
static void
test_unknown_kind_gets_our_components(void **state)
{
	(void)state;
	log_level_expect_refused("nosuch.one",
		"got \"nosuch.one\", allowed polca.one, polca.two (all: polca-ctl log level get)");
	log_level_expect_refused("one",
		"got \"one\", allowed polca.one, polca.two (all: polca-ctl log level get)");
	log_level_expect_refused("",
		"got \"\", allowed polca.one, polca.two (all: polca-ctl log level get)");
}

static bool
count_until(void *arg, const char *component, const char *level)
{
	unsigned int *left = arg;

	assert_true(component[0] != '\0');
	assert_true(level[0] != '\0');
	return --*left > 0;
}

static void
test_listing_stops_when_the_callback_says_so(void **state)
{
	unsigned int left = 2;

	(void)state;
	log_components(count_until, &left);
	assert_int_equal(left, 0);
}

static bool
look_for_one(void *arg, const char *component, const char *level)
{
	if (strcmp(component, "polca.one") == 0)
		snprintf(arg, 32, "%s", level);
	return true;
}

static void
test_listing_has_the_level(void **state)
{
	char level[32] = "";

	(void)state;
	log_components(look_for_one, level);
	assert_string_equal(level, "error");
}

/*
 * The error lists as many components as fit. This test is the last one, as registered components
 * cannot be removed.
 */
static void
test_long_list_of_components_is_cut(void **state)
{
	char name[32], expected[256] = "got \"many.x\", allowed ";
	struct error err = { .text = "" };
	unsigned int i;

	(void)state;
	for (i = 10; i < 40; i++) {
		snprintf(name, sizeof(name), "many.component%u", i);
		assert_true(rte_log_register(name) >= 0);
	}
	assert_int_equal(log_component_check("many.x", &err), -EINVAL);
	for (i = 10; i < 17; i++) /* seven of 16 characters and a comma are all that fit in 140 */
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected),
			"%smany.component%u", i > 10 ? ", " : "", i);
	strcat(expected, ", ... (all: polca-ctl log level get)");
	assert_string_equal(err.text, expected);
}

static int
register_components(void **state)
{
	(void)state;
	one = rte_log_register_type_and_pick_level("polca.one", RTE_LOG_ERR);
	two = rte_log_register_type_and_pick_level("polca.two", RTE_LOG_ERR);
	return one < 0 || two < 0 || rte_log_register("zoo.ape") < 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_level_is_set_where_the_pattern_matches),
		cmocka_unit_test(test_components_of_the_same_kind_are_named),
		cmocka_unit_test(test_unknown_kind_gets_our_components),
		cmocka_unit_test(test_listing_stops_when_the_callback_says_so),
		cmocka_unit_test(test_listing_has_the_level),
		cmocka_unit_test(test_long_list_of_components_is_cut),
	};

	return cmocka_run_group_tests_name("base: log levels", tests, register_components, NULL);
}
