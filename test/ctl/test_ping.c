/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What ping counts, and what its words mean. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dest.h"
#include "ping.h"

static char *
printed(const struct ping_stats *s, uint64_t ms)
{
	static char text[400];
	FILE *f = fmemopen(text, sizeof(text), "w");

	ping_stats_print(f, s, "fe80::2", ms);
	fclose(f);
	return text;
}

/* of 2, 4, 4, 4, 5, 5, 7, 9 the mean is 5 and the deviation 2 */
static void
test_mean_and_deviation(void **state)
{
	static const double us[] = { 4, 2, 4, 9, 4, 5, 7, 5 };
	struct ping_stats s = { .sent = 8 };
	size_t i;

	(void)state;
	for (i = 0; i < 8; i++)
		ping_stats_reply(&s, us[i]);
	assert_string_equal(printed(&s, 2003),
		"\n--- fe80::2 liveness statistics ---\n"
		"8 packets transmitted, 8 received, 0% packet loss, time 2003ms\n"
		"rtt min/avg/max/mdev = 2.0/5.0/9.0/2.0 us\n");
}

static void
test_loss_as_ping_words_it(void **state)
{
	struct ping_stats s = { .sent = 3 };

	(void)state;
	assert_string_equal(printed(&s, 12),
		"\n--- fe80::2 liveness statistics ---\n"
		"3 packets transmitted, 0 received, 100% packet loss, time 12ms\n");
	ping_stats_reply(&s, 10.25);
	ping_stats_reply(&s, 10.25);
	assert_non_null(strstr(printed(&s, 12), "2 received, 33.3333% packet loss"));
	assert_true(ping_stats_mdev(&s) == 0);
}

static void
test_nothing_sent_is_no_loss(void **state)
{
	struct ping_stats s = { 0 };

	(void)state;
	assert_non_null(
		strstr(printed(&s, 0), "0 packets transmitted, 0 received, 0% packet loss"));
	assert_null(strstr(printed(&s, 0), "rtt"));
}

static void
becomes(const char *text, const char *want)
{
	json_t *params = json_object();
	char *got;

	assert_true(dest_parse(text, params, "dgid", "dlid"));
	got = json_dumps(params, JSON_COMPACT);
	assert_string_equal(got, want);
	free(got);
	json_decref(params);
}

static void
test_destinations(void **state)
{
	static const char *const none[] = { "", "lid:", "lid:x", "0", "lid:0", "49152", "0xc000",
		"-1", "5x", "10.0.0", "10.0.0.256", "host", "fe80::g", "lid:5 " };
	json_t *params = json_object();
	size_t i;

	(void)state;
	becomes("5", "{\"dlid\":5}");
	becomes("0x10", "{\"dlid\":16}");
	becomes("lid:49151", "{\"dlid\":49151}");
	becomes("lid:010", "{\"dlid\":10}");
	becomes("10.0.0.2", "{\"dgid\":\"10.0.0.2\"}");
	becomes("fe80::2:c903:0:1", "{\"dgid\":\"fe80::2:c903:0:1\"}");
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(dest_parse(none[i], params, "dgid", "dlid"));
	assert_int_equal(json_object_size(params), 0);
	json_decref(params);
}

static void
test_seconds(void **state)
{
	static const char *const none[] = { "", "x", "-1", "+1", "1s", "nan", "inf", "3601", ".",
		" 1" };
	double ms = 0;
	size_t i;

	(void)state;
	assert_true(ping_seconds("0.25", 0, 3600, &ms) && ms == 250);
	assert_true(ping_seconds(".5", 0, 3600, &ms) && ms == 500);
	assert_true(ping_seconds("3600", 0, 3600, &ms) && ms == 3600000);
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(ping_seconds(none[i], 0, 3600, &ms));
	assert_true(ms == 3600000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mean_and_deviation),
		cmocka_unit_test(test_loss_as_ping_words_it),
		cmocka_unit_test(test_nothing_sent_is_no_loss),
		cmocka_unit_test(test_destinations),
		cmocka_unit_test(test_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
