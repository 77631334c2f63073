/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RMPP, the sender's state machine: sa-multipacket B4 and B5, and the cost of a lost packet.
 */

#include <string.h>

#include "rmpp_peer.h"

#define RTT (100 * US)

/* Answer a GetTable with this many bytes; segment 1 is sent. */
static void
rmpp_send_table(struct rmpp_peer *p, uint64_t length)
{
	p->length = length;
	assert_int_equal(in_get_table(p), VERDICT_DATAGRAM);
}

/* The same of n whole segments, the first acknowledged after a round trip, window up to `end`. */
static void
table_open(struct rmpp_peer *p, uint32_t n, uint32_t end)
{
	rmpp_send_table(p, (uint64_t)n * 200);
	expect_tx(p, "DATA 1 First");
	pass(p, RTT);
	in_ack(p, 0x12, 1, end);
}

static void
expect_failed(struct rmpp_peer *p)
{
	expect_counter(p, sessions_failed, 1);
	expect_counter(p, sessions_completed, 0);
	assert_int_equal(p->releases, 1);
	expect_idle(p);
}

/* --- B4: PayloadLength --- */

static void
test_payload_length_counts_the_class_header_in_every_segment(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 450);
	expect_tx(p, "DATA 1 First");
	assert_int_equal(get_be32(sent_mad(p, 0) + 32), 3 * 20 + 450);
	in_ack(p, 0x12, 1, 17);
	expect_tx(p, "DATA 2", "DATA 3 Last");
	assert_int_equal(get_be32(sent_mad(p, 0) + 32), 0);
	assert_int_equal(get_be32(sent_mad(p, 1) + 32), 20 + 50);
}

static void
test_payload_length_of_a_single_segment_is_the_last_rule(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 112);
	expect_tx(p, "DATA 1 First Last");
	assert_int_equal(get_be32(sent_mad(p, 0) + 32), 20 + 112);
}

static void
test_payload_length_of_no_record_is_20(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 0);
	expect_tx(p, "DATA 1 First Last");
	assert_int_equal(get_be32(sent_mad(p, 0) + 32), 20);
}

static void
test_payload_length_of_full_segments(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 400);
	assert_int_equal(get_be32(p->sent[0].mad + 32), 440);
	in_ack(p, 0x12, 1, 17);
	expect_tx(p, "DATA 1 First", "DATA 2 Last");
	assert_int_equal(get_be32(sent_mad(p, 1) + 32), 220);
}

/* 20 * N + records beyond 32 bits: 0, not known */
static void
test_payload_length_that_no_field_holds_is_not_known(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, UINT64_C(4294967295));
	expect_tx(p, "DATA 1 First");
	assert_int_equal(get_be32(sent_mad(p, 0) + 32), 0);
}

/* B1: every byte of a segment */
static void
test_segments_carry_the_header_and_their_share_of_the_data(void **state)
{
	struct rmpp_peer *p = *state;
	uint8_t want[MAD_LEN];
	unsigned int i;

	rmpp_send_table(p, 250);
	in_ack(p, 0x12, 1, 17);
	expect_tx(p, "DATA 1 First", "DATA 2 Last");
	make_mad(p, want, 0x92);
	want[24] = 1;
	want[25] = 1;
	want[26] = 0x1F << 3 | 1 | 2; /* no RRespTime; Active, First */
	put_be32(want + 28, 1);
	put_be32(want + 32, 2 * 20 + 250);
	for (i = 0; i < 200; i++)
		want[56 + i] = pattern_at(i);
	assert_memory_equal(sent_mad(p, 0), want, MAD_LEN);
	memset(want + 56, 0, 200);
	want[26] = 0x1F << 3 | 1 | 4;
	put_be32(want + 28, 2);
	put_be32(want + 32, 20 + 50);
	for (i = 0; i < 50; i++)
		want[56 + i] = pattern_at(200 + i);
	assert_memory_equal(sent_mad(p, 1), want, MAD_LEN);
}

/* --- B5: windows --- */

static void
test_first_window_is_one_segment(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 4000);
	expect_tx(p, "DATA 1 First");
	assert_string_equal(session_of(p).state, "WAIT");
}

