/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RMPP, the receiver's state machine, as requester and as responder: sa-multipacket B4, B6 and B7.
 */

#include <errno.h>
#include <string.h>

#include "rmpp_peer.h"

#define RTT (100 * US)

static void
expect_data(const struct rmpp_peer *p, const uint8_t *data, uint64_t len)
{
	uint64_t i;

	for (i = 0; i < len; i++)
		if (data[i] != pattern_at(i))
			fail_msg("byte %u differs", (unsigned int)i);
	(void)p;
}

static void
rmpp_receive_expect_answer(struct rmpp_peer *p, uint64_t len)
{
	assert_int_equal(p->done, 1);
	assert_int_equal(p->result.end, MAD_END_OK);
	assert_int_equal(p->result.bytes, len);
	assert_int_equal(p->taken, len);
	expect_data(p, p->data, len);
	expect_counter(p, sessions_completed, 1);
	expect_idle(p);
}

static void
expect_failure(struct rmpp_peer *p, enum mad_end end, uint8_t rmpp_status)
{
	assert_int_equal(p->done, 1);
	assert_int_equal(p->result.end, end);
	assert_int_equal(p->result.rmpp_status, rmpp_status);
	expect_counter(p, sessions_failed, 1);
	expect_idle(p);
}

/* Segments first to last of an answer to our GetTable, which has `total` and ends with `tail`. */
static void
rmpp_receive_answer(struct rmpp_peer *p, uint32_t first, uint32_t last, uint32_t total,
	uint32_t tail)
{
	for (; first <= last; first++)
		assert_int_equal(in_data(p, 0x92, first, total, tail), VERDICT_DATAGRAM);
}

/* We have asked, and segment 1 of the answer has come. */
static void
table_begun(struct rmpp_peer *p, uint32_t total)
{
	assert_int_equal(call_table(p, NULL), 0);
	rmpp_receive_answer(p, 1, 1, total, 200);
	expect_tx(p, "GetTable", "ACK 1 17");
}

/* memory for segments in flight, without the sessions themselves */
static uint64_t
memory_used(const struct rmpp_peer *p)
{
	uint64_t used, total;

	mad_worker_memory(p->w, &used, &total);
	return used;
}

/* --- B6: when an ACK is sent, and what it says --- */

static void
test_segment_1_is_acknowledged(void **state)
{
	struct rmpp_peer *p = *state;
	uint8_t want[MAD_LEN];

	call_table(p, NULL);
	rmpp_receive_answer(p, 1, 1, 40, 200);
	expect_tx(p, "GetTable", "ACK 1 17");
	/* the received header back, R toggled; type 2; Active only; no data */
	make_rmpp(p, want, 0x12, 2, 0, 0, 1, 17);
	assert_memory_equal(sent_mad(p, 1), want, MAD_LEN);
	expect_counter(p, ack_sent, 1);
}

static void
test_nothing_is_acknowledged_in_mid_window(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	rmpp_receive_answer(p, 2, 16, 40, 200);
	expect_silence(p);
}

static void
test_end_of_the_window_is_acknowledged(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	rmpp_receive_answer(p, 2, 17, 40, 200);
	expect_tx(p, "ACK 17 33");
	rmpp_receive_answer(p, 18, 33, 40, 200);
	expect_tx(p, "ACK 33 49");
}

static void
test_last_is_acknowledged_and_ends(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 3);
	rmpp_receive_answer(p, 2, 3, 3, 112);
	expect_tx(p, "ACK 3 19");
	rmpp_receive_expect_answer(p, 512);
	assert_int_equal(p->result.segments, 3);
	assert_int_equal(p->result_mad[3], 0x92);
}

/* B4: the Last segment's PayloadLength counts its bytes, down to a single one */
static void
test_last_segment_of_one_byte_is_taken(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 2);
	rmpp_receive_answer(p, 2, 2, 2, 1);
	expect_tx(p, "ACK 2 18");
	rmpp_receive_expect_answer(p, 201);
}

static void
test_window_step_is_configured(void **state)
{
	struct mad_limits limits = mad_limits_default;
	struct rmpp_peer *p;

	(void)state;
	limits.rmpp_window = 4;
	p = rmpp_peer_create(&limits);
	call_table(p, NULL);
	rmpp_receive_answer(p, 1, 5, 40, 200);
	expect_tx(p, "GetTable", "ACK 1 5", "ACK 5 9");
	rmpp_peer_destroy(p);
}

