/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RMPP: every status of sa-multipacket B3 in its case, with a session and without; peers that break
 * the protocol.
 */

#include <stdio.h>
#include <string.h>

#include "rmpp_peer.h"

/* A forbidden packet and the status of the answer. */
struct fault {
	uint8_t version, type, flags, status;
	uint32_t segment, length;
	uint8_t abort;
};

static const struct fault faults[] = {
	{ 2, 1, 2, 0, 1, 60, 125 },
	{ 0, 1, 2, 0, 1, 60, 125 },
	{ 255, 9, 0, 9, 9, 9, 125 }, /* the version comes first */
	{ 1, 7, 2, 0, 1, 60, 121 },
	{ 1, 0, 2, 0, 1, 60, 121 },
	{ 1, 5, 0, 0, 1, 60, 121 },
	{ 1, 1, 2, 1, 1, 60, 124 }, /* DATA with a status */
	{ 1, 1, 0, 0, 1, 60, 120 }, /* segment 1 without First */
	{ 1, 1, 2, 0, 2, 60, 120 }, /* First in mid-stream */
	{ 1, 1, 2, 0, 0, 60, 120 }, /* First on segment 0 */
	{ 1, 2, 0, 1, 1, 17, 124 }, /* ACK with a status */
	{ 1, 2, 0, 0, 2, 1, 122 }, /* W2S */
	{ 1, 3, 0, 0, 0, 0, 124 }, /* STOP says 1 and nothing else */
	{ 1, 3, 0, 2, 0, 0, 124 },
	{ 1, 3, 0, 118, 0, 0, 124 },
	{ 1, 4, 0, 117, 0, 0, 124 }, /* ABORT says 118..127 */
	{ 1, 4, 0, 128, 0, 0, 124 },
	{ 1, 4, 0, 1, 0, 0, 124 },
	{ 1, 4, 0, 0, 0, 0, 124 },
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static enum verdict
in_fault(struct rmpp_peer *p, uint8_t method, const struct fault *f)
{
	uint8_t mad[MAD_LEN];

	make_rmpp(p, mad, method, f->type, f->flags, f->status, f->segment, f->length);
	mad[24] = f->version;
	return in_mad(p, mad);
}

static void
expect_abort_sent(struct rmpp_peer *p, uint8_t status, uint8_t method)
{
	char text[16];

	snprintf(text, sizeof(text), "ABORT %u", status);
	expect_tx(p, text);
	assert_int_equal(sent_mad(p, 0)[3], method);
	assert_int_equal(get_be64(sent_mad(p, 0) + 8), p->tid);
	expect_abort(p, 0, status, 1);
}

/* --- B3: each status where it belongs --- */

static void
test_faults_without_a_session_are_answered(void **state)
{
	struct rmpp_peer *p;
	unsigned int i;

	(void)state;
	for (i = 0; i < FAULTS; i++) {
		p = rmpp_peer_create(&mad_limits_default);
		assert_int_equal(in_fault(p, 0x12, &faults[i]), VERDICT_DATAGRAM);
		expect_abort_sent(p, faults[i].abort, 0x92);
		p->tid++;
		in_fault(p, 0x92, &faults[i]);
		expect_sent(p, p->sent[p->sent_count - 1].text, NULL);
		assert_int_equal(sent_mad(p, 0)[3], 0x12);
		expect_counter(p, abort_sent, 2);
		expect_counter(p, sessions_opened, 0);
		rmpp_peer_destroy(p);
	}
}

static void
test_faults_end_the_stream_we_send(void **state)
{
	struct rmpp_peer *p;
	unsigned int i;

	(void)state;
	for (i = 0; i < FAULTS; i++) {
		p = rmpp_peer_create(&mad_limits_default);
		p->length = 4000;
		in_get_table(p);
		forget_sent(p);
		in_fault(p, 0x12, &faults[i]);
		expect_abort_sent(p, faults[i].abort, 0x92);
		expect_counter(p, sessions_failed, 1);
		assert_int_equal(p->releases, 1);
		expect_idle(p);
		rmpp_peer_destroy(p);
	}
}

static void
test_faults_end_the_stream_we_receive(void **state)
{
	struct rmpp_peer *p;
	unsigned int i;

	(void)state;
	for (i = 0; i < FAULTS; i++) {
		p = rmpp_peer_create(&mad_limits_default);
		call_table(p, NULL);
		in_data(p, 0x92, 1, 40, 200);
		forget_sent(p);
		in_fault(p, 0x92, &faults[i]);
		expect_abort_sent(p, faults[i].abort, 0x12);
		assert_int_equal(p->done, 1);
		assert_int_equal(p->result.end, MAD_END_PROTOCOL);
		assert_int_equal(p->result.rmpp_status, faults[i].abort);
		expect_idle(p);
		rmpp_peer_destroy(p);
	}
}

/* a session that ended successfully keeps its result; the fault is still answered */
static void
test_faults_do_not_touch_a_finished_session(void **state)
{
	struct rmpp_peer *p;
	unsigned int i;

	(void)state;
	for (i = 0; i < FAULTS; i++) {
		p = rmpp_peer_create(&mad_limits_default);
		call_table(p, NULL);
		in_data(p, 0x92, 1, 1, 200);
		forget_sent(p);
		in_fault(p, 0x92, &faults[i]);
		expect_abort_sent(p, faults[i].abort, 0x12);
		expect_counter(p, sessions_completed, 1);
		assert_int_equal(p->done, 1);
		expect_idle(p);
		rmpp_peer_destroy(p);
	}
}

/* STOP 1 and ABORT 118..127 are honoured in either role, and not answered */
static void
test_valid_stop_and_abort_are_honoured_and_not_answered(void **state)
{
	struct rmpp_peer *p;
	uint8_t status, type;

	(void)state;
	for (status = 117; status <= 127; status++) {
		type = status == 117 ? 3 : 4;
		p = rmpp_peer_create(&mad_limits_default);
		p->length = 4000;
		in_get_table(p);
		call_table(p, NULL);
		forget_sent(p);
		assert_int_equal(in_rmpp(p, 0x92, type, 0, type == 3 ? 1 : status, 0, 0),
			VERDICT_DATAGRAM);
		assert_int_equal(p->result.end, MAD_END_ABORTED);
		assert_int_equal(p->result.rmpp_status, type == 3 ? 1 : status);
		p->tid = TID;
		assert_int_equal(in_rmpp(p, 0x12, type, 0, type == 3 ? 1 : status, 0, 0),
			VERDICT_DATAGRAM);
		expect_silence(p);
		expect_abort(p, 1, type == 3 ? 1 : status, 2);
		expect_counter(p, abort_received, 2);
		expect_counter(p, sessions_failed, 2);
		expect_idle(p);
		rmpp_peer_destroy(p);
	}
}

static void
test_valid_stop_and_abort_of_nothing_are_dropped(void **state)
{
	struct rmpp_peer *p = *state;

	assert_int_equal(in_rmpp(p, 0x12, 3, 0, 1, 0, 0), VERDICT_MAD_UNMATCHED);
	assert_int_equal(in_rmpp(p, 0x92, 4, 0, 118, 0, 0), VERDICT_MAD_UNMATCHED);
	expect_silence(p);
}

/* B3: Active 0 is not RMPP at all; byte 25 and on are not examined */
static void
test_without_active_nothing_of_rmpp_is_examined(void **state)
{
	struct rmpp_peer *p = *state;
	uint8_t mad[MAD_LEN];

	p->length = 10;
	make_rmpp(p, mad, 0x12, 7, 6, 99, 77, 66);
	mad[24] = 9;
	mad[26] = 0xFE;
	assert_int_equal(in_mad(p, mad), VERDICT_DATAGRAM);
	expect_tx(p, "DATA 1 First Last");
	assert_int_equal(p->requests, 1);
}

/* --- hostile peers --- */

static void
test_segment_0_is_a_duplicate_or_nothing(void **state)
{
	struct rmpp_peer *p = *state;

	assert_int_equal(in_rmpp(p, 0x14, 1, 0, 0, 0, 0), VERDICT_MAD_UNMATCHED);
	expect_silence(p);
	in_data(p, 0x14, 1, 40, 200);
	expect_tx(p, "ACK 1 17");
	assert_int_equal(in_rmpp(p, 0x14, 1, 0, 0, 0, 0), VERDICT_MAD_DISCARDED);
	expect_tx(p, "ACK 1 17");
}

static void
test_later_segments_of_no_session_open_none(void **state)
{
	struct rmpp_peer *p = *state;

	assert_int_equal(in_data(p, 0x14, 2, 40, 200), VERDICT_MAD_UNMATCHED);
	assert_int_equal(in_data(p, 0x92, 1, 40, 200), VERDICT_MAD_UNMATCHED);
	expect_silence(p);
	expect_counter(p, sessions_opened, 0);
}

/* a guessed TID reaches no other peer's session */
static void
test_other_transactions_do_not_notice(void **state)
{
	struct rmpp_peer *p = *state;

	p->length = 4000;
	in_get_table(p);
	forget_sent(p);
	p->tid = TID + 1;
	assert_int_equal(in_ack(p, 0x12, 1, 17), VERDICT_MAD_UNMATCHED);
	in_rmpp(p, 0x12, 4, 0, 127, 0, 0);
	in_rmpp(p, 0x12, 7, 0, 0, 0, 0);
	expect_tx(p, "ABORT 121");
	p->tid = TID;
	in_ack(p, 0x12, 1, 17);
	expect_run(p, 2, 17);
}

static void
test_answer_of_another_method_is_not_ours(void **state)
{
	struct rmpp_peer *p = *state;

	call_table(p, NULL);
	forget_sent(p);
	assert_int_equal(in_data(p, 0x94, 1, 1, 200), VERDICT_MAD_UNMATCHED);
	expect_silence(p);
	assert_int_equal(p->done, 0);
}

/* segments for a request that came as a single packet */
static void
test_data_for_a_session_that_receives_none(void **state)
{
	struct rmpp_peer *p = *state;

	p->length = 4000;
	in_get_table(p);
	forget_sent(p);
	assert_int_equal(in_data(p, 0x12, 1, 40, 200), VERDICT_MAD_UNMATCHED);
	expect_silence(p);
}

/* endless repeats of one ACK: a segment per round trip, and the timer still expires */
static void
test_endless_repeats_of_an_ack_end_in_126(void **state)
{
	struct rmpp_peer *p = *state;
	unsigned int i;

	p->length = 8000;
	in_get_table(p);
	pass(p, 100 * US);
	in_ack(p, 0x12, 1, 17);
	for (i = 0; i < 6000; i++) {
		pass(p, 100 * US);
		in_ack(p, 0x12, 5, 17);
		if (p->sent_count > PEER_SENT - 64)
			p->sent_count = p->seen = 0;
	}
	expect_abort(p, 0, 126, 1);
	expect_counter(p, timeouts, 8);
	/* a segment per repeat, and those that the timer goes back to */
	assert_true(counter(p, segments_resent) <= 6000 + 8 * 16);
	expect_idle(p);
}

/* endless repeats of one segment: an ACK each, and the overall timer still expires */
static void
test_endless_repeats_of_a_segment_end_in_118(void **state)
{
	struct rmpp_peer *p = *state;
	unsigned int i;

	for (i = 0; i < 401; i++) {
		in_data(p, 0x14, 1, 40, 200);
		pass(p, 100 * MS);
	}
	expect_abort(p, 0, 118, 1);
	assert_int_equal(p->requests, 0);
	expect_counter(p, sessions_failed, 1);
}

/* only first segments: limited to the sessions of one address, then refused with STOP */
static void
test_flood_of_first_segments_is_bounded(void **state)
{
	struct mad_limits limits = mad_limits_default;
	struct rmpp_peer *p;
	uint64_t used, total;
	unsigned int i;

	(void)state;
	limits.max_sessions = 64;
	limits.max_sessions_per_peer = 16;
	p = rmpp_peer_create(&limits);
	for (i = 0; i < 1000; i++) {
		p->tid = TID + i;
		in_rmpp(p, 0x14, 1, 2, 0, 1, UINT32_MAX); /* with a huge PayloadLength */
	}
	expect_counter(p, sessions_opened, 16);
	expect_counter(p, sessions_refused, 984);
	mad_worker_memory(p->w, &used, &total);
	assert_true(used <= total);
	assert_string_equal(p->sent[p->sent_count - 1].text, "STOP 1");
	pass(p, 40001 * MS);
	expect_idle(p);
	mad_worker_memory(p->w, &used, &total);
	assert_int_equal(used, 0);
	rmpp_peer_destroy(p);
}

/* random bytes: nothing breaks, every session ends */
static void
test_random_packets(void **state)
{
	struct mad_limits limits = mad_limits_default;
	uint64_t r = 88172645463325252u;
	uint8_t mad[MAD_LEN];
	struct rmpp_peer *p;
	unsigned int i;

	(void)state;
	limits.max_bytes = 1 << 20;
	p = rmpp_peer_create(&limits);
	p->length = 5000;
	for (i = 0; i < 20000; i++) {
		r ^= r << 13;
		r ^= r >> 7;
		r ^= r << 17;
		p->tid = TID + (r >> 40) % 4;
		make_rmpp(p, mad, r & 1 ? 0x12 : 0x14, (r >> 1) % 16 < 2 ? 9 : 1 + (r >> 5) % 4,
			(r >> 8) % 4 << 1, (r >> 10) % 32 == 0, (r >> 16) % 20, (r >> 24) % 240);
		if ((r >> 32) % 8 == 0)
			mad[26] = 0;
		p->outcome = (r >> 36) % 4;
		in_mad(p, mad);
		if (i % 16 == 0)
			pass(p, (r >> 44) % 8 * MS);
		p->sent_count = p->seen = p->looked = 0;
	}
	pass(p, 60000 * MS);
	p->outcome = MAD_LATER;
	assert_true(counter(p, sessions_opened) > 100);
	rmpp_peer_destroy(p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rmpp_peer_setup, rmpp_peer_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults_without_a_session_are_answered),
		cmocka_unit_test(test_faults_end_the_stream_we_send),
		cmocka_unit_test(test_faults_end_the_stream_we_receive),
		cmocka_unit_test(test_faults_do_not_touch_a_finished_session),
		cmocka_unit_test(test_valid_stop_and_abort_are_honoured_and_not_answered),
		T(test_valid_stop_and_abort_of_nothing_are_dropped),
		T(test_without_active_nothing_of_rmpp_is_examined),
		T(test_segment_0_is_a_duplicate_or_nothing),
		T(test_later_segments_of_no_session_open_none),
		T(test_other_transactions_do_not_notice),
		T(test_answer_of_another_method_is_not_ours),
		T(test_data_for_a_session_that_receives_none),
		T(test_endless_repeats_of_an_ack_end_in_126),
		T(test_endless_repeats_of_a_segment_end_in_118),
		cmocka_unit_test(test_flood_of_first_segments_is_bounded),
		cmocka_unit_test(test_random_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
