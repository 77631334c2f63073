/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class version 1, requester of GetTable and GetBulk: the receiver's table of sa-multipacket A5,
 * line by line. a sends requests, the test plays b.
 */

#include <errno.h>
#include <string.h>

#include "harness.h"

static const uint8_t table = MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE;

static struct harness *
requester_early_harness(uint8_t subnet_timeout)
{
	struct harness_config c = {
		.limits = harness_limits,
		.scripted = true,
		.subnet_timeout = subnet_timeout,
	};

	c.limits.v1_early_resend = true;
	return harness_create(&c);
}

/* a asks for a table. */
static mad_handle
call_method(struct harness *h, uint8_t method)
{
	uint8_t mad[MAD_LEN];
	struct mad_call c;
	mad_handle handle;

	call_init(&h->a, &c, mad, method, table);
	assert_int_equal(mad_call(h->a.w, &c, h->now, &handle), 0);
	transmit(&h->a);
	h->tid = get_be64(next_sent(&h->a) + MAD_OFF_TID);
	return handle;
}

static mad_handle
requester_call(struct harness *h)
{
	return call_method(h, 0x12);
}

/* Segment n of a table of `bytes`. */
static enum verdict
requester_segment(struct harness *h, uint32_t n, uint32_t bytes)
{
	uint32_t total = (bytes + 191) / 192, length = 0;
	uint8_t flags = 0;

	if (n == 1) {
		flags |= SA1_FIRST;
		length = bytes;
	}
	if (n == total) {
		flags |= SA1_LAST;
		length = bytes - (n - 1) * 192;
	}
	return say_v1(h, 0x92, flags, n, length, 64);
}

static void
requester_segments(struct harness *h, uint32_t first, uint32_t last, uint32_t bytes)
{
	for (; first <= last; first++)
		assert_int_equal(requester_segment(h, first, bytes), VERDICT_DATAGRAM);
}

/* A5: the request is a single packet and asks for a Window of 64 */
static void
test_request(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	struct mad_call c;
	const uint8_t *sent;

	call_init(&h->a, &c, mad, 0x12, table);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	sent = next_sent(&h->a);
	assert_int_equal(sent[MAD_OFF_METHOD], 0x12);
	assert_int_equal(get_be32(sent + 40), 0);
	assert_int_equal(sent[48], 0);
	assert_int_equal(get_be16(sent + 50), 64);
	assert_int_equal(get_be16(sent + MAD_OFF_ATTRIBUTE), 0x11);
	assert_int_equal(get_be64(sent + SA1_OFF_SM_KEY), 0x5AFE);
	assert_string_equal(state_of(&h->a), "REQUESTED");
}

/* A5: Last: the timer stops, Ack, done; the tail's length is the Last's, whatever First promised */
static void
test_table_arrives(void **state)
{
	struct harness *h = *state;
	const uint8_t *ack;

	requester_call(h);
	say_v1(h, 0x92, SA1_FIRST, 1, 5000, 64);
	say_v1(h, 0x92, 0, 2, 0, 64);
	expect_silence(&h->a);
	assert_int_equal(h->taken, 384);
	say_v1(h, 0x92, SA1_LAST, 3, 16, 64);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK);
	assert_int_equal(h->result.bytes, 400);
	assert_int_equal(h->result.segments, 3);
	assert_int_equal(h->taken, 400);
	assert_int_equal(get_be32(h->result_mad + 40), 1);
	/* A3: the response's header back, R inverted */
	ack = next_sent(&h->a);
	assert_int_equal(ack[MAD_OFF_METHOD], 0x12);
	assert_int_equal(get_be64(ack + MAD_OFF_TID), h->tid);
	assert_int_equal(get_be16(ack + MAD_OFF_ATTRIBUTE), 0x11);
	assert_int_equal(get_be32(ack + 40), 3);
	assert_int_equal(get_be32(ack + 44), 0);
	assert_int_equal(ack[48], 0x04);
	assert_int_equal(get_be16(ack + 50), 64);
	pass(h, 100 * RESPONSE_TIMEOUT);
	expect_silence(&h->a);
	expect_clean(h);
}