static void
test_single_segment(void **state)
{
	struct rmpp_peer *p = *state;

	call_table(p, NULL);
	rmpp_receive_answer(p, 1, 1, 1, 112);
	expect_tx(p, "GetTable", "ACK 1 17");
	rmpp_receive_expect_answer(p, 112);
}

/* B7: no match is success with no record, PayloadLength 20 */
static void
test_answer_without_a_record(void **state)
{
	struct rmpp_peer *p = *state;

	call_table(p, NULL);
	rmpp_receive_answer(p, 1, 1, 1, 0);
	rmpp_receive_expect_answer(p, 0);
}

/* --- B6: duplicates --- */

static void
test_duplicate_is_acknowledged_again(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	assert_int_equal(in_data(p, 0x92, 1, 40, 200), VERDICT_MAD_DISCARDED);
	expect_tx(p, "ACK 1 17");
	rmpp_receive_answer(p, 2, 17, 40, 200);
	expect_tx(p, "ACK 17 33");
	assert_int_equal(in_data(p, 0x92, 9, 40, 200), VERDICT_MAD_DISCARDED);
	expect_tx(p, "ACK 17 33");
	expect_counter(p, segments_discarded, 2);
	assert_int_equal(p->taken, 17 * 200);
}

/* the last ACK does not cover it: its sender learns at the window's end */
static void
test_duplicate_in_mid_window_is_dropped(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	rmpp_receive_answer(p, 2, 5, 40, 200);
	assert_int_equal(in_data(p, 0x92, 4, 40, 200), VERDICT_MAD_DISCARDED);
	expect_silence(p);
}

static void
test_finished_context_acknowledges_again_for_10_s(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 2);
	rmpp_receive_answer(p, 2, 2, 2, 50);
	expect_tx(p, "ACK 2 18");
	pass(p, 9990 * MS);
	assert_int_equal(in_data(p, 0x92, 2, 2, 50), VERDICT_MAD_DISCARDED);
	expect_tx(p, "ACK 2 18");
	assert_int_equal(p->done, 1);
	pass(p, 20 * MS);
	assert_int_equal(in_data(p, 0x92, 2, 2, 50), VERDICT_MAD_UNMATCHED);
	expect_silence(p);
}

/* --- B6: order --- */

static void
test_segments_out_of_order_inside_the_window_are_kept(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 17);
	rmpp_receive_answer(p, 3, 10, 17, 30);
	assert_int_equal(p->taken, 200);
	assert_string_equal(session_of(p).state, "RECOVER");
	rmpp_receive_answer(p, 2, 2, 17, 30);
	assert_int_equal(p->taken, 2000);
	assert_string_equal(session_of(p).state, "RECV");
	rmpp_receive_answer(p, 17, 17, 17, 30);
	rmpp_receive_answer(p, 16, 16, 17, 30);
	rmpp_receive_answer(p, 11, 15, 17, 30);
	rmpp_receive_expect_answer(p, 3230);
	expect_counter(p, segments_discarded, 0);
	expect_counter(p, segments_received, 17);
}

/* any order of a whole window */
static void
test_whole_window_backwards(void **state)
{
	struct rmpp_peer *p = *state;
	uint32_t n;

	table_begun(p, 33);
	for (n = 17; n >= 2; n--)
		assert_int_equal(in_data(p, 0x92, n, 33, 7), VERDICT_DATAGRAM);
	for (n = 33; n >= 18; n--)
		assert_int_equal(in_data(p, 0x92, n, 33, 7), VERDICT_DATAGRAM);
	rmpp_receive_expect_answer(p, 32 * 200 + 7);
}

static void
test_segment_beyond_the_window_is_dropped(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	assert_int_equal(in_data(p, 0x92, 18, 40, 200), VERDICT_MAD_DISCARDED);
	assert_int_equal(in_rmpp(p, 0x92, 1, 0, 0, UINT32_MAX, 0), VERDICT_MAD_DISCARDED);
	expect_silence(p);
	rmpp_receive_answer(p, 2, 17, 40, 200);
	expect_tx(p, "ACK 17 33");
	assert_int_equal(p->taken, 17 * 200);
}

