/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The responder: execution of requests, and their answers. Sources: rc-transport 4 and 6, seeds 001
 * and 002, rc-cases. Refusals, RNR, duplicates and Atomics have files of their own.
 */

#include <string.h>

#include "peer.h"
#include "rc/responder.h"
#include "wire/opcode.h"

static int
per_packet_setup(void **state)
{
	*state = peer_create(&(struct peer_config){ .psn = FIRST_PSN, .ack_per_packet = true });
	return 0;
}

static struct peer *
responder_again(void **state, const struct peer_config *config)
{
	peer_destroy(*state);
	*state = peer_create(config);
	return *state;
}

/* @return true if the payload that in_send() or in_write() made for this PSN is at `at` */
static bool
placed(const struct peer *p, uint32_t at, uint32_t psn, uint32_t len)
{
	return p->bytes[at] == (uint8_t)psn && memcmp(p->bytes + at + 1, pattern + 1, len - 1) == 0;
}

/* --- common requests --- */

/* responder.c knows them as constants, the rest of the world from the opcode table. */
static void
test_common_requests_are_as_in_the_opcode_table(void **state)
{
#define AS_IN_TABLE(op, may, hdrs, rule)                                                           \
	do {                                                                                       \
		assert_int_equal((may) | OP_VALID, opcodes[op].flags);                             \
		assert_int_equal(hdrs, opcodes[op].headers);                                       \
		assert_int_equal(rule,                                                             \
			opcodes[op].payload == PAYLOAD_ANY ? PAYLOAD_SOME : opcodes[op].payload);  \
	} while (0);

	(void)state;
	RC_COMMON_SEND(AS_IN_TABLE)
	RC_COMMON_REQUESTS(AS_IN_TABLE)
}

/* --- execution --- */

static void
test_send_fills_the_oldest_receive_and_completes_it(void **state)
{
	struct peer *p = *state;
	struct wc wc;

	post(p, 7, 0x1000, 600);
	post(p, 8, 0x2000, 600);
	assert_int_equal(in_send(p, RC_SEND_FIRST, 201, 256), VERDICT_REQUEST);
	assert_true(placed(p, 0x1000, 201, 256));
	assert_int_equal(in_send(p, RC_SEND_MIDDLE, 202, 256), VERDICT_REQUEST);
	assert_true(placed(p, 0x1100, 202, 256));
	expect_no_wc(p);
	assert_int_equal(in_send(p, RC_SEND_LAST, 203, 88), VERDICT_REQUEST);
	assert_true(placed(p, 0x1200, 203, 88));
	expect_wc(p, 7, WC_SUCCESS, &wc);
	assert_int_equal(wc.opcode, WC_RECV);
	assert_int_equal(wc.byte_len, 600);
	assert_int_equal(wc.wc_flags, 0);
	expect_no_wc(p);
	assert_int_equal(counters_of(p).rx_send_requests, 1);
	assert_int_equal(counters_of(p).rcvd_bytes, 600);
}

static void
test_send_is_scattered_over_the_whole_list(void **state)
{
	struct peer *p = *state;
	struct sge sge[] = { { PEER_VA + 0x1000, 100, p->key }, { 0, 0, 0 },
		{ PEER_VA + 0x2000, 156, p->key }, { PEER_VA + 0x3000, 50, p->key } };
	struct recv_wr wr = { .wr_id = 1, .num_sge = 4, .sg_list = sge };
	struct error err;

	memset(p->bytes + 0x3000, 0x77, 50);
	assert_int_equal(rc_post_recv(p->w, p->qpn, &wr, &err), 0);
	in_send(p, RC_SEND_FIRST, 201, 256);
	assert_true(placed(p, 0x1000, 201, 100));
	assert_memory_equal(p->bytes + 0x2000, pattern + 100, 156);
	in_send(p, RC_SEND_LAST, 202, 20);
	assert_true(placed(p, 0x3000, 202, 20));
	assert_int_equal(p->bytes[0x3000 + 20], 0x77); /* not a byte more */
	expect_wc(p, 1, WC_SUCCESS, NULL);
}