/* A5: an Ack for each n = 64 segments */
static void
test_ack_each_window(void **state)
{
	struct harness *h = *state;
	const uint32_t bytes = 150 * 192;

	requester_call(h);
	requester_segments(h, 1, 63, bytes);
	expect_silence(&h->a);
	requester_segments(h, 64, 64, bytes);
	expect_tx(&h->a, "12 Ack 64 window 64");
	requester_segments(h, 65, 127, bytes);
	expect_silence(&h->a);
	requester_segments(h, 128, 128, bytes);
	expect_tx(&h->a, "12 Ack 128 window 64");
	requester_segments(h, 129, 150, bytes);
	expect_tx(&h->a, "12 Ack 150 window 64");
	assert_int_equal(h->done, 1);
}

/* A responder with a smaller window than we asked for is acknowledged where it stops */
static void
test_smaller_window_of_the_responder(void **state)
{
	struct harness *h = *state;

	requester_call(h);
	say_v1(h, 0x92, SA1_FIRST, 1, 100 * 192, 2);
	expect_silence(&h->a);
	say_v1(h, 0x92, 0, 2, 0, 2);
	expect_tx(&h->a, "12 Ack 2 window 2");
}

/* but a larger window of the responder's does not make us wait longer than ours */
static void
test_larger_window_of_the_responder(void **state)
{
	struct harness *h = *state;

	requester_call(h);
	say_v1(h, 0x92, SA1_FIRST, 1, 100 * 192, 1000);
	requester_segments(h, 2, 64, 100 * 192);
	expect_tx(&h->a, "12 Ack 64 window 1000");
}