/* before segment 1 the window is 1 */
static void
test_later_segment_before_the_first_is_dropped(void **state)
{
	struct rmpp_peer *p = *state;

	call_table(p, NULL);
	assert_int_equal(in_data(p, 0x92, 2, 40, 200), VERDICT_MAD_DISCARDED);
	expect_tx(p, "GetTable");
	assert_int_equal(p->taken, 0);
}

static void
test_gap_is_told_at_once_and_once(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	rmpp_receive_answer(p, 2, 4, 40, 200);
	expect_silence(p);
	rmpp_receive_answer(p, 6, 6, 40, 200); /* 5 is missing */
	expect_tx(p, "ACK 4 17"); /* no larger window */
	rmpp_receive_answer(p, 7, 17, 40, 200);
	expect_silence(p);
	rmpp_receive_answer(p, 5, 5, 40, 200);
	expect_tx(p, "ACK 17 33");
	assert_int_equal(p->taken, 17 * 200);
}

static void
test_gap_is_told_again_after_a_round_trip(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	pass(p, RTT);
	rmpp_receive_answer(p, 2, 4, 40, 200); /* answers our ACK, so a round trip is known */
	rmpp_receive_answer(p, 6, 6, 40, 200);
	expect_tx(p, "ACK 4 17");
	pass(p, RTT / 2);
	rmpp_receive_answer(p, 7, 7, 40, 200);
	expect_silence(p);
	pass(p, RTT);
	rmpp_receive_answer(p, 8, 8, 40, 200);
	expect_tx(p, "ACK 4 17");
}

static void
test_second_gap_is_told_when_the_first_is_filled(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	rmpp_receive_answer(p, 3, 3, 40, 200); /* 2 */
	expect_tx(p, "ACK 1 17");
	rmpp_receive_answer(p, 6, 6, 40, 200); /* 4 and 5 */
	expect_silence(p);
	rmpp_receive_answer(p, 2, 2, 40, 200);
	expect_tx(p, "ACK 3 17");
}

/* the sender probes with its last segment, which we have: tell it what is missing */
static void
test_probe_of_a_held_segment_is_answered(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	rmpp_receive_answer(p, 3, 17, 40, 200);
	expect_tx(p, "ACK 1 17");
	assert_int_equal(in_data(p, 0x92, 17, 40, 200), VERDICT_MAD_DISCARDED);
	expect_tx(p, "ACK 1 17");
}

/* no memory: segments out of order are dropped and must be sent again */
static void
test_without_memory_segments_out_of_order_are_dropped(void **state)
{
	struct mad_limits limits = mad_limits_default;
	struct rmpp_peer *p;

	(void)state;
	limits.max_bytes = 0;
	p = rmpp_peer_create(&limits);
	table_begun(p, 5);
	assert_int_equal(in_data(p, 0x92, 3, 5, 9), VERDICT_MAD_DISCARDED);
	expect_tx(p, "ACK 1 17");
	rmpp_receive_answer(p, 2, 5, 5, 9);
	rmpp_receive_expect_answer(p, 809);
	rmpp_peer_destroy(p);
}

static void
test_memory_of_held_segments_is_given_back(void **state)
{
	struct rmpp_peer *p = *state;
	uint64_t before;

	table_begun(p, 40);
	before = memory_used(p);
	rmpp_receive_answer(p, 3, 17, 40, 200);
	assert_true(memory_used(p) >= before + 15 * 200);
	rmpp_receive_answer(p, 2, 2, 40, 200);
	assert_int_equal(memory_used(p), before);
	rmpp_receive_answer(p, 19, 33, 40, 200);
	in_rmpp(p, 0x92, 4, 0, 127, 0, 0); /* the peer aborts */
	assert_true(memory_used(p) < before);
	expect_failure(p, MAD_END_ABORTED, 127);
}

/* --- B4: lengths --- */

static void
test_total_of_the_first_segment_is_only_a_hint(void **state)
{
	static const uint32_t totals[] = { 0, 1, 20, 221, 460, UINT32_MAX };
	struct rmpp_peer *p = *state;
	unsigned int i;

	for (i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		call_table(p, NULL);
		assert_int_equal(in_rmpp(p, 0x92, 1, 2, 0, 1, totals[i]), VERDICT_DATAGRAM);
		assert_int_equal(in_rmpp(p, 0x92, 1, 4, 0, 2, 20 + 40), VERDICT_DATAGRAM);
		assert_int_equal(p->done, 1);
		assert_int_equal(p->result.end, MAD_END_OK);
		assert_int_equal(p->taken, 240);
	}
}