/* The state of the previous message does not affect the next one. */
static void
test_each_message_starts_anew(void **state)
{
	struct peer *p = *state;
	struct sge sge[] = { { PEER_VA + 0x1000, 10, p->key }, { PEER_VA + 0x2000, 30, p->key } };
	struct recv_wr wr = { .wr_id = 1, .num_sge = 2, .sg_list = sge };
	struct error err;
	struct wc wc;

	assert_int_equal(rc_post_recv(p->w, p->qpn, &wr, &err), 0);
	wr.wr_id = 2;
	assert_int_equal(rc_post_recv(p->w, p->qpn, &wr, &err), 0);
	in_send(p, RC_SEND_ONLY, 201, 25);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 202, 40), VERDICT_REQUEST);
	expect_wc(p, 1, WC_SUCCESS, &wc);
	assert_int_equal(wc.byte_len, 25);
	expect_wc(p, 2, WC_SUCCESS, &wc);
	assert_int_equal(wc.byte_len, 40);
	assert_true(placed(p, 0x1000, 202, 10));
	assert_memory_equal(p->bytes + 0x2000, pattern + 10, 30);

	in_write(p, RC_WRITE_FIRST, 203, 0x3000, 300, 256);
	in_write(p, RC_WRITE_LAST, 204, 0, 0, 44);
	in_write(p, RC_WRITE_FIRST, 205, 0x4000, 600, 256);
	in_write(p, RC_WRITE_MIDDLE, 206, 0, 0, 256);
	assert_int_equal(in_write(p, RC_WRITE_LAST, 207, 0, 0, 88), VERDICT_REQUEST);
	assert_true(placed(p, 0x4200, 207, 88));
}

/* Only takes 0..PMTU (rc-transport 2) */
static void
test_only_packets_may_be_full(void **state)
{
	struct peer *p = *state;

	post(p, 1, 0x1000, MTU);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, MTU), VERDICT_REQUEST);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 202, 0x2000, MTU, MTU), VERDICT_REQUEST);
	assert_true(placed(p, 0x2000, 202, MTU));
}

static void
test_zero_length_send_completes_an_empty_receive(void **state)
{
	struct peer *p = *state;
	struct recv_wr wr = { .wr_id = 4 };
	struct error err;
	struct wc wc;

	assert_int_equal(rc_post_recv(p->w, p->qpn, &wr, &err), 0);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 0), VERDICT_REQUEST);
	expect_wc(p, 4, WC_SUCCESS, &wc);
	assert_int_equal(wc.byte_len, 0);
}

static void
test_immediate_data_reaches_the_completion(void **state)
{
	struct peer *p = *state;
	struct wc wc;

	post(p, 1, 0x1000, 64);
	post(p, 2, 0x2000, 64);
	request(p, RC_SEND_ONLY_IMM, 201)->imm = 0xCAFEF00D;
	p->pkt.payload_len = 8;
	feed(p);
	expect_wc(p, 1, WC_SUCCESS, &wc);
	assert_int_equal(wc.opcode, WC_RECV);
	assert_int_equal(wc.wc_flags, WC_WITH_IMM);
	assert_true(wc.imm_data == 0xCAFEF00D);

	/*
	 * a Write with Immediate uses a receive, but not its buffer; byte_len is the Write's length
	 */
	request(p, RC_WRITE_ONLY_IMM, 202)->imm = 17;
	p->pkt.va = PEER_VA + 0x3000;
	p->pkt.dmalen = p->pkt.payload_len = 100;
	memset(p->bytes + 0x2000, 0x77, 64);
	feed(p);
	expect_wc(p, 2, WC_SUCCESS, &wc);
	assert_int_equal(wc.opcode, WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 100);
	assert_int_equal(wc.wc_flags, WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 17);
	assert_memory_equal(p->bytes + 0x3000, pattern, 100);
	assert_int_equal(p->bytes[0x2000], 0x77);
	assert_int_equal(counters_of(p).rx_write_requests, 1);
}