static void
test_window_ends_at_new_window_last(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	expect_run(p, 2, 17);
	expect_silence(p);
	in_ack(p, 0x12, 17, 33);
	expect_run(p, 18, 33);
	expect_silence(p);
}

/* what an operator sees of a session: the segments that the receiver still takes */
static void
test_window_of_a_session_ends_at_new_window_last(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	assert_int_equal(session_of(p).window, 16);
	in_ack(p, 0x12, 17, 27);
	assert_int_equal(session_of(p).window, 10);
}

static void
test_sender_stops_at_the_last_segment(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 3, 17);
	expect_tx(p, "DATA 2", "DATA 3 Last");
}

static void
test_all_acknowledged_ends_the_session(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 3, 17);
	forget_sent(p);
	assert_int_equal(in_ack(p, 0x12, 3, 19), VERDICT_DATAGRAM);
	expect_silence(p);
	assert_int_equal(p->releases, 1);
	expect_counter(p, sessions_completed, 1);
	expect_counter(p, segments_sent, 3);
	expect_counter(p, segments_resent, 0);
	expect_counter(p, ack_received, 2);
	expect_idle(p);
	pass(p, 1000 * MS);
	expect_silence(p);
	expect_counter(p, timeouts, 0);
	assert_false(mad_pending(p->w));
}

/* as Linux acknowledges a single segment: without opening a window */
static void
test_ack_of_a_single_segment_without_a_new_window(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 10);
	in_ack(p, 0x12, 1, 1);
	expect_tx(p, "DATA 1 First Last");
	expect_counter(p, sessions_completed, 1);
	expect_idle(p);
}

/* limits.rmpp_send_max; the receiver sends no ACK inside a window, so one is drawn */
static void
test_no_more_in_flight_than_our_own_limit(void **state)
{
	struct mad_limits limits = mad_limits_default;
	struct rmpp_peer *p;

	(void)state;
	limits.rmpp_send_max = 4;
	p = rmpp_peer_create(&limits);
	table_open(p, 40, 65);
	expect_tx(p, "DATA 2", "DATA 3", "DATA 4", "DATA 5", "DATA 1 First");
	pass(p, RTT);
	in_ack(p, 0x12, 5, 65);
	expect_tx(p, "DATA 6", "DATA 7", "DATA 8", "DATA 9", "DATA 5");
	rmpp_peer_destroy(p);
}

/* --- B5: checks of an ACK, in this order --- */

static void
test_ack_with_a_status_is_aborted_124(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 4000);
	forget_sent(p);
	assert_int_equal(in_rmpp(p, 0x12, 2, 0, 1, 5, 1), VERDICT_DATAGRAM); /* W2S comes second */
	expect_tx(p, "ABORT 124");
	expect_abort(p, 0, 124, 1);
	expect_counter(p, abort_sent, 1);
	expect_failed(p);
}

static void
test_new_window_last_below_the_segment_is_aborted_122(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 4000);
	forget_sent(p);
	in_ack(p, 0x12, 9, 8); /* S2B comes later */
	expect_tx(p, "ABORT 122");
	expect_abort(p, 0, 122, 1);
	expect_failed(p);
}

static void
test_ack_of_a_segment_beyond_the_window_is_aborted_123(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 4000);
	forget_sent(p);
	in_ack(p, 0x12, 2, 18);
	expect_tx(p, "ABORT 123");
	expect_abort(p, 0, 123, 1);
	expect_failed(p);
}

static void
test_ack_of_a_segment_beyond_the_last_is_aborted_123(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 3, 17);
	forget_sent(p);
	in_ack(p, 0x12, 4, 20);
	expect_tx(p, "ABORT 123");
	expect_failed(p);
}

/* in the window, but our own limit kept it back */
static void
test_ack_of_a_segment_never_sent_is_aborted_123(void **state)
{
	struct mad_limits limits = mad_limits_default;
	struct rmpp_peer *p;

	(void)state;
	limits.rmpp_send_max = 4;
	p = rmpp_peer_create(&limits);
	table_open(p, 40, 17);
	forget_sent(p);
	in_ack(p, 0x12, 6, 33);
	expect_tx(p, "ABORT 123");
	expect_failed(p);
	rmpp_peer_destroy(p);
}

