/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class version 1, Config: requests in many packets, from both sides (sa-multipacket A4, A5, seed
 * 000 figure 33-3). The other side is played by the test.
 */

#include <errno.h>
#include <string.h>

#include "harness.h"

static const uint8_t config =
	MAD_METHOD_SESSION | MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE;

/* --- a receives a Config --- */

static enum verdict
config_segment(struct harness *h, uint32_t n, uint32_t bytes)
{
	uint32_t total = (bytes + 191) / 192, length = 0;
	uint8_t flags = 0;

	if (n == 1) {
		flags |= SA1_FIRST;
		length = bytes;
	}
	if (n == total)
		flags |= SA1_LAST;
	return say_v1(h, 0x14, flags, n, length, 0);
}

static void
config_segments(struct harness *h, uint32_t first, uint32_t last, uint32_t bytes)
{
	for (; first <= last; first++)
		assert_int_equal(config_segment(h, first, bytes), VERDICT_DATAGRAM);
}

static void
expect_body(const struct harness *h, uint64_t bytes)
{
	uint64_t i;

	assert_int_equal(h->requests, 1);
	assert_int_equal(h->body_len, bytes);
	for (i = 0; i < bytes; i++)
		assert_int_equal(h->body[i], pattern(i));
}

/* The last segment's length follows from the total; ConfigResp replaces the last Ack */
static void
test_config_received(void **state)
{
	struct harness *h = *state;
	const uint8_t *mad;

	h->outcome = MAD_ANSWER;
	config_segments(h, 1, 2, 400);
	assert_int_equal(h->requests, 0);
	assert_string_equal(state_of(&h->a), "RECV");
	config_segments(h, 3, 3, 400);
	expect_body(h, 400);
	assert_int_equal(get_be32(h->request + 40), 1);
	mad = next_sent(&h->a);
	assert_int_equal(mad[MAD_OFF_METHOD], 0x94);
	assert_int_equal(mad[48], 0);
	assert_int_equal(get_be32(mad + 40), 0);
	assert_int_equal(get_be64(mad + MAD_OFF_TID), 0x77);
	expect_silence(&h->a);
}

/* A Config is executed once: repeats get the ConfigResp again, for 8 ResponseTimeouts */
static void
test_config_is_executed_once(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_ANSWER;
	h->status = 0x0100;
	config_segments(h, 1, 3, 400);
	expect_tx(&h->a, "94 single status 0x0100");
	pass(h, 8 * RESPONSE_TIMEOUT - 1);
	assert_int_equal(config_segment(h, 3, 400), VERDICT_MAD_DISCARDED);
	expect_tx(&h->a, "94 single status 0x0100");
	config_segment(h, 1, 400);
	expect_tx(&h->a, "94 single status 0x0100");
	assert_int_equal(h->requests, 1);
	pass(h, 1);
	expect_clean(h);
}

/* Seed 000: ask for the segment that was expected but not received, also for the First */
static void
test_lost_first_is_asked_for(void **state)
{
	struct harness *h = *state;
	const uint8_t *mad;

	h->outcome = MAD_ANSWER;
	assert_int_equal(config_segment(h, 2, 400), VERDICT_MAD_DISCARDED);
	mad = next_sent(&h->a);
	assert_int_equal(mad[MAD_OFF_METHOD], 0x94);
	assert_int_equal(mad[48], 0x10);
	assert_int_equal(get_be32(mad + 40), 1);
	assert_int_equal(get_be64(mad + MAD_OFF_TID), 0x77);
	assert_int_equal(config_segment(h, 3, 400), VERDICT_MAD_DISCARDED);
	expect_silence(&h->a);
	config_segments(h, 1, 3, 400);
	expect_body(h, 400);
	assert_int_equal(get_be32(h->request + 40), 1);
	assert_int_equal(h->request[48], SA1_FIRST);
	expect_tx(&h->a, "94 single of 0");
}

