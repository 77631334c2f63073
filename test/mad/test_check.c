/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Builds with checks end when an invariant of a session fails, and print its last steps; other
 * builds contain no checks. Damage is done in a process of its own.
 */

#include <string.h>

#include "../checked.h"
#include "harness.h"
#include "mad/core.h"

static void
damage_queue(struct mad_session *s)
{
	s->queued = false;
	s->work = MAD_WORK_DATA;
}

static void
damage_key(struct mad_session *s)
{
	s->key.tid++;
}

static void
damage_role(struct mad_session *s)
{
	s->key.requester = !s->key.requester;
}

static void
damage_sent(struct mad_session *s)
{
	s->tx.sent = s->tx.total + 1;
}

static void
damage_received(struct mad_session *s)
{
	s->rx.acked = s->rx.expected + 1;
}

static void
damage_state(struct mad_session *s)
{
	s->state = MAD_STATE_COUNT;
}

static void
damage_session_and_check(void *s, void *damage)
{
	(*(void (**)(struct mad_session *))damage)(s);
	mad_session_check((struct mad_session *)s);
}

/* A request that waits for its answer. */
static struct mad_session *
waiting_session(struct harness *h)
{
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	call_init(&h->a, &c, mad, MAD_GET, 0);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	return mad_table_next(h->a.w, 0);
}

static void
test_damage_to_a_session_is_found(void **state)
{
	static void (*damages[])(struct mad_session *) = { damage_queue, damage_key, damage_role,
		damage_sent, damage_received, damage_state };
	struct mad_session *s = waiting_session(*state);
	unsigned int i;

	mad_session_check(s);
	for (i = 0; i < RTE_DIM(damages); i++)
		assert_int_equal(ends_process(damage_session_and_check, s, &damages[i]), CHECKED);
}

/* With the flight recorder on, the session's last steps; else a word about it. */
static void
test_a_failed_check_of_a_session_prints_its_steps(void **state)
{
	void (*damage)(struct mad_session *) = damage_received;
	struct harness *h = *state;
	struct mad_session *s = waiting_session(h);
	const char *opened, *sent;
	char text[65536], name[64];

	assert_int_equal(ends_process_saying(damage_session_and_check, s, &damage, text,
				 sizeof(text)),
		CHECKED);
	assert_int_equal(strstr(text, "were not recorded (trace_start)") != NULL, CHECKED);
	assert_int_equal(mad_trace_switch(h->a.w, true), 0);
	waiting_session(h);
	s = mad_table_next(h->a.w, s->index + 1);
	assert_int_equal(ends_process_saying(damage_session_and_check, s, &damage, text,
				 sizeof(text)),
		CHECKED);
	if (!CHECKED)
		return;
	snprintf(name, sizeof(name), "session of TID 0x%016llx in REQUESTED:\n",
		(unsigned long long)s->key.tid);
	assert_non_null(strstr(text, name));
	opened = strstr(text, "opened    ");
	sent = strstr(text, "sent      segment 0  method 0x01  REQUESTED\n");
	assert_true(opened != NULL && sent > opened);
	assert_true(strstr(text, "assert \"") > sent);
}

#define T(name) cmocka_unit_test_setup_teardown(name, scripted_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_damage_to_a_session_is_found),
		T(test_a_failed_check_of_a_session_prints_its_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