static void
test_send_with_invalidate_invalidates_the_qps_window(void **state)
{
	struct peer *p = *state;
	uint32_t key = peer_window(p, 0x4000, 64, MEM_ACCESS_REMOTE_WRITE);
	struct wc wc;

	post(p, 1, 0x1000, 64);
	request(p, RC_WRITE_ONLY, 201)->rkey = key;
	p->pkt.va = PEER_VA + 0x4000;
	p->pkt.dmalen = p->pkt.payload_len = 8;
	assert_int_equal(feed(p), VERDICT_REQUEST);
	request(p, RC_SEND_ONLY_INV, 202)->rkey = key;
	p->pkt.payload_len = 8;
	assert_int_equal(feed(p), VERDICT_REQUEST);
	expect_wc(p, 1, WC_SUCCESS, &wc);
	assert_int_equal(wc.wc_flags, WC_WITH_INV);
	assert_int_equal(wc.imm_data, key);
	request(p, RC_WRITE_ONLY, 203)->rkey = key;
	p->pkt.va = PEER_VA + 0x4000;
	p->pkt.dmalen = p->pkt.payload_len = 8;
	assert_int_equal(feed(p), VERDICT_NAK_SENT);
	run(p);
	expect_tx(p, "ACK 202", "NAK-ACC 203");
}

static void
test_solicited_send_wakes_a_cq_armed_for_it(void **state)
{
	struct peer *p = *state;
	unsigned int before;

	post(p, 1, 0x1000, 64);
	post(p, 2, 0x1000, 64);
	assert_int_equal(rc_cq_arm(p->dev, p->recv_cq, true), 0);
	in_send(p, RC_SEND_ONLY, 201, 8);
	run(p);
	before = p->event_count;
	request(p, RC_SEND_ONLY, 202)->solicited = true;
	feed(p);
	run(p);
	assert_int_equal(p->event_count, before + 1);
	assert_int_equal(p->events[before].type, EVENT_CQ_COMPLETION);
	assert_int_equal(p->events[before].element, p->recv_cq);
}

static void
test_write_goes_where_the_first_packet_says(void **state)
{
	struct peer *p = *state;

	memset(p->bytes + 0x5000, 0, 1024);
	in_write(p, RC_WRITE_FIRST, 201, 0x5003, 700, 256);
	assert_true(placed(p, 0x5003, 201, 256));
	in_write(p, RC_WRITE_MIDDLE, 202, 0, 0, 256);
	assert_true(placed(p, 0x5103, 202, 256));
	in_write(p, RC_WRITE_LAST, 203, 0, 0, 188);
	assert_true(placed(p, 0x5203, 203, 188));
	assert_int_equal(p->bytes[0x5002], 0);
	assert_int_equal(p->bytes[0x5003 + 700], 0);
	run(p);
	expect_tx(p, "ACK 203");
	expect_no_wc(p); /* seed 002: "No CQE Posted on Receiving End" */
	assert_int_equal(counters_of(p).rx_write_requests, 1);
}

