/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The completer: what each response does to the requester (rc-transport 4 and 8, rc-cases). The
 * test answers in place of the peer.
 */

#include <string.h>

#include "pair.h"

#define TTR(timeout) (UINT64_C(4096) << (timeout)) /* ns */

static void
completer_forget_sent(struct node *n)
{
	transmit(n);
	n->seen = n->sent_count;
}

/* --- positive ACKs --- */

/* rc-transport 4: an ACK acknowledges every PSN up to its own; completions come in posting order */
static void
test_ack_acknowledges_all_earlier_psns(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 600);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	transmit(&p->a);
	assert_int_equal(ack(p, 203), VERDICT_RESPONSE); /* in the middle of request 2 */
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_no_wc(&p->a);
	assert_int_equal(info_of(&p->a).sq_unacked, 2);
	assert_int_equal(ack(p, 205), VERDICT_RESPONSE);
	expect_wc(&p->a, 2, WC_SUCCESS);
	expect_wc(&p->a, 3, WC_SUCCESS);
}

/*
 * The same for a peer whose first ACK said that it counts no credits. An ACK may end in the middle
 * of a message, completes unsignaled requests silently, and does not complete a Read (rc-transport
 * 4).
 */
static void
test_ack_acknowledges_up_to_a_read(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	assert_int_equal(ack(p, 201), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	post(&p->a, WR_SEND, 2, 1); /* 202 */
	post_flags(&p->a, WR_RDMA_WRITE, 3, 1, 0); /* 203 */
	post(&p->a, WR_RDMA_WRITE, 4, 600); /* 204 to 206 */
	post(&p->a, WR_SEND, 5, 1); /* 207 */
	post(&p->a, WR_RDMA_READ, 6, 1); /* 208 */
	transmit(&p->a);
	assert_int_equal(ack(p, 204), VERDICT_RESPONSE);
	expect_wc(&p->a, 2, WC_SUCCESS);
	expect_no_wc(&p->a);
	assert_int_equal(info_of(&p->a).sq_unacked, 4);
	assert_int_equal(ack(p, 204), VERDICT_DUPLICATE_RESPONSE);
	assert_int_equal(ack(p, 205), VERDICT_RESPONSE); /* all but the last packet */
	expect_no_wc(&p->a);
	assert_int_equal(info_of(&p->a).sq_unacked, 3);
	assert_int_equal(ack(p, 209), VERDICT_GHOST_RESPONSE);
	assert_int_equal(ack(p, 208), VERDICT_IMPLIED_NAK);
	expect_wc(&p->a, 4, WC_SUCCESS);
	expect_wc(&p->a, 5, WC_SUCCESS);
	expect_no_wc(&p->a);
	assert_int_equal(info_of(&p->a).sq_unacked, 1);
}

/*
 * An ACK that retires a request reloads the retry counter and restarts the timer (rc-transport 8).
 */
static void
test_ack_reloads_retries_and_timer(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	assert_int_equal(ack(p, 201), VERDICT_RESPONSE);
	post(&p->a, WR_SEND, 2, 1); /* 202 */
	post(&p->a, WR_SEND, 3, 1); /* 203 */
	transmit(&p->a);
	assert_int_equal(nak(p, 0x60, 202), VERDICT_RESPONSE);
	assert_int_equal(info_of(&p->a).retry_left, 6);
	transmit(&p->a);
	assert_int_equal(ack(p, 202), VERDICT_RESPONSE);
	assert_int_equal(info_of(&p->a).retry_left, 7);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_SUCCESS);
	expect_no_wc(&p->a);
}

/* rc-cases: an ACK for a PSN that was never sent or is retired is counted and dropped. */
static void
test_ghost_and_duplicate_acks(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	assert_int_equal(ack(p, 202), VERDICT_GHOST_RESPONSE);
	assert_int_equal(ack(p, 1000), VERDICT_GHOST_RESPONSE);
	expect_no_wc(&p->a);
	assert_int_equal(ack(p, 201), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	assert_int_equal(ack(p, 201), VERDICT_DUPLICATE_RESPONSE);
	assert_int_equal(ack(p, 150), VERDICT_DUPLICATE_RESPONSE);
	expect_no_wc(&p->a);
	assert_int_equal(state_of(&p->a), QPS_RTS);
}

/*
 * rc-transport 4: the newest ACK received again is a response if it has new credits, else a
 * duplicate
 */
static void
test_newest_ack_received_again(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_SEND, 1, 1);
	transmit(&p->a);
	assert_int_equal(ack_credits(p, 201, 1, 4), VERDICT_RESPONSE); /* LSN 5 */
	assert_int_equal(ack_credits(p, 201, 1, 4), VERDICT_DUPLICATE_RESPONSE);
	assert_int_equal(ack_credits(p, 201, 1, 3), VERDICT_DUPLICATE_RESPONSE);
	assert_int_equal(ack_credits(p, 201, 1, 5), VERDICT_RESPONSE);
}

/* rc-cases: NAK for a PSN outside the window: dropped, of every kind */
static void
test_ghost_naks(void **state)
{
	static const uint8_t naks[] = { 0x2C, 0x60, 0x61, 0x62, 0x63 };
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	ack(p, 201);
	completer_forget_sent(&p->a);
	for (i = 0; i < 5; i++) {
		assert_int_equal(nak(p, naks[i], 201), VERDICT_DUPLICATE_RESPONSE);
		assert_int_equal(nak(p, naks[i], 203), VERDICT_GHOST_RESPONSE);
	}
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(state_of(&p->a), QPS_RTS);
	assert_int_equal(info_of(&p->a).retry_left, 7);
	assert_int_equal(info_of(&p->a).rnr_left, 7);
	/* they do not count as NAKs received, as anybody may have sent them */
	assert_int_equal(counters_of(&p->a).rcvd_seq_err, 0);
	assert_int_equal(counters_of(&p->a).rcvd_rnr_err, 0);
}

/* A NAK behind a Read without a response: the response is lost, and the Read is sent again. */
static void
test_nak_behind_a_lost_response(void **state)
{
	static const uint8_t naks[] = { 0x61, 0x62, 0x63 };
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_RDMA_READ, 1, 1); /* 201 */
	post(&p->a, WR_RDMA_WRITE, 2, 1); /* 202 */
	transmit(&p->a);
	completer_forget_sent(&p->a);
	for (i = 0; i < 3; i++)
		assert_int_equal(nak(p, naks[i], 202), VERDICT_IMPLIED_NAK);
	assert_int_equal(state_of(&p->a), QPS_RTS);
	assert_int_equal(counters_of(&p->a).req_remote_access_errors, 0);
	expect_no_wc(&p->a);
}