/* A5: a response that ignores our window is accepted */
static void
test_segments_beyond_the_window(void **state)
{
	struct harness *h = *state;
	uint32_t n;

	requester_call(h);
	h->a.room = 0; /* no Ack goes out */
	for (n = 1; n <= 200; n++)
		assert_int_equal(requester_segment(h, n, 200 * 192), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
	h->a.room = 10;
	transmit(&h->a);
	expect_tx(&h->a, "12 Ack 200 window 64");
}

/* A5: segment > expected: discard, Resend(expected) once; the rest silently; then go on */
static void
test_recover(void **state)
{
	struct harness *h = *state;
	const uint32_t bytes = 10 * 192;
	const uint8_t *mad;

	requester_call(h);
	requester_segments(h, 1, 3, bytes);
	assert_int_equal(requester_segment(h, 5, bytes), VERDICT_MAD_DISCARDED);
	mad = next_sent(&h->a);
	assert_int_equal(mad[MAD_OFF_METHOD], 0x12);
	assert_int_equal(mad[48], 0x10);
	assert_int_equal(get_be32(mad + 40), 4);
	assert_string_equal(state_of(&h->a), "RECOVER");
	assert_int_equal(requester_segment(h, 6, bytes), VERDICT_MAD_DISCARDED);
	assert_int_equal(requester_segment(h, 10, bytes), VERDICT_MAD_DISCARDED);
	expect_silence(&h->a);
	requester_segments(h, 4, 4, bytes);
	assert_string_equal(state_of(&h->a), "RECV");
	requester_segments(h, 5, 10, bytes);
	expect_tx(&h->a, "12 Ack 10 window 64");
	assert_int_equal(h->taken, bytes);
	assert_int_equal(counters_of(&h->a).segments_discarded, 3);
	assert_int_equal(counters_of(&h->a).resend_sent, 1);
}

/* The first segment itself is missing */
static void
test_first_segment_lost(void **state)
{
	struct harness *h = *state;

	requester_call(h);
	assert_int_equal(requester_segment(h, 2, 400), VERDICT_MAD_DISCARDED);
	expect_tx(&h->a, "12 Resend 1");
	requester_segments(h, 1, 3, 400);
	expect_tx(&h->a, "12 Ack 3 window 64");
	assert_int_equal(h->taken, 400);
}

/* v1_early_resend: a segment after the missing one, a round trip later: the Resend was lost */
static void
test_resend_repeated_by_round_trip(void **state)
{
	struct harness *h = requester_early_harness(0);
	const uint32_t bytes = 50 * 192;

	(void)state;
	requester_call(h);
	pass(h, 100 * US); /* the round trip */
	requester_segments(h, 1, 3, bytes);
	requester_segment(h, 5, bytes);
	expect_tx(&h->a, "12 Resend 4");
	pass(h, 199 * US);
	requester_segment(h, 6, bytes);
	expect_silence(&h->a);
	pass(h, 2 * US);
	requester_segment(h, 7, bytes);
	expect_tx(&h->a, "12 Resend 4");
	/* four of the seven so; the others are the timer's */
	pass(h, 300 * US);
	requester_segment(h, 8, bytes);
	pass(h, 300 * US);
	requester_segment(h, 9, bytes);
	expect_tx(&h->a, "12 Resend 4", "12 Resend 4");
	pass(h, 300 * US);
	requester_segment(h, 10, bytes);
	expect_silence(&h->a);
	harness_destroy(h);
}

/*
 * A status for a Resend request that our Ack overtook ends nothing, because the segment has
 * arrived. A status for a segment that is still missing is the end.
 */
static void
test_status_for_an_overtaken_resend(void **state)
{
	struct harness *h = *state;
	const uint32_t bytes = 50 * 192;
	uint8_t mad[MAD_LEN];

	requester_call(h);
	requester_segments(h, 1, 3, bytes);
	requester_segment(h, 5, bytes);
	expect_tx(&h->a, "12 Resend 4");
	requester_segments(h, 4, 6, bytes);
	put_be16(v1_mad(h, mad, 0x92, 0, 0, 0, 0) + MAD_OFF_STATUS, 0x001C);
	assert_int_equal(say(h, mad), VERDICT_MAD_DISCARDED);
	requester_segments(h, 7, 8, bytes);
	requester_segment(h, 10, bytes);
	expect_tx(&h->a, "12 Resend 9");
	/* it may come now, too, and twice if the network copied it */
	assert_int_equal(say(h, mad), VERDICT_MAD_DISCARDED);
	assert_int_equal(say(h, mad), VERDICT_MAD_DISCARDED);
	assert_int_equal(say(h, mad), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.status, 0x001C);
	expect_clean(h);
}

/*
 * By default a gap is asked for once, and again when the SegmentTimer ends: all of flight + process
 */
static void
test_resend_is_repeated_by_the_timer(void **state)
{
	struct harness *h = *state;
	const uint32_t bytes = 50 * 192;
	uint32_t n;

	requester_call(h);
	requester_segments(h, 1, 3, bytes);
	requester_segment(h, 5, bytes);
	expect_tx(&h->a, "12 Resend 4");
	for (n = 6; n < 20; n++) {
		pass(h, 1 * MS);
		requester_segment(h, n, bytes);
	}
	pass(h, SEGMENT_TIMEOUT - 1);
	expect_silence(&h->a);
	pass(h, 1);
	expect_tx(&h->a, "12 Resend 4");
}

/* Seed 000: a request is sent again when the ResponseTimer ends, not before */
static void
test_request_waits_for_its_timer(void **state)
{
	/* 2 x 4.096 us x 2^14 + 4.096 us x 2^10 */
	const uint64_t timeout = 138412032;
	struct harness *h =
		harness_create(&(struct harness_config){ .scripted = true, .subnet_timeout = 14 });
	unsigned int i;

	(void)state;
	requester_call(h);
	for (i = 0; i < 7; i++) {
		pass(h, timeout - 1);
		expect_silence(&h->a);
		pass(h, 1);
		expect_tx(&h->a, "12 single of 0");
	}
	pass(h, timeout);
	expect_silence(&h->a);
	assert_int_equal(h->done, 1);
	harness_destroy(h);
}

/* A5: segment < expected: the data are dropped, the Ack is repeated */
static void
test_duplicates(void **state)
{
	struct harness *h = *state;
	const uint32_t bytes = 10 * 192;

	requester_call(h);
	requester_segments(h, 1, 5, bytes);
	assert_int_equal(requester_segment(h, 3, bytes), VERDICT_MAD_DISCARDED);
	expect_tx(&h->a, "12 Ack 5 window 64");
	assert_int_equal(h->taken, 5 * 192);
	assert_int_equal(counters_of(&h->a).segments_received, 5);
}

/* A5: SegmentTimer: Resend(expected), seven times, then the end. flight + process between them */
static void
test_segment_timeout(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	requester_call(h);
	requester_segments(h, 1, 3, 10 * 192);
	for (i = 0; i < 7; i++) {
		pass(h, SEGMENT_TIMEOUT - 1);
		expect_silence(&h->a);
		pass(h, 1);
		expect_tx(&h->a, "12 Resend 4");
	}
	pass(h, SEGMENT_TIMEOUT - 1);
	assert_int_equal(h->done, 0);
	pass(h, 1);
	expect_silence(&h->a);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_TIMEOUT);
	assert_int_equal(h->result.bytes, 3 * 192);
	assert_int_equal(counters_of(&h->a).timeouts, 8);
	expect_clean(h);
}

