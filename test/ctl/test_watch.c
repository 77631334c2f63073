/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What live watch makes of the answers of one endport. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "watch.h"

#define SECOND 1000000u

static int
watch_setup(void **state)
{
	struct watch_endport *e = calloc(1, sizeof(*e));

	*state = e;
	return e != NULL && watch_endport_init(e, "lid:5", 0) ? 0 : -1;
}

static int
watch_teardown(void **state)
{
	watch_endport_fini(*state);
	free(*state);
	return 0;
}

/*
 * What happens at a second: an answer after us microseconds, or none (0). @return "" or "was->is"
 */
static const char *
at(struct watch_endport *e, unsigned int second, double us)
{
	json_t *row = us > 0 ? json_pack("{s:f, s:i}", "time_us", us, "residence_ms", (int)us / 10)
			     : json_pack("{s:s}", "error", "TIMEOUT");
	struct watch_change change;
	static char text[64];

	text[0] = '\0';
	if (watch_reply(e, row, 3, (uint64_t)second * SECOND, &change))
		snprintf(text, sizeof(text), "%s %us -> %s", watch_state_name(change.was),
			(unsigned int)(change.lasted / SECOND), watch_state_name(e->state));
	json_decref(row);
	return text;
}

static void
test_states(void **state)
{
	struct watch_endport *e = *state;

	assert_string_equal(at(e, 1, 50), "new 1s -> up");
	assert_string_equal(at(e, 2, 50), "");
	assert_string_equal(at(e, 5, 0), "up 4s -> suspect");
	assert_string_equal(at(e, 6, 50), "suspect 1s -> up"); /* one miss is forgotten */
	assert_string_equal(at(e, 7, 0), "up 1s -> suspect");
	assert_string_equal(at(e, 8, 0), "");
	assert_string_equal(at(e, 9, 0), "suspect 2s -> down");
	assert_string_equal(at(e, 10, 0), "");
	assert_int_equal(e->missed, 4);
	assert_string_equal(at(e, 20, 50), "down 11s -> up");
	assert_int_equal(e->missed, 0);
	assert_int_equal(e->sent, 9);
	assert_int_equal(e->received, 4);
}

static void
test_never_heard_of(void **state)
{
	assert_string_equal(at(*state, 1, 0), "new 1s -> suspect");
	assert_string_equal(at(*state, 2, 0), "");
	assert_string_equal(at(*state, 3, 0), "suspect 2s -> down");
}

static double
figure(const json_t *row, const char *name)
{
	return json_number_value(json_object_get(row, name));
}

/* of 1 to 100 the 90th percentile is 90 */
static void
test_percentiles(void **state)
{
	unsigned int us;
	json_t *row;

	for (us = 100; us > 0; us--)
		at(*state, 1, us);
	at(*state, 2, 0);
	row = watch_report(*state, 5 * SECOND);
	assert_true(figure(row, "rtt_min_us") == 1);
	assert_true(figure(row, "rtt_p50_us") == 50);
	assert_true(figure(row, "rtt_p90_us") == 90);
	assert_true(figure(row, "rtt_p99_us") == 99);
	assert_true(figure(row, "rtt_max_us") == 100);
	assert_true(figure(row, "residence_max_ms") == 10);
	assert_true(figure(row, "sent") == 101 && figure(row, "received") == 100);
	assert_true(figure(row, "for_ms") == 3000);
	assert_string_equal(json_string_value(json_object_get(row, "state")), "suspect");
	assert_string_equal(json_string_value(json_object_get(row, "endport")), "lid:5");
	json_decref(row);
}

/* What was long ago is forgotten. */
static void
test_figures_are_of_the_last_answers(void **state)
{
	unsigned int i;
	json_t *row;

	at(*state, 1, 9000);
	for (i = 0; i < WATCH_SAMPLES - 1; i++)
		at(*state, 1, 7);
	row = watch_report(*state, SECOND);
	assert_true(figure(row, "rtt_max_us") == 9000 && figure(row, "residence_max_ms") == 900);
	json_decref(row);
	at(*state, 1, 7);
	row = watch_report(*state, SECOND);
	assert_true(figure(row, "rtt_max_us") == 7 && figure(row, "residence_max_ms") == 0);
	json_decref(row);
}

static void
test_no_answer_has_no_figures(void **state)
{
	json_t *row;

	at(*state, 1, 0);
	row = watch_report(*state, SECOND);
	assert_true(json_is_null(json_object_get(row, "rtt_p50_us")));
	assert_true(json_is_null(json_object_get(row, "residence_max_ms")));
	json_decref(row);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, watch_setup, watch_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_states),
		TEST(test_never_heard_of),
		TEST(test_percentiles),
		TEST(test_figures_are_of_the_last_answers),
		TEST(test_no_answer_has_no_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