/* rc-transport 3: syndromes 010xxxxx, 1xxxxxxx and NAK codes 4 to 31 are reserved: dropped */
static void
test_reserved_syndromes(void **state)
{
	static const uint8_t reserved[] = { 0x40, 0x5F, 0x64, 0x65, 0x7F, 0x80, 0xFF };
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	for (i = 0; i < sizeof(reserved); i++)
		assert_int_equal(nak(p, reserved[i], 201), VERDICT_SYNDROME);
	expect_no_wc(&p->a);
	assert_int_equal(state_of(&p->a), QPS_RTS);
}

/*
 * rc-transport 2: an Acknowledge and an Atomic Acknowledge have no payload: dropped, of every kind
 */
static void
test_acknowledge_with_payload_is_dropped(void **state)
{
	static const uint8_t syndromes[] = { 31, 0x2C, 0x60, 0x61, 0x62, 0x63 };
	const uint8_t bytes[4] = { 0 };
	struct wire_headers h = { .opcode = RC_ACK, .psn = 201 };
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_ATOMIC_FETCH_AND_ADD, 2, 8);
	completer_forget_sent(&p->a);
	for (i = 0; i < sizeof(syndromes); i++) {
		h.syndrome = syndromes[i];
		assert_int_equal(answer(p, &h, bytes, 4), VERDICT_ACK_PAYLOAD);
	}
	assert_int_equal(answer(p, &h, bytes, 1), VERDICT_ACK_PAYLOAD);
	h = (struct wire_headers){ .opcode = RC_ATOMIC_ACK, .psn = 202, .syndrome = 31 };
	assert_int_equal(answer(p, &h, bytes, 4), VERDICT_ACK_PAYLOAD);
	expect_no_wc(&p->a);
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(state_of(&p->a), QPS_RTS);
	assert_int_equal(ack(p, 201), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	assert_int_equal(answer(p, &h, NULL, 0), VERDICT_RESPONSE);
	expect_wc(&p->a, 2, WC_SUCCESS);
}

/* --- ACKs never complete a Read or an Atomic --- */

/*
 * rc-cases: WRITE 40, READ 41, WRITE 42; ACK 42 arrives, READ response lost: the READ is retried,
 * then 42
 */
static void
test_ack_past_read_is_implied_nak(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.psn = 40,
		.retry_cnt = 7,
		.scripted = true,
	});

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_READ, 2, 1);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 40", "READ Request 41", "WRITE Only 42");
	assert_int_equal(ack(p, 42), VERDICT_IMPLIED_NAK);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_no_wc(&p->a);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 41", "WRITE Only 42");
	assert_int_equal(counters_of(&p->a).implied_nak_seq_err, 1);
	assert_int_equal(info_of(&p->a).retry_left, 6);
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 41, 0, 1), VERDICT_RESPONSE);
	expect_wc(&p->a, 2, WC_SUCCESS);
	assert_int_equal(ack(p, 42), VERDICT_RESPONSE);
	expect_wc(&p->a, 3, WC_SUCCESS);
}

/*
 * The same for an Atomic. Further ACKs of packets sent before the rewind cause no second rewind:
 * one round, one retry.
 */
static void
test_implied_nak_counts_once_a_round(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	post(&p->a, WR_RDMA_WRITE, 4, 1);
	transmit(&p->a);
	expect_tx(&p->a, "FetchAdd 201", "WRITE Only 202", "WRITE Only 203", "WRITE Only 204");
	assert_int_equal(ack(p, 202), VERDICT_IMPLIED_NAK);
	assert_int_equal(ack(p, 203), VERDICT_IMPLIED_NAK);
	transmit(&p->a);
	expect_tx(&p->a, "FetchAdd 201", "WRITE Only 202", "WRITE Only 203", "WRITE Only 204");
	assert_int_equal(ack(p, 204), VERDICT_IMPLIED_NAK); /* of a packet sent before the rewind */
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(info_of(&p->a).retry_left, 6);
	assert_int_equal(counters_of(&p->a).completer_retry_err, 1);
	/* a lower PSN is of a packet sent again: the second answer was lost, too */
	assert_int_equal(ack(p, 202), VERDICT_IMPLIED_NAK);
	transmit(&p->a);
	expect_tx(&p->a, "FetchAdd 201", "WRITE Only 202", "WRITE Only 203", "WRITE Only 204");
	assert_int_equal(info_of(&p->a).retry_left, 5);
}

/*
 * ACKs of duplicates all have the newest PSN. They are one gap, and cause one rewind, until a
 * request sent again is answered. They do not restart the transport timer, which detects a second
 * loss.
 */
static void
test_equal_acks_are_one_gap(void **state)
{
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_RDMA_READ, 1, 1);
	post(&p->a, WR_RDMA_READ, 2, 1);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	post(&p->a, WR_RDMA_WRITE, 4, 1);
	completer_forget_sent(&p->a);
	assert_int_equal(ack(p, 204), VERDICT_IMPLIED_NAK); /* both answers are lost */
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 201", "READ Request 202", "WRITE Only 203",
		"WRITE Only 204");
	for (i = 0; i < 8; i++) { /* lost again; some duplicate Writes are acknowledged */
		pass(p, TTR(14) / 10);
		assert_int_equal(ack(p, 204), VERDICT_IMPLIED_NAK);
		transmit(&p->a);
		expect_silence(&p->a);
	}
	assert_int_equal(info_of(&p->a).retry_left, 6);
	pass(p, TTR(14) - 8 * (TTR(14) / 10));
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 201", "READ Request 202", "WRITE Only 203",
		"WRITE Only 204");
	for (i = 0; i < 8; i++) /* ACKs of the packets that the timer sent again */
		assert_int_equal(ack(p, 204), VERDICT_IMPLIED_NAK);
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(info_of(&p->a).retry_left, 5);
	/* after this answer, the missing answer of the second Read is a gap of its own */
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 201, 0, 1), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	assert_int_equal(info_of(&p->a).retry_left, 7);
	assert_int_equal(ack(p, 204), VERDICT_IMPLIED_NAK);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 202", "WRITE Only 203", "WRITE Only 204");
	assert_int_equal(info_of(&p->a).retry_left, 6);
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 202, 0, 1), VERDICT_RESPONSE);
	assert_int_equal(ack(p, 204), VERDICT_RESPONSE);
	for (i = 2; i <= 4; i++)
		expect_wc(&p->a, i, WC_SUCCESS);
	assert_int_equal(counters_of(&p->a).local_ack_timeout_err, 1);
}