static void
test_last_payload_length_over_220_is_aborted_119(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 3);
	in_rmpp(p, 0x92, 1, 4, 0, 2, 221);
	expect_tx(p, "ABORT 119");
	assert_int_equal(sent_mad(p, 0)[3], 0x12);
	expect_abort(p, 0, 119, 1);
	expect_failure(p, MAD_END_PROTOCOL, 119);
}

static void
test_last_payload_length_below_the_class_header_is_aborted_119(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 3);
	in_rmpp(p, 0x92, 1, 4, 0, 2, 19);
	expect_tx(p, "ABORT 119");
	expect_failure(p, MAD_END_PROTOCOL, 119);
}

static void
test_second_last_is_aborted_119(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 9);
	rmpp_receive_answer(p, 9, 9, 9, 100);
	forget_sent(p);
	in_rmpp(p, 0x92, 1, 4, 0, 5, 120);
	expect_tx(p, "ABORT 119");
	expect_failure(p, MAD_END_PROTOCOL, 119);
}

static void
test_last_before_segments_that_came_is_aborted_119(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 9);
	rmpp_receive_answer(p, 7, 7, 9, 100);
	forget_sent(p);
	in_rmpp(p, 0x92, 1, 4, 0, 5, 120);
	expect_tx(p, "ABORT 119");
	expect_failure(p, MAD_END_PROTOCOL, 119);
}

static void
test_segment_behind_the_last_is_dropped(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 5);
	rmpp_receive_answer(p, 5, 5, 5, 10);
	assert_int_equal(in_rmpp(p, 0x92, 1, 0, 0, 7, 0), VERDICT_MAD_DISCARDED);
	rmpp_receive_answer(p, 2, 4, 5, 10);
	rmpp_receive_expect_answer(p, 810);
}

/* --- B6: the overall timer --- */

static void
test_incomplete_message_is_aborted_118(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	pass(p, 39999 * MS);
	expect_silence(p);
	pass(p, 2 * MS);
	expect_tx(p, "ABORT 118");
	expect_abort(p, 0, 118, 1);
	expect_failure(p, MAD_END_TIMEOUT, 118);
}

static void
test_overall_time_is_not_renewed_by_segments(void **state)
{
	struct rmpp_peer *p = *state;
	uint32_t n;

	table_begun(p, 900);
	for (n = 2; n <= 41; n++) {
		in_data(p, 0x92, n, 900, 200);
		pass(p, 1000 * MS);
	}
	assert_string_equal(p->sent[p->sent_count - 1].text, "ABORT 118");
	expect_failure(p, MAD_END_TIMEOUT, 118);
}

/* a long table is extended for each 1,024 segments */
static void
test_long_message_has_more_time(void **state)
{
	struct rmpp_peer *p = *state;
	uint8_t mad[MAD_LEN];
	uint32_t n;

	call_table(p, NULL);
	p->taken = 0;
	for (n = 1; n <= 1200; n++) {
		make_rmpp(p, mad, 0x92, 1, n == 1 ? 2 : 0, 0, n, 0);
		/* the buffer of the test is small */
		if (p->taken > sizeof(p->data) - 200)
			break;
		assert_int_equal(in_mad(p, mad), VERDICT_DATAGRAM);
		pass(p, 30 * MS);
	}
	expect_counter(p, sessions_failed, 0);
}

/* --- ends by the peer or by us --- */

static void
test_stop_and_abort_end_our_call_and_are_not_answered(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	assert_int_equal(in_rmpp(p, 0x92, 3, 0, 1, 0, 0), VERDICT_DATAGRAM);
	expect_silence(p);
	expect_abort(p, 1, 1, 1);
	expect_failure(p, MAD_END_ABORTED, 1);
}

static void
test_answer_with_a_status_in_mid_stream_ends_it(void **state)
{
	struct rmpp_peer *p = *state;
	uint8_t mad[MAD_LEN];

	table_begun(p, 40);
	make_mad(p, mad, 0x92);
	assert_int_equal(in_mad(p, mad), VERDICT_MAD_DISCARDED);
	put_be16(mad + 4, 0x0100);
	assert_int_equal(in_mad(p, mad), VERDICT_DATAGRAM);
	assert_int_equal(p->result.status, 0x0100);
	expect_failure(p, MAD_END_STATUS, 0);
}