/* Seven for one segment: the next has its own */
static void
test_resend_allowance_is_per_segment(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	requester_call(h);
	requester_segments(h, 1, 1, 10 * 192);
	for (i = 0; i < 7; i++)
		pass(h, SEGMENT_TIMEOUT);
	requester_segments(h, 2, 2, 10 * 192);
	for (i = 0; i < 7; i++)
		pass(h, SEGMENT_TIMEOUT);
	assert_int_equal(h->done, 0);
	pass(h, SEGMENT_TIMEOUT);
	assert_int_equal(h->done, 1);
	assert_int_equal(counters_of(&h->a).resend_sent, 14);
}

/* A5 IDLE: the request again each ResponseTimeout, seven times */
static void
test_request_retries(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	requester_call(h);
	for (i = 0; i < 7; i++) {
		pass(h, RESPONSE_TIMEOUT - 1);
		expect_silence(&h->a);
		pass(h, 1);
		assert_int_equal(get_be64(next_sent(&h->a) + MAD_OFF_TID), h->tid);
		expect_silence(&h->a);
	}
	pass(h, RESPONSE_TIMEOUT - 1);
	assert_int_equal(h->done, 0);
	pass(h, 1);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_TIMEOUT);
	assert_int_equal(h->result.resent, 7);
	assert_int_equal(h->result.elapsed, 8 * RESPONSE_TIMEOUT);
	expect_clean(h);
}

/* A5 IDLE: after a KeepAlive wait the SegmentTimeout; when it ends, repeat the request */
static void
test_keepalive_before_the_answer(void **state)
{
	struct harness *h = *state;

	requester_call(h);
	pass(h, RESPONSE_TIMEOUT - 1);
	assert_int_equal(say_v1(h, 0x92, SA1_KEEPALIVE, 0, 0, 0), VERDICT_DATAGRAM);
	pass(h, SEGMENT_TIMEOUT - 1);
	expect_silence(&h->a);
	pass(h, 1);
	expect_tx(&h->a, "12 single of 0");
	assert_int_equal(counters_of(&h->a).keepalive_received, 1);
	/* and the answer is taken */
	requester_segments(h, 1, 3, 400);
	assert_int_equal(h->done, 1);
}

/* A5 RECV: a KeepAlive restarts the SegmentTimer and advances nothing */
static void
test_keepalive_in_mid_stream(void **state)
{
	struct harness *h = *state;

	requester_call(h);
	requester_segments(h, 1, 2, 10 * 192);
	pass(h, SEGMENT_TIMEOUT - 1);
	say_v1(h, 0x92, SA1_KEEPALIVE, 0, 0, 0);
	pass(h, SEGMENT_TIMEOUT - 1);
	expect_silence(&h->a);
	requester_segments(h, 3, 3, 10 * 192);
	assert_int_equal(h->taken, 3 * 192);
}

/* Endless KeepAlives prolong a session at most by keepalive_total_ms, here one second */
static void
test_keepalive_is_bounded(void **state)
{
	struct harness *h = *state;
	unsigned int i;

	requester_call(h);
	for (i = 0; i < 1000; i++) {
		say_v1(h, 0x92, SA1_KEEPALIVE, 0, 0, 0);
		pass(h, 1 * MS);
	}
	assert_int_equal(h->done, 0);
	pass(h, 1 * MS);
	say_v1(h, 0x92, SA1_KEEPALIVE, 0, 0, 0);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_TIMEOUT);
	expect_clean(h);
}

/* A5, any state: a response with a status is the end */
static void
test_status_ends_it(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];

	requester_call(h);
	put_be16(v1_mad(h, mad, 0x92, 0, 0, 0, 0) + MAD_OFF_STATUS, 0x0300);
	assert_int_equal(say(h, mad), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_STATUS);
	assert_int_equal(h->result.status, 0x0300);
	expect_clean(h);

	h->done = 0;
	requester_call(h);
	requester_segments(h, 1, 3, 10 * 192);
	put_be16(v1_mad(h, mad, 0x92, 0, 0, 0, 0) + MAD_OFF_STATUS, 0x001C);
	say(h, mad);
	assert_int_equal(h->result.status, 0x001C);
	expect_clean(h);
}