static void
test_ack_with_an_older_window_is_ignored(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	forget_sent(p);
	pass(p, RTT);
	assert_int_equal(in_ack(p, 0x12, 4, 16), VERDICT_MAD_DISCARDED);
	expect_counter(p, ack_ignored, 1);
	expect_silence(p);
	assert_int_equal(session_of(p).segment, 1);
}

static void
test_ack_of_an_older_segment_is_ignored(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	in_ack(p, 0x12, 17, 33);
	forget_sent(p);
	assert_int_equal(in_ack(p, 0x12, 16, 33), VERDICT_MAD_DISCARDED);
	expect_counter(p, ack_ignored, 1);
	expect_silence(p);
}

static void
test_ack_of_no_transfer_is_dropped(void **state)
{
	struct rmpp_peer *p = *state;

	assert_int_equal(in_ack(p, 0x12, 1, 17), VERDICT_MAD_UNMATCHED);
	assert_int_equal(in_ack(p, 0x94, 1, 17), VERDICT_MAD_UNMATCHED);
	expect_silence(p);
	expect_counter(p, sessions_opened, 0);
}

/* --- B5: the ACK timer --- */

/* a peer silent after the first ACK; we probe meanwhile, which is no retry */
static void
test_ack_timer_goes_back_to_the_last_ack(void **state)
{
	struct rmpp_peer *p = *state;
	unsigned int i;

	table_open(p, 5, 17);
	expect_tx(p, "DATA 2", "DATA 3", "DATA 4", "DATA 5 Last");
	pass(p, 68 * MS); /* ResponseTimeout: 2 * 1.05 + 67.1 = 69.2 ms */
	expect_counter(p, timeouts, 0);
	forget_sent(p);
	pass(p, 3 * MS);
	expect_counter(p, timeouts, 1);
	for (i = p->seen; strcmp(p->sent[i].text, "DATA 2") != 0; i++)
		assert_true(i < p->sent_count);
	p->seen = i;
	expect_run(p, 2, 4);
	assert_int_equal(session_of(p).retries_left, 6);
}

static void
test_retries_exhausted_is_aborted_126(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 5, 17);
	pass(p, 7 * 70 * MS);
	expect_counter(p, timeouts, 7);
	assert_int_equal(session_of(p).retries_left, 0);
	forget_sent(p);
	expect_counter(p, sessions_failed, 0);
	pass(p, 70 * MS);
	expect_abort(p, 0, 126, 1);
	assert_string_equal(p->sent[p->sent_count - 1].text, "ABORT 126");
	expect_counter(p, timeouts, 8);
	expect_failed(p);
	forget_sent(p);
	pass(p, 1000 * MS);
	expect_silence(p);
}

static void
test_an_ack_that_advances_reloads_the_retries(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	pass(p, 3 * 70 * MS);
	assert_int_equal(session_of(p).retries_left, 4);
	in_ack(p, 0x12, 17, 33);
	assert_int_equal(session_of(p).retries_left, 7);
}

/* B5: capped at 2000 ms, whatever the response timeout is */
static void
test_ack_timer_is_capped_at_2000_ms(void **state)
{
	struct mad_limits limits = mad_limits_default;
	struct rmpp_peer *p;

	(void)state;
	limits.resp_time = 21; /* 8.6 s */
	p = rmpp_peer_create(&limits);
	rmpp_send_table(p, 4000);
	pass(p, 1999 * MS);
	expect_counter(p, timeouts, 0);
	pass(p, 2 * MS);
	expect_counter(p, timeouts, 1);
	rmpp_peer_destroy(p);
}

static void
test_a_window_that_only_grows_does_not_keep_a_stream_alive(void **state)
{
	struct rmpp_peer *p = *state;
	unsigned int i;

	table_open(p, 5, 17);
	for (i = 0; i < 700; i++) {
		pass(p, MS);
		in_ack(p, 0x12, 1, 18 + i);
	}
	expect_abort(p, 0, 126, 1);
	expect_failed(p);
}

