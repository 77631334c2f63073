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

/* What damages the session of h->a while the core calls it, or before. */
static struct mad_session *
damage_the_session(struct harness *h)
{
	struct mad_session *s = mad_table_next(h->a.w, 0);

	damage_received(s);
	return s;
}

static const struct port_attr *
damaging_port(void *harness, uint16_t port)
{
	struct harness *h = harness;

	(void)port;
	if (mad_table_next(h->a.w, 0) != NULL)
		damage_the_session(h);
	return &h->a.attr;
}

/* mad_call() asks for the port when it has the session. */
static void
call_damaged(void *harness, void *unused)
{
	struct harness *h = harness;
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	(void)unused;
	h->a.w->config.port = damaging_port;
	h->a.w->config.port_arg = h;
	call_init(&h->a, &c, mad, MAD_GET, 0);
	mad_call(h->a.w, &c, h->now, NULL);
}

static void
damaging_done(void *harness, const struct mad_result *r)
{
	static struct mad_body *const damage = (struct mad_body *)8;

	(void)r;
	mad_table_next(((struct harness *)harness)->a.w, 0)->body = damage;
}

static void
cancel_damaged(void *harness, void *unused)
{
	struct harness *h = harness;
	struct mad_session *s = waiting_session(h);

	(void)unused;
	s->taker.done = damaging_done;
	s->taker.arg = h;
	mad_cancel(h->a.w, mad_session_handle(s), h->now);
}

/* A request that a answers late. */
static struct mad_session *
late_session(struct harness *h)
{
	h->outcome = MAD_LATER;
	say_v1(h, SA_GET_TABLE, 0, 0, 0, 0);
	return mad_table_next(h->a.w, 0);
}

static void
answer_damaged(void *harness, void *unused)
{
	struct harness *h = harness;
	uint8_t mad[MAD_LEN];

	(void)unused;
	mad_reply_header(mad, late_session(h)->mad);
	mad_answer(h->a.w, mad_session_handle(damage_the_session(h)), mad, h->now);
}

static void
stream_damaged(void *harness, void *unused)
{
	struct harness *h = harness;
	struct mad_source source = pattern_source(h, 1000);
	uint8_t mad[MAD_LEN];

	(void)unused;
	mad_reply_header(mad, late_session(h)->mad);
	mad_stream(h->a.w, mad_session_handle(damage_the_session(h)), mad, &source, h->now);
}

static enum mad_outcome
damaging_agent(void *harness, struct mad_request *req)
{
	if (req->handle == 0)
		req->handle = mad_later(req);
	damage_the_session(harness);
	return MAD_LATER;
}

static void
set_agent(struct harness *h)
{
	unsigned int i;

	for (i = 0; i < h->a.w->num_agents; i++) {
		h->a.w->agents[i].request = damaging_agent;
		h->a.w->agents[i].arg = h;
		h->a.w->agents[i].admit = NULL;
	}
}

static void
request_damaged(void *harness, void *unused)
{
	(void)unused;
	set_agent(harness);
	say_v1((struct harness *)harness, SA_GET_TABLE, 0, 0, 0, 0);
}

static void
packet_damaged(void *harness, void *unused)
{
	(void)unused;
	set_agent(harness);
	say_v1((struct harness *)harness, MAD_GET, 0, 0, 0, 0);
}

static void
long_request_damaged(void *harness, void *unused)
{
	(void)unused;
	set_agent(harness);
	say_v1((struct harness *)harness, SA1_CONFIG, SA1_FIRST | SA1_LAST, 1, SA1_AREA, 0);
}

/* Every event of a session looks for damage: our calls, their end, requests and answers. */
static void
test_every_event_checks_its_session(void **state)
{
	static void (*const acts[])(void *harness, void *unused) = { call_damaged, cancel_damaged,
		answer_damaged, stream_damaged, request_damaged, packet_damaged,
		long_request_damaged };
	unsigned int i;

	for (i = 0; i < RTE_DIM(acts); i++)
		if (ends_process(acts[i], *state, NULL) != CHECKED)
			fail_msg("act %u", i);
}

#define T(name) cmocka_unit_test_setup_teardown(name, scripted_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_damage_to_a_session_is_found),
		T(test_a_failed_check_of_a_session_prints_its_steps),
		T(test_every_event_checks_its_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
