/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Single-packet calls: answers, timeouts and retries by the formulas of sa-multipacket A5. a sends
 * requests, the test plays b.
 */

#include <errno.h>
#include <string.h>

#include "harness.h"

static mad_handle
calls_call(struct harness *h, uint8_t method, uint8_t resp_time, uint8_t retries)
{
	uint8_t mad[MAD_LEN];
	struct mad_call c;
	mad_handle handle;

	call_init(&h->a, &c, mad, method, 0);
	c.protocol = MAD_SINGLE;
	c.data_offset = 24;
	c.resp_time = resp_time;
	c.retries = retries;
	c.taker.data = NULL;
	h->done = 0;
	assert_int_equal(mad_call(h->a.w, &c, h->now, &handle), 0);
	transmit(&h->a);
	h->tid = get_be64(next_sent(&h->a) + MAD_OFF_TID);
	return handle;
}

static void
test_answer(void **state)
{
	struct harness *h = *state;

	calls_call(h, MAD_GET, 10, 0);
	pass(h, 5 * US);
	assert_int_equal(say_v1(h, 0x81, 0, 0, 0, 0), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK);
	assert_int_equal(h->result.elapsed, 5 * US);
	assert_int_equal(h->result_mad[MAD_OFF_METHOD], 0x81);
	assert_int_equal(say_v1(h, 0x81, 0, 0, 0, 0), VERDICT_MAD_UNMATCHED);
	expect_clean(h);
}

/* A stored subscription may name a port of an earlier configuration, or of another appliance. */
static void
test_call_from_a_port_that_does_not_exist(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	call_init(&h->a, &c, mad, MAD_GET, 0);
	c.protocol = MAD_SINGLE;
	c.data_offset = 24;
	c.to.av.port = 1;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), -ENODEV);
	transmit(&h->a);
	assert_int_equal(h->a.sent, h->a.seen);
	expect_clean(h);
}

/* A fleet's next leader sends it again: the TID is given, whatever worker its hash is for. */
static void
test_report_keeps_its_tid_on_worker_0(void **state)
{
	struct harness_config config = { .scripted = true, .workers = 8 };
	uint8_t mad[MAD_LEN];
	struct mad_call c;
	struct harness *h;
	unsigned int i;

	(void)state;
	h = harness_create(&config);
	for (i = 1; i <= 32; i++) {
		call_init(&h->a, &c, mad, MAD_REPORT, 0);
		c.protocol = MAD_SINGLE;
		c.keep_tid = true;
		put_be64(mad + MAD_OFF_TID, i);
		assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
		transmit(&h->a);
		assert_int_equal(get_be64(next_sent(&h->a) + MAD_OFF_TID), i);
		assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), -EEXIST);
	}
	harness_destroy(h);
	config.id = 3;
	h = harness_create(&config);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), -EINVAL);
	harness_destroy(h);
}

/* A caller that keeps a TID has to call on the worker whose answers have it. */
static void
test_kept_tid_names_the_worker(void **state)
{
	struct harness_config config = { .scripted = true, .workers = 8, .id = 3 };
	unsigned int tid, here = 0, worker;
	struct harness *h;
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	h = *state = harness_create(&config);
	for (tid = 1; tid <= 64; tid++) {
		call_init(&h->a, &c, mad, MAD_SET, 0);
		c.protocol = MAD_SINGLE;
		c.keep_tid = true;
		put_be64(mad + MAD_OFF_TID, tid);
		worker = mad_call_worker(HARNESS_HASH_KEY, config.workers, &c.to, mad);
		assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), worker == 3 ? 0 : -EINVAL);
		if (worker != 3)
			continue;
		here++;
		transmit(&h->a);
		assert_int_equal(get_be64(next_sent(&h->a) + MAD_OFF_TID), tid);
		assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), -EEXIST);
	}
	assert_in_range(here, 1, 32);
}

/* The source of a stored subscription may be an address of another appliance. */
static void
test_call_leaves_from_an_address_of_the_port(void **state)
{
	const uint8_t smac[6] = { 2, 0, 0, 0, 0, 1 };
	struct harness *h = *state;
	struct port_gid *gid = h->a.attr.gid;
	uint8_t mad[MAD_LEN];
	const uint8_t *frame;
	struct mad_call c;
	unsigned int i;

	h->a.attr.num_gids = 3;
	gid[0] = (struct port_gid){ .type = GID_ROCEV1, .gid.raw = { [0] = 0xFE, [1] = 0x80 } };
	gid[1] = (struct port_gid){ .type = GID_ROCEV2, .gid.raw = { [0] = 0xFE, [1] = 0x80 } };
	gid[2] = (struct port_gid){ .type = GID_ROCEV2,
		.gid.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = 1 } };
	for (i = 0; i < 2; i++) {
		call_init(&h->a, &c, mad, MAD_GET, 0);
		c.protocol = MAD_SINGLE;
		c.to.av.sgid.raw[15] = i == 0 ? 9 : 1;
		c.to.av.smac[5] = i == 0 ? 9 : 1;
		assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
		transmit(&h->a);
		frame = h->a.frames[i].bytes;
		assert_memory_equal(frame + 6, smac, 6);
		assert_int_equal(get_be32(frame + 14 + 12), 0x0A000001);
	}
}