static void
test_status_in_a_stream_is_its_end(void **state)
{
	struct rmpp_peer *p = *state;
	uint8_t mad[MAD_LEN];

	call_table(p, NULL);
	make_rmpp(p, mad, 0x92, 1, 2 | 4, 0, 1, 20);
	put_be16(mad + 4, 0x0300);
	in_mad(p, mad);
	expect_tx(p, "GetTable", "ACK 1 17");
	assert_int_equal(sent_mad(p, 1)[4], 0);
	assert_int_equal(p->result.status, 0x0300);
	expect_failure(p, MAD_END_STATUS, 0);
}

static void
test_taker_without_room_stops(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	p->refuse = -ENOSPC;
	in_data(p, 0x92, 2, 40, 200);
	expect_tx(p, "STOP 1");
	assert_int_equal(p->result.error, -ENOSPC);
	expect_failure(p, MAD_END_REFUSED, 1);
}

static void
test_taker_that_cannot_use_it_aborts_127(void **state)
{
	struct rmpp_peer *p = *state;

	table_begun(p, 40);
	rmpp_receive_answer(p, 3, 17, 40, 200);
	forget_sent(p);
	p->refuse = -EINVAL;
	in_data(p, 0x92, 2, 40, 200);
	expect_tx(p, "ABORT 127");
	assert_int_equal(p->result.error, -EINVAL);
	expect_failure(p, MAD_END_REFUSED, 127);
}

static void
test_cancelled_call_aborts_127(void **state)
{
	struct rmpp_peer *p = *state;
	mad_handle h;

	call_table(p, &h);
	rmpp_receive_answer(p, 1, 1, 40, 200);
	forget_sent(p);
	assert_int_equal(mad_cancel(p->w, h, p->now), 0);
	expect_tx(p, "ABORT 127");
	expect_failure(p, MAD_END_CANCELLED, 127);
	assert_int_equal(in_data(p, 0x92, 2, 40, 200), VERDICT_MAD_UNMATCHED);
}

/* The last packet waits for the sink, but the caller is told at once */
static void
test_cancelled_while_the_abort_waits(void **state)
{
	struct rmpp_peer *p = *state;
	mad_handle h;

	call_table(p, &h);
	rmpp_receive_answer(p, 1, 1, 40, 200);
	forget_sent(p);
	p->room = 0;
	in_rmpp(p, 0x92, 9, 0, 0, 2, 0); /* no such type */
	assert_int_equal(p->done, 0);
	assert_int_equal(mad_cancel(p->w, h, p->now), 0);
	expect_failure(p, MAD_END_CANCELLED, 0);
	assert_int_equal(mad_cancel(p->w, h, p->now), -ENOENT);
	p->room = UINT32_MAX;
	run(p);
	assert_int_equal(p->done, 1);
}

static void
test_cancelled_request_without_an_answer_is_silent(void **state)
{
	struct rmpp_peer *p = *state;
	mad_handle h;

	call_table(p, &h);
	forget_sent(p);
	assert_int_equal(mad_cancel(p->w, h, p->now), 0);
	expect_silence(p);
	expect_failure(p, MAD_END_CANCELLED, 0);
}

/* --- as responder --- */

static void
test_request_of_many_packets_reaches_the_agent_whole(void **state)
{
	struct rmpp_peer *p = *state;
	uint32_t n;

	p->outcome = MAD_LATER;
	for (n = 1; n <= 20; n++)
		assert_int_equal(in_data(p, 0x14, n, 20, 50), VERDICT_DATAGRAM);
	expect_tx(p, "ACK 1 17", "ACK 17 33", "ACK 20 36");
	assert_int_equal(sent_mad(p, 0)[3], 0x94);
	assert_int_equal(sent_mad(p, 2)[3], 0x94);
	assert_int_equal(p->requests, 1);
	assert_int_equal(p->body_length, 3850);
	expect_data(p, p->body, 3850);
	assert_string_equal(session_of(p).state, "PREP");
	/* repeated segments make no second request */
	assert_int_equal(in_data(p, 0x14, 20, 20, 50), VERDICT_MAD_DISCARDED);
	expect_tx(p, "ACK 20 36");
	assert_int_equal(p->requests, 1);
}

