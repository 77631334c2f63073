/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Duplicate requests: rc-transport 7, rc-cases */

#include <string.h>

#include "peer.h"
#include "rc/qp_directory.h"

/* A duplicate Send is not executed again; the ACK has the newest PSN, ePSN - 1. */
static void
test_duplicate_send_is_not_executed_but_acknowledged(void **state)
{
	struct peer *p = *state;

	post(p, 1, 0x1000, 64);
	post(p, 2, 0x2000, 64);
	in_send(p, RC_SEND_ONLY, 201, 32);
	in_write(p, RC_WRITE_ONLY, 202, 0x3000, 8, 8);
	run(p);
	expect_tx(p, "ACK 202");
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 32), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ACK 202");
	assert_int_equal(answered(p, 0)->msn, 2);
	expect_wc(p, 1, WC_SUCCESS, NULL);
	expect_no_wc(p);
	assert_int_equal(epsn_of(p), 203);
	assert_int_equal(counters_of(p).duplicate_request, 1);
	assert_int_equal(counters_of(p).rx_send_requests, 1);
	assert_memory_not_equal(p->bytes + 0x2001, pattern + 1, 31);
}

static void
test_duplicate_write_moves_no_byte(void **state)
{
	struct peer *p = *state;

	in_write(p, RC_WRITE_ONLY, 201, 0x3000, 8, 8);
	memset(p->bytes + 0x3000, 0, 8);
	in_write(p, RC_WRITE_ONLY, 201, 0x3000, 8, 8);
	run(p);
	expect_tx(p, "ACK 201");
	assert_int_equal(p->bytes[0x3001], 0);
}

/*
 * rc-cases: "READ 20-22, WRITE First 23, then duplicate READ 20, duplicate WRITE 23, WRITE Middle
 * 24: the duplicate READ does not disturb the opcode sequence: Middle 24 is accepted"
 */
static void
test_duplicates_do_not_disturb_the_opcode_sequence(void **state)
{
	struct peer *p;

	peer_destroy(*state);
	*state = p = peer_create(&(struct peer_config){ .psn = 20 });
	in_read(p, 20, 0, 3 * MTU);
	run(p);
	in_write(p, RC_WRITE_FIRST, 23, 0x1000, 3 * MTU, MTU);
	run(p);
	expect_tx(p, "FIRST 20", "MIDDLE 21", "LAST 22", "ACK 23");
	assert_int_equal(in_read(p, 20, 0, 3 * MTU), VERDICT_DUPLICATE_REQUEST);
	assert_int_equal(in_write(p, RC_WRITE_FIRST, 23, 0x1000, 3 * MTU, MTU),
		VERDICT_DUPLICATE_REQUEST);
	assert_int_equal(in_write(p, RC_WRITE_MIDDLE, 24, 0, 0, MTU), VERDICT_REQUEST);
	assert_int_equal(in_write(p, RC_WRITE_LAST, 25, 0, 0, MTU), VERDICT_REQUEST);
	run(p);
	expect_tx(p, "FIRST 20", "MIDDLE 21", "LAST 22", "ACK 25");
	assert_memory_equal(p->bytes + 0x1201, pattern + 1, MTU - 1);
}

/*
 * rc-cases: "WRITE 30 acked, READ 31 answered (both lost), then duplicate WRITE 30: ACK 30, not
 * 31"
 */
static void
test_ack_of_a_duplicate_never_covers_a_newer_read(void **state)
{
	struct peer *p;

	peer_destroy(*state);
	*state = p = peer_create(&(struct peer_config){ .psn = 30 });
	in_write(p, RC_WRITE_ONLY, 30, 0x1000, 8, 8);
	run(p);
	in_read(p, 31, 0, 16);
	run(p);
	expect_tx(p, "ACK 30", "ONLY 31");
	in_write(p, RC_WRITE_ONLY, 30, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 30");
	assert_int_equal(answered(p, 0)->msn, 1);
}

/* The ACK ends before the oldest Read or Atomic that is newer than the duplicate. */
static void
test_ack_of_a_duplicate_ends_before_the_oldest_newer_read_or_atomic(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 2 * MTU); /* older than the duplicate: no limit */
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 204, 0x1000, 8, 8);
	in_fetch_add(p, 205, 0x2000, 1);
	in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8);
	in_read(p, 207, 0, 8);
	in_write(p, RC_WRITE_ONLY, 208, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "FIRST 201", "LAST 202", "ATOMIC 205", "ONLY 207", "ACK 208");
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 204");
	in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 206");
	in_write(p, RC_WRITE_ONLY, 208, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 208");
}