/* the receiver closed its window: ask whether it is open again */
static void
test_closed_window_is_asked_about(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 5, 1);
	expect_silence(p);
	pass(p, 70 * MS);
	assert_string_equal(p->sent[p->sent_count - 1].text, "DATA 1 First");
	forget_sent(p);
	in_ack(p, 0x12, 1, 2);
	expect_tx(p, "DATA 2");
}

/* --- loss --- */

/* inside a window B6 sends an ACK only to report a missing segment */
static void
test_gap_is_filled_when_an_ack_tells_it(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	forget_sent(p);
	pass(p, RTT);
	in_ack(p, 0x12, 5, 17); /* 6 got lost */
	expect_tx(p, "DATA 6");
	pass(p, RTT);
	in_ack(p, 0x12, 17, 33); /* the others had been kept */
	expect_run(p, 18, 33);
	expect_silence(p);
	expect_counter(p, segments_resent, 1);
	expect_counter(p, timeouts, 0);
	expect_counter(p, probes, 0);
}

static void
test_repeated_ack_is_a_sign_once_per_round_trip(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	forget_sent(p);
	pass(p, RTT);
	in_ack(p, 0x12, 5, 17);
	expect_tx(p, "DATA 6");
	in_ack(p, 0x12, 5, 17);
	in_ack(p, 0x12, 5, 17);
	expect_silence(p);
	pass(p, RTT);
	in_ack(p, 0x12, 5, 17); /* it was lost again */
	expect_tx(p, "DATA 6");
}

/* the first ACK is repeated before any later segment can have arrived */
static void
test_repeated_ack_says_nothing_of_segments_just_sent(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	expect_run(p, 2, 17);
	in_ack(p, 0x12, 1, 17);
	expect_silence(p);
}

static void
test_two_gaps_cost_a_round_trip_each(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	forget_sent(p);
	pass(p, RTT);
	in_ack(p, 0x12, 5, 17); /* 6 and 9 */
	expect_tx(p, "DATA 6");
	pass(p, RTT);
	in_ack(p, 0x12, 8, 17);
	expect_tx(p, "DATA 9");
	pass(p, RTT);
	in_ack(p, 0x12, 17, 33);
	expect_counter(p, segments_resent, 2);
}

/* a receiver that keeps nothing out of order */
static void
test_two_missing_in_a_row_go_back(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	forget_sent(p);
	pass(p, RTT);
	in_ack(p, 0x12, 5, 17);
	expect_tx(p, "DATA 6");
	pass(p, RTT);
	in_ack(p, 0x12, 6, 17);
	expect_run(p, 7, 17);
	expect_silence(p);
}

/* the last segment of a window, or its ACK, is lost: send both again after some round trips */
static void
test_tail_is_probed_after_some_round_trips(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	forget_sent(p);
	pass(p, 3 * RTT);
	expect_silence(p);
	pass(p, 2 * RTT);
	/* segment 1 was acknowledged: B6 has its ACK repeated */
	expect_tx(p, "DATA 17", "DATA 1 First");
	expect_counter(p, probes, 1);
	in_ack(p, 0x12, 17, 33);
	expect_run(p, 18, 33);
	expect_counter(p, timeouts, 0);
}

static void
test_probes_come_at_doubling_distance(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	pass(p, 60 * MS);
	/* 0.4 + 0.8 + ... + 25.6 = 50.8 ms; the next one at 102 */
	expect_counter(p, probes, 7);
	expect_counter(p, timeouts, 0);
}

/* Anti-amplification: a peer that never answers gets only a few packets beyond the retries */
static void
test_few_packets_before_the_peer_shows(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_peer_prove(p);
	rmpp_send_table(p, 1000 * 200);
	pass(p, 9 * 2000 * MS);
	expect_abort(p, 0, 126, 1);
	expect_counter(p, segments_sent, 1 + 5 + 7);
	expect_failed(p);
}