/* Seven times at most; control packets and a status open no session */
static void
test_lost_first_is_given_up(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	config_segment(h, 3, 400); /* Last */
	expect_tx(&h->a, "94 Resend 1");
	for (i = 0; i < 6; i++) {
		pass(h, SEGMENT_TIMEOUT);
		expect_tx(&h->a, "94 Resend 1");
	}
	pass(h, SEGMENT_TIMEOUT);
	expect_silence(&h->a);
	expect_clean(h);
	say_v1(h, 0x14, SA1_KEEPALIVE, 0, 0, 0);
	say_v1(h, 0x14, SA1_ACK, 3, 0, 0);
	put_be16(v1_mad(h, mad, 0x14, 0, 0, 0, 0) + MAD_OFF_STATUS, 0x001C);
	assert_int_equal(say(h, mad), VERDICT_MAD_UNMATCHED);
	expect_silence(&h->a);
	assert_int_equal(h->requests, 0);
	assert_int_equal(counters_of(&h->a).sessions_opened, 1);
}

/* Ack after 64 segments, Window as we offer; then after as many as that */
static void
test_config_windows(void **state)
{
	struct harness_config c = { .limits = harness_limits, .scripted = true };
	const uint32_t bytes = 300 * 192;
	struct harness *h;

	(void)state;
	c.limits.v1_window = 100;
	h = harness_create(&c);
	h->outcome = MAD_ANSWER;
	config_segments(h, 1, 63, bytes);
	expect_silence(&h->a);
	config_segments(h, 64, 64, bytes);
	expect_tx(&h->a, "94 Ack 64 window 100");
	config_segments(h, 65, 163, bytes);
	expect_silence(&h->a);
	config_segments(h, 164, 164, bytes);
	expect_tx(&h->a, "94 Ack 164 window 100");
	config_segments(h, 165, 300, bytes);
	expect_tx(&h->a, "94 Ack 264 window 100", "94 single of 0");
	expect_body(h, bytes);
	harness_destroy(h);
}

static void
test_config_recovers(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_ANSWER;
	config_segments(h, 1, 1, 1000);
	assert_int_equal(config_segment(h, 3, 1000), VERDICT_MAD_DISCARDED);
	expect_tx(&h->a, "94 Resend 2");
	config_segment(h, 1, 1000);
	expect_tx(&h->a, "94 Ack 1 window 64");
	config_segments(h, 2, 6, 1000);
	expect_body(h, 1000);
}

/* Half a Config: SegmentTimer, seven Resend requests, then it is forgotten */
static void
test_half_a_config(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	config_segments(h, 1, 2, 1000);
	for (i = 0; i < 7; i++) {
		pass(h, SEGMENT_TIMEOUT);
		expect_tx(&h->a, "94 Resend 3");
	}
	pass(h, SEGMENT_TIMEOUT);
	expect_silence(&h->a);
	assert_int_equal(h->requests, 0);
	assert_int_equal(counters_of(&h->a).sessions_failed, 1);
	expect_clean(h);
}

/* Copies and later segments are no progress: they prolong a request only as KeepAlives do */
static void
test_copies_are_bounded(void **state)
{
	struct harness *h = *state;
	uint64_t end = h->now + 1000 * MS + SEGMENT_TIMEOUT;
	uint32_t n = 1;

	config_segments(h, 1, 2, 1000);
	while (h->now < end && counters_of(&h->a).sessions_failed == 0) {
		say_v1(h, 0x14, n == 1 ? SA1_FIRST : 0, n, 1000, 0);
		n = n == 1 ? 4 : 1;
		pass(h, SEGMENT_TIMEOUT / 2);
	}
	assert_int_equal(counters_of(&h->a).sessions_failed, 1);
	assert_int_equal(counters_of(&h->a).timeouts, 1);
	assert_true(h->now > 1000 * MS);
	skip_sent(&h->a);
	expect_clean(h);
}

/* A4: segments that disagree with the total: 0x001C */
static void
test_lying_total(void **state)
{
	struct harness *h = *state;

	/* Last comes too early */
	config_segments(h, 1, 1, 1000);
	say_v1(h, 0x14, SA1_LAST, 2, 0, 0);
	expect_tx(&h->a, "94 single status 0x001c");
	/* Last comes too late */
	h->tid++;
	say_v1(h, 0x14, SA1_FIRST, 1, 200, 0);
	say_v1(h, 0x14, 0, 2, 0, 0);
	expect_tx(&h->a, "94 single status 0x001c");
	/* a total of 0 */
	h->tid++;
	say_v1(h, 0x14, SA1_FIRST, 1, 0, 0);
	expect_tx(&h->a, "94 single status 0x001c");
	assert_int_equal(h->requests, 0);
}