/*
 * Between the equal ACKs of duplicate Writes come the responses of later Reads, with lower PSNs.
 * They are compared with each other only: one lost response costs one retry in each flight, however
 * many Reads follow it.
 */
static void
test_acks_and_responses_are_compared_apart(void **state)
{
	struct pair *p = *state;
	unsigned int flight, i;

	for (i = 0; i < 4; i++) {
		post(&p->a, WR_RDMA_READ, i, 1); /* 201, 203, 205, 207 */
		post(&p->a, WR_RDMA_WRITE, i, 1); /* 202, 204, 206, 208 */
	}
	completer_forget_sent(&p->a);
	for (flight = 0; flight < 3; flight++) { /* the response to 201 is lost each time */
		for (i = 0; i < 4; i++) {
			if (i > 0)
				assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 201 + 2 * i, 0,
							 1),
					VERDICT_IMPLIED_NAK);
			assert_int_equal(ack(p, flight == 0 ? 202 + 2 * i : 208),
				VERDICT_IMPLIED_NAK);
			transmit(&p->a);
		}
		assert_int_equal(info_of(&p->a).retry_left, 6 - flight);
		completer_forget_sent(&p->a);
	}
	assert_int_equal(counters_of(&p->a).completer_retry_err, 3);
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 201, 0, 1), VERDICT_RESPONSE);
	assert_int_equal(info_of(&p->a).retry_left, 7);
}

/* An ACK that was overtaken by a newer one changes nothing before the rewind has begun. */
static void
test_overtaken_ack_before_the_rewind(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	completer_forget_sent(&p->a);
	assert_int_equal(ack(p, 203), VERDICT_IMPLIED_NAK);
	assert_int_equal(ack(p, 202), VERDICT_IMPLIED_NAK);
	assert_int_equal(info_of(&p->a).retry_left, 6);
	transmit(&p->a);
	expect_tx(&p->a, "FetchAdd 201", "WRITE Only 202", "WRITE Only 203");
}

/* A Read response or Atomic ACK acknowledges all earlier Sends and Writes (seed 002). */
static void
test_read_response_acks_earlier_writes(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_READ, 2, 600);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	post(&p->a, WR_ATOMIC_CMP_AND_SWP, 4, 8);
	transmit(&p->a);
	assert_int_equal(read_response(p, RC_READ_RESP_FIRST, 202, 0, 256), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_no_wc(&p->a);
	read_response(p, RC_READ_RESP_MIDDLE, 203, 256, 256);
	read_response(p, RC_READ_RESP_LAST, 204, 512, 88);
	expect_wc(&p->a, 2, WC_SUCCESS);
	assert_int_equal(answer(p,
				 &(struct wire_headers){
					 .opcode = RC_ATOMIC_ACK,
					 .psn = 206,
					 .syndrome = 31,
					 .atomic_orig = 0x1122334455667788,
				 },
				 NULL, 0),
		VERDICT_RESPONSE);
	expect_wc(&p->a, 3, WC_SUCCESS);
	assert_int_equal(expect_wc(&p->a, 4, WC_SUCCESS).opcode, WC_COMP_SWAP);
	/* host byte order */
	assert_int_equal(*(uint64_t *)p->a.bytes, 0x1122334455667788);
}

/* --- Read responses --- */

/*
 * rc-cases: Read response k is lost: drop the later ones, ask again from the missing PSN with VA
 * and length advanced; the answer begins with First or Only.
 */
static void
test_partial_read_restart(void **state)
{
	struct pair *p = *state;
	struct packet pkt;

	memset(p->a.bytes, 0, 2000);
	post(&p->a, WR_RDMA_READ, 1, 1000); /* 201 to 204 */
	completer_forget_sent(&p->a);
	read_response(p, RC_READ_RESP_FIRST, 201, 0, 256);
	assert_int_equal(read_response(p, RC_READ_RESP_MIDDLE, 203, 512, 256),
		VERDICT_READ_OUT_OF_ORDER);
	assert_int_equal(p->a.bytes[512], 0); /* not placed */
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 202");
	pkt = sent_packet(&p->a, 0);
	assert_int_equal(pkt.va, p->b.va + 256);
	assert_int_equal(pkt.dmalen, 744);
	assert_true(pkt.ackreq);
	/* the last response to the first request comes late: the same gap, no second retry */
	assert_int_equal(read_response(p, RC_READ_RESP_LAST, 204, 768, 232),
		VERDICT_READ_OUT_OF_ORDER);
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(info_of(&p->a).retry_left, 6);
	/* both responses count, also those of the Read that lacks one */
	assert_int_equal(counters_of(&p->a).implied_nak_seq_err, 2);

	assert_int_equal(read_response(p, RC_READ_RESP_FIRST, 202, 256, 256), VERDICT_RESPONSE);
	assert_int_equal(read_response(p, RC_READ_RESP_MIDDLE, 203, 512, 256), VERDICT_RESPONSE);
	/* now the last response is lost: ask for it alone */
	pass(p, TTR(14));
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 204");
	assert_int_equal(sent_packet(&p->a, 0).dmalen, 232);
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 204, 768, 232), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	assert_memory_equal(p->a.bytes, p->b.bytes, 1000);
}

/*
 * After a restart, responses to the first request of the same Read may still arrive. Their bytes
 * are valid.
 */
static void
test_late_answer_after_restart(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_READ, 1, 700); /* 201 to 203 */
	completer_forget_sent(&p->a);
	read_response(p, RC_READ_RESP_FIRST, 201, 0, 256);
	pass(p, TTR(14));
	completer_forget_sent(&p->a); /* asks from 202 */
	assert_int_equal(read_response(p, RC_READ_RESP_MIDDLE, 202, 256, 256), VERDICT_RESPONSE);
	assert_int_equal(read_response(p, RC_READ_RESP_LAST, 203, 512, 188), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	/* then the responses to the restart are duplicates */
	assert_int_equal(read_response(p, RC_READ_RESP_FIRST, 202, 256, 256),
		VERDICT_DUPLICATE_RESPONSE);
	assert_memory_equal(p->a.bytes, p->b.bytes, 700);
}