/* The same of a peer whose address may be forged: three for its request, no ABORT */
static void
test_unproven_address_gets_three_for_one(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 1000 * 200);
	in_ack(p, 0x12, 0, 1000); /* acknowledges nothing, opens a window */
	pass(p, 9 * 2000 * MS);
	assert_int_equal(p->sent_count, 2 * 3);
	assert_true(counter(p, unproven) > 0);
	expect_failed(p);
}

/* A table of 40 segments, acknowledged at once. */
static void
fast_table(struct rmpp_peer *p, uint64_t tid)
{
	p->tid = tid;
	rmpp_send_table(p, 40 * 200);
	in_ack(p, 0x12, 1, 40);
	in_ack(p, 0x12, 40, 41);
}

/* The round trip of a probe is measured from the probe, whatever the estimate is */
static void
test_trip_of_a_probe_while_others_are_faster(void **state)
{
	struct rmpp_peer *p = *state;
	unsigned int i;

	rmpp_peer_prove(p);
	/* a trip of 1 ms, by the probe; then nothing else is known: 8 of those, or less */
	p->tid = 1;
	rmpp_send_table(p, 40 * 200);
	pass(p, 1 * MS);
	pass(p, 1 * MS);
	in_ack(p, 0x12, 1, 40);
	in_ack(p, 0x12, 40, 41);
	expect_counter(p, probes, 1);
	p->tid = 2;
	rmpp_send_table(p, 40 * 200);
	pass(p, 8 * MS);
	expect_counter(p, probes, 2);
	for (i = 0; i < 40; i++)
		fast_table(p, 10 + i);
	/* answered after 2 ms: at least that long, so the next probe waits 8 ms */
	pass(p, 1 * MS);
	p->tid = 2;
	in_ack(p, 0x12, 1, 17);
	pass(p, 8 * MS - 100 * US);
	expect_counter(p, probes, 2);
	pass(p, 200 * US);
	expect_counter(p, probes, 3);
}

/* Until a session has a round trip of its own, it waits eight of the worker's, even its first. */
static void
test_first_trip_times_the_probes_of_other_sessions(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_peer_prove(p);
	p->tid = 1;
	rmpp_send_table(p, 112);
	pass(p, RTT);
	in_ack(p, 0x12, 1, 2);
	p->tid = 2;
	rmpp_send_table(p, 40 * 200);
	pass(p, 8 * RTT - 20 * US);
	expect_counter(p, probes, 0);
	pass(p, 40 * US);
	expect_counter(p, probes, 1);
}

/* Karn's rule (RFC 6298): the ACK of a segment that was sent twice may answer either copy */
static void
test_segment_sent_twice_measures_no_round_trip(void **state)
{
	struct rmpp_peer *p = *state;
	uint8_t reply[MAD_LEN];
	struct mad_source source;

	rmpp_peer_prove(p);
	p->outcome = MAD_LATER;
	in_data(p, 0x14, 1, 1, 40);
	in_ack(p, 0x14, 0, 4);
	make_mad(p, reply, 0x94);
	p->length = 8000;
	source = rmpp_peer_source(p);
	assert_int_equal(mad_stream(p->w, p->handle, reply, &source, p->now), 0);
	run(p);
	forget_sent(p);
	while (counter(p, probes) == 0)
		pass(p, 10 * US);
	expect_tx(p, "DATA 4"); /* it would have measured the round trip */
	pass(p, RTT);
	in_ack(p, 0x14, 4, 8);
	/* the probe's trip is known, so the next probe comes after four of that */
	pass(p, 4 * RTT - 20 * US);
	expect_counter(p, probes, 1);
	pass(p, 60 * US);
	expect_counter(p, probes, 2);
}

/* An ACK that waited for a segment that had been lost measures the loss, not the trip. */
static void
test_segment_behind_a_gap_measures_no_round_trip(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	pass(p, 2 * RTT);
	in_ack(p, 0x12, 5, 17); /* 6 again */
	pass(p, RTT);
	in_ack(p, 0x12, 17, 33); /* after three round trips */
	pass(p, 4 * RTT - 20 * US);
	expect_counter(p, probes, 0);
	pass(p, 60 * US); /* four times the first one */
	expect_counter(p, probes, 1);
}