/* Security: a total beyond the peer's limit is refused at once; a promise reserves no memory */
static void
test_total_too_long(void **state)
{
	struct harness *h = *state;
	uint64_t used, total;

	assert_int_equal(say_v1(h, 0x14, SA1_FIRST, 1, (1 << 19) + 1, 0), VERDICT_MAD_REFUSED);
	expect_tx(&h->a, "94 single status 0x0100");
	h->tid++;
	say_v1(h, 0x14, SA1_FIRST, 1, 1 << 19, 0);
	mad_worker_memory(h->a.w, &used, &total);
	assert_true(used < 16384);
	assert_int_equal(counters_of(&h->a).sessions_refused, 1);
}

/* The requester's status ends it (A5, any state) */
static void
test_requester_gives_up(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];

	config_segments(h, 1, 2, 1000);
	put_be16(v1_mad(h, mad, 0x14, 0, 0, 0, 0) + MAD_OFF_STATUS, 0x001C);
	say(h, mad);
	expect_clean(h);
}

/* A5: later than `process`: Ack(Last) first, then KeepAlives, then the ConfigResp */
static void
test_slow_config(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];

	h->outcome = MAD_LATER;
	config_segments(h, 1, 3, 400);
	expect_silence(&h->a);
	pass(h, PROCESS);
	expect_tx(&h->a, "94 Ack 3 window 64", "94 KeepAlive");
	pass(h, PROCESS);
	expect_tx(&h->a, "94 KeepAlive");
	/* its Last again: acknowledged again, executed once */
	config_segment(h, 3, 400);
	expect_tx(&h->a, "94 Ack 3 window 64");
	assert_int_equal(mad_answer(h->a.w, h->handle, v1_mad(h, mad, 0x94, 0, 0, 0, 0), h->now),
		0);
	transmit(&h->a);
	expect_tx(&h->a, "94 single of 0");
	assert_int_equal(h->requests, 1);
}

/* ConfigResp in many packets */
static void
test_long_config_response(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_STREAM;
	h->table_bytes = 500;
	config_segments(h, 1, 3, 400);
	expect_tx(&h->a, "94 First 1 of 500", "94 2", "94 Last 3 of 116");
	say_v1(h, 0x14, SA1_ACK, 3, 0, 64);
	assert_int_equal(h->released, 1);
	assert_string_equal(state_of(&h->a), "LINGER");
	config_segment(h, 3, 400);
	expect_silence(&h->a);
	assert_int_equal(h->requests, 1);
	/* acknowledged data is gone, also the last segment (seed 000) */
	say_v1(h, 0x14, SA1_RESEND, 3, 0, 0);
	expect_tx(&h->a, "94 single status 0x001c");
}

/* A Config of one packet is a single packet; executed once too */
static void
test_single_config(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_ANSWER;
	say_v1(h, 0x14, 0, 0, 50, 0);
	expect_tx(&h->a, "94 single of 0");
	assert_null(h->body);
	assert_int_equal(get_be32(h->request + 44), 50);
	say_v1(h, 0x14, 0, 0, 50, 0);
	expect_tx(&h->a, "94 single of 0");
	assert_int_equal(h->requests, 1);
	/* "First+Last, 1" is accepted (A3) */
	h->tid++;
	h->requests = 0;
	say_v1(h, 0x14, SA1_FIRST | SA1_LAST, 1, 50, 0);
	expect_tx(&h->a, "94 single of 0");
	expect_body(h, 50);
}

/* Set is not executed twice either */
static void
test_set_once(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_ANSWER;
	say_v1(h, 0x02, 0, 0, 0, 0);
	expect_tx(&h->a, "81 single of 0");
	say_v1(h, 0x02, 0, 0, 0, 0);
	expect_tx(&h->a, "81 single of 0");
	assert_int_equal(h->requests, 1);
}

/* NO_RESOURCES says that it was not: a repeat is another try. */
static void
test_set_is_tried_again(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_ANSWER;
	h->status = 0x0100;
	say_v1(h, 0x02, 0, 0, 0, 0);
	expect_tx(&h->a, "81 single status 0x0100");
	h->status = 0;
	say_v1(h, 0x02, 0, 0, 0, 0);
	expect_tx(&h->a, "81 single of 0");
	assert_int_equal(h->requests, 2);
}

/* --- a sends a Config --- */