static void
test_request_out_of_order_goes_to_its_place(void **state)
{
	struct rmpp_peer *p = *state;
	uint32_t n;

	p->outcome = MAD_LATER;
	in_data(p, 0x14, 1, 17, 3);
	for (n = 17; n >= 2; n--)
		assert_int_equal(in_data(p, 0x14, n, 17, 3), VERDICT_DATAGRAM);
	assert_int_equal(p->body_length, 3203);
	expect_data(p, p->body, 3203);
	expect_tx(p, "ACK 1 17", "ACK 1 17", "ACK 17 33");
}

/* double-sided: after the last ACK the reply starts at segment 1 */
static void
test_reply_follows_the_last_ack(void **state)
{
	struct rmpp_peer *p = *state;

	p->length = 500;
	in_data(p, 0x14, 1, 1, 50);
	expect_tx(p, "ACK 1 17", "DATA 1 First");
	assert_int_equal(sent_mad(p, 1)[3], 0x94);
	in_ack(p, 0x14, 0, 1); /* the requester is ready */
	forget_sent(p);
	in_ack(p, 0x14, 1, 17);
	expect_tx(p, "DATA 2", "DATA 3 Last");
	in_ack(p, 0x14, 3, 19);
	expect_counter(p, sessions_completed, 1);
	expect_idle(p);
}

static void
test_requester_takes_the_reply_to_its_stream(void **state)
{
	struct rmpp_peer *p = *state;

	call_multi(p, 450);
	in_ack(p, 0x94, 1, 17);
	in_ack(p, 0x94, 3, 19);
	forget_sent(p);
	in_data(p, 0x94, 1, 2, 60);
	expect_tx(p, "ACK 1 17");
	assert_int_equal(sent_mad(p, 0)[3], 0x14);
	in_data(p, 0x94, 2, 2, 60);
	expect_tx(p, "ACK 2 18");
	rmpp_receive_expect_answer(p, 260);
	assert_int_equal(p->releases, 1);
}

/* the last ACK of our request was lost, but the reply proves that the request arrived */
static void
test_reply_stands_for_the_last_ack(void **state)
{
	struct rmpp_peer *p = *state;

	call_multi(p, 450);
	in_ack(p, 0x94, 1, 17);
	forget_sent(p);
	in_data(p, 0x94, 1, 1, 60);
	expect_tx(p, "ACK 1 17");
	rmpp_receive_expect_answer(p, 60);
	pass(p, 100 * MS);
	expect_silence(p);
}

static void
test_request_without_memory_is_stopped(void **state)
{
	struct mad_limits limits = mad_limits_default;
	struct rmpp_peer *p;
	uint32_t n;

	(void)state;
	limits.max_bytes = 2 * 4096; /* one for the list, one for data */
	p = rmpp_peer_create(&limits);
	for (n = 1; n <= 21; n++) /* 20 * 200 < 4096 < 21 * 200 */
		in_data(p, 0x14, n, 40, 200);
	expect_tx(p, "ACK 1 17", "ACK 17 33", "STOP 1");
	assert_int_equal(sent_mad(p, 2)[3], 0x94);
	expect_abort(p, 0, 1, 1);
	assert_int_equal(p->requests, 0);
	expect_counter(p, sessions_failed, 1);
	expect_counter(p, sessions_refused, 1);
	assert_int_equal(memory_used(p), 0);
	expect_idle(p);
	rmpp_peer_destroy(p);
}

static void
test_request_without_a_session_is_stopped_or_told_no_resources(void **state)
{
	struct mad_limits limits = mad_limits_default;
	struct rmpp_peer *p;

	(void)state;
	limits.max_sessions = 1;
	p = rmpp_peer_create(&limits);
	call_table(p, NULL);
	forget_sent(p);
	p->tid = TID + 1;
	assert_int_equal(in_data(p, 0x14, 1, 40, 200), VERDICT_MAD_REFUSED);
	assert_int_equal(in_get_table(p), VERDICT_MAD_REFUSED);
	expect_tx(p, "STOP 1", "GetTableResp 0100");
	expect_counter(p, sessions_refused, 2);
	rmpp_peer_destroy(p);
}