/* the receiver repeats ACK 17 for the probe and for the segment behind it */
static void
test_second_answer_to_a_probe_resends_nothing(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	pass(p, 5 * RTT);
	forget_sent(p);
	in_ack(p, 0x12, 17, 33);
	expect_run(p, 18, 33);
	in_ack(p, 0x12, 17, 33);
	expect_silence(p);
}

/* the timer has already gone back, and the sink was full */
static void
test_sign_of_what_is_on_its_way_sends_nothing_twice(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	pass(p, 68 * MS);
	p->room = 0;
	pass(p, 3 * MS);
	expect_counter(p, timeouts, 1);
	in_ack(p, 0x12, 1, 17);
	forget_sent(p);
	p->room = UINT32_MAX;
	run(p);
	expect_run(p, 2, 17);
	expect_silence(p);
}

/* the requester repeats its request: it cannot have segment 1 */
static void
test_repeated_request_sends_the_first_segment_again(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 4000);
	forget_sent(p);
	pass(p, 500 * US);
	assert_int_equal(in_get_table(p), VERDICT_MAD_DISCARDED);
	expect_tx(p, "DATA 1 First");
	assert_int_equal(p->requests, 1);
	expect_counter(p, repeated_requests, 1);
	expect_counter(p, sessions_opened, 1);
}

static void
test_repeated_request_in_mid_stream_starts_nothing(void **state)
{
	struct rmpp_peer *p = *state;

	table_open(p, 40, 17);
	forget_sent(p);
	pass(p, RTT);
	assert_int_equal(in_get_table(p), VERDICT_MAD_DISCARDED);
	expect_silence(p);
	assert_int_equal(p->requests, 1);
}

static void
test_late_repeat_of_the_request_starts_no_second_stream(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 10);
	in_ack(p, 0x12, 1, 17);
	forget_sent(p);
	assert_int_equal(in_get_table(p), VERDICT_MAD_DISCARDED);
	assert_int_equal(in_ack(p, 0x12, 1, 17), VERDICT_MAD_DISCARDED);
	expect_silence(p);
	assert_int_equal(p->requests, 1);
}

/* --- ends --- */

static void
test_source_that_is_gone_is_told_with_stop(void **state)
{
	struct rmpp_peer *p = *state;

	p->gone_after = 1000;
	table_open(p, 40, 17);
	expect_tx(p, "DATA 2", "DATA 3", "DATA 4", "DATA 5", "STOP 1");
	assert_int_equal(sent_mad(p, 4)[3], 0x92);
	expect_abort(p, 0, 1, 1);
	expect_failed(p);
}

static void
test_full_sink_delays_and_loses_nothing(void **state)
{
	struct rmpp_peer *p = *state;

	rmpp_send_table(p, 40 * 200);
	forget_sent(p);
	p->room = 3;
	in_ack(p, 0x12, 1, 17);
	expect_tx(p, "DATA 2", "DATA 3", "DATA 4");
	assert_true(mad_pending(p->w));
	mad_run(p->w, p->now, 64);
	expect_silence(p);
	assert_true(counter(p, tx_stall) > 0);
	p->room = UINT32_MAX;
	run(p);
	expect_run(p, 5, 17);
	expect_silence(p);
}

/* Sessions take turns, each of a slice of 64 packets: a long table delays others by one slice. */
static void
test_sessions_send_in_turns_of_one_slice(void **state)
{
	struct mad_limits limits = mad_limits_default;
	struct rmpp_peer *p;
	unsigned int i;

	(void)state;
	limits.rmpp_send_max = 128;
	p = rmpp_peer_create(&limits);
	rmpp_peer_prove(p);
	for (p->tid = 1; p->tid <= 2; p->tid++)
		rmpp_send_table(p, 200 * 200);
	forget_sent(p);
	p->room = 0;
	for (p->tid = 1; p->tid <= 2; p->tid++)
		in_ack(p, 0x12, 1, 101);
	p->room = UINT32_MAX;
	run(p);
	assert_int_equal(p->sent_count - p->seen, 200);
	for (i = 0; i < 200; i++) /* 64 and 64, then the other 36 and 36 */
		assert_int_equal(get_be64(p->sent[p->seen + i].mad + 8),
			i < 64 || (i >= 128 && i < 164) ? 1 : 2);
	rmpp_peer_destroy(p);
}