static void
test_read_response_opcodes_and_payload(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0x123, 2 * MTU + 5);
	assert_int_equal(epsn_of(p), 204); /* one PSN for each response (seed 002) */
	in_read(p, 204, 0x123, MTU);
	in_read(p, 205, 0x123, MTU + 1);
	in_read(p, 207, 0x123, 3);
	run(p);
	expect_tx(p, "FIRST 201", "MIDDLE 202", "LAST 203", "ONLY 204", "FIRST 205", "LAST 206",
		"ONLY 207");
	assert_int_equal(answered(p, 0)->len, MTU);
	assert_int_equal(answered(p, 1)->len, MTU);
	assert_int_equal(answered(p, 2)->len, 5);
	assert_int_equal(answered(p, 5)->len, 1);
	assert_int_equal(answered(p, 6)->len, 3);
	assert_memory_equal(answered(p, 0)->data, p->bytes + 0x123, MTU);
	assert_memory_equal(answered(p, 1)->data, p->bytes + 0x123 + MTU, MTU);
	assert_memory_equal(answered(p, 2)->data, p->bytes + 0x123 + 2 * MTU, 5);
	/* "Read counts when accepted for execution" */
	assert_int_equal(answered(p, 0)->msn, 1);
	assert_int_equal(answered(p, 2)->msn, 1);
	assert_int_equal(answered(p, 3)->msn, 2);
	assert_int_equal(answered(p, 6)->msn, 4);
	assert_int_equal(answered(p, 0)->syndrome, 31);
	assert_int_equal(counters_of(p).rx_read_requests, 4);
	assert_int_equal(counters_of(p).sent_pkts, 7);
	assert_int_equal(counters_of(p).sent_bytes, 4 * MTU + 5 + 1 + 3);
}

static void
test_answers_have_the_configured_m_bit(void **state)
{
	struct peer *p =
		responder_again(state, &(struct peer_config){ .psn = 201, .migreq = true });

	in_read(p, 201, 0, 8);
	in_write(p, RC_WRITE_ONLY, 202, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ONLY 201", "ACK 202"); /* every packet has M */
}

static void
test_psns_wrap(void **state)
{
	struct peer *p = responder_again(state, &(struct peer_config){ .psn = 0xFFFFFE });

	post(p, 1, 0x1000, 1024);
	in_send(p, RC_SEND_FIRST, 0xFFFFFE, 256);
	in_send(p, RC_SEND_MIDDLE, 0xFFFFFF, 256);
	in_send(p, RC_SEND_LAST, 0, 10);
	run(p);
	expect_tx(p, "ACK 0");
	expect_wc(p, 1, WC_SUCCESS, NULL);
	assert_int_equal(epsn_of(p), 1);

	/* rc-cases: "READ whose PSN span crosses 0xFFFFFF -> 0" */
	p = responder_again(state, &(struct peer_config){ .psn = 0xFFFFFD });
	in_read(p, 0xFFFFFD, 0x100, 5 * MTU);
	assert_int_equal(epsn_of(p), 2);
	run(p);
	expect_tx(p, "FIRST 16777213", "MIDDLE 16777214", "MIDDLE 16777215", "MIDDLE 0", "LAST 1");
	assert_memory_equal(answered(p, 4)->data, p->bytes + 0x100 + 4 * MTU, MTU);
	assert_int_equal(in_read(p, 0, 0x100 + 3 * MTU, 2 * MTU), VERDICT_DUPLICATE_REQUEST);
	run(p);
	expect_tx(p, "FIRST 0", "LAST 1");
	assert_memory_equal(answered(p, 0)->data, p->bytes + 0x100 + 3 * MTU, MTU);
	in_write(p, RC_WRITE_ONLY, 4, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "NAK-SEQ 2");
}

/* --- ACKs --- */

static void
test_acks_coalesce_over_a_burst(void **state)
{
	struct peer *p = *state;

	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 202, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	expect_silence(p);
	run(p);
	expect_tx(p, "ACK 203");
	assert_int_equal(answered(p, 0)->msn, 3);
	assert_int_equal(answered(p, 0)->len, 0);
	assert_int_equal(counters_of(p).ack_deferred, 2);
	assert_int_equal(counters_of(p).sent_pkts, 1);
}

/* seed 002, its base case: "issue a response for each request packet received" */
static void
test_one_ack_for_each_packet_without_coalescing(void **state)
{
	static const uint32_t msn[] = { 0, 0, 0, 0, 1 };
	struct peer *p = *state;
	int i;

	post(p, 1, 0x1000, 2048);
	in_send(p, RC_SEND_FIRST, 201, 256);
	in_send(p, RC_SEND_MIDDLE, 202, 256);
	in_send(p, RC_SEND_MIDDLE, 203, 256);
	in_send(p, RC_SEND_MIDDLE, 204, 256);
	in_send(p, RC_SEND_LAST, 205, 256);
	run(p);
	expect_tx(p, "ACK 201", "ACK 202", "ACK 203", "ACK 204", "ACK 205");
	for (i = 0; i < 5; i++)
		assert_int_equal(answered(p, i)->msn, msn[i]);
	assert_int_equal(counters_of(p).ack_deferred, 0);
}

/* Each ACK is sent at once, with its own MSN, also after Reads have been answered. */
static void
test_acks_for_each_packet_go_at_once(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 8);
	run(p);
	expect_tx(p, "ONLY 201");
	in_write(p, RC_WRITE_ONLY, 202, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 204, 0x1000, 8, 8);
	expect_tx(p, "ACK 202", "ACK 203", "ACK 204");
	assert_int_equal(answered(p, 0)->msn, 2);
	assert_int_equal(answered(p, 1)->msn, 3);
	assert_int_equal(answered(p, 2)->msn, 4);

	/* but it does not overtake an ACK that is due */
	p->sink_room = 0;
	in_write(p, RC_WRITE_ONLY, 205, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 207, 0x1000, 8, 8); /* a gap */
	p->sink_room = UINT32_MAX;
	in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8);
	expect_silence(p);
	run(p);
	expect_tx(p, "ACK 205", "ACK 206", "NAK-SEQ 207");
}

