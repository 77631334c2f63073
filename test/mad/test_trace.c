/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The flight recorder of sessions: packets, timeouts and ends; on and off; what is kept. */

#include <errno.h>
#include <stdio.h>
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

/* The nth step of a session, from 0: "received method 0x14 DATA, segment 2". */
static void
expect_mad_step(const struct trace *t, unsigned int n, const char *want)
{
	const struct trace_step *s = trace_at(t, n);
	char got[160], what[MAD_STEP_TEXT_MAX];

	assert_in_range(n, 0, trace_length(t) - 1);
	snprintf(got, sizeof(got), "%s %s, segment %u", mad_step_name(s->event),
		mad_step_what(s, what), s->number);
	assert_string_equal(got, want);
}

/* Each segment of a request is a step, from the first on, which opens the session. */
static void
test_segments_of_a_request_are_recorded(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	struct trace t;

	assert_int_equal(mad_trace_switch(h->a.w, true), 0);
	say_v1(h, SA1_CONFIG, SA1_FIRST, 1, 1000, 0);
	say_v1(h, SA1_CONFIG, 0, 2, 0, 0);
	t = session_trace_of(&h->a, h->tid);
	expect_mad_step(&t, 1, "received method 0x14, segment 1");
	expect_mad_step(&t, 2, "received method 0x14, segment 2");
	/* RMPP: flags Active and First */
	h->tid = 0x78;
	v1_mad(h, mad, SA2_GET_MULTI, 0, 0, 0, 0);
	mad[MAD_OFF_CLASS_VERSION] = 2;
	memcpy(mad + 24, (uint8_t[]){ 1, 1, 0xFB, 0, 0, 0, 0, 1 }, 8);
	put_be32(mad + 32, 1000);
	say(h, mad);
	t = session_trace_of(&h->a, h->tid);
	expect_mad_step(&t, 1, "received method 0x14 DATA, segment 1");
	/* the older one is still there */
	t = session_trace_of(&h->a, 0x77);
	expect_mad_step(&t, 2, "received method 0x14, segment 2");
}

static void
test_words_of_steps(void **state)
{
	static const struct {
		struct trace_step step;
		const char *name, *what;
	} steps[] = {
		{ { .event = MAD_STEP_OPENED }, "opened", "" },
		{ { .event = MAD_STEP_SENT, .what = 0x81, .value = 0x0008 }, "sent",
			"method 0x81, status BAD_METHOD" },
		{ { .event = MAD_STEP_TIMEOUT, .value = 3 }, "timeout", "3 retries left" },
		{ { .event = MAD_STEP_COUNT }, "unknown", "" },
	};
	char text[MAD_STEP_TEXT_MAX];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert_string_equal(mad_step_name(steps[i].step.event), steps[i].name);
		assert_string_equal(mad_step_what(&steps[i].step, text), steps[i].what);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, scripted_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_steps_of_a_session_stay_when_it_has_ended),
		T(test_sessions_are_recorded_all_or_none),
		T(test_segments_of_a_request_are_recorded),
		cmocka_unit_test(test_words_of_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