/* A response with a later PSN than expected is a gap, also if it belongs to another Read. */
static void
test_response_of_a_later_read_is_a_gap(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_READ, 1, 1);
	post(&p->a, WR_RDMA_READ, 2, 1);
	completer_forget_sent(&p->a);
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 202, 0, 1), VERDICT_IMPLIED_NAK);
	expect_no_wc(&p->a);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 201", "READ Request 202");
}

/* rc-transport 8: data too long or short, wrong opcode of the sequence, wrong AETH: BAD_RESP_ERR */
static void
test_bad_read_responses(void **state)
{
	static const struct {
		uint32_t len; /* of the Read */
		uint8_t opcode; /* of the response to 201 */
		uint32_t payload;
		uint8_t syndrome;
	} bad[] = {
		{ 600, RC_READ_RESP_FIRST, 255, 31 },
		{ 600, RC_READ_RESP_FIRST, 257, 31 },
		{ 600, RC_READ_RESP_MIDDLE, 256, 31 },
		{ 600, RC_READ_RESP_LAST, 256, 31 },
		{ 600, RC_READ_RESP_ONLY, 256, 31 },
		{ 100, RC_READ_RESP_ONLY, 99, 31 },
		{ 100, RC_READ_RESP_ONLY, 101, 31 },
		{ 100, RC_READ_RESP_FIRST, 256, 31 },
		{ 100, RC_READ_RESP_LAST, 100, 31 },
		{ 0, RC_READ_RESP_ONLY, 1, 31 },
		{ 100, RC_READ_RESP_ONLY, 100, 0x62 },
		{ 100, RC_READ_RESP_ONLY, 100, 0x2C },
	};
	struct pair *p;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p = pair_create(&(struct pair_config){ .retry_cnt = 7, .scripted = true });
		memset(p->a.bytes, 0, 1000);
		post(&p->a, WR_RDMA_READ, 1, bad[i].len);
		post(&p->a, WR_RDMA_WRITE, 2, 1);
		transmit(&p->a);
		assert_int_equal(answer(p,
					 &(struct wire_headers){
						 .opcode = bad[i].opcode,
						 .psn = 201,
						 .syndrome = bad[i].syndrome,
					 },
					 p->b.bytes, bad[i].payload),
			VERDICT_RESPONSE);
		expect_wc(&p->a, 1, WC_BAD_RESP_ERR);
		expect_wc(&p->a, 2, WC_WR_FLUSH_ERR);
		assert_int_equal(state_of(&p->a), QPS_ERR);
		assert_int_equal(p->a.bytes[1], 0); /* nothing placed */
		pair_destroy(p);
	}
	*state = NULL;
}

/* A later response of a Read must not be First or Only, unless the request was restarted there. */
static void
test_read_opcode_sequence(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_READ, 1, 600);
	transmit(&p->a);
	read_response(p, RC_READ_RESP_FIRST, 201, 0, 256);
	read_response(p, RC_READ_RESP_FIRST, 202, 256, 256);
	expect_wc(&p->a, 1, WC_BAD_RESP_ERR);
}

/* an Atomic ACK for a Read, a Read response for an Atomic: BAD_RESP_ERR */
static void
test_answer_of_the_wrong_kind(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_READ, 1, 8);
	transmit(&p->a);
	answer(p, &(struct wire_headers){ .opcode = RC_ATOMIC_ACK, .psn = 201, .syndrome = 31 },
		NULL, 0);
	expect_wc(&p->a, 1, WC_BAD_RESP_ERR);
	pair_destroy(p);
	*state = p = pair_create(&(struct pair_config){ .scripted = true });
	post(&p->a, WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	transmit(&p->a);
	read_response(p, RC_READ_RESP_ONLY, 201, 0, 8);
	expect_wc(&p->a, 1, WC_BAD_RESP_ERR);
}

/* rc-cases: READ response with no READ outstanding: counted and dropped; QP stays up */
static void
test_answer_without_a_read(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 202, 0, 1), VERDICT_GHOST_RESPONSE);
	assert_int_equal(read_response(p, RC_READ_RESP_MIDDLE, 203, 0, 256),
		VERDICT_GHOST_RESPONSE);
	assert_int_equal(answer(p,
				 &(struct wire_headers){
					 .opcode = RC_ATOMIC_ACK,
					 .psn = 201,
					 .syndrome = 31,
				 },
				 NULL, 0),
		VERDICT_GHOST_RESPONSE);
	expect_no_wc(&p->a); /* it acknowledges nothing */
	assert_int_equal(ack(p, 202), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_SUCCESS);
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 202, 0, 1),
		VERDICT_DUPLICATE_RESPONSE);
}

/* A Read response or Atomic ACK with a reserved syndrome is dropped. */
static void
test_reserved_syndrome_in_answer(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_READ, 1, 8);
	transmit(&p->a);
	assert_int_equal(answer(p,
				 &(struct wire_headers){
					 .opcode = RC_READ_RESP_ONLY,
					 .psn = 201,
					 .syndrome = 0x40,
				 },
				 p->b.bytes, 8),
		VERDICT_SYNDROME);
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 201, 0, 8), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
}

/*
 * rc-transport 8: Read data cannot be placed, as its local key is wrong or deregistered:
 * LOC_PROT_ERR.
 */
static void
test_scatter_fails_locally(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	make_wr(&p->a, &wr, &sge, WR_RDMA_READ, 1, 300);
	sge.addr += PAIR_MEM - 256;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	assert_int_equal(read_response(p, RC_READ_RESP_FIRST, 201, 0, 256), VERDICT_RESPONSE);
	expect_no_wc(&p->a);
	read_response(p, RC_READ_RESP_LAST, 202, 256, 44);
	expect_wc(&p->a, 1, WC_LOC_PROT_ERR);
	expect_wc(&p->a, 2, WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(&p->a), QPS_ERR);
}