/* A4: of a single-packet response PayloadLength counts when it is <= 192; no Ack */
static void
test_single_packet_answer(void **state)
{
	struct harness *h = *state;

	requester_call(h);
	say_v1(h, 0x92, 0, 0, 0, 64);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK);
	assert_int_equal(h->result.bytes, 0);
	expect_silence(&h->a);
	expect_clean(h);
}

/* A3: a series of one segment, "First+Last, 1", is accepted */
static void
test_series_of_one(void **state)
{
	struct harness *h = *state;

	requester_call(h);
	assert_int_equal(say_v1(h, 0x92, SA1_FIRST | SA1_LAST, 1, 100, 64), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.bytes, 100);
	expect_tx(&h->a, "12 Ack 1 window 64");
}

/* A4: the Last has 1..192 valid bytes */
static void
test_lying_last(void **state)
{
	struct harness *h = *state;

	requester_call(h);
	requester_segments(h, 1, 2, 10 * 192);
	say_v1(h, 0x92, SA1_LAST, 3, 193, 64);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_PROTOCOL);
	expect_clean(h);

	h->done = 0;
	h->taken = 0;
	requester_call(h);
	requester_segments(h, 1, 2, 10 * 192);
	say_v1(h, 0x92, SA1_LAST, 3, 0, 64);
	assert_int_equal(h->result.end, MAD_END_PROTOCOL);
	expect_clean(h);
}

/* A5: after the end the final Ack is repeated, for 8 ResponseTimeouts */
static void
test_linger(void **state)
{
	struct harness *h = *state;

	requester_call(h);
	requester_segments(h, 1, 3, 400);
	expect_tx(&h->a, "12 Ack 3 window 64");
	assert_string_equal(state_of(&h->a), "LINGER");
	pass(h, 8 * RESPONSE_TIMEOUT - 1);
	assert_int_equal(requester_segment(h, 3, 400), VERDICT_MAD_DISCARDED);
	expect_tx(&h->a, "12 Ack 3 window 64");
	pass(h, 1);
	assert_string_equal(state_of(&h->a), "none");
	assert_int_equal(requester_segment(h, 3, 400), VERDICT_MAD_UNMATCHED);
	expect_silence(&h->a);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->taken, 400);
}

/* A taker that refuses data ends the session; later packets belong to no session */
static void
test_taker_refuses(void **state)
{
	struct harness *h = *state;

	h->take_error = -ENOSPC;
	h->take_error_at = 200;
	requester_call(h);
	requester_segments(h, 1, 1, 10 * 192);
	assert_int_equal(requester_segment(h, 2, 10 * 192), VERDICT_MAD_REFUSED);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_REFUSED);
	assert_int_equal(h->result.error, -ENOSPC);
	assert_int_equal(requester_segment(h, 3, 10 * 192), VERDICT_MAD_UNMATCHED);
	expect_clean(h);
}

static void
test_cancel(void **state)
{
	struct harness *h = *state;
	mad_handle handle = requester_call(h);

	requester_segments(h, 1, 2, 10 * 192);
	assert_int_equal(mad_cancel(h->a.w, handle, h->now), 0);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_CANCELLED);
	assert_int_equal(mad_cancel(h->a.w, handle, h->now), -ENOENT);
	expect_clean(h);
}

/* Packets of another transaction, class or method belong to no session */
static void
test_spoofed_answers(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];

	requester_call(h);
	v1_mad(h, mad, 0x92, SA1_FIRST, 1, 400, 64);
	put_be64(mad + MAD_OFF_TID, h->tid ^ 1);
	assert_int_equal(say(h, mad), VERDICT_MAD_UNMATCHED);
	v1_mad(h, mad, 0x92, SA1_FIRST, 1, 400, 64);
	assert_int_equal(say_from(h, mad, 3, 1), VERDICT_MAD_UNMATCHED);
	assert_int_equal(say_from(h, mad, 2, 5), VERDICT_MAD_UNMATCHED);
	assert_int_equal(say_v1(h, 0x93, SA1_FIRST, 1, 400, 64), VERDICT_MAD_UNMATCHED);
	assert_string_equal(state_of(&h->a), "REQUESTED");
	assert_int_equal(h->taken, 0);
	requester_segments(h, 1, 3, 400);
	assert_int_equal(h->done, 1);
}