/*
 * ACKs wait for earlier Reads, each ACK for those before it. When they are sent, the MSN is that of
 * the "most recent request completed" (seed 002) before the next Read.
 */
static void
test_acks_for_each_packet_follow_pending_reads_in_order(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 2 * MTU);
	in_write(p, RC_WRITE_FIRST, 203, 0x1000, 2 * MTU, MTU);
	in_write(p, RC_WRITE_LAST, 204, 0, 0, MTU);
	in_read(p, 205, 0, 8);
	in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 207, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 208, 0x1000, 8, 8);
	expect_silence(p);
	while (run_slice(p, 1) > 0)
		;
	expect_tx(p, "FIRST 201", "LAST 202", "ACK 203", "ACK 204", "ONLY 205", "ACK 206",
		"ACK 207", "ACK 208");
	assert_int_equal(answered(p, 0)->msn, 1);
	assert_int_equal(answered(p, 2)->msn, 2);
	assert_int_equal(answered(p, 3)->msn, 2);
	assert_int_equal(answered(p, 4)->msn, 3);
	assert_int_equal(answered(p, 5)->msn, 6);
	assert_int_equal(answered(p, 6)->msn, 6);
	assert_int_equal(answered(p, 7)->msn, 6);
}

/*
 * A long Read is answered in slices. Later Writes are executed meanwhile, and acknowledged after
 * it.
 */
static void
test_reads_in_slices_between_writes(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0x8000, 20 * MTU);
	assert_int_equal(run_slice(p, 3), 3);
	expect_tx(p, "FIRST 201", "MIDDLE 202", "MIDDLE 203");
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 221, 0x1000, 8, 8), VERDICT_REQUEST);
	assert_int_equal(p->bytes[0x1000], 221);
	assert_int_equal(run_slice(p, 15), 15);
	assert_int_equal(in_read(p, 222, 0x8000, 8), VERDICT_REQUEST);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 223, 0x1000, 8, 8), VERDICT_REQUEST);
	p->answer_next = p->answer_count;
	run(p);
	/* the answer to the second Read acknowledges Write 221 */
	expect_tx(p, "MIDDLE 219", "LAST 220", "ONLY 222", "ACK 223");
	assert_int_equal(counters_of(p).ack_deferred, 1);
	assert_memory_equal(answered(p, 1)->data, p->bytes + 0x8000 + 19 * MTU, MTU);
	assert_int_equal(rc_pending(p->w), false);
}