/* A region without local write takes no Read data. */
static void
test_scatter_needs_local_write(void **state)
{
	struct pair *p = *state;
	struct mem_mr_attr mr = {
		.pd = p->a.pd,
		.length = 4096,
		.va = p->a.va,
		.backing = MEM_EXTERNAL,
		.base = p->a.bytes,
		.numa_node = -1,
	};
	struct mem_mr_info info;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	assert_int_equal(mem_mr_register(p->a.mem, &mr, &info, &err), 0);
	memset(p->a.bytes, 0, 8);
	make_wr(&p->a, &wr, &sge, WR_RDMA_READ, 1, 8);
	sge.lkey = info.key;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	transmit(&p->a);
	read_response(p, RC_READ_RESP_ONLY, 201, 8, 8);
	expect_wc(&p->a, 1, WC_LOC_PROT_ERR);
	assert_int_equal(p->a.bytes[1], 0);
	/* but a Send may read from it */
	pair_destroy(p);
	*state = p = pair_create(&(struct pair_config){ .scripted = true });
	mr.pd = p->a.pd;
	mr.base = p->a.bytes;
	assert_int_equal(mem_mr_register(p->a.mem, &mr, &info, &err), 0);
	make_wr(&p->a, &wr, &sge, WR_SEND, 1, 8);
	sge.lkey = info.key;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
}

/* Read data fills a scatter list across its entries; a restart continues where it stopped. */
static void
test_scatter_list(void **state)
{
	struct pair *p = *state;
	struct sge list[3] = {
		{ p->a.va + 100, 200, p->a.key },
		{ p->a.va + 1000, 100, p->a.key },
		{ p->a.va + 2000, 300, p->a.key },
	};
	struct send_wr wr = {
		.wr_id = 1,
		.opcode = WR_RDMA_READ,
		.num_sge = 3,
		.sg_list = list,
		.send_flags = SEND_SIGNALED,
		.remote_addr = p->b.va,
		.rkey = p->b.key,
	};
	struct error err = { "" };

	memset(p->a.bytes, 0, 4000);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	transmit(&p->a);
	read_response(p, RC_READ_RESP_FIRST, 201, 0, 256);
	pass(p, TTR(14));
	transmit(&p->a);
	read_response(p, RC_READ_RESP_FIRST, 202, 256, 256);
	read_response(p, RC_READ_RESP_LAST, 203, 512, 88);
	assert_int_equal(expect_wc(&p->a, 1, WC_SUCCESS).byte_len, 600);
	assert_memory_equal(p->a.bytes + 100, p->b.bytes, 200);
	assert_memory_equal(p->a.bytes + 1000, p->b.bytes + 200, 100);
	assert_memory_equal(p->a.bytes + 2000, p->b.bytes + 300, 300);
	assert_int_equal(p->a.bytes[300], 0);
	assert_int_equal(p->a.bytes[1100], 0);
	assert_int_equal(p->a.bytes[2300], 0);
}

/* --- PSN sequence NAKs: seed 001 --- */

/* A sequence NAK acknowledges all earlier PSNs and sends again from its own. */
static void
test_sequence_nak_rewinds(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 600);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "WRITE First 202", "WRITE Middle 203", "WRITE Last 204");
	assert_int_equal(nak(p, 0x60, 203), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_SUCCESS);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 203", "WRITE Last 204");
	assert_true(sent_packet(&p->a, 0).ackreq);
	assert_int_equal(counters_of(&p->a).rcvd_seq_err, 1);
	assert_int_equal(counters_of(&p->a).retransmitted_pkts, 2);
	assert_int_equal(info_of(&p->a).retry_left, 6);
}

/*
 * rc-cases: NAK 0x60 repeated for the same PSN while the rewind is under way: one rewind, one
 * retry, no storm
 */
static void
test_repeated_sequence_nak_in_one_round(void **state)
{
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_RDMA_WRITE, 1, 5 * 256);
	completer_forget_sent(&p->a);
	assert_int_equal(nak(p, 0x60, 203), VERDICT_RESPONSE);
	for (i = 0; i < 10; i++)
		assert_int_equal(nak(p, 0x60, 203), VERDICT_STALE_NAK);
	rc_run(p->a.w, p->now, 1); /* one packet of the round */
	expect_tx(&p->a, "WRITE Middle 203");
	assert_int_equal(nak(p, 0x60, 203), VERDICT_STALE_NAK);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 204", "WRITE Last 205");
	assert_int_equal(info_of(&p->a).retry_left, 6);
	assert_int_equal(counters_of(&p->a).completer_retry_err, 1);
	/* after the round the same NAK is a new one */
	assert_int_equal(nak(p, 0x60, 203), VERDICT_RESPONSE);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 203", "WRITE Middle 204", "WRITE Last 205");
	assert_int_equal(info_of(&p->a).retry_left, 5);
}

/* An ACK of the round has arrived before the NAK of the next lost packet: a new round begins. */
static void
test_sequence_nak_behind_an_ack_of_the_round(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 5 * 256);
	completer_forget_sent(&p->a);
	assert_int_equal(nak(p, 0x60, 201), VERDICT_RESPONSE);
	rc_run(p->a.w, p->now, 1);
	rc_run(p->a.w, p->now, 1);
	rc_run(p->a.w, p->now, 1);
	expect_tx(&p->a, "WRITE First 201", "WRITE Middle 202", "WRITE Middle 203");
	assert_int_equal(ack(p, 201), VERDICT_RESPONSE);
	assert_int_equal(nak(p, 0x60, 202), VERDICT_RESPONSE);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 202", "WRITE Middle 203", "WRITE Middle 204",
		"WRITE Last 205");
	assert_int_equal(counters_of(&p->a).completer_retry_err, 2);
}

/* A sequence NAK with a later PSN within the round is progress, and a new failure. */
static void
test_sequence_nak_with_a_later_psn(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 5 * 256);
	completer_forget_sent(&p->a);
	nak(p, 0x60, 202);
	rc_run(p->a.w, p->now, 3);
	expect_tx(&p->a, "WRITE Middle 202", "WRITE Middle 203", "WRITE Middle 204");
	assert_int_equal(nak(p, 0x60, 203), VERDICT_RESPONSE);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 203", "WRITE Middle 204", "WRITE Last 205");
	assert_int_equal(info_of(&p->a).retry_left,
		6); /* the ACK of 202 reloaded it, then one was used */
}

/*
 * rc-cases: if a NAK with a later PSN comes before the round has sent a packet, the round begins
 * there. It reloads the counter, as it acknowledges 202 and 203, and uses no retry.
 */
static void
test_sequence_nak_before_the_round_goes(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 5 * 256);
	completer_forget_sent(&p->a);
	assert_int_equal(nak(p, 0x60, 202), VERDICT_RESPONSE);
	assert_int_equal(info_of(&p->a).retry_left, 6);
	assert_int_equal(nak(p, 0x60, 204), VERDICT_RESPONSE);
	assert_int_equal(info_of(&p->a).retry_left, 7);
	assert_int_equal(counters_of(&p->a).completer_retry_err, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 204", "WRITE Last 205");
}