static void
test_answer_with_status(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];

	calls_call(h, MAD_SET, 10, 0); /* Set is answered by GetResp */
	put_be16(v1_mad(h, mad, 0x81, 0, 0, 0, 0) + MAD_OFF_STATUS, 0x0700);
	say(h, mad);
	assert_int_equal(h->result.end, MAD_END_STATUS);
	assert_int_equal(h->result.status, 0x0700);
}

struct timeout {
	uint8_t subnet_timeout, resp_time;
	uint64_t ns;
};

/* 2 x 4.096 us x 2^SubnetTimeOut + 4.096 us x 2^RespTimeValue */
static void
test_response_timeout_formula(void **state)
{
	static const struct timeout timeouts[] = {
		{ 1, 0, 2 * 8192 + 4096 }, { 8, 10, 6291456 }, /* 2 x 1.048576 ms + 4.194304 ms */
		{ 18, 16, 2415919104 }, /* 2 x 1.073741824 s + 0.268435456 s */
		{ 1, 20, 4294983680 }, { 31, 31, 26388279066624 }, /* 3 x 8796.093022208 s */
	};
	struct harness *h;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		h = harness_create(&(struct harness_config){
			.scripted = true,
			.subnet_timeout = timeouts[i].subnet_timeout,
		});
		calls_call(h, MAD_GET, timeouts[i].resp_time, 1);
		pass(h, timeouts[i].ns - 1);
		expect_silence(&h->a);
		pass(h, 1);
		expect_tx(&h->a, "01 single of 0");
		pass(h, timeouts[i].ns);
		assert_int_equal(h->done, 1);
		assert_int_equal(h->result.end, MAD_END_TIMEOUT);
		assert_int_equal(h->result.elapsed, 2 * timeouts[i].ns);
		harness_destroy(h);
	}
}

/* At most seven retries, whatever the caller asks for */
static void
test_retries(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	calls_call(h, MAD_GET, 10, 200);
	for (i = 0; i < 7; i++) {
		pass(h, RESPONSE_TIMEOUT);
		expect_tx(&h->a, "01 single of 0");
	}
	pass(h, RESPONSE_TIMEOUT);
	expect_silence(&h->a);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.resent, 7);
	assert_int_equal(counters_of(&h->a).calls, 1);
	assert_int_equal(counters_of(&h->a).timeouts, 8);
	expect_clean(h);
}

/* Anti-amplification: a call to an address that a stranger named sends what its budget allows. */
static void
test_budget_of_a_call(void **state)
{
	struct harness *h = *state;
	struct unproven budget = { .left = 2 * MAD_LEN };
	uint8_t mad[MAD_LEN];
	struct mad_call c;
	unsigned int i;

	call_init(&h->a, &c, mad, MAD_GET, 0);
	c.protocol = MAD_SINGLE;
	c.budget = &budget;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	for (i = 0; i < 8; i++)
		pass(h, RESPONSE_TIMEOUT);
	expect_tx(&h->a, "01 single of 0", "01 single of 0");
	assert_int_equal(counters_of(&h->a).unproven, 6);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_TIMEOUT);
	budget.proven = true;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	for (i = 0; i < 8; i++)
		pass(h, RESPONSE_TIMEOUT);
	assert_int_equal(h->a.sent - h->a.seen, 8);
	skip_sent(&h->a);
	expect_clean(h);
}

/* no_retry: one try only */
static void
test_no_retry(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	call_init(&h->a, &c, mad, MAD_GET, 0);
	c.protocol = MAD_SINGLE;
	c.no_retry = true;
	c.retries = 3;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	expect_tx(&h->a, "01 single of 0");
	pass(h, RESPONSE_TIMEOUT);
	expect_silence(&h->a);
	assert_int_equal(h->result.end, MAD_END_TIMEOUT);
	assert_int_equal(h->result.resent, 0);
	expect_clean(h);
}

/* The timeout starts when the packet has left */
static void
test_sink_was_full(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	call_init(&h->a, &c, mad, MAD_GET, 0);
	c.protocol = MAD_SINGLE;
	h->a.room = 0;
	mad_call(h->a.w, &c, h->now, NULL);
	pass(h, 10 * RESPONSE_TIMEOUT);
	expect_silence(&h->a);
	h->a.room = 10;
	pass(h, 0);
	expect_tx(&h->a, "01 single of 0");
	pass(h, RESPONSE_TIMEOUT - 1);
	expect_silence(&h->a);
	assert_int_equal(counters_of(&h->a).timeouts, 0);
}