static void
config_call(struct harness *h, uint64_t bytes)
{
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	call_init(&h->a, &c, mad, 0x14, config);
	c.source = pattern_source(h, bytes);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	h->tid = get_be64(next_sent(&h->a) + MAD_OFF_TID);
	h->a.seen--;
}

/* First burst 64; after an Ack its Window, where less than 64 counts as 64 */
static void
test_config_sent(void **state)
{
	struct harness *h = *state;
	uint64_t bytes = 299 * 192 + 7;

	config_call(h, bytes);
	assert_int_equal(get_be32(next_sent(&h->a) + 44), bytes);
	expect_segments(&h->a, 0x14, 2, 64);
	expect_silence(&h->a);
	say_v1(h, 0x94, SA1_ACK, 64, 0, 10);
	expect_segments(&h->a, 0x14, 65, 128);
	expect_silence(&h->a);
	say_v1(h, 0x94, SA1_ACK, 128, 0, 100);
	expect_segments(&h->a, 0x14, 129, 228);
	expect_silence(&h->a);
	say_v1(h, 0x94, SA1_ACK, 228, 0, 100);
	expect_segments(&h->a, 0x14, 229, 299);
	expect_tx(&h->a, "14 Last 300 of 7");
	assert_int_equal(h->done, 0);
	say_v1(h, 0x94, 0, 0, 0, 0);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK);
	assert_int_equal(h->released, 1);
	expect_clean(h);
}

/* Ack(Last) first, KeepAlives, then ConfigResp; Segment and ResponseTimeouts as in A5 */
static void
test_config_response_later(void **state)
{
	struct harness *h = *state;

	config_call(h, 400);
	skip_sent(&h->a);
	say_v1(h, 0x94, SA1_ACK, 3, 0, 64);
	pass(h, RESPONSE_TIMEOUT - 1);
	expect_silence(&h->a);
	say_v1(h, 0x94, SA1_KEEPALIVE, 0, 0, 0);
	pass(h, SEGMENT_TIMEOUT - 1);
	expect_silence(&h->a);
	pass(h, 1);
	expect_tx(&h->a, "14 Last 3 of 16");
	say_v1(h, 0x94, 0, 0, 0, 0);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK);
}

/* Nobody answers: the last segment seven times */
static void
test_config_timeout(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	config_call(h, 400);
	for (i = 0; i < 8; i++)
		pass(h, RESPONSE_TIMEOUT);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_TIMEOUT);
	assert_int_equal(counters_of(&h->a).timeouts, 8);
	expect_clean(h);
}

static void
test_config_status(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];

	config_call(h, 100 * 192);
	put_be16(v1_mad(h, mad, 0x94, 0, 0, 0, 0) + MAD_OFF_STATUS, 0x0700);
	say(h, mad);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_STATUS);
	assert_int_equal(h->result.status, 0x0700);
	expect_clean(h);
}

/* A ConfigResp before all segments were sent acknowledges nothing */
static void
test_config_response_too_early(void **state)
{
	struct harness *h = *state;

	config_call(h, 100 * 192);
	assert_int_equal(say_v1(h, 0x94, 0, 0, 0, 0), VERDICT_MAD_DISCARDED);
	assert_int_equal(h->done, 0);
}

/* A Resend request for an acknowledged segment: a status at once; the end tells why */
static void
test_config_segment_asked_again(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	config_call(h, 100 * 192);
	say_v1(h, 0x94, SA1_ACK, 64, 0, 64);
	skip_sent(&h->a);
	say_v1(h, 0x94, SA1_RESEND, 64, 0, 0);
	expect_tx(&h->a, "14 single status 0x001c");
	for (i = 0; i < 8; i++)
		pass(h, RESPONSE_TIMEOUT);
	assert_int_equal(counters_of(&h->a).segments_resent, 7);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_PROTOCOL);
	expect_clean(h);
}

/*
 * Table 33-11: while a request's data is not ready, KeepAlives are sent, each within `process`. The
 * KeepAlive is a packet of the request's own method.
 */
