/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A class whose requests and answers are one packet each (protocol MAD_SINGLE): what a and b do
 * with packets that do not fit.
 */

#include <string.h>

#include "harness.h"

#define CLASS 0x34

static const struct mad_method single_methods[] = {
	{ MAD_GET, 0 }, /* no session */
	{ MAD_SET, MAD_METHOD_SESSION },
	{ 0, 0 },
};

/* The agent does as h->outcome says. */
static enum mad_outcome
single_request(void *arg, struct mad_request *req)
{
	struct harness *h = arg;

	h->requests++;
	h->handle = req->handle;
	if (h->outcome == MAD_STREAM)
		req->source = pattern_source(h, 1000);
	return h->outcome;
}

static struct harness *
single_create(const struct allow_list *allow, const struct mad_limits *limits)
{
	struct harness *h = harness_create(
		&(struct harness_config){ .scripted = true, .bare = true, .limits = *limits });
	const struct mad_agent agent = { CLASS, 1, "single", MAD_SINGLE, 24, single_methods,
		single_request, h, .allow = allow };

	assert_int_equal(mad_agent_add(h->a.w, &agent), 0);
	return h;
}

static uint8_t *
single_mad(uint8_t *mad, uint8_t method, uint64_t tid)
{
	memset(mad, 0, MAD_LEN);
	mad[MAD_OFF_BASE_VERSION] = 1;
	mad[MAD_OFF_CLASS] = CLASS;
	mad[MAD_OFF_CLASS_VERSION] = 1;
	mad[MAD_OFF_METHOD] = method;
	put_be64(mad + MAD_OFF_TID, tid);
	return mad;
}

#define say_single(h, method, tid) say(h, single_mad((uint8_t[MAD_LEN]){ 0 }, method, tid))

/* A request that the agent is still working on is not executed again. */
static void
test_repeat_before_the_answer(void **state)
{
	struct harness *h = single_create(NULL, &harness_limits);
	uint8_t mad[MAD_LEN];

	*state = h;
	h->outcome = MAD_LATER;
	assert_int_equal(say_single(h, MAD_SET, 7), VERDICT_DATAGRAM);
	assert_int_equal(say_single(h, MAD_SET, 7), VERDICT_MAD_DISCARDED);
	assert_int_equal(h->requests, 1);
	assert_int_equal(counters_of(&h->a).repeated_requests, 1);
	expect_silence(&h->a);
	single_mad(mad, MAD_GET | MAD_RESPONSE, 7);
	assert_int_equal(mad_answer(h->a.w, h->handle, mad, h->now), 0);
	transmit(&h->a);
	expect_tx(&h->a, "81 single of 0");
}

/* Answer the request that the agent was called with. */
static void
answer_single(struct harness *h, uint16_t status)
{
	uint8_t mad[MAD_LEN];

	single_mad(mad, MAD_GET | MAD_RESPONSE, 7);
	put_be16(mad + MAD_OFF_STATUS, status);
	assert_int_equal(mad_answer(h->a.w, h->handle, mad, h->now), 0);
	transmit(&h->a);
}

/* A repeat is executed after BUSY and NO_RESOURCES; after another answer it gets that again. */
static void
test_repeat_of_a_request_that_was_not_executed(void **state)
{
	struct harness *h = single_create(NULL, &harness_limits);

	*state = h;
	h->outcome = MAD_LATER;
	say_single(h, MAD_SET, 7);
	answer_single(h, 0x0001);
	expect_tx(&h->a, "81 single status 0x0001");
	say_single(h, MAD_SET, 7);
	assert_int_equal(h->requests, 2);
	answer_single(h, 0x0100);
	expect_tx(&h->a, "81 single status 0x0100");
	say_single(h, MAD_SET, 7);
	assert_int_equal(h->requests, 3);
	answer_single(h, 0x001c);
	expect_tx(&h->a, "81 single status 0x001c");
	say_single(h, MAD_SET, 7);
	transmit(&h->a);
	expect_tx(&h->a, "81 single status 0x001c");
	assert_int_equal(h->requests, 3);
	assert_int_equal(counters_of(&h->a).repeated_requests, 1);
}

/* The class has no streams: an agent's source is released, and the requester gets a status. */
static void
test_no_streams(void **state)
{
	struct harness *h = single_create(NULL, &harness_limits);

	*state = h;
	h->outcome = MAD_STREAM;
	assert_int_equal(say_single(h, MAD_GET, 7), VERDICT_DATAGRAM);
	expect_tx(&h->a, "81 single status 0x0008");
	assert_int_equal(h->released, 1);
	assert_int_equal(counters_of(&h->a).bad_method, 1);
	assert_int_equal(say_single(h, MAD_SET, 8), VERDICT_DATAGRAM);
	expect_tx(&h->a, "81 single status 0x0008");
	pass(h, 1000 * MS); /* the answer is not kept any more */
	expect_clean(h);
}