static void
test_no_answer(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	call_init(&h->a, &c, mad, MAD_TRAP, 0);
	c.no_answer = true;
	mad_call(h->a.w, &c, h->now, NULL);
	assert_int_equal(h->done, 0);
	transmit(&h->a);
	expect_tx(&h->a, "05 single of 0");
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK);
	expect_clean(h);
}

static void
test_cancel(void **state)
{
	struct harness *h = *state;
	mad_handle handle = calls_call(h, MAD_GET, 10, 0);

	assert_int_equal(mad_cancel(h->a.w, handle, h->now), 0);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_CANCELLED);
	assert_int_equal(mad_cancel(h->a.w, handle, h->now), -ENOENT);
	assert_int_equal(mad_cancel(h->a.w, 0, h->now), -ENOENT);
	pass(h, 10 * RESPONSE_TIMEOUT);
	expect_silence(&h->a);
	expect_clean(h);
}

static void
done_and_again(void *arg, const struct mad_result *result)
{
	struct harness *h = arg;
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	h->result = *result;
	if (++h->done > 100)
		return;
	call_init(&h->a, &c, mad, MAD_GET, 0);
	c.protocol = MAD_SINGLE;
	c.retries = 1;
	c.taker.done = done_and_again;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
}

/* done() may call again */
static void
test_call_from_done(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	done_and_again(h, &(struct mad_result){ .end = MAD_END_OK });
	for (i = 0; i < 250; i++)
		pass(h, RESPONSE_TIMEOUT);
	assert_int_equal(h->done, 101);
	expect_clean(h);
}

/* Thousands of idle calls cost nothing per run: only timers are there */
static void
test_idle_sessions_are_not_queued(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	for (i = 0; i < 60; i++)
		calls_call(h, MAD_GET, 20, 0);
	assert_false(mad_pending(h->a.w));
	assert_int_equal(mad_run(h->a.w, h->now, 100), 0);
	assert_int_equal(sessions_of(&h->a), 60);
}

/* An answer without segments or RMPP ends a call only if it answers the call's method. */
static void
test_plain_answers_of_another_method(void **state)
{
	static const uint8_t version[] = { 1, 2 };
	struct harness *h = harness_create(&(struct harness_config){ .scripted = true });
	uint8_t mad[MAD_LEN];
	struct mad_call c;
	unsigned int i;

	*state = h;
	for (i = 0; i < 2; i++) {
		call_init(&h->a, &c, mad, SA_GET_TABLE,
			MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE);
		mad[MAD_OFF_CLASS_VERSION] = version[i];
		if (version[i] == 2) {
			c.protocol = MAD_RMPP;
			c.data_offset = SA2_OFF_DATA;
		}
		h->done = 0;
		assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
		transmit(&h->a);
		memcpy(mad, next_sent(&h->a), MAD_LEN);
		mad[MAD_OFF_METHOD] = MAD_GET | MAD_RESPONSE;
		assert_int_equal(say(h, mad), VERDICT_MAD_UNMATCHED);
		assert_int_equal(h->done, 0);
		mad[MAD_OFF_METHOD] = SA_GET_TABLE | MAD_RESPONSE;
		put_be16(mad + MAD_OFF_STATUS, SA_STATUS_NO_RECORDS);
		assert_int_equal(say(h, mad), VERDICT_DATAGRAM);
		assert_int_equal(h->done, 1);
	}
}

/* A peer that answers before it can have our whole request is not believed. */
static void
test_answer_before_the_request_is_sent(void **state)
{
	struct harness *h = harness_create(&(struct harness_config){ .scripted = true });
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	*state = h;
	call_init(&h->a, &c, mad, SA1_CONFIG,
		MAD_METHOD_SESSION | MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE);
	c.source = pattern_source(h, 100 * SA1_AREA); /* more than a window */
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	h->tid = get_be64(next_sent(&h->a) + MAD_OFF_TID);
	assert_int_equal(say_v1(h, SA1_CONFIG | MAD_RESPONSE, SA1_FIRST, 1, 1000, 0),
		VERDICT_MAD_DISCARDED);
	assert_int_equal(h->taken, 0);
	assert_int_equal(h->done, 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, scripted_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_answer),
		cmocka_unit_test_teardown(test_plain_answers_of_another_method, harness_teardown),
		cmocka_unit_test_teardown(test_answer_before_the_request_is_sent, harness_teardown),
		T(test_call_from_a_port_that_does_not_exist),
		cmocka_unit_test(test_report_keeps_its_tid_on_worker_0),
		cmocka_unit_test_teardown(test_kept_tid_names_the_worker, harness_teardown),
		T(test_call_leaves_from_an_address_of_the_port),
		T(test_answer_with_status),
		cmocka_unit_test(test_response_timeout_formula),
		T(test_retries),
		T(test_no_retry),
		T(test_budget_of_a_call),
		T(test_sink_was_full),
		T(test_no_answer),
		T(test_cancel),
		T(test_call_from_done),
		T(test_idle_sessions_are_not_queued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