/* --- our own multi-packet request: double-sided --- */

static void
test_request_of_ours_is_sent_by_the_same_machine(void **state)
{
	struct rmpp_peer *p = *state;

	assert_int_equal(call_multi(p, 450), 0);
	expect_tx(p, "DATA 1 First");
	assert_int_equal(sent_mad(p, 0)[3], 0x14);
	assert_int_equal(get_be32(sent_mad(p, 0) + 32), 510);
	in_ack(p, 0x94, 1, 17);
	expect_tx(p, "DATA 2", "DATA 3 Last");
}

/* all acknowledged: ACK 0 with NewWindowLast 1 tells that we are ready for the reply */
static void
test_requester_tells_that_it_is_ready_for_the_reply(void **state)
{
	struct rmpp_peer *p = *state;

	call_multi(p, 450);
	in_ack(p, 0x94, 1, 17);
	forget_sent(p);
	in_ack(p, 0x94, 3, 19);
	expect_tx(p, "ACK 0 1");
	assert_int_equal(sent_mad(p, 0)[3], 0x14);
	in_ack(p, 0x94, 3, 19); /* the responder repeats its ACK: ours was lost */
	expect_tx(p, "ACK 0 1");
	assert_int_equal(p->done, 0);
}

static void
test_silence_after_our_request_ends_in_a_timeout(void **state)
{
	struct rmpp_peer *p = *state;

	call_multi(p, 100);
	in_ack(p, 0x94, 1, 17);
	forget_sent(p);
	pass(p, 8 * 4 * MS); /* 2 * 1.05 + 1.05 ms each */
	assert_int_equal(p->done, 1);
	assert_int_equal(p->result.end, MAD_END_TIMEOUT);
	assert_int_equal(p->result.rmpp_status, 126);
	expect_failed(p);
	expect_tx(p, "ACK 0 1", "ACK 0 1", "ACK 0 1", "ACK 0 1", "ACK 0 1", "ACK 0 1", "ACK 0 1",
		"ABORT 126");
}

static void
test_request_never_acknowledged_is_aborted_126(void **state)
{
	struct rmpp_peer *p = *state;

	call_multi(p, 450);
	pass(p, 9 * 4 * MS);
	assert_int_equal(p->done, 1);
	assert_int_equal(p->result.end, MAD_END_TIMEOUT);
	assert_int_equal(p->result.rmpp_status, 126);
	assert_string_equal(p->sent[p->sent_count - 1].text, "ABORT 126");
	assert_int_equal(p->sent[p->sent_count - 1].mad[3], 0x14);
	expect_failed(p);
}

static void
test_single_request_is_repeated_then_given_up(void **state)
{
	struct rmpp_peer *p = *state;

	assert_int_equal(call_table(p, NULL), 0);
	expect_tx(p, "GetTable");
	pass(p, 9 * 4 * MS);
	expect_tx(p, "GetTable", "GetTable", "GetTable", "GetTable", "GetTable", "GetTable",
		"GetTable");
	assert_int_equal(p->result.end, MAD_END_TIMEOUT);
	assert_int_equal(p->result.resent, 7);
	expect_counter(p, timeouts, 8);
	expect_idle(p);
}

static void
test_answer_without_rmpp_ends_our_request(void **state)
{
	struct rmpp_peer *p = *state;
	uint8_t mad[MAD_LEN];

	call_multi(p, 450);
	make_mad(p, mad, 0x94);
	put_be16(mad + 4, 0x0200);
	assert_int_equal(in_mad(p, mad), VERDICT_DATAGRAM);
	assert_int_equal(p->done, 1);
	assert_int_equal(p->result.end, MAD_END_STATUS);
	assert_int_equal(p->result.status, 0x0200);
	expect_failed(p);
}