/* seed 001: it decrements the counter each time; exhausted: RETRY_EXC_ERR */
static void
test_sequence_nak_exhausts_retries(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .retry_cnt = 2, .scripted = true });

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	nak(p, 0x60, 201);
	transmit(&p->a);
	nak(p, 0x60, 201);
	transmit(&p->a);
	expect_no_wc(&p->a);
	nak(p, 0x60, 201);
	expect_wc(&p->a, 1, WC_RETRY_EXC_ERR);
	expect_wc(&p->a, 2, WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(&p->a), QPS_ERR);
	assert_int_equal(counters_of(&p->a).retransmitted_pkts, 4);
}

static void
expect_explained_as_implied_nak(const struct node *n, uint32_t missing)
{
	const struct qp_failure_info *info = &qp_failure_infos[QP_FAILURE_RETRIES];
	struct qp_failure why = info_of(n).failure;
	char text[QP_EXPLAIN_MAX];

	assert_int_equal(why.reason, QP_FAILURE_RETRIES);
	assert_int_equal(why.psn, missing);
	assert_non_null(strstr(qp_failure_received(&why, text), "(implied NAK)"));
	assert_non_null(strstr(qp_failure_expected(&why, text), "its own response"));
	assert_non_null(strstr(info->rule, "implied NAK"));
	assert_non_null(strstr(info->rule, "C.3"));
	assert_non_null(strstr(info->check, "implied_nak_seq_err"));
}

/*
 * rc-transport 8: an implied NAK costs a retry, too, and the last one ends in RETRY_EXC_ERR. The
 * explanation names this case: the peer answers, and the timer does not expire.
 */
static void
test_implied_naks_exhaust_retries(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .retry_cnt = 1, .scripted = true });

	*state = p;
	post(&p->a, WR_RDMA_READ, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	transmit(&p->a);
	assert_int_equal(ack(p, 203), VERDICT_IMPLIED_NAK);
	transmit(&p->a);
	assert_int_equal(ack(p, 203), VERDICT_IMPLIED_NAK); /* the same gap */
	expect_no_wc(&p->a);
	assert_int_equal(ack(p, 202), VERDICT_IMPLIED_NAK); /* a second loss */
	expect_wc(&p->a, 1, WC_RETRY_EXC_ERR);
	expect_wc(&p->a, 2, WC_WR_FLUSH_ERR);
	expect_wc(&p->a, 3, WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(&p->a), QPS_ERR);
	assert_int_equal(counters_of(&p->a).retry_exceeded_err, 1);
	assert_int_equal(counters_of(&p->a).implied_nak_seq_err, 3);
	assert_int_equal(counters_of(&p->a).local_ack_timeout_err, 0);
	expect_explained_as_implied_nak(&p->a, 201);
}

/* The same for a Read that lacks a response in its middle. */
static void
test_missing_read_response_exhausts_retries(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .retry_cnt = 0, .scripted = true });

	*state = p;
	post(&p->a, WR_RDMA_READ, 1, 600); /* 201 to 203 */
	transmit(&p->a);
	assert_int_equal(read_response(p, RC_READ_RESP_FIRST, 201, 0, 256), VERDICT_RESPONSE);
	assert_int_equal(read_response(p, RC_READ_RESP_LAST, 203, 512, 88),
		VERDICT_READ_OUT_OF_ORDER);
	expect_wc(&p->a, 1, WC_RETRY_EXC_ERR);
	assert_int_equal(state_of(&p->a), QPS_ERR);
	assert_int_equal(counters_of(&p->a).implied_nak_seq_err, 1);
	expect_explained_as_implied_nak(&p->a, 202);
}

/* An ACK that arrives during a rewind lets the requester skip the packets it acknowledges. */
static void
test_ack_during_rewind(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 5 * 256);
	completer_forget_sent(&p->a);
	nak(p, 0x60, 202);
	ack(p, 203);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 204", "WRITE Last 205");
}

/* seed 001: a NAK in place of Read response k has its PSN; 0x60 there asks for the rest again */
static void
test_sequence_nak_inside_read(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_READ, 1, 700);
	completer_forget_sent(&p->a);
	read_response(p, RC_READ_RESP_FIRST, 201, 0, 256);
	assert_int_equal(nak(p, 0x60, 202), VERDICT_RESPONSE);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 202");
	assert_int_equal(sent_packet(&p->a, 0).dmalen, 444);
}

/* --- RNR NAKs: seed 001 --- */

/* The request is sent again after at least the time of the RNR NAK, and less than 1 ms later. */
static void
test_rnr_waits_at_least_the_coded_time(void **state)
{
	static const struct {
		uint8_t code;
		uint64_t ns;
	} codes[] = {
		{ 1, 10000 },
		{ 0, 655360000 },
		{ 12, 640000 },
		{ 25, 61440000 },
		{ 31, 491520000 },
	};
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_RDMA_WRITE_WITH_IMM, 1, 300);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 201", "WRITE Last Imm 202", "WRITE Only 203");
	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		assert_int_equal(nak(p, 0x20 | codes[i].code, 202), VERDICT_RESPONSE);
		pass(p, codes[i].ns - 1);
		transmit(&p->a);
		expect_silence(&p->a);
		pass(p, 1);
		transmit(&p->a);
		expect_tx(&p->a, "WRITE Last Imm 202");
	}
	assert_int_equal(counters_of(&p->a).rcvd_rnr_err, 5);
	assert_int_equal(counters_of(&p->a).local_ack_timeout_err, 0);
}

/* An RNR NAK behind a Read whose answer is missing: the Read waits, too. */
static void
test_rnr_past_an_unanswered_read(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_READ, 1, 1);
	post(&p->a, WR_SEND, 2, 1);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	completer_forget_sent(&p->a);
	/* seed 001: no request again before the wait is over, though the Read's answer was lost */
	assert_int_equal(nak(p, 0x2C, 202), VERDICT_IMPLIED_NAK); /* 0.64 ms */
	transmit(&p->a);
	pass(p, 639999);
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(info_of(&p->a).retry_left, 6);
	assert_int_equal(info_of(&p->a).rnr_left, 7);
	pass(p, 100000);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 201");
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 201, 0, 1), VERDICT_RESPONSE);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 202", "WRITE Only 203");
	/* if the answer was only late, the Send alone waits */
	post(&p->a, WR_RDMA_READ, 4, 1);
	post(&p->a, WR_SEND, 5, 1);
	ack(p, 203);
	completer_forget_sent(&p->a);
	assert_int_equal(nak(p, 0x2C, 205), VERDICT_IMPLIED_NAK);
	assert_int_equal(read_response(p, RC_READ_RESP_ONLY, 204, 0, 1), VERDICT_RESPONSE);
	transmit(&p->a);
	pass(p, 639999);
	transmit(&p->a);
	expect_silence(&p->a);
	pass(p, 100000);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 205");
}

