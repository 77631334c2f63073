/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A stream that is neither free nor sends a body ends a build with checks. */

#include "../checked.h"
#include "live/private.h"
#include "pair.h"

static void
streams_check(void *l, void *arg)
{
	(void)arg;
	live_streams_check(l);
}

static void
lose_a_stream(void *l, void *arg)
{
	struct live *live = l;

	live->streams_free = live->streams_free->next_free;
	streams_check(l, arg);
}

static void
free_a_stream_that_sends(void *l, void *arg)
{
	static uint8_t body;
	struct live *live = l;

	live->streams_free->body = (struct mad_body *)(void *)&body;
	streams_check(l, arg);
}

static void
test_damage_to_the_streams_is_found(void **state)
{
	struct pair *p = *state;

	assert_false(ends_process(streams_check, p->live, NULL));
	assert_int_equal(ends_process(lose_a_stream, p->live, NULL), CHECKED);
	assert_int_equal(ends_process(free_a_stream_that_sends, p->live, NULL), CHECKED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_damage_to_the_streams_is_found, pair_setup,
			pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