static void
test_config_keepalives(void **state)
{
	struct harness *h = *state;
	uint64_t last;
	unsigned int n = 0;

	h->late_at = 30 * 192;
	config_call(h, 50 * 192);
	assert_int_equal(get_be32(next_sent(&h->a) + 40), 1);
	expect_segments(&h->a, 0x14, 2, 30);
	expect_silence(&h->a);
	last = h->now;
	while (n < 5) {
		pass(h, 10 * US);
		assert_true(h->now - last <= PROCESS);
		if (h->a.seen == h->a.sent)
			continue;
		expect_tx(&h->a, "14 KeepAlive");
		last = h->now;
		n++;
	}
	assert_int_equal(counters_of(&h->a).keepalive_sent, 5);
	assert_int_equal(counters_of(&h->a).segments_resent, 0);
	h->late_at = 0;
	pass(h, 1);
	expect_segments(&h->a, 0x14, 31, 49);
	expect_tx(&h->a, "14 Last 50 of 192");
	say_v1(h, 0x94, 0, 0, 0, 0);
	assert_int_equal(h->result.end, MAD_END_OK);
}

/* A slow SA sends KeepAlives before its Ack: the timer restarts, nothing is sent again */
static void
test_config_slow_acks(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	config_call(h, 100 * 192);
	skip_sent(&h->a);
	for (i = 0; i < 5; i++) {
		pass(h, SEGMENT_TIMEOUT - 1);
		assert_int_equal(say_v1(h, 0x94, SA1_KEEPALIVE, 0, 0, 0), VERDICT_DATAGRAM);
	}
	expect_silence(&h->a);
	say_v1(h, 0x94, SA1_ACK, 64, 0, 64);
	expect_segments(&h->a, 0x14, 65, 99);
	expect_tx(&h->a, "14 Last 100 of 192");
}

/* Its Last goes out again seven times, the Ack between or not */
static void
test_config_last_is_resent_seven_times(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	config_call(h, 400);
	for (i = 0; i < 3; i++)
		pass(h, RESPONSE_TIMEOUT);
	say_v1(h, 0x94, SA1_ACK, 3, 0, 64);
	for (i = 0; i < 20; i++)
		pass(h, RESPONSE_TIMEOUT);
	assert_int_equal(h->done, 1);
	assert_int_equal(counters_of(&h->a).segments_resent, 7);
	expect_clean(h);
}

/* ConfigResp in many packets */
static void
test_config_long_response(void **state)
{
	struct harness *h = *state;

	config_call(h, 400);
	skip_sent(&h->a);
	say_v1(h, 0x94, SA1_FIRST, 1, 300, 64);
	say_v1(h, 0x94, SA1_LAST, 2, 108, 64);
	expect_tx(&h->a, "14 Ack 2 window 64");
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.bytes, 300);
	assert_int_equal(h->released, 1);
}

static void
test_config_stale(void **state)
{
	struct harness *h = *state;

	h->stale_at = 70 * 192;
	config_call(h, 100 * 192);
	say_v1(h, 0x94, SA1_ACK, 64, 0, 64);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_REFUSED);
	assert_int_equal(h->result.error, -ESTALE);
	expect_clean(h);
}

/* One packet: single, PayloadLength its bytes; repeated by the ResponseTimer */
static void
test_config_of_one_packet(void **state)
{
	struct harness *h = *state;

	config_call(h, 50);
	expect_tx(&h->a, "14 single of 50");
	pass(h, RESPONSE_TIMEOUT);
	expect_tx(&h->a, "14 single of 50");
	say_v1(h, 0x94, 0, 0, 0, 0);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK);
	assert_int_equal(h->released, 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, scripted_setup, harness_teardown)
#define P(test) cmocka_unit_test_setup_teardown(test, proven_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_config_received),
		T(test_config_is_executed_once),
		T(test_lost_first_is_asked_for),
		P(test_lost_first_is_given_up),
		cmocka_unit_test(test_config_windows),
		T(test_config_recovers),
		P(test_half_a_config),
		T(test_copies_are_bounded),
		T(test_lying_total),
		T(test_total_too_long),
		T(test_requester_gives_up),
		T(test_slow_config),
		P(test_long_config_response),
		T(test_single_config),
		T(test_set_once),
		T(test_set_is_tried_again),
		T(test_config_sent),
		T(test_config_response_later),
		T(test_config_timeout),
		T(test_config_status),
		T(test_config_response_too_early),
		T(test_config_segment_asked_again),
		T(test_config_keepalives),
		T(test_config_slow_acks),
		T(test_config_last_is_resent_seven_times),
		T(test_config_long_response),
		T(test_config_stale),
		T(test_config_of_one_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
