/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The flight recorder of sessions: packets, timeouts and ends; on and off; what is kept. */

#include <errno.h>
#include <string.h>

#include "harness.h"

static struct trace
session_trace_of(const struct manager *m, uint64_t tid)
{
	struct trace t;

	assert_int_equal(mad_trace(m->w, tid, &t), 0);
	return t;
}

/* A request of one packet to an agent that nobody answers for: the session ends by its timer. */
static uint64_t
call_nobody(struct harness *h)
{
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	call_init(&h->a, &c, mad, MAD_GET, 0);
	c.retries = 1;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	return get_be64(next_sent(&h->a) + MAD_OFF_TID);
}

/* Let all tries of a's calls time out. */
static void
wait_for_timeouts(struct harness *h)
{
	unsigned int i;

	for (i = 0; i < 1000 && sessions_of(&h->a) > 0; i++)
		pass(h, 1000 * MS);
	assert_int_equal(sessions_of(&h->a), 0);
}

static void
test_steps_of_a_session_stay_when_it_has_ended(void **state)
{
	struct harness *h = *state;
	char what[MAD_STEP_TEXT_MAX];
	struct trace t;
	uint64_t tid;
	unsigned int n;

	assert_int_equal(mad_trace_switch(h->a.w, true), 0);
	tid = call_nobody(h);
	t = session_trace_of(&h->a, tid);
	assert_int_equal(trace_length(&t), 2);
	assert_int_equal(trace_at(&t, 0)->event, MAD_STEP_OPENED);
	assert_int_equal(trace_at(&t, 1)->event, MAD_STEP_SENT);
	assert_string_equal(mad_step_what(trace_at(&t, 1), what), "method 0x01");
	wait_for_timeouts(h);
	t = session_trace_of(&h->a, tid);
	n = trace_length(&t);
	assert_int_equal(trace_at(&t, 2)->event, MAD_STEP_TIMEOUT);
	assert_int_equal(trace_at(&t, 3)->event, MAD_STEP_SENT);
	assert_int_equal(trace_at(&t, n - 1)->event, MAD_STEP_ENDED);
	assert_string_equal(mad_step_what(trace_at(&t, n - 1), what),
		mad_end_name(MAD_END_TIMEOUT));
}

static void
test_sessions_are_recorded_all_or_none(void **state)
{
	struct harness *h = *state;
	struct trace t;
	uint64_t tid;

	tid = call_nobody(h);
	assert_int_equal(mad_trace(h->a.w, tid, &t), -ENODATA);
	assert_int_equal(mad_trace_switch(h->a.w, true), 0);
	assert_int_equal(mad_trace(h->a.w, tid, &t), -ENOENT);
	tid = call_nobody(h);
	assert_int_equal(mad_trace(h->a.w, tid, &t), 0);
	/* the live session goes on without its steps */
	assert_int_equal(mad_trace_switch(h->a.w, false), 0);
	assert_int_equal(mad_trace(h->a.w, tid, &t), -ENODATA);
	wait_for_timeouts(h);
}

#define T(name) cmocka_unit_test_setup_teardown(name, scripted_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_steps_of_a_session_stay_when_it_has_ended),
		T(test_sessions_are_recorded_all_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