/*
 * rc-transport 8: a second RNR NAK during the wait is ignored, and so is 0x60 for the same PSN
 * (rxe sends it)
 */
static void
test_naks_during_rnr_wait(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.retry_cnt = 2,
		.rnr_retry = 2,
		.scripted = true,
	});

	*state = p;
	post(&p->a, WR_SEND, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	completer_forget_sent(&p->a);
	assert_int_equal(nak(p, 0x2C, 201), VERDICT_RESPONSE); /* 0.64 ms */
	pass(p, 600000);
	assert_int_equal(nak(p, 0x2C, 201), VERDICT_STALE_NAK);
	assert_int_equal(nak(p, 0x60, 201), VERDICT_STALE_NAK);
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(info_of(&p->a).rnr_left, 1);
	assert_int_equal(info_of(&p->a).retry_left, 2);
	pass(p, 40000);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
}

/*
 * rc-transport 8: after the wait the packet goes alone, so nothing is behind it that a NAK 0x60
 * could be for: one that comes is late, of the round before, however often (rxe sends one per
 * round)
 */
static void
test_sequence_naks_after_the_rnr_wait(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.retry_cnt = 0,
		.rnr_retry = 7,
		.scripted = true,
	});
	unsigned int i;

	*state = p;
	post(&p->a, WR_SEND, 1, 1000);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	completer_forget_sent(&p->a);
	for (i = 0; i < 20; i++) {
		assert_int_equal(nak(p, 0x21, 201), VERDICT_RESPONSE);
		pass(p, 10000);
		assert_int_equal(nak(p, 0x60, 201), VERDICT_STALE_NAK);
		transmit(&p->a);
		expect_tx(&p->a, "SEND First 201");
		assert_true(sent_packet(&p->a, 0).ackreq);
		assert_int_equal(nak(p, 0x60, 201), VERDICT_STALE_NAK);
		transmit(&p->a);
		expect_silence(&p->a);
	}
	ack(p, 201);
	completer_forget_sent(&p->a);
	expect_no_wc(&p->a);
	/* from now on a sequence NAK counts */
	assert_int_equal(nak(p, 0x60, 202), VERDICT_RESPONSE);
	expect_wc(&p->a, 1, WC_RETRY_EXC_ERR);
}

/* rc-transport 8: when the packet is answered, all requests behind it are sent. */
static void
test_requests_behind_an_rnr_probe_wait_for_its_answer(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 0, 1);
	transmit(&p->a);
	ack(p, 201); /* no credit limit from here */
	post(&p->a, WR_SEND, 1, 1000);
	post(&p->a, WR_SEND, 2, 1);
	completer_forget_sent(&p->a);
	nak(p, 0x21, 202);
	pass(p, 10000);
	post(&p->a, WR_SEND, 3, 1);
	transmit(&p->a);
	expect_tx(&p->a, "SEND First 202");
	ack(p, 202);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Middle 203", "SEND Middle 204", "SEND Last 205", "SEND Only 206",
		"SEND Only 207");
}

/* Requests posted while the probe is outstanding wait for its answer, too. */
static void
test_new_work_behind_an_rnr_probe(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 0, 1);
	transmit(&p->a);
	ack(p, 201); /* no credit limit from here */
	post(&p->a, WR_SEND, 1, 1);
	completer_forget_sent(&p->a);
	nak(p, 0x21, 202);
	pass(p, 10000);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 202");
	post(&p->a, WR_SEND, 2, 1);
	transmit(&p->a);
	expect_silence(&p->a);
	ack(p, 202);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 203");
}

/* rc-transport 8: if the probe is lost, the transport timer sends it again. */
static void
test_lost_rnr_probe(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_SEND, 1, 300);
	completer_forget_sent(&p->a);
	nak(p, 0x21, 201);
	pass(p, 10000);
	transmit(&p->a);
	expect_tx(&p->a, "SEND First 201");
	pass(p, TTR(14));
	transmit(&p->a);
	expect_tx(&p->a, "SEND First 201");
	assert_int_equal(info_of(&p->a).retry_left, 6);
	assert_int_equal(counters_of(&p->a).local_ack_timeout_err, 1);
	ack(p, 201);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Last 202");
}

/* rnr_retry N allows N retries, then RNR_RETRY_EXC_ERR; any other response reloads the counter. */
static void
test_rnr_retries_exhausted(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .rnr_retry = 2, .scripted = true });
	unsigned int i;

	*state = p;
	post(&p->a, WR_SEND, 1, 1);
	completer_forget_sent(&p->a);
	for (i = 0; i < 2; i++) {
		nak(p, 0x21, 201);
		pass(p, 10000);
		transmit(&p->a);
		expect_tx(&p->a, "SEND Only 201");
	}
	assert_int_equal(info_of(&p->a).rnr_left, 0);
	ack(p, 201);
	assert_int_equal(info_of(&p->a).rnr_left, 2);
	expect_wc(&p->a, 1, WC_SUCCESS);

	post(&p->a, WR_SEND, 2, 1);
	post(&p->a, WR_SEND, 3, 1);
	completer_forget_sent(&p->a);
	for (i = 0; i < 2; i++) {
		nak(p, 0x21, 202);
		pass(p, 10000);
		completer_forget_sent(&p->a);
	}
	nak(p, 0x21, 202);
	expect_wc(&p->a, 2, WC_RNR_RETRY_EXC_ERR);
	expect_wc(&p->a, 3, WC_WR_FLUSH_ERR);
	assert_int_equal(counters_of(&p->a).rnr_nak_retry_err, 1);
	pass(p, 1000000000);
	transmit(&p->a);
	expect_silence(&p->a);
}

/* rnr_retry 7 means for ever */
static void
test_rnr_retry_seven_is_infinite(void **state)
{
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_SEND, 1, 1);
	completer_forget_sent(&p->a);
	for (i = 0; i < 100; i++) {
		nak(p, 0x21, 201);
		pass(p, 10000);
		transmit(&p->a);
		expect_tx(&p->a, "SEND Only 201");
	}
	assert_int_equal(state_of(&p->a), QPS_RTS);
}