/* B7: errors are answered without RMPP; a repeated request gets the answer again */
static void
test_status_is_answered_without_rmpp_and_again(void **state)
{
	struct rmpp_peer *p = *state;

	p->outcome = MAD_ANSWER;
	p->status = 0x0200;
	in_get_table(p);
	expect_tx(p, "GetTableResp 0200");
	assert_int_equal(sent_mad(p, 0)[24], 0);
	assert_int_equal(sent_mad(p, 0)[26], 0);
	in_get_table(p);
	expect_tx(p, "GetTableResp 0200");
	assert_int_equal(p->requests, 1);
	expect_counter(p, repeated_requests, 1);
	expect_counter(p, sessions_completed, 1);
	expect_idle(p);
}

/* It was not executed: a repeat is another try. */
static void
test_no_resources_is_not_kept(void **state)
{
	struct rmpp_peer *p = *state;

	p->outcome = MAD_ANSWER;
	p->status = 0x0100;
	in_get_table(p);
	in_get_table(p);
	expect_tx(p, "GetTableResp 0100", "GetTableResp 0100");
	assert_int_equal(p->requests, 2);
	expect_counter(p, repeated_requests, 0);
	expect_idle(p);
}

static void
test_incomplete_request_is_aborted_118(void **state)
{
	struct rmpp_peer *p = *state;

	in_data(p, 0x14, 1, 40, 200);
	in_data(p, 0x14, 3, 40, 200);
	forget_sent(p);
	pass(p, 40001 * MS);
	expect_tx(p, "ABORT 118");
	assert_int_equal(sent_mad(p, 0)[3], 0x94);
	assert_int_equal(p->requests, 0);
	expect_counter(p, sessions_failed, 1);
	assert_int_equal(memory_used(p), 0);
	expect_idle(p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rmpp_peer_setup, rmpp_peer_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_segment_1_is_acknowledged),
		T(test_nothing_is_acknowledged_in_mid_window),
		T(test_end_of_the_window_is_acknowledged),
		T(test_last_is_acknowledged_and_ends),
		T(test_last_segment_of_one_byte_is_taken),
		T(test_window_step_is_configured),
		T(test_single_segment),
		T(test_answer_without_a_record),
		T(test_duplicate_is_acknowledged_again),
		T(test_duplicate_in_mid_window_is_dropped),
		T(test_finished_context_acknowledges_again_for_10_s),
		T(test_segments_out_of_order_inside_the_window_are_kept),
		T(test_whole_window_backwards),
		T(test_segment_beyond_the_window_is_dropped),
		T(test_later_segment_before_the_first_is_dropped),
		T(test_gap_is_told_at_once_and_once),
		T(test_gap_is_told_again_after_a_round_trip),
		T(test_second_gap_is_told_when_the_first_is_filled),
		T(test_probe_of_a_held_segment_is_answered),
		T(test_without_memory_segments_out_of_order_are_dropped),
		T(test_memory_of_held_segments_is_given_back),
		T(test_total_of_the_first_segment_is_only_a_hint),
		T(test_last_payload_length_over_220_is_aborted_119),
		T(test_last_payload_length_below_the_class_header_is_aborted_119),
		T(test_second_last_is_aborted_119),
		T(test_last_before_segments_that_came_is_aborted_119),
		T(test_segment_behind_the_last_is_dropped),
		T(test_incomplete_message_is_aborted_118),
		T(test_overall_time_is_not_renewed_by_segments),
		T(test_long_message_has_more_time),
		T(test_stop_and_abort_end_our_call_and_are_not_answered),
		T(test_answer_with_a_status_in_mid_stream_ends_it),
		T(test_status_in_a_stream_is_its_end),
		T(test_taker_without_room_stops),
		T(test_taker_that_cannot_use_it_aborts_127),
		T(test_cancelled_call_aborts_127),
		T(test_cancelled_while_the_abort_waits),
		T(test_cancelled_request_without_an_answer_is_silent),
		T(test_request_of_many_packets_reaches_the_agent_whole),
		T(test_request_out_of_order_goes_to_its_place),
		T(test_reply_follows_the_last_ack),
		T(test_requester_takes_the_reply_to_its_stream),
		T(test_reply_stands_for_the_last_ack),
		T(test_request_without_memory_is_stopped),
		T(test_request_without_a_session_is_stopped_or_told_no_resources),
		T(test_status_is_answered_without_rmpp_and_again),
		T(test_no_resources_is_not_kept),
		T(test_incomplete_request_is_aborted_118),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