/* A table's request may be lost: two of its seven repeats are sent early */
static void
test_request_is_probed(void **state)
{
	/* 2 x 4.096 us x 2^14 + 4.096 us x 2^10 */
	const uint64_t timeout = 138412032, early = 30 * MS;
	struct harness *h = requester_early_harness(14);
	unsigned int i;

	(void)state;
	requester_call(h);
	pass(h, 10 * MS - 1);
	expect_silence(&h->a);
	pass(h, 1);
	expect_tx(&h->a, "12 single of 0");
	pass(h, 20 * MS - 1);
	expect_silence(&h->a);
	pass(h, 1);
	expect_tx(&h->a, "12 single of 0");
	pass(h, timeout - early - 1);
	expect_silence(&h->a);
	assert_int_equal(counters_of(&h->a).timeouts, 0);
	pass(h, 1);
	for (i = 1; i < 5; i++)
		pass(h, timeout);
	for (i = 0; i < 5; i++)
		assert_int_equal(next_sent(&h->a)[MAD_OFF_METHOD], 0x12);
	expect_silence(&h->a);
	assert_int_equal(h->done, 0);
	pass(h, timeout);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_TIMEOUT);
	assert_int_equal(counters_of(&h->a).timeouts, 6);
	assert_int_equal(counters_of(&h->a).probes, 2);
	assert_int_equal(h->result.resent, 7);
	harness_destroy(h);
}

/* After a KeepAlive the request has arrived: no more early repeats */
static void
test_keepalive_ends_request_probes(void **state)
{
	struct harness *h = requester_early_harness(14);

	(void)state;
	requester_call(h);
	pass(h, 5 * MS);
	say_v1(h, 0x92, SA1_KEEPALIVE, 0, 0, 0);
	/* SegmentTimeout: 67.1 ms + 4.2 ms */
	pass(h, 71303168 - 1);
	expect_silence(&h->a);
	pass(h, 1);
	expect_tx(&h->a, "12 single of 0");
	assert_int_equal(counters_of(&h->a).timeouts, 1);
	harness_destroy(h);
}

/* Requests that change something wait for the timer: some responders do not recognise repeats */
static void
test_set_is_not_probed(void **state)
{
	struct harness *h = requester_early_harness(14);
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	(void)state;
	call_init(&h->a, &c, mad, MAD_SET, MAD_METHOD_SESSION);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	skip_sent(&h->a);
	pass(h, 138412032 - 1);
	expect_silence(&h->a);
	pass(h, 1);
	expect_tx(&h->a, "02 single of 0");
	harness_destroy(h);
}

/* Nor more Resend requests than retries, if those are none */
static void
test_no_resend_without_retries(void **state)
{
	struct harness_config config = { .limits = harness_limits, .scripted = true };
	struct harness *h;
	unsigned int i;

	(void)state;
	config.limits.retries = 0;
	h = harness_create(&config);
	requester_call(h);
	requester_segment(h, 1, 20 * 192);
	for (i = 3; i < 12; i++) {
		requester_segment(h, i, 20 * 192);
		pass(h, 2 * MS);
	}
	expect_silence(&h->a);
	pass(h, SEGMENT_TIMEOUT);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_TIMEOUT);
	assert_int_equal(counters_of(&h->a).resend_sent, 0);
	harness_destroy(h);
}

#define T(test) cmocka_unit_test_setup_teardown(test, scripted_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_request),
		T(test_table_arrives),
		T(test_ack_each_window),
		T(test_smaller_window_of_the_responder),
		T(test_larger_window_of_the_responder),
		T(test_segments_beyond_the_window),
		T(test_recover),
		T(test_first_segment_lost),
		cmocka_unit_test(test_resend_repeated_by_round_trip),
		T(test_status_for_an_overtaken_resend),
		T(test_resend_is_repeated_by_the_timer),
		cmocka_unit_test(test_request_waits_for_its_timer),
		T(test_duplicates),
		T(test_segment_timeout),
		T(test_resend_allowance_is_per_segment),
		T(test_request_retries),
		T(test_keepalive_before_the_answer),
		T(test_keepalive_in_mid_stream),
		T(test_keepalive_is_bounded),
		T(test_status_ends_it),
		T(test_single_packet_answer),
		T(test_series_of_one),
		T(test_lying_last),
		T(test_linger),
		T(test_taker_refuses),
		T(test_cancel),
		T(test_spoofed_answers),
		cmocka_unit_test(test_request_is_probed),
		cmocka_unit_test(test_keepalive_ends_request_probes),
		cmocka_unit_test(test_set_is_not_probed),
		cmocka_unit_test(test_no_resend_without_retries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
