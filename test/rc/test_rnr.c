/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Receiver not ready: rc-transport 6 row 4, seed 001 "RNR Nak", rc-cases */

#include "peer.h"

/*
 * "the RNR Nak packet's PSN is the PSN of the request packet being RNR Nak'd"; timer code from
 * the QP
 */
static void
test_send_without_receive_gets_rnr_nak_with_the_qps_timer(void **state)
{
	struct peer *p = *state;

	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 10), VERDICT_RNR_NAK_SENT);
	run(p);
	expect_tx(p, "RNR 201");
	assert_int_equal(answered(p, 0)->syndrome, 0x2C); /* 0x20 + 12 */
	assert_int_equal(answered(p, 0)->msn, 0);
	assert_int_equal(epsn_of(p), 201);
	assert_int_equal(state_of(p), QPS_RTR); /* the QP stays up */
	assert_int_equal(counters_of(p).send_rnr_err, 1);
	expect_no_wc(p);
	expect_event(p, EVENT_RQ_EMPTY);
	expect_no_event(p);
}

/*
 * seed 001: "the RQ Logic takes action to get a WR posted to the RQ": one event until a receive is
 * posted
 */
static void
test_empty_receive_queue_asks_for_receives_once(void **state)
{
	struct peer *p = *state;
	struct qp_attr attr = { .qp_state = QPS_RESET };
	struct error err;

	post(p, 1, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 201, 10);
	expect_no_event(p); /* the last receive is used, but no Send has missed one */
	assert_int_equal(in_send(p, RC_SEND_ONLY, 202, 10), VERDICT_RNR_NAK_SENT);
	run(p);
	expect_event(p, EVENT_RQ_EMPTY);
	assert_int_equal(p->events[p->event_next - 1].element, p->qpn);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 202, 10), VERDICT_RNR_NAK_SENT);
	in_write(p, RC_WRITE_ONLY_IMM, 202, 0x1000, 4, 4);
	expect_no_event(p);
	post(p, 2, 0x1000, 64);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 202, 10), VERDICT_REQUEST);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 203, 10), VERDICT_RNR_NAK_SENT);
	expect_event(p, EVENT_RQ_EMPTY);
	expect_no_event(p);
	/* after RESET and a new connection */
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, &err), 0);
	peer_to_rtr(p, p->qpn);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 10), VERDICT_RNR_NAK_SENT);
	expect_event(p, EVENT_RQ_EMPTY);
}

/* Entries of completed receives in the ring are not used again. */
static void
test_completed_receives_are_not_used_again(void **state)
{
	struct peer *p = *state;
	uint32_t psn;

	for (psn = 201; psn < 201 + 100; psn++) { /* round the ring */
		post(p, psn, 0x1000, 64);
		assert_int_equal(in_send(p, RC_SEND_ONLY, psn, 10), VERDICT_REQUEST);
		expect_wc(p, psn, WC_SUCCESS, NULL);
	}
	assert_int_equal(in_send(p, RC_SEND_ONLY, psn, 10), VERDICT_RNR_NAK_SENT);
	expect_no_wc(p);
	assert_int_equal(epsn_of(p), psn);
}

static void
test_write_with_immediate_takes_its_receive_at_the_last_packet(void **state)
{
	struct peer *p = *state;

	assert_int_equal(in_write(p, RC_WRITE_FIRST, 201, 0x1000, 300, 256), VERDICT_REQUEST);
	assert_int_equal(in_write(p, RC_WRITE_LAST_IMM, 202, 0, 0, 44), VERDICT_RNR_NAK_SENT);
	run(p);
	expect_tx(p, "ACK 201", "RNR 202");
	assert_int_equal(epsn_of(p), 202);
	assert_memory_not_equal(p->bytes + 0x1100, pattern, 44);

	post(p, 5, 0, 0);
	assert_int_equal(in_write(p, RC_WRITE_LAST_IMM, 202, 0, 0, 44), VERDICT_REQUEST);
	run(p);
	expect_tx(p, "ACK 202");
	assert_memory_equal(p->bytes + 0x1100, pattern, 44);
	expect_wc(p, 5, WC_SUCCESS, NULL);
}

/*
 * rc-cases: "RNR NAK for 40 while 41.. are already in flight: 41.. dropped, no 0x60 until 40 is
 * seen again"
 */
static void
test_later_psns_are_dropped_without_a_sequence_nak(void **state)
{
	struct peer *p = *state;

	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 10), VERDICT_RNR_NAK_SENT);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 202, 10), VERDICT_RNR_WAIT);
	run(p);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 203, 10), VERDICT_RNR_WAIT);
	run(p);
	expect_tx(p, "RNR 201");

	post(p, 1, 0x1000, 64);
	post(p, 2, 0x2000, 64);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 203, 10), VERDICT_RNR_WAIT);
	run(p);
	expect_silence(p);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 10), VERDICT_REQUEST);
	run(p);
	expect_tx(p, "ACK 201");
	/* ePSN was seen: from here on a gap is a sequence error again */
	assert_int_equal(in_send(p, RC_SEND_ONLY, 203, 10), VERDICT_NAK_SENT);
	run(p);
	expect_tx(p, "NAK-SEQ 202");
	assert_int_equal(counters_of(p).send_seq_err, 1);
}