static void
test_nothing_is_lost_when_the_sink_is_full(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 3 * MTU);
	in_write(p, RC_WRITE_ONLY, 204, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8); /* a gap */
	p->sink_room = 1;
	run(p);
	expect_tx(p, "FIRST 201");
	assert_true(rc_pending(p->w));
	p->sink_room = 3;
	run(p);
	expect_tx(p, "MIDDLE 202", "LAST 203", "ACK 204");
	p->sink_room = UINT32_MAX;
	run(p);
	expect_tx(p, "NAK-SEQ 205");
	assert_true(counters_of(p).tx_stall >= 2);
}

/* rc-transport 3: "largest code whose value <= posted RQ WQEs" */
static void
test_credits_are_the_receives_posted(void **state)
{
	struct peer *p = responder_again(state,
		&(struct peer_config){ .psn = 201, .flow_control = true, .recv_wr = 64 });
	int i;

	for (i = 0; i < 13; i++)
		post(p, i, 0x1000, 1024);
	in_send(p, RC_SEND_ONLY, 201, 8);
	run(p);
	in_send(p, RC_SEND_FIRST, 202, 256); /* a receive being filled is no credit */
	run(p);
	in_send(p, RC_SEND_LAST, 203, 8);
	in_read(p, 204, 0, 8);
	run(p);
	expect_tx(p, "ACK 201", "ACK 202", "ONLY 204");
	assert_int_equal(answered(p, 0)->syndrome, 7); /* 12 posted: 12 */
	assert_int_equal(answered(p, 1)->syndrome, 6); /* 11: 8 */
	assert_int_equal(answered(p, 2)->syndrome, 6); /* 11 */
	for (i = 0; i < 11; i++)
		in_send(p, RC_SEND_ONLY, 205 + i, 8);
	run(p);
	expect_tx(p, "ACK 215");
	assert_int_equal(answered(p, 0)->syndrome, 0);
}

static void
test_no_credits_without_flow_control(void **state)
{
	struct peer *p = *state;

	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 201");
	assert_int_equal(answered(p, 0)->syndrome, 31);
}

/* --- row 1: PSN ahead --- */

/* seed 001: after a PSN sequence NAK only the expected PSN may be answered, duplicates excepted */
static void
test_one_sequence_nak_until_epsn(void **state)
{
	struct peer *p = *state;
	uint32_t psn;

	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 202, 0x1000, 8, 8);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 204, 0x1000, 8, 8), VERDICT_NAK_SENT);
	for (psn = 205; psn <= 210; psn++)
		assert_int_equal(in_write(p, RC_WRITE_ONLY, psn, 0x1000, 8, 8),
			VERDICT_OUT_OF_SEQUENCE);
	run(p);
	expect_tx(p, "ACK 202", "NAK-SEQ 203");
	assert_int_equal(answered(p, 1)->syndrome, 0x60);
	assert_int_equal(answered(p, 1)->msn, 2);
	in_write(p, RC_WRITE_ONLY, 205, 0x1000, 8, 8);
	run(p);
	expect_silence(p);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8), VERDICT_REQUEST);
	run(p);
	expect_tx(p, "ACK 203");
	assert_int_equal(counters_of(p).out_of_sequence, 8);
	assert_int_equal(counters_of(p).send_seq_err, 1);
	assert_int_equal(counters_of(p).rx_write_requests, 3);
	assert_int_equal(state_of(p), QPS_RTR);
	/* ePSN has come: the next gap is NAKed again */
	in_write(p, RC_WRITE_ONLY, 205, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "NAK-SEQ 204");
}

static void
test_sequence_nak_uses_no_receive(void **state)
{
	struct peer *p = *state;

	post(p, 1, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 202, 8);
	run(p);
	expect_tx(p, "NAK-SEQ 201");
	expect_no_wc(p);
	in_send(p, RC_SEND_ONLY, 201, 8);
	expect_wc(p, 1, WC_SUCCESS, NULL);
}

/*
 * "Any request packets received prior to the errant request must be executed, completed, and
 * responded to"
 */