/* No session is left: the requester is told that we are busy. */
static void
test_no_session_left(void **state)
{
	struct mad_limits limits = harness_limits;
	struct harness *h;

	limits.max_sessions = limits.max_sessions_per_peer = 1;
	h = single_create(NULL, &limits);
	*state = h;
	h->outcome = MAD_LATER;
	assert_int_equal(say_single(h, MAD_SET, 7), VERDICT_DATAGRAM);
	assert_int_equal(say_single(h, MAD_SET, 8), VERDICT_MAD_REFUSED);
	assert_int_equal(h->requests, 1);
	expect_tx(&h->a, "81 single status 0x0001");
}

/* The same for a class with RMPP, whose requests of one packet are plain. */
static void
test_no_session_left_for_rmpp(void **state)
{
	struct mad_limits limits = harness_limits;
	struct mad_agent agent = { 0x33, 1, "vendor", MAD_RMPP, 40, single_methods,
		single_request };
	uint8_t mad[MAD_LEN];
	struct harness *h;

	limits.max_sessions = limits.max_sessions_per_peer = 1;
	h = single_create(NULL, &limits);
	*state = h;
	agent.arg = h;
	assert_int_equal(mad_agent_add(h->a.w, &agent), 0);
	h->outcome = MAD_LATER;
	assert_int_equal(say_single(h, MAD_SET, 7), VERDICT_DATAGRAM);
	single_mad(mad, MAD_SET, 8);
	mad[MAD_OFF_CLASS] = 0x33;
	assert_int_equal(say(h, mad), VERDICT_MAD_REFUSED);
	assert_int_equal(h->requests, 1);
	expect_tx(&h->a, "81 single status 0x0001");
}

/* An agent's allow list drops requests of others in silence. */
static void
test_not_allowed(void **state)
{
	static const struct allow_list others = { .num_pkeys = 1, .pkey = { 0x1234 } };
	struct harness *h = single_create(&others, &harness_limits);

	*state = h;
	assert_int_equal(say_single(h, MAD_GET, 7), VERDICT_NOT_ALLOWED);
	assert_int_equal(h->requests, 0);
	expect_silence(&h->a);
}

/* A port that is not configured has no address. */
static void
test_port_that_is_not_there(void **state)
{
	struct harness *h = single_create(NULL, &harness_limits);
	struct packet pkt;

	*state = h;
	h->outcome = MAD_ANSWER;
	assert_int_equal(say_single(h, MAD_GET, 7), VERDICT_DATAGRAM);
	next_packet(&h->a, &pkt); /* any packet of QP1 */
	pkt.port = 1;
	assert_int_equal(mad_receive(h->a.w, &pkt, h->now), VERDICT_ADDRESS);
}

/* Only the answer to the method of the request ends a call. */
static void
test_answer_of_another_method(void **state)
{
	struct harness *h = single_create(NULL, &harness_limits);
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	*state = h;
	call_init(&h->a, &c, mad, MAD_GET, MAD_METHOD_SESSION);
	single_mad(mad, MAD_GET, 0);
	c.protocol = MAD_SINGLE;
	c.data_offset = 24;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	memcpy(mad, next_sent(&h->a), MAD_LEN);
	mad[MAD_OFF_METHOD] = MAD_TRAP_REPRESS | MAD_RESPONSE;
	assert_int_equal(say(h, mad), VERDICT_MAD_UNMATCHED);
	assert_int_equal(h->done, 0);
	mad[MAD_OFF_METHOD] = MAD_GET | MAD_RESPONSE;
	assert_int_equal(say(h, mad), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_repeat_before_the_answer, harness_teardown),
		cmocka_unit_test_teardown(test_repeat_of_a_request_that_was_not_executed,
			harness_teardown),
		cmocka_unit_test_teardown(test_no_streams, harness_teardown),
		cmocka_unit_test_teardown(test_no_session_left, harness_teardown),
		cmocka_unit_test_teardown(test_no_session_left_for_rmpp, harness_teardown),
		cmocka_unit_test_teardown(test_not_allowed, harness_teardown),
		cmocka_unit_test_teardown(test_port_that_is_not_there, harness_teardown),
		cmocka_unit_test_teardown(test_answer_of_another_method, harness_teardown),
	};

	return cmocka_run_group_tests_name("single", tests, NULL, NULL);
}