/* The same while a Read is still being answered: nothing is acknowledged out of order. */
static void
test_duplicates_while_reads_are_pending(void **state)
{
	struct peer *p = *state;

	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 201");
	in_read(p, 202, 0, 4 * MTU);
	in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8);
	in_read(p, 207, 0x4000, MTU);
	assert_int_equal(run_slice(p, 2), 2);
	expect_tx(p, "FIRST 202", "MIDDLE 203");

	/* older than both Reads: at once, as ACK 201 acknowledges neither */
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8), VERDICT_DUPLICATE_REQUEST);
	/* between them: after the first, before the second */
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ACK 201", "MIDDLE 204", "LAST 205", "ACK 206", "ONLY 207");
}

/* --- Reads --- */

static bool
is_memory(const struct peer *p, const struct answer *a, uint32_t at)
{
	return memcmp(a->data, p->bytes + at, a->len) == 0;
}

/* "VA advances by (PSN - original PSN) * PMTU" */
static void
test_duplicate_read_restarts_in_the_middle(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0x100, 3 * MTU + 10);
	run(p);
	expect_tx(p, "FIRST 201", "MIDDLE 202", "MIDDLE 203", "LAST 204");
	assert_int_equal(in_read(p, 203, 0x100 + 2 * MTU, MTU + 10), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "FIRST 203", "LAST 204");
	assert_int_equal(answered(p, 0)->len, MTU);
	assert_int_equal(answered(p, 1)->len, 10);
	assert_true(is_memory(p, answered(p, 0), 0x100 + 2 * MTU));
	assert_true(is_memory(p, answered(p, 1), 0x100 + 3 * MTU));
	assert_int_equal(answered(p, 1)->msn, 1);
	assert_int_equal(epsn_of(p), 205);
}

static void
test_duplicate_read_of_a_part(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0x100, 4 * MTU);
	run(p);
	p->answer_next = p->answer_count;
	assert_int_equal(in_read(p, 202, 0x100 + MTU, MTU), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ONLY 202");
	assert_int_equal(answered(p, 0)->len, MTU);
	assert_int_equal(in_read(p, 202, 0x100 + MTU, MTU + 1), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "FIRST 202", "LAST 203");
	assert_int_equal(answered(p, 1)->len, 1);
}

/*
 * rc-cases: "Duplicate READ with another R_Key or a range outside the original: dropped, never
 * NAKed"
 */
static void
test_duplicate_read_outside_the_saved_one_is_dropped(void **state)
{
	struct peer *p = *state;
	uint32_t other = peer_register(p, PEER_VA, 0, PEER_MEM, MEM_ACCESS_REMOTE_READ);

	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_read(p, 202, 0x100, 3 * MTU);
	run(p);
	p->answer_next = p->answer_count;

	request(p, RC_READ_REQUEST, 202)->rkey = other;
	p->pkt.va = PEER_VA + 0x100;
	p->pkt.dmalen = 3 * MTU;
	assert_int_equal(feed(p), VERDICT_DUPLICATE_READ);
	assert_int_equal(in_read(p, 202, 0x100, 3 * MTU + 1), VERDICT_DUPLICATE_READ);
	assert_int_equal(in_read(p, 202, 0xF0, 16), VERDICT_DUPLICATE_READ);
	assert_int_equal(in_read(p, 203, 0x100, 16), VERDICT_DUPLICATE_READ);
	assert_int_equal(in_read(p, 204, 0x100 + 2 * MTU, MTU + 1), VERDICT_DUPLICATE_READ);
	assert_int_equal(in_read(p, 202, 0x100, UINT32_MAX), VERDICT_DUPLICATE_READ);
	assert_int_equal(in_read(p, 201, 0x1000, 8),
		VERDICT_DUPLICATE_READ); /* PSN 201 was a Write */
	assert_int_equal(in_read(p, 150, 0x100, 16),
		VERDICT_DUPLICATE_READ); /* PSN 150 was never used */
	run(p);
	expect_silence(p);
	assert_int_equal(state_of(p), QPS_RTR);
	expect_no_event(p);
}