/* double-sided reply: the window that ACK 0 announced */
static void
test_reply_starts_with_the_window_announced(void **state)
{
	struct rmpp_peer *p = *state;
	uint8_t reply[MAD_LEN];
	struct mad_source source;

	rmpp_peer_prove(p);
	p->outcome = MAD_LATER;
	in_data(p, 0x14, 1, 1, 40);
	expect_tx(p, "ACK 1 17");
	in_ack(p, 0x14, 0, 4);
	expect_silence(p);
	make_mad(p, reply, 0x94);
	p->length = 2000;
	source = rmpp_peer_source(p);
	assert_int_equal(mad_stream(p->w, p->handle, reply, &source, p->now), 0);
	run(p);
	expect_tx(p, "DATA 1 First", "DATA 2", "DATA 3", "DATA 4");
}

#define T(name) cmocka_unit_test_setup_teardown(name, rmpp_peer_setup, rmpp_peer_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_payload_length_counts_the_class_header_in_every_segment),
		T(test_payload_length_of_a_single_segment_is_the_last_rule),
		T(test_payload_length_of_no_record_is_20),
		T(test_payload_length_of_full_segments),
		T(test_payload_length_that_no_field_holds_is_not_known),
		T(test_segments_carry_the_header_and_their_share_of_the_data),
		T(test_first_window_is_one_segment),
		T(test_window_ends_at_new_window_last),
		T(test_window_of_a_session_ends_at_new_window_last),
		T(test_sender_stops_at_the_last_segment),
		T(test_all_acknowledged_ends_the_session),
		T(test_ack_of_a_single_segment_without_a_new_window),
		T(test_no_more_in_flight_than_our_own_limit),
		T(test_ack_with_a_status_is_aborted_124),
		T(test_new_window_last_below_the_segment_is_aborted_122),
		T(test_ack_of_a_segment_beyond_the_window_is_aborted_123),
		T(test_ack_of_a_segment_beyond_the_last_is_aborted_123),
		T(test_ack_of_a_segment_never_sent_is_aborted_123),
		T(test_ack_with_an_older_window_is_ignored),
		T(test_ack_of_an_older_segment_is_ignored),
		T(test_ack_of_no_transfer_is_dropped),
		T(test_ack_timer_goes_back_to_the_last_ack),
		T(test_retries_exhausted_is_aborted_126),
		T(test_an_ack_that_advances_reloads_the_retries),
		T(test_ack_timer_is_capped_at_2000_ms),
		T(test_a_window_that_only_grows_does_not_keep_a_stream_alive),
		T(test_closed_window_is_asked_about),
		T(test_gap_is_filled_when_an_ack_tells_it),
		T(test_repeated_ack_is_a_sign_once_per_round_trip),
		T(test_repeated_ack_says_nothing_of_segments_just_sent),
		T(test_two_gaps_cost_a_round_trip_each),
		T(test_two_missing_in_a_row_go_back),
		T(test_tail_is_probed_after_some_round_trips),
		T(test_probes_come_at_doubling_distance),
		T(test_few_packets_before_the_peer_shows),
		T(test_unproven_address_gets_three_for_one),
		T(test_trip_of_a_probe_while_others_are_faster),
		T(test_first_trip_times_the_probes_of_other_sessions),
		T(test_segment_sent_twice_measures_no_round_trip),
		T(test_segment_behind_a_gap_measures_no_round_trip),
		T(test_second_answer_to_a_probe_resends_nothing),
		T(test_sign_of_what_is_on_its_way_sends_nothing_twice),
		T(test_repeated_request_sends_the_first_segment_again),
		T(test_repeated_request_in_mid_stream_starts_nothing),
		T(test_late_repeat_of_the_request_starts_no_second_stream),
		T(test_source_that_is_gone_is_told_with_stop),
		T(test_full_sink_delays_and_loses_nothing),
		cmocka_unit_test(test_sessions_send_in_turns_of_one_slice),
		T(test_request_of_ours_is_sent_by_the_same_machine),
		T(test_requester_tells_that_it_is_ready_for_the_reply),
		T(test_silence_after_our_request_ends_in_a_timeout),
		T(test_request_never_acknowledged_is_aborted_126),
		T(test_single_request_is_repeated_then_given_up),
		T(test_answer_without_rmpp_ends_our_request),
		T(test_reply_starts_with_the_window_announced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