/* An RNR NAK acknowledges all earlier PSNs. */
static void
test_rnr_nak_acknowledges_all_earlier_psns(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 0, 1);
	transmit(&p->a);
	ack(p, 201); /* no credit limit from here */
	expect_wc(&p->a, 0, WC_SUCCESS);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_WRITE_WITH_IMM, 2, 1);
	completer_forget_sent(&p->a);
	nak(p, 0x21, 203);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_no_wc(&p->a);
	pass(p, 10000);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only Imm 203");
}

/* --- final NAKs: seed 001 --- */

/*
 * 0x61, 0x62, 0x63: no retry; the WQE completes with its status, QP to ERR, all later ones flushed
 * in order
 */
static void
test_final_naks(void **state)
{
	static const struct {
		uint8_t syndrome;
		enum wc_status status;
	} finals[] = {
		{ 0x61, WC_REM_INV_REQ_ERR },
		{ 0x62, WC_REM_ACCESS_ERR },
		{ 0x63, WC_REM_OP_ERR },
	};
	struct rc_counters c;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct pair *p = pair_create(&(struct pair_config){
			.retry_cnt = 7,
			.scripted = true,
		});

		post_recv(&p->a, 10, 100);
		post(&p->a, WR_RDMA_WRITE, 1, 1);
		post(&p->a, WR_RDMA_WRITE, 2, 600); /* 202 to 204 */
		post_flags(&p->a, WR_RDMA_WRITE, 3, 1, 0);
		post(&p->a, WR_RDMA_READ, 4, 1);
		completer_forget_sent(&p->a);
		assert_int_equal(nak(p, finals[i].syndrome, 203), VERDICT_RESPONSE);
		expect_wc(&p->a, 1, WC_SUCCESS); /* executed before it */
		expect_wc(&p->a, 2, finals[i].status);
		expect_wc(&p->a, 3, WC_WR_FLUSH_ERR);
		expect_wc(&p->a, 4, WC_WR_FLUSH_ERR);
		expect_recv(&p->a, 10, WC_WR_FLUSH_ERR);
		expect_no_wc(&p->a);
		assert_int_equal(state_of(&p->a), QPS_ERR);
		transmit(&p->a);
		expect_silence(&p->a);
		/* requests posted now are flushed, and responses are dropped */
		post(&p->a, WR_SEND, 5, 1);
		expect_wc(&p->a, 5, WC_WR_FLUSH_ERR);
		assert_int_equal(ack(p, 205), VERDICT_QP_STATE);
		c = counters_of(&p->a);
		assert_int_equal(c.req_remote_invalid_request, i == 0);
		assert_int_equal(c.req_remote_access_errors, i == 1);
		assert_int_equal(c.req_remote_operation_errors, i == 2);
		pair_destroy(p);
	}
	*state = NULL;
}

/* seed 001: the NAK of a Read has the PSN of the response it replaces */
static void
test_final_nak_inside_read(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_READ, 1, 700);
	transmit(&p->a);
	read_response(p, RC_READ_RESP_FIRST, 201, 0, 256);
	nak(p, 0x62, 202);
	expect_wc(&p->a, 1, WC_REM_ACCESS_ERR);
}

#define SCRIPTED(t) cmocka_unit_test_setup_teardown(t, scripted_setup, pair_teardown)
#define OWN(t)      cmocka_unit_test_teardown(t, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SCRIPTED(test_ack_acknowledges_all_earlier_psns),
		SCRIPTED(test_ack_acknowledges_up_to_a_read),
		SCRIPTED(test_ack_reloads_retries_and_timer),
		SCRIPTED(test_ghost_and_duplicate_acks),
		SCRIPTED(test_newest_ack_received_again),
		SCRIPTED(test_ghost_naks),
		SCRIPTED(test_nak_behind_a_lost_response),
		SCRIPTED(test_reserved_syndromes),
		SCRIPTED(test_acknowledge_with_payload_is_dropped),
		OWN(test_ack_past_read_is_implied_nak),
		SCRIPTED(test_implied_nak_counts_once_a_round),
		SCRIPTED(test_equal_acks_are_one_gap),
		SCRIPTED(test_acks_and_responses_are_compared_apart),
		SCRIPTED(test_overtaken_ack_before_the_rewind),
		SCRIPTED(test_read_response_acks_earlier_writes),
		SCRIPTED(test_partial_read_restart),
		SCRIPTED(test_late_answer_after_restart),
		SCRIPTED(test_response_of_a_later_read_is_a_gap),
		OWN(test_bad_read_responses),
		SCRIPTED(test_read_opcode_sequence),
		SCRIPTED(test_answer_of_the_wrong_kind),
		SCRIPTED(test_answer_without_a_read),
		SCRIPTED(test_reserved_syndrome_in_answer),
		SCRIPTED(test_scatter_fails_locally),
		SCRIPTED(test_scatter_needs_local_write),
		SCRIPTED(test_scatter_list),
		SCRIPTED(test_sequence_nak_rewinds),
		SCRIPTED(test_repeated_sequence_nak_in_one_round),
		SCRIPTED(test_sequence_nak_behind_an_ack_of_the_round),
		SCRIPTED(test_sequence_nak_with_a_later_psn),
		SCRIPTED(test_sequence_nak_before_the_round_goes),
		OWN(test_sequence_nak_exhausts_retries),
		OWN(test_implied_naks_exhaust_retries),
		OWN(test_missing_read_response_exhausts_retries),
		SCRIPTED(test_ack_during_rewind),
		SCRIPTED(test_sequence_nak_inside_read),
		SCRIPTED(test_rnr_waits_at_least_the_coded_time),
		SCRIPTED(test_rnr_past_an_unanswered_read),
		OWN(test_naks_during_rnr_wait),
		OWN(test_sequence_naks_after_the_rnr_wait),
		SCRIPTED(test_requests_behind_an_rnr_probe_wait_for_its_answer),
		SCRIPTED(test_new_work_behind_an_rnr_probe),
		SCRIPTED(test_lost_rnr_probe),
		OWN(test_rnr_retries_exhausted),
		SCRIPTED(test_rnr_retry_seven_is_infinite),
		SCRIPTED(test_rnr_nak_acknowledges_all_earlier_psns),
		OWN(test_final_naks),
		SCRIPTED(test_final_nak_inside_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