static void
test_duplicate_read_is_dropped_once_overwritten_in_the_ring(void **state)
{
	struct peer *p = *state;
	uint32_t i;

	for (i = 0; i < 5; i++) { /* max_dest_rd_atomic is 4 */
		in_read(p, 201 + i, 0, 8);
		run(p);
	}
	p->answer_next = p->answer_count;
	assert_int_equal(in_read(p, 201, 0, 8), VERDICT_DUPLICATE_READ);
	assert_int_equal(in_read(p, 202, 0, 8), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ONLY 202");
}

/* "re-check R_Key but never NAK" */
static void
test_replay_stops_silently_when_the_region_is_gone(void **state)
{
	struct peer *p = *state;
	uint32_t key = peer_register(p, 0x10000, 0, 0x1000, MEM_ACCESS_REMOTE_READ);
	struct error err;

	request(p, RC_READ_REQUEST, 201)->rkey = key;
	p->pkt.va = 0x10000;
	p->pkt.dmalen = 4 * MTU;
	feed(p);
	run(p);
	p->answer_next = p->answer_count;
	assert_int_equal(feed(p), VERDICT_DUPLICATE_REQUEST);
	run_slice(p, 1);
	assert_int_equal(mem_mr_deregister(p->mem, key, &err), 0);
	run(p);
	expect_tx(p, "FIRST 201");
	assert_int_equal(state_of(p), QPS_RTR);
	expect_no_event(p);
	assert_int_equal(feed(p), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_silence(p);
	/* other requests are served */
	in_read(p, 205, 0, 8);
	run(p);
	expect_tx(p, "ONLY 205");
}

/*
 * The requester lost response 202 and asks again while responses from 203 on are still being sent.
 */
static void
test_duplicate_of_the_read_being_answered_goes_back(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 5 * MTU);
	assert_int_equal(run_slice(p, 3), 3);
	expect_tx(p, "FIRST 201", "MIDDLE 202", "MIDDLE 203");
	assert_int_equal(in_read(p, 202, MTU, 4 * MTU), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "FIRST 202", "MIDDLE 203", "MIDDLE 204", "LAST 205");
	assert_true(is_memory(p, answered(p, 0), MTU));

	/* asked again from the next response on: the answer to this request begins with First */
	in_read(p, 206, 0, 3 * MTU);
	assert_int_equal(run_slice(p, 1), 1);
	in_read(p, 207, MTU, 2 * MTU);
	run(p);
	expect_tx(p, "FIRST 206", "FIRST 207", "LAST 208");

	/* asked for a later part: the responses under way will contain it */
	in_read(p, 209, 0, 4 * MTU);
	assert_int_equal(run_slice(p, 1), 1);
	assert_int_equal(run_slice(p, 1), 1);
	assert_int_equal(in_read(p, 209, 0, MTU), VERDICT_DUPLICATE_REQUEST);
	assert_int_equal(in_read(p, 212, 3 * MTU, MTU), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "FIRST 209", "MIDDLE 210", "MIDDLE 211", "LAST 212");
}

/* The region is gone: responses sent before are not NAKed, only the first one never sent is. */
static void
test_going_back_in_a_read_of_a_gone_region_naks_what_was_never_sent(void **state)
{
	struct peer *p = *state;
	uint32_t key = peer_register(p, 0x10000, 0, 0x1000, MEM_ACCESS_REMOTE_READ);
	struct error err;

	request(p, RC_READ_REQUEST, 201)->rkey = key;
	p->pkt.va = 0x10000;
	p->pkt.dmalen = 5 * MTU;
	feed(p);
	run_slice(p, 3);
	feed(p);
	assert_int_equal(mem_mr_deregister(p->mem, key, &err), 0);
	run(p);
	expect_tx(p, "FIRST 201", "MIDDLE 202", "MIDDLE 203", "NAK-ACC 204");
	expect_event(p, EVENT_QP_ACCESS_ERR);
}

/* The answer to a duplicate precedes the answers to newer requests. */
static void
test_replay_is_answered_before_newer_requests(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 2 * MTU);
	run(p);
	in_read(p, 203, 0, 3 * MTU);
	run_slice(p, 1);
	expect_tx(p, "FIRST 201", "LAST 202", "FIRST 203");
	in_read(p, 201, 0, 2 * MTU);
	in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "FIRST 201", "LAST 202", "MIDDLE 204", "LAST 205", "ACK 206");
}