static void
test_epsn_again_without_a_receive_gets_another_rnr_nak(void **state)
{
	struct peer *p = *state;

	in_send(p, RC_SEND_ONLY, 201, 10);
	run(p);
	expect_tx(p, "RNR 201");
	in_send(p, RC_SEND_ONLY, 201, 10);
	run(p);
	expect_tx(p, "RNR 201");
	assert_int_equal(counters_of(p).send_rnr_err, 2);
	post(p, 1, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 201, 10);
	run(p);
	expect_tx(p, "ACK 201");
	expect_wc(p, 1, WC_SUCCESS, NULL);
}

/* seed 001: "it does respond to duplicate requests" */
static void
test_duplicates_are_served_meanwhile(void **state)
{
	struct peer *p = *state;

	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 16, 16);
	in_read(p, 202, 0x2000, 16);
	run(p);
	expect_tx(p, "ONLY 202"); /* it acknowledges 201, too */
	in_send(p, RC_SEND_ONLY, 203, 10);
	run(p);
	expect_tx(p, "RNR 203");
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 201, 0x1000, 16, 16),
		VERDICT_DUPLICATE_REQUEST);
	assert_int_equal(in_read(p, 202, 0x2000, 16), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ACK 201", "ONLY 202");
	/* duplicates do not end the RNR wait */
	assert_int_equal(in_send(p, RC_SEND_ONLY, 204, 10), VERDICT_RNR_WAIT);
	run(p);
	expect_silence(p);
}

/* all earlier accepted requests are answered first */
static void
test_rnr_nak_waits_for_pending_reads(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 3 * MTU);
	in_send(p, RC_SEND_ONLY, 204, 10);
	assert_int_equal(run_slice(p, 2), 2);
	expect_tx(p, "FIRST 201", "MIDDLE 202");
	run(p);
	expect_tx(p, "LAST 203", "RNR 204");
}

/*
 * The receive is posted and the request repeated before the RNR NAK is sent: it is not sent. But if
 * later requests were dropped meanwhile, a sequence NAK asks for them.
 */
static void
test_rnr_nak_not_yet_sent_is_void_when_the_request_is_served(void **state)
{
	struct peer *p = *state;

	in_send(p, RC_SEND_ONLY, 201, 10);
	post(p, 1, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 201, 10);
	run(p);
	expect_tx(p, "ACK 201");

	in_send(p, RC_SEND_ONLY, 202, 10);
	in_send(p, RC_SEND_ONLY, 203, 10); /* dropped */
	post(p, 2, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 202, 10);
	run(p);
	expect_tx(p, "ACK 202", "NAK-SEQ 203");
	assert_int_equal(counters_of(p).send_rnr_err, 0);

	/* dropped before the RNR, for a sequence error whose NAK was not sent either */
	post(p, 3, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 203, 10);
	run(p);
	expect_tx(p, "ACK 203");
	in_send(p, RC_SEND_ONLY, 206, 10);
	in_send(p, RC_SEND_ONLY, 204, 10);
	post(p, 4, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 204, 10);
	run(p);
	expect_tx(p, "ACK 204", "NAK-SEQ 205");

	/* packets dropped long before do not count */
	post(p, 5, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 205, 10);
	run(p);
	expect_tx(p, "ACK 205");
	in_send(p, RC_SEND_ONLY, 290, 10);
	run(p);
	expect_tx(p, "NAK-SEQ 206");
	in_send(p, RC_SEND_ONLY, 206, 10);
	post(p, 6, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 206, 10);
	run(p);
	expect_tx(p, "ACK 206");
}

/* table 17-6: code 0 means 655.36 ms */
static void
test_timer_code_0_is_sent_as_it_is(void **state)
{
	struct peer *p = *state;
	struct qp_attr attr = { .qp_state = QPS_RTS, .min_rnr_timer = 0 };
	struct error err;

	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr,
				 QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
					 QP_ATTR_RNR_RETRY | QP_ATTR_SQ_PSN |
					 QP_ATTR_MAX_QP_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
				 &err),
		0);
	in_send(p, RC_SEND_ONLY, 201, 10);
	run(p);
	expect_tx(p, "RNR 201");
	assert_int_equal(answered(p, 0)->syndrome, 0x20);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)
	const struct CMUnitTest tests[] = {
		T(test_send_without_receive_gets_rnr_nak_with_the_qps_timer),
		T(test_empty_receive_queue_asks_for_receives_once),
		T(test_completed_receives_are_not_used_again),
		T(test_write_with_immediate_takes_its_receive_at_the_last_packet),
		T(test_later_psns_are_dropped_without_a_sequence_nak),
		T(test_epsn_again_without_a_receive_gets_another_rnr_nak),
		T(test_duplicates_are_served_meanwhile),
		T(test_rnr_nak_waits_for_pending_reads),
		T(test_rnr_nak_not_yet_sent_is_void_when_the_request_is_served),
		T(test_timer_code_0_is_sent_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