static void
test_sequence_nak_waits_for_pending_reads(void **state)
{
	struct peer *p = *state;

	in_read(p, 201, 0, 2 * MTU);
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 205, 0x1000, 8, 8);
	run_slice(p, 1);
	expect_tx(p, "FIRST 201");
	run(p);
	expect_tx(p, "LAST 202", "ACK 203", "NAK-SEQ 204");
}

/* If ePSN arrives before the NAK is sent, the NAK has the new ePSN, or is not sent. */
static void
test_sequence_nak_not_yet_sent_follows_epsn(void **state)
{
	struct peer *p = *state;

	in_write(p, RC_WRITE_ONLY, 202, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 201", "NAK-SEQ 202");
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	run(p);
	expect_silence(p); /* that NAK is outstanding */
	in_write(p, RC_WRITE_ONLY, 202, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 202");

	in_write(p, RC_WRITE_ONLY, 204, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 203, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 204, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 204");

	/* of several dropped packets the one with the highest PSN counts */
	in_write(p, RC_WRITE_ONLY, 207, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 205, 0x1000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 206, 0x1000, 8, 8);
	run(p);
	expect_tx(p, "ACK 206", "NAK-SEQ 207");
}

/* A gap between Middle packets of a message is NAKed, too. */
static void
test_gap_between_middle_packets(void **state)
{
	struct peer *p = *state;

	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 2048, MTU);
	assert_int_equal(in_write(p, RC_WRITE_MIDDLE, 203, 0, 0, MTU), VERDICT_NAK_SENT);
	run(p);
	expect_tx(p, "ACK 201", "NAK-SEQ 202");
	assert_int_equal(in_write(p, RC_WRITE_MIDDLE, 202, 0, 0, MTU), VERDICT_REQUEST);
	/* ePSN has come: the next gap is NAKed again */
	assert_int_equal(in_write(p, RC_WRITE_MIDDLE, 204, 0, 0, MTU), VERDICT_NAK_SENT);
	run(p);
	expect_tx(p, "ACK 202", "NAK-SEQ 203");
	assert_int_equal(in_write(p, RC_WRITE_MIDDLE, 202, 0, 0, MTU), VERDICT_DUPLICATE_REQUEST);
	assert_int_equal(in_write(p, RC_WRITE_MIDDLE, 203, 0, 0, MTU), VERDICT_REQUEST);
	assert_true(placed(p, 0x1200, 203, MTU));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)
#define P(name) cmocka_unit_test_setup_teardown(name, per_packet_setup, peer_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_common_requests_are_as_in_the_opcode_table),
		T(test_send_fills_the_oldest_receive_and_completes_it),
		T(test_send_is_scattered_over_the_whole_list),
		T(test_each_message_starts_anew),
		T(test_only_packets_may_be_full),
		T(test_zero_length_send_completes_an_empty_receive),
		T(test_immediate_data_reaches_the_completion),
		T(test_send_with_invalidate_invalidates_the_qps_window),
		T(test_solicited_send_wakes_a_cq_armed_for_it),
		T(test_write_goes_where_the_first_packet_says),
		T(test_read_response_opcodes_and_payload),
		T(test_answers_have_the_configured_m_bit),
		T(test_psns_wrap),
		T(test_acks_coalesce_over_a_burst),
		P(test_one_ack_for_each_packet_without_coalescing),
		P(test_acks_for_each_packet_go_at_once),
		P(test_acks_for_each_packet_follow_pending_reads_in_order),
		T(test_reads_in_slices_between_writes),
		T(test_nothing_is_lost_when_the_sink_is_full),
		T(test_credits_are_the_receives_posted),
		T(test_no_credits_without_flow_control),
		T(test_one_sequence_nak_until_epsn),
		T(test_sequence_nak_uses_no_receive),
		T(test_sequence_nak_waits_for_pending_reads),
		T(test_sequence_nak_not_yet_sent_follows_epsn),
		T(test_gap_between_middle_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