/*
 * seed 001: "it must not return a Nak in response to an error condition that may occur while it's
 * processing a duplicate"
 */
static void
test_no_error_in_a_duplicate_is_naked(void **state)
{
	struct peer *p = *state;

	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_fetch_add(p, 202, 0x2000, 1);
	run(p);
	p->answer_next = p->answer_count;

	request(p, 0x15, 201); /* reserved opcode */
	assert_int_equal(feed(p), VERDICT_OPCODE);
	in_write(p, RC_WRITE_MIDDLE, 201, 0, 0, 3); /* sequence and length */
	request(p, RC_WRITE_ONLY, 201)->rkey = 0; /* key */
	p->pkt.dmalen = UINT32_MAX;
	feed(p);
	in_fetch_add(p, 202, 0x2001, 1); /* alignment */
	run(p);
	expect_tx(p, "ACK 201", "ATOMIC 202");
	assert_int_equal(state_of(p), QPS_RTR);
	expect_no_event(p);
	expect_no_wc(p);
}

/* seed 001: duplicates are answered while a sequence NAK is outstanding, and do not end it */
static void
test_duplicates_are_served_while_a_sequence_nak_is_outstanding(void **state)
{
	struct peer *p = *state;

	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 201", "NAK-SEQ 202");
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 204, 0x1000, 8, 8), VERDICT_OUT_OF_SEQUENCE);
	run(p);
	expect_tx(p, "ACK 201");
}

/* -2^23..-1 is duplicate, 1..2^23-1 ahead (rc-transport 4) */
static void
test_duplicate_region_is_half_of_the_psns(void **state)
{
	struct peer *p = *state;

	assert_int_equal(in_write(p, RC_WRITE_ONLY, FIRST_PSN - 1, 0x1000, 8, 8),
		VERDICT_DUPLICATE_REQUEST);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, FIRST_PSN - (1 << 23), 0x1000, 8, 8),
		VERDICT_DUPLICATE_REQUEST);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, FIRST_PSN + (1 << 23) - 1, 0x1000, 8, 8),
		VERDICT_NAK_SENT);
	run(p);
	expect_tx(p, "ACK 200", "NAK-SEQ 201");
}

/* Set ePSN to one that no test has the time to reach by sending packets. */
static void
advance(struct peer *p, uint32_t to)
{
	struct rc_qp *qp = rc_qp_at(p->w, p->qpn);

	qp->resp.epsn = (to - 1) & PSN_MASK;
	assert_int_equal(in_write(p, RC_WRITE_ONLY, to - 1, 0x1000, 8, 8), VERDICT_REQUEST);
	run(p);
	p->answer_count = p->answer_next = 0;
}

/*
 * A saved request answers duplicates until its PSN is 2^23 behind. After that its PSN may belong to
 * a new request, which must not get the saved answer.
 */
static void
test_saved_requests_expire(void **state)
{
	struct peer *p = *state;
	uint32_t half = 1u << 23;

	in_fetch_add(p, 201, 0x2000, 1);
	run(p);
	expect_tx(p, "ATOMIC 201");
	advance(p, 201 + half);
	assert_int_equal(in_fetch_add(p, 201, 0x2000, 1), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ATOMIC 201");

	/* PSNs have wrapped: PSN 201 is another request now */
	advance(p, 202 + half);
	advance(p, 203 + 2 * half);
	assert_int_equal(in_fetch_add(p, 201, 0x2000, 1), VERDICT_DUPLICATE_ATOMIC);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 200, 0x1000, 8, 8), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ACK 202");
}

