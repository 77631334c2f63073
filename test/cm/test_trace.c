/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The flight recorder of connections: messages, timeouts and states, on and off. */

#include <errno.h>
#include <stdio.h>

#include "world.h"

static struct trace
conn_trace_of(const struct node *n, cm_id id)
{
	struct trace t;

	assert_int_equal(cm_trace(n->cm, id, &t), 0);
	return t;
}

/* Expect the i-th step: "sent REQ IDLE". */
static void
expect_message_step(const struct trace *t, unsigned int i, const char *text)
{
	const struct trace_step *s = trace_at(t, i);
	char what[CM_STEP_TEXT_MAX], got[160];

	snprintf(got, sizeof(got), "%s %s %s", cm_step_name(s->event), cm_step_what(s, what),
		cm_state_name(s->outcome));
	assert_string_equal(got, text);
}

static void
test_messages_are_recorded_both_ways(void **state)
{
	struct world *w = *state;
	struct life *a, *b;
	struct trace t;

	assert_int_equal(cm_trace_switch_all(w->a.cm, true), 0);
	establish(w, &a, &b);
	assert_int_equal(cm_trace(w->b.cm, b->id, &t), -ENODATA);
	t = conn_trace_of(&w->a, a->id);
	assert_int_equal(trace_length(&t), 4);
	expect_message_step(&t, 0, "opened  IDLE");
	expect_message_step(&t, 1, "sent REQ REQ_SENT");
	expect_message_step(&t, 2, "received REP ESTABLISHED");
	expect_message_step(&t, 3, "sent RTU REP_RCVD");
	assert_int_equal(trace_at(&t, 1)->number, a->id);
	assert_int_equal(trace_at(&t, 2)->number, b->id);
	assert_int_equal(disconnect(a), 0);
	exchange(w);
	t = conn_trace_of(&w->a, a->id);
	expect_message_step(&t, 4, "sent DREQ DREQ_SENT");
	expect_message_step(&t, 5, "received DREP TIMEWAIT");
	expect_message_step(&t, 6, "ended disconnected TIMEWAIT");
}

/* Also the REQ, before which the connection did not exist, and the DREP. */
static void
test_the_passive_side_records_all_messages(void **state)
{
	struct world *w = *state;
	struct life *a, *b;
	struct trace t;

	assert_int_equal(cm_trace_switch_all(w->b.cm, true), 0);
	establish(w, &a, &b);
	assert_int_equal(disconnect(a), 0);
	exchange(w);
	t = conn_trace_of(&w->b, b->id);
	expect_message_step(&t, 0, "opened  IDLE");
	expect_message_step(&t, 1, "received REQ REQ_RCVD");
	expect_message_step(&t, 2, "sent REP REP_SENT");
	expect_message_step(&t, 3, "received RTU ESTABLISHED");
	expect_message_step(&t, 4, "received DREQ TIMEWAIT");
	expect_message_step(&t, 5, "sent DREP DREQ_RCVD");
	expect_message_step(&t, 6, "ended disconnected TIMEWAIT");
	assert_int_equal(trace_length(&t), 7);
	assert_int_equal(trace_at(&t, 1)->number, a->id);
	assert_int_equal(trace_at(&t, 1)->expected, 0);
	assert_int_equal(trace_at(&t, 5)->number, b->id);
}

static void
test_a_lost_answer_shows_as_timeout(void **state)
{
	struct world *w = *state;
	struct life *a;
	struct trace t;

	assert_int_equal(cm_trace_switch_all(w->a.cm, true), 0);
	lose(&w->a, CM_REQ);
	a = start(&w->a);
	run(&w->a);
	pass(w, 7 * SECOND);
	t = conn_trace_of(&w->a, a->id);
	expect_message_step(&t, 1, "sent REQ REQ_SENT");
	expect_message_step(&t, 2, "timeout no answer in time, 15 retries left REQ_SENT");
	expect_message_step(&t, 3, "sent REQ REQ_SENT");
	/* each step has its own time: the REQ is repeated when the timer fires */
	assert_in_range(trace_at(&t, 2)->time - trace_at(&t, 1)->time, SECOND, 7 * SECOND);
	assert_int_equal(trace_at(&t, 3)->time, trace_at(&t, 2)->time);
}

static void
test_one_connection_is_recorded_and_stopped(void **state)
{
	struct world *w = *state;
	struct life *a, *b;
	struct trace t;

	establish(w, &a, &b);
	assert_int_equal(cm_trace(w->a.cm, a->id, &t), -ENODATA);
	assert_int_equal(cm_trace_switch(w->a.cm, a->id, true), 0);
	assert_int_equal(conn_trace_of(&w->a, a->id).count, 0);
	assert_int_equal(cm_trace_switch(w->a.cm, a->id, false), 0);
	assert_int_equal(cm_trace(w->a.cm, a->id, &t), -ENODATA);
	assert_int_equal(cm_trace_switch(w->a.cm, 0x12345, true), -ENOENT);
	assert_int_equal(cm_trace(w->a.cm, 0x12345, &t), -ENOENT);
}

/* A connection that is gone has freed its steps: the world's end checks memory. */
static void
test_steps_go_with_the_connection(void **state)
{
	struct world *w = *state;
	struct life *a, *b;
	cm_id id;

	assert_int_equal(cm_trace_switch_all(w->a.cm, true), 0);
	assert_int_equal(cm_trace_switch_all(w->b.cm, true), 0);
	establish(w, &a, &b);
	id = a->id;
	assert_int_equal(disconnect(a), 0);
	exchange(w);
	pass(w, 120 * SECOND);
	expect_gone(&w->a, id);
	assert_int_equal(cm_trace_switch_all(w->a.cm, false), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_messages_are_recorded_both_ways),
		T(test_the_passive_side_records_all_messages),
		T(test_a_lost_answer_shows_as_timeout),
		T(test_one_connection_is_recorded_and_stopped),
		T(test_steps_go_with_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