/* The ACK of a duplicate waits for its turn while new requests overwrite the ring of saved ones. */
static void
test_ack_of_a_duplicate_outlives_the_request_it_precedes(void **state)
{
	struct peer *p = *state;
	uint32_t i;

	peer_destroy(p);
	*state = p = peer_create(&(struct peer_config){ .psn = 201, .ack_per_packet = true });
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	for (i = 0; i < 4; i++)
		in_read(p, 202 + i, 0, 8);
	run(p);
	expect_tx(p, "ACK 201", "ONLY 202", "ONLY 203", "ONLY 204", "ONLY 205");
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_read(p, 206, 0, 8); /* overwrites Read 202 */
	run(p);
	expect_tx(p, "ACK 201", "ONLY 206");
	/* a ring of one entry: the ACK precedes the answer of the request that overwrites it */
	peer_destroy(p);
	*state = p = peer_create(&(struct peer_config){
		.psn = 201,
		.rd_atomic = 1,
		.ack_per_packet = true,
	});
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_read(p, 202, 0, 8);
	run(p);
	expect_tx(p, "ACK 201", "ONLY 202");
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_read(p, 203, 0, 8);
	run(p);
	expect_tx(p, "ACK 201", "ONLY 203");
}

/* The ring overwrites the Read between two such ACKs: only the newer ACK is sent. */
static void
test_acks_of_two_duplicates_outlive_the_request_between(void **state)
{
	struct peer *p;

	peer_destroy(*state);
	*state = p = peer_create(&(struct peer_config){
		.psn = 201,
		.rd_atomic = 2,
		.ack_per_packet = true,
	});
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_read(p, 202, 0, 8);
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	in_read(p, 204, 0, 8);
	run(p);
	expect_tx(p, "ACK 201", "ONLY 202", "ACK 203", "ONLY 204");
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	in_read(p, 205, 0, 8); /* overwrites Read 202; ACK 203 includes ACK 201 */
	run(p);
	expect_tx(p, "ACK 203", "ONLY 205");
}

static void
test_duplicate_of_an_empty_read(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 0);
	in_read(p, 202, 0, 8);
	run(p);
	expect_tx(p, "ONLY 201", "ONLY 202");
	assert_int_equal(in_read(p, 201, 0, 0), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "ONLY 201");
	assert_int_equal(in_read(p, 202, 0, 0), VERDICT_DUPLICATE_READ);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)
	const struct CMUnitTest tests[] = {
		T(test_duplicate_send_is_not_executed_but_acknowledged),
		T(test_duplicate_write_moves_no_byte),
		T(test_duplicates_do_not_disturb_the_opcode_sequence),
		T(test_ack_of_a_duplicate_never_covers_a_newer_read),
		T(test_ack_of_a_duplicate_ends_before_the_oldest_newer_read_or_atomic),
		T(test_duplicates_while_reads_are_pending),
		T(test_duplicate_read_restarts_in_the_middle),
		T(test_duplicate_read_of_a_part),
		T(test_duplicate_read_outside_the_saved_one_is_dropped),
		T(test_duplicate_read_is_dropped_once_overwritten_in_the_ring),
		T(test_replay_stops_silently_when_the_region_is_gone),
		T(test_duplicate_of_the_read_being_answered_goes_back),
		T(test_going_back_in_a_read_of_a_gone_region_naks_what_was_never_sent),
		T(test_replay_is_answered_before_newer_requests),
		T(test_no_error_in_a_duplicate_is_naked),
		T(test_duplicates_are_served_while_a_sequence_nak_is_outstanding),
		T(test_duplicate_region_is_half_of_the_psns),
		T(test_saved_requests_expire),
		T(test_ack_of_a_duplicate_outlives_the_request_it_precedes),
		T(test_acks_of_two_duplicates_outlive_the_request_between),
		T(test_duplicate_of_an_empty_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
