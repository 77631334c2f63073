/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requests that the responder refuses, row by row of rc-transport 6: the NAK, the completion or
 * event, and memory that must not change. Sources: seed 001 with its table 17-5, rc-cases.
 */

#include <string.h>

#include "peer.h"

static struct peer *
refusals_again(void **state, const struct peer_config *config)
{
	peer_destroy(*state);
	*state = peer_create(config);
	return *state;
}

/*
 * NAKs 0x61, 0x62 and 0x63 (seed 001): their PSN is ePSN, which does not advance; the QP goes to
 * ERR, and later packets are dropped.
 */
static void
refusals_expect_refusal(struct peer *p, const char *nak, uint32_t epsn)
{
	run(p);
	expect_tx(p, nak);
	assert_int_equal(epsn_of(p), epsn);
	assert_int_equal(state_of(p), QPS_ERR);
	assert_int_equal(in_write(p, RC_WRITE_ONLY, epsn, 0x1000, 8, 8), VERDICT_QP_STATE);
	run(p);
	expect_silence(p);
}

/*
 * "If the current request does not use a RQ WQE": an affiliated asynchronous error, and the RQ is
 * flushed
 */
static void
expect_refusal_event(struct peer *p, const char *nak, uint32_t epsn, enum event_type event)
{
	refusals_expect_refusal(p, nak, epsn);
	expect_event(p, event);
	assert_int_equal(p->events[p->event_next - 1].element, p->qpn);
	expect_no_event(p);
	expect_wc(p, 1, WC_WR_FLUSH_ERR, NULL);
	expect_wc(p, 2, WC_WR_FLUSH_ERR, NULL);
	expect_no_wc(p);
}

/*
 * "If the current request does use a RQ WQE": it completes with the error, the rest is flushed,
 * no event
 */
static void
expect_refusal_wc(struct peer *p, const char *nak, uint32_t epsn, enum wc_status status)
{
	refusals_expect_refusal(p, nak, epsn);
	expect_no_event(p);
	expect_wc(p, 1, status, NULL);
	expect_wc(p, 2, WC_WR_FLUSH_ERR, NULL);
	expect_no_wc(p);
}

static void
two_receives(struct peer *p)
{
	post(p, 1, 0x1000, 600);
	post(p, 2, 0x2000, 600);
}

/* A fresh QP with two receives; PSN 201 is next. */
static struct peer *
fresh(void **state)
{
	struct peer *p = refusals_again(state, &(struct peer_config){ .psn = FIRST_PSN });

	two_receives(p);
	return p;
}

/* Row 2, rc-cases "First arrives where Middle is due; Middle after Only; Atomic inside a WRITE" */
static void
test_wrong_opcode_sequence_is_an_invalid_request(void **state)
{
	static const uint8_t not_first[] = { RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_LAST_IMM,
		RC_SEND_LAST_INV, RC_WRITE_MIDDLE, RC_WRITE_LAST };
	static const uint8_t not_in_write[] = { RC_WRITE_FIRST, RC_WRITE_ONLY, RC_SEND_MIDDLE,
		RC_SEND_LAST, RC_READ_REQUEST, RC_CMP_SWAP, RC_FETCH_ADD };
	static const uint8_t not_in_send[] = { RC_SEND_FIRST, RC_SEND_ONLY, RC_SEND_ONLY_INV,
		RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST, RC_WRITE_LAST_IMM, RC_WRITE_ONLY,
		RC_READ_REQUEST, RC_CMP_SWAP, RC_FETCH_ADD };
	struct peer *p;
	unsigned int i;

	for (i = 0; i < sizeof(not_first); i++) {
		p = fresh(state);
		in_send(p, not_first[i], 201, MTU);
		expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
		assert_int_equal(counters_of(p).resp_invalid_requests, 1);
	}
	for (i = 0; i < sizeof(not_in_write); i++) {
		p = fresh(state);
		in_write(p, RC_WRITE_FIRST, 201, 0x1000, 3 * MTU, MTU);
		run(p);
		expect_tx(p, "ACK 201");
		request(p, not_in_write[i], 202);
		feed(p);
		expect_refusal_event(p, "NAK-INV 202", 202, EVENT_QP_REQ_ERR);
	}
	/*
	 * "The currently active RQ WQE is retired": a request that uses no receive itself, within a
	 * Send, completes the Send's receive with an error and raises an event
	 */
	for (i = 0; i < sizeof(not_in_send); i++) {
		p = fresh(state);
		in_send(p, RC_SEND_FIRST, 201, MTU);
		run(p);
		expect_tx(p, "ACK 201");
		request(p, not_in_send[i], 202);
		feed(p);
		if (!(opcodes[not_in_send[i]].flags & (OP_SEND | OP_RQ_WQE)))
			expect_event(p, EVENT_QP_REQ_ERR);
		expect_refusal_wc(p, "NAK-INV 202", 202, WC_REM_INV_REQ_ERR);
	}
	/* a Send or Write with Immediate out of sequence uses the receive, so no event */
	p = fresh(state);
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 3 * MTU, MTU);
	run(p);
	expect_tx(p, "ACK 201");
	in_send(p, RC_SEND_ONLY, 202, 8);
	expect_refusal_wc(p, "NAK-INV 202", 202, WC_REM_INV_REQ_ERR);
}

/* A valid Read or Atomic within a message: it would be executed if it came first. */
static void
test_read_or_atomic_within_a_message_is_an_invalid_request(void **state)
{
	struct peer *p;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		p = fresh(state);
		in_write(p, RC_WRITE_FIRST, 201, 0x1000, 3 * MTU, MTU);
		run(p);
		expect_tx(p, "ACK 201");
		if (i == 0)
			in_read(p, 202, 0x1000, 8);
		else
			in_fetch_add(p, 202, 0x1000, 1);
		expect_refusal_event(p, "NAK-INV 202", 202, EVENT_QP_REQ_ERR);

		p = fresh(state);
		in_send(p, RC_SEND_FIRST, 201, MTU);
		run(p);
		expect_tx(p, "ACK 201");
		if (i == 0)
			in_read(p, 202, 0x1000, 8);
		else
			in_fetch_add(p, 202, 0x1000, 1);
		expect_event(p, EVENT_QP_REQ_ERR);
		expect_refusal_wc(p, "NAK-INV 202", 202, WC_REM_INV_REQ_ERR);
	}
}

/* Row 7: all eight bytes of an Atomic must be in the region */
static void
test_atomic_at_the_end_of_a_region_is_an_access_error(void **state)
{
	struct peer *p = fresh(state);
	uint32_t key = peer_register(p, PEER_VA, 0, 4100,
		MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE_ATOMIC);

	request(p, RC_FETCH_ADD, 201)->rkey = key;
	p->pkt.va = PEER_VA + 4096;
	p->pkt.swap_add = 1;
	assert_int_equal(feed(p), VERDICT_NAK_SENT);
	expect_refusal_event(p, "NAK-ACC 201", 201, EVENT_QP_ACCESS_ERR);
}

/* Row 3: "The BTH:Opcode is reserved", "... not supported by responder" */
static void
test_reserved_and_unsupported_opcodes_are_invalid_requests(void **state)
{
	static const uint8_t ops[] = { 0x15, 0x18, 0x1B, 0x1F, RC_FLUSH, RC_ATOMIC_WRITE };
	struct peer *p;
	unsigned int i;

	for (i = 0; i < sizeof(ops); i++) {
		p = fresh(state);
		request(p, ops[i], 201);
		assert_int_equal(feed(p), VERDICT_NAK_SENT);
		expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
	}
}

/* Row 3: "An RDMA request packet was received and the responder QP doesn't support RDMAs" */
static void
test_operations_not_enabled_are_invalid_requests(void **state)
{
	struct peer *p;

	p = refusals_again(state,
		&(struct peer_config){
			.psn = 201,
			.access = MEM_ACCESS_REMOTE_READ | MEM_ACCESS_REMOTE_ATOMIC,
		});
	two_receives(p);
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 8, 8);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);

	/* table 17-5: "The operation is not supported by this RQ": Remote Invalid Request Error */
	p = refusals_again(state,
		&(struct peer_config){
			.psn = 201,
			.access = MEM_ACCESS_REMOTE_READ | MEM_ACCESS_REMOTE_ATOMIC,
		});
	two_receives(p);
	in_write(p, RC_WRITE_ONLY_IMM, 201, 0x1000, 8, 8);
	expect_refusal_wc(p, "NAK-INV 201", 201, WC_REM_INV_REQ_ERR);

	p = refusals_again(state,
		&(struct peer_config){
			.psn = 201,
			.access = MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_ATOMIC,
		});
	two_receives(p);
	in_read(p, 201, 0x1000, 8);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);

	p = refusals_again(state,
		&(struct peer_config){
			.psn = 201,
			.access = MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_READ,
		});
	two_receives(p);
	in_fetch_add(p, 201, 0x1000, 1);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
}

/* Row 4b: "insufficient space in the queue into which it latches this type of operation" */
static void
test_more_reads_than_max_dest_rd_atomic_are_an_invalid_request(void **state)
{
	struct peer *p = refusals_again(state, &(struct peer_config){ .psn = 201, .rd_atomic = 2 });

	two_receives(p);
	in_read(p, 201, 0, 8);
	in_fetch_add(p, 202, 0x2000, 1);
	run(p);
	expect_tx(p, "ONLY 201", "ATOMIC 202");
	/* answered requests make room */
	in_read(p, 203, 0, 2 * MTU);
	in_fetch_add(p, 205, 0x2000, 1);
	run_slice(p, 1);
	expect_tx(p, "FIRST 203");
	assert_int_equal(in_read(p, 206, 0, 8), VERDICT_NAK_SENT);
	/* all earlier requests are answered before the NAK */
	run(p);
	expect_tx(p, "LAST 204", "ATOMIC 205", "NAK-INV 206");
	expect_event(p, EVENT_QP_REQ_ERR);
	assert_int_equal(state_of(p), QPS_ERR);

	p = refusals_again(state,
		&(struct peer_config){ .psn = 201, .rd_atomic = 255 }); /* none at all */
	two_receives(p);
	in_read(p, 201, 0, 8);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
	p = refusals_again(state, &(struct peer_config){ .psn = 201, .rd_atomic = 255 });
	two_receives(p);
	in_fetch_add(p, 201, 0x2000, 1);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
}

static void
refusals_modify(struct peer *p, const struct qp_attr *attr, uint32_t mask)
{
	struct error err = { "" };

	if (rc_qp_modify(p->w, p->qpn, attr, mask, &err) != 0)
		fail_msg("%s", err.text);
}

/*
 * SQD to SQD may lower max_dest_rd_atomic: older saved requests are dropped, unanswered ones kept.
 */
static void
test_lowered_max_dest_rd_atomic(void **state)
{
	struct qp_attr attr = { .qp_state = QPS_RTS, .max_dest_rd_atomic = 2 };
	struct peer *p = *state; /* 4 */

	in_read(p, 201, 0, 8);
	in_read(p, 202, 0, 8);
	run(p);
	in_read(p, 203, 0, 2 * MTU);
	in_read(p, 205, 0, 8);
	refusals_modify(p, &attr,
		QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			QP_ATTR_SQ_PSN | QP_ATTR_MAX_QP_RD_ATOMIC);
	attr.qp_state = QPS_SQD;
	refusals_modify(p, &attr, QP_ATTR_STATE);
	refusals_modify(p, &attr, QP_ATTR_STATE | QP_ATTR_MAX_DEST_RD_ATOMIC);
	assert_int_equal(in_read(p, 206, 0, 8), VERDICT_NAK_SENT); /* two are unanswered */
	run(p);
	expect_tx(p, "ONLY 201", "ONLY 202", "FIRST 203", "LAST 204", "ONLY 205", "NAK-INV 206");
}

/* Row 5: the payload rule of each opcode (rc-transport 2) */
static void
test_wrong_payload_length_is_an_invalid_request(void **state)
{
	struct peer *p;

	p = fresh(state);
	in_send(p, RC_SEND_FIRST, 201, 255);
	expect_refusal_wc(p, "NAK-INV 201", 201, WC_REM_INV_REQ_ERR);
	p = fresh(state);
	in_send(p, RC_SEND_FIRST, 201, 257);
	expect_refusal_wc(p, "NAK-INV 201", 201, WC_REM_INV_REQ_ERR);
	p = fresh(state);
	in_send(p, RC_SEND_ONLY, 201, 257);
	expect_refusal_wc(p, "NAK-INV 201", 201, WC_REM_INV_REQ_ERR);

	p = fresh(state);
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 600, 252);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
	p = fresh(state);
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 300, 300);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);

	p = fresh(state);
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 700, 256);
	run(p);
	expect_tx(p, "ACK 201");
	in_write(p, RC_WRITE_MIDDLE, 202, 0, 0, 255);
	expect_refusal_event(p, "NAK-INV 202", 202, EVENT_QP_REQ_ERR);
	p = fresh(state);
	in_send(p, RC_SEND_FIRST, 201, 256);
	run(p);
	expect_tx(p, "ACK 201");
	in_send(p, RC_SEND_LAST, 202, 0);
	expect_refusal_wc(p, "NAK-INV 202", 202, WC_REM_INV_REQ_ERR);

	p = fresh(state);
	request(p, RC_READ_REQUEST, 201)->va = PEER_VA;
	p->pkt.dmalen = 8;
	p->pkt.payload_len = 1;
	feed(p);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
}

/*
 * Row 5: "If the pad count bits are nonzero [in first or middle], an Invalid Request Nak is
 * returned"
 */
static void
test_padding_in_first_or_middle_is_an_invalid_request(void **state)
{
	struct peer *p = fresh(state);

	request(p, RC_WRITE_FIRST, 201)->va = PEER_VA;
	p->pkt.dmalen = 600;
	p->pkt.payload_len = 256;
	p->pkt.pad = 1;
	feed(p);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);

	p = fresh(state);
	in_send(p, RC_SEND_FIRST, 201, 256);
	run(p);
	expect_tx(p, "ACK 201");
	request(p, RC_SEND_MIDDLE, 202);
	p->pkt.payload_len = 256;
	p->pkt.pad = 3;
	feed(p);
	expect_refusal_wc(p, "NAK-INV 202", 202, WC_REM_INV_REQ_ERR);
}

/* A Send Only longer than its receive, although the region continues behind the receive. */
static void
test_send_of_one_packet_longer_than_its_receive(void **state)
{
	struct peer *p = refusals_again(state, &(struct peer_config){ .psn = FIRST_PSN });

	post(p, 1, 0x1000, 64);
	post(p, 2, 0x2000, 64);
	memset(p->bytes + 0x1000, 0x77, 0x100);
	in_send(p, RC_SEND_ONLY, 201, 65);
	expect_refusal_wc(p, "NAK-INV 201", 201, WC_LOC_LEN_ERR);
	assert_int_equal(p->bytes[0x1000], 0x77);
	assert_int_equal(p->bytes[0x1040], 0x77);
	assert_int_equal(counters_of(p).resp_local_length_error, 1);
}

/*
 * Row 5, rc-cases: "Send longer than the posted buffers: NAK 0x61 to the peer, Local Length Error
 * at the receiver"
 */
static void
test_send_longer_than_its_receive_is_a_local_length_error(void **state)
{
	struct peer *p = fresh(state);

	memset(p->bytes + 0x1000, 0x77, 0x400);
	in_send(p, RC_SEND_FIRST, 201, 256);
	in_send(p, RC_SEND_MIDDLE, 202, 256);
	run(p);
	expect_tx(p, "ACK 202");
	in_send(p, RC_SEND_LAST, 203, 89); /* 601 of 600 */
	expect_refusal_wc(p, "NAK-INV 203", 203, WC_LOC_LEN_ERR);
	assert_int_equal(p->bytes[0x1200], 0x77); /* no byte of the last packet */
	assert_int_equal(counters_of(p).resp_local_length_error, 1);
	assert_int_equal(counters_of(p).resp_invalid_requests, 0);
}

/*
 * Row 5: "if the request is for greater than 2^31 bytes, then an Invalid Request Nak is returned"
 */
static void
test_read_above_2_31_is_an_invalid_request(void **state)
{
	struct peer *p = fresh(state);

	in_read(p, 201, 0, 0x80000001);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
	/* 2^31 is a valid length, but no region here is that large */
	p = fresh(state);
	in_read(p, 201, 0, 0x80000000);
	expect_refusal_event(p, "NAK-ACC 201", 201, EVENT_QP_ACCESS_ERR);
}

/* Row 5b */
static void
test_write_whose_payloads_are_not_its_dmalen_is_an_invalid_request(void **state)
{
	struct peer *p;

	p = fresh(state);
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 0x80000001, 256);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
	p = fresh(state); /* 2^31 itself is possible, but there is no such region */
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 0x80000000, 256);
	expect_refusal_event(p, "NAK-ACC 201", 201, EVENT_QP_ACCESS_ERR);
	p = fresh(state);
	in_write(p, RC_WRITE_ONLY, 201, 0x1000, 9, 8);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
	p = fresh(state);
	in_write(p, RC_WRITE_ONLY_IMM, 201, 0x1000, 7, 8);
	expect_refusal_wc(p, "NAK-INV 201", 201, WC_REM_INV_REQ_ERR);
	p = fresh(state);
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 255, 256);
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);

	p = fresh(state);
	memset(p->bytes + 0x1000, 0x77, 0x400);
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 300, 256);
	run(p);
	expect_tx(p, "ACK 201");
	in_write(p, RC_WRITE_LAST, 202, 0, 0, 45); /* too long */
	expect_refusal_event(p, "NAK-INV 202", 202, EVENT_QP_REQ_ERR);
	assert_int_equal(p->bytes[0x1100], 0x77);
	p = fresh(state);
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 300, 256);
	run(p);
	expect_tx(p, "ACK 201");
	in_write(p, RC_WRITE_LAST, 202, 0, 0, 43); /* too short */
	expect_refusal_event(p, "NAK-INV 202", 202, EVENT_QP_REQ_ERR);
	p = fresh(state);
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 300, 256);
	run(p);
	expect_tx(p, "ACK 201");
	in_write(p, RC_WRITE_MIDDLE, 202, 0, 0, 256); /* too long already */
	expect_refusal_event(p, "NAK-INV 202", 202, EVENT_QP_REQ_ERR);
	p = fresh(state);
	in_write(p, RC_WRITE_FIRST, 201, 0x1000, 256, 256); /* leaves nothing for a Last */
	expect_refusal_event(p, "NAK-INV 201", 201, EVENT_QP_REQ_ERR);
}

enum how { BAD_KEY, BAD_RIGHTS, BAD_END, BAD_WRAP, HOW_COUNT };

static void
spoil(struct peer *p, enum how how)
{
	struct packet *pkt = &p->pkt;

	pkt->dmalen = 16;
	pkt->va = PEER_VA + 0x1000;
	if (pkt->op->flags & OP_WRITE)
		pkt->payload_len = 16;
	switch (how) {
	case BAD_KEY:
		pkt->rkey ^= 1;
		break;
	case BAD_RIGHTS:
		pkt->rkey = peer_register(p, PEER_VA, 0, PEER_MEM, MEM_ACCESS_LOCAL_WRITE);
		break;
	case BAD_END:
		pkt->va = PEER_VA + PEER_MEM - 15;
		break;
	default: /* rc-cases: "RETH VA + length wraps 2^64" */
		pkt->va = UINT64_MAX - 7;
		break;
	}
}

/*
 * Row 7; the statuses are table 17-5's: a region too small is a Remote Invalid Request, the rest
 * Remote Access Errors
 */
static void
test_bad_key_right_or_range_is_an_access_error(void **state)
{
	static const enum wc_status status[] = {
		[BAD_KEY] = WC_REM_ACCESS_ERR,
		[BAD_RIGHTS] = WC_REM_ACCESS_ERR,
		[BAD_END] = WC_REM_INV_REQ_ERR,
		[BAD_WRAP] = WC_REM_INV_REQ_ERR,
	};
	struct peer *p;
	enum how how;

	for (how = 0; how < HOW_COUNT; how++) {
		p = fresh(state);
		request(p, RC_READ_REQUEST, 201);
		spoil(p, how);
		assert_int_equal(feed(p), VERDICT_NAK_SENT);
		expect_refusal_event(p, "NAK-ACC 201", 201, EVENT_QP_ACCESS_ERR);
		assert_int_equal(counters_of(p).resp_remote_access_errors, 1);

		p = fresh(state);
		memset(p->bytes + PEER_MEM - 15, 0x77, 15);
		memset(p->bytes + 0x1000, 0x77, 16);
		request(p, RC_WRITE_ONLY, 201);
		spoil(p, how);
		feed(p);
		expect_refusal_event(p, "NAK-ACC 201", 201, EVENT_QP_ACCESS_ERR);
		assert_int_equal(p->bytes[PEER_MEM - 15], 0x77);
		assert_int_equal(p->bytes[0x1000], 0x77);

		p = fresh(state);
		request(p, RC_WRITE_ONLY_IMM, 201);
		spoil(p, how);
		feed(p);
		expect_refusal_wc(p, "NAK-ACC 201", 201, status[how]);
	}
}

/* A Write that does not fit the region writes no byte, not even those of its First. */
static void
test_write_that_cannot_fit_moves_no_byte(void **state)
{
	struct peer *p = fresh(state);

	memset(p->bytes + PEER_MEM - 512, 0x77, 512);
	in_write(p, RC_WRITE_FIRST, 201, PEER_MEM - 512, 513, 256);
	expect_refusal_event(p, "NAK-ACC 201", 201, EVENT_QP_ACCESS_ERR);
	assert_int_equal(p->bytes[PEER_MEM - 512], 0x77);
}

/* Row 7: "skipped when DMALen = 0" */
static void
test_zero_length_access_needs_no_key(void **state)
{
	struct peer *p = fresh(state);

	request(p, RC_WRITE_ONLY, 201)->rkey = 0xDEAD;
	p->pkt.va = 0x1;
	assert_int_equal(feed(p), VERDICT_REQUEST);
	request(p, RC_READ_REQUEST, 202)->rkey = 0xDEAD;
	p->pkt.va = UINT64_MAX;
	assert_int_equal(feed(p), VERDICT_REQUEST);
	request(p, RC_WRITE_ONLY_IMM, 203)->rkey = 0xDEAD;
	assert_int_equal(feed(p), VERDICT_REQUEST);
	assert_int_equal(epsn_of(p), 204); /* an empty Read has one response */
	run(p);
	expect_tx(p, "ONLY 202", "ACK 203");
	assert_int_equal(answered(p, 0)->len, 0);
	expect_wc(p, 1, WC_SUCCESS, NULL);
}

/*
 * rc-cases: "MR deregistered ... between two packets of a WRITE: ... no byte written after
 * deregister returned"
 */
static void
test_region_gone_between_two_packets_of_a_write(void **state)
{
	struct peer *p = fresh(state);
	uint32_t key = peer_register(p, 0x10000, 0x3000, 0x1000,
		MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE_WRITE);
	struct error err;

	memset(p->bytes + 0x3000, 0x77, 0x1000);
	request(p, RC_WRITE_FIRST, 201)->rkey = key;
	p->pkt.va = 0x10000;
	p->pkt.dmalen = 600;
	p->pkt.payload_len = 256;
	assert_int_equal(feed(p), VERDICT_REQUEST);
	run(p);
	expect_tx(p, "ACK 201");
	assert_int_equal(mem_mr_deregister(p->mem, key, &err), 0);
	assert_int_equal(in_write(p, RC_WRITE_MIDDLE, 202, 0, 0, 256), VERDICT_NAK_SENT);
	expect_refusal_event(p, "NAK-ACC 202", 202, EVENT_QP_ACCESS_ERR);
	assert_int_equal(p->bytes[0x3000 + 256], 0x77);
}

/*
 * Seed 001: "An Ack packet containing the appropriate Nak error code is substituted for the RDMA
 * Read response packet being Nak'd. The Nak packet's PSN is the one that would have been in the
 * corresponding RDMA Read response packet"
 */
static void
read_loses_its_region(struct peer *p)
{
	uint32_t key = peer_register(p, 0x10000, 0, 0x1000, MEM_ACCESS_REMOTE_READ);
	struct error err;

	two_receives(p);
	request(p, RC_READ_REQUEST, 201)->rkey = key;
	p->pkt.va = 0x10000;
	p->pkt.dmalen = 5 * MTU;
	feed(p);
	in_write(p, RC_WRITE_ONLY, 206, 0x3000, 8, 8);
	in_read(p, 207, 0, 8);
	in_write(p, RC_WRITE_ONLY, 208, 0x3000, 8, 8);
	run_slice(p, 2);
	expect_tx(p, "FIRST 201", "MIDDLE 202");
	assert_int_equal(mem_mr_deregister(p->mem, key, &err), 0);
	/* nothing is answered after it */
	expect_refusal_event(p, "NAK-ACC 203", 209, EVENT_QP_ACCESS_ERR);
	assert_int_equal(counters_of(p).resp_remote_access_errors, 1);
}

static void
test_region_gone_in_the_middle_of_a_read(void **state)
{
	read_loses_its_region(refusals_again(state, &(struct peer_config){ .psn = 201 }));
	read_loses_its_region(
		refusals_again(state, &(struct peer_config){ .psn = 201, .ack_per_packet = true }));
}

/*
 * A Read fails while the NAK of a later request waits for it: only the Read's NAK is sent.
 */
static void
test_read_that_fails_before_a_waiting_nak_replaces_it(void **state)
{
	struct peer *p = *state;
	uint32_t key = peer_register(p, 0x10000, 0, 0x1000, MEM_ACCESS_REMOTE_READ);
	struct error err;

	request(p, RC_READ_REQUEST, 201)->rkey = key;
	p->pkt.va = 0x10000;
	p->pkt.dmalen = 5 * MTU;
	feed(p);
	in_send(p, RC_SEND_MIDDLE, 206, MTU);
	expect_event(p, EVENT_QP_REQ_ERR);
	run_slice(p, 2);
	assert_int_equal(mem_mr_deregister(p->mem, key, &err), 0);
	run(p);
	expect_tx(p, "FIRST 201", "MIDDLE 202", "NAK-ACC 203");
	expect_no_event(p); /* one error, one event */
}

/*
 * Row 8, seed 001: "Internal Consistency error", rc-transport 6: local QP operation error; the SQ
 * and RQ are flushed
 */
static void
test_receive_with_a_bad_local_key_is_an_operational_error(void **state)
{
	struct peer *p = refusals_again(state, &(struct peer_config){ .psn = 201 });
	uint32_t read_only = peer_register(p, PEER_VA, 0, PEER_MEM, MEM_ACCESS_REMOTE_READ);
	struct sge sge[] = { { PEER_VA + 0x1000, 8, p->key }, { PEER_VA + 0x2000, 8, read_only } };
	struct recv_wr wr = { .wr_id = 1, .num_sge = 2, .sg_list = sge };
	struct error err;

	assert_int_equal(rc_post_recv(p->w, p->qpn, &wr, &err), 0);
	post(p, 2, 0, 64);
	memset(p->bytes + 0x1000, 0x77, 8);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 16), VERDICT_NAK_SENT);
	expect_refusal_wc(p, "NAK-OP 201", 201, WC_LOC_QP_OP_ERR);
	assert_int_equal(p->bytes[0x1000], 0x77); /* nor the part of the receive with a good key */
}

/* Entries of the scatter list behind the message are not checked. */
static void
test_bad_local_key_beyond_the_message_does_no_harm(void **state)
{
	struct peer *p = *state;
	struct sge sge[] = { { PEER_VA + 0x1000, 8, p->key }, { 0, 8, 0xBAD } };
	struct recv_wr wr = { .wr_id = 1, .num_sge = 2, .sg_list = sge };
	struct error err;

	assert_int_equal(rc_post_recv(p->w, p->qpn, &wr, &err), 0);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 8), VERDICT_REQUEST);
	expect_wc(p, 1, WC_SUCCESS, NULL);
}

/*
 * Our interpretation of seed 001, "The request packet's R_Key field is invalid"; the message is not
 * delivered.
 */
static void
test_invalidate_of_a_key_that_is_not_the_qps_window_is_an_access_error(void **state)
{
	struct peer *p = fresh(state);

	memset(p->bytes + 0x1000, 0x77, 8);
	request(p, RC_SEND_ONLY_INV, 201); /* names the region's key */
	p->pkt.payload_len = 8;
	assert_int_equal(feed(p), VERDICT_NAK_SENT);
	expect_refusal_wc(p, "NAK-ACC 201", 201, WC_REM_ACCESS_ERR);
	assert_int_equal(p->bytes[0x1000], 0x77);
}

/*
 * "Any request packets received prior to the errant request must be executed, completed, and
 * responded to"
 */
static void
test_pending_answers_precede_the_nak_that_ends_the_qp(void **state)
{
	struct peer *p = fresh(state);

	in_read(p, 201, 0, 3 * MTU);
	in_write(p, RC_WRITE_ONLY, 204, 0x3000, 8, 8);
	in_send(p, RC_SEND_MIDDLE, 205, MTU);
	assert_int_equal(state_of(p), QPS_ERR);
	run_slice(p, 2);
	expect_tx(p, "FIRST 201", "MIDDLE 202");
	run(p);
	expect_tx(p, "LAST 203", "ACK 204", "NAK-INV 205");
	assert_false(rc_pending(p->w));
}

/* When anything else puts the QP into ERR, only ACKs that do not wait for a Read are still sent. */
static void
test_qp_in_error_answers_no_more_reads(void **state)
{
	const struct qp_attr attr = { .qp_state = QPS_ERR };
	struct peer *p = fresh(state);

	in_write(p, RC_WRITE_ONLY, 201, 0x3000, 8, 8);
	in_write(p, RC_WRITE_ONLY, 203, 0x3000, 8, 8); /* a gap */
	refusals_modify(p, &attr, QP_ATTR_STATE);
	run(p);
	expect_tx(p, "ACK 201"); /* no sequence NAK */

	p = fresh(state);
	in_send(p, RC_SEND_ONLY, 201, 8);
	in_send(p, RC_SEND_ONLY, 202, 8);
	in_send(p, RC_SEND_ONLY, 203, 8);
	run(p);
	expect_tx(p, "ACK 202", "RNR 203");
	in_send(p, RC_SEND_ONLY, 203, 8);
	refusals_modify(p, &attr, QP_ATTR_STATE);
	run(p);
	expect_silence(p); /* no RNR NAK */

	p = fresh(state);
	in_read(p, 201, 0, 8);
	in_read(p, 202, 0, 8);
	run(p);
	expect_tx(p, "ONLY 201", "ONLY 202");
	in_read(p, 201, 0,
		8); /* the answer to the duplicate holds back the ACK of newer requests */
	in_write(p, RC_WRITE_ONLY, 203, 0x3000, 8, 8);
	refusals_modify(p, &attr, QP_ATTR_STATE);
	run(p);
	expect_silence(p);

	p = refusals_again(state, &(struct peer_config){ .psn = 201, .ack_per_packet = true });
	in_write(p, RC_WRITE_ONLY, 201, 0x3000, 8, 8);
	in_read(p, 202, 0, 3 * MTU);
	in_write(p, RC_WRITE_ONLY, 205, 0x3000, 8, 8);
	in_read(p, 206, 0, 8);
	in_write(p, RC_WRITE_ONLY, 207, 0x3000, 8, 8);
	in_fetch_add(p, 208, 0x3000, 1);
	run_slice(p, 1);
	in_write(p, RC_WRITE_ONLY, 201, 0x3000, 8, 8); /* a duplicate */
	expect_tx(p, "ACK 201", "FIRST 202");
	refusals_modify(p, &attr, QP_ATTR_STATE);
	run(p);
	expect_tx(p, "ACK 201");
	assert_false(rc_pending(p->w));
}

/* rc-cases: "CQ full: CQ error event, QP -> Error; nothing overwritten" */
static void
test_full_cq_ends_the_qp(void **state)
{
	struct peer *p = refusals_again(state, &(struct peer_config){ .psn = 201, .cq_depth = 1 });

	post(p, 1, 0x1000, 64);
	post(p, 2, 0x1000, 64);
	post(p, 3, 0x1000, 64);
	in_send(p, RC_SEND_ONLY, 201, 8);
	in_send(p, RC_SEND_ONLY, 202, 8);
	expect_event(p, EVENT_CQ_ERR);
	expect_event(p, EVENT_QP_FATAL);
	assert_int_equal(state_of(p), QPS_ERR);
	expect_wc(p, 1, WC_SUCCESS, NULL);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 203, 8), VERDICT_QP_STATE);
}

/* After an error, RESET and a new connection, the message in progress is forgotten. */
static void
test_reset_forgets_the_message_in_progress(void **state)
{
	struct peer *p = fresh(state);
	struct qp_attr attr = { .qp_state = QPS_RESET };
	struct qp_init_attr init;
	struct error err;

	in_send(p, RC_SEND_FIRST, 201, MTU);
	in_send(p, RC_SEND_ONLY, 203, 8);
	assert_int_equal(rc_qp_modify(p->w, p->qpn, &attr, QP_ATTR_STATE, &err), 0);
	run(p);
	expect_silence(p);
	expect_no_wc(p);
	peer_init_attr(p, &init);
	p->qpn = peer_qp(p, &init);
	post(p, 5, 0x1000, 64);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 8), VERDICT_REQUEST);
	expect_wc(p, 5, WC_SUCCESS, NULL);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)
	const struct CMUnitTest tests[] = {
		T(test_wrong_opcode_sequence_is_an_invalid_request),
		T(test_atomic_at_the_end_of_a_region_is_an_access_error),
		T(test_read_or_atomic_within_a_message_is_an_invalid_request),
		T(test_reserved_and_unsupported_opcodes_are_invalid_requests),
		T(test_operations_not_enabled_are_invalid_requests),
		T(test_more_reads_than_max_dest_rd_atomic_are_an_invalid_request),
		T(test_lowered_max_dest_rd_atomic),
		T(test_wrong_payload_length_is_an_invalid_request),
		T(test_padding_in_first_or_middle_is_an_invalid_request),
		T(test_send_of_one_packet_longer_than_its_receive),
		T(test_send_longer_than_its_receive_is_a_local_length_error),
		T(test_read_above_2_31_is_an_invalid_request),
		T(test_write_whose_payloads_are_not_its_dmalen_is_an_invalid_request),
		T(test_bad_key_right_or_range_is_an_access_error),
		T(test_write_that_cannot_fit_moves_no_byte),
		T(test_zero_length_access_needs_no_key),
		T(test_region_gone_between_two_packets_of_a_write),
		T(test_region_gone_in_the_middle_of_a_read),
		T(test_read_that_fails_before_a_waiting_nak_replaces_it),
		T(test_receive_with_a_bad_local_key_is_an_operational_error),
		T(test_bad_local_key_beyond_the_message_does_no_harm),
		T(test_invalidate_of_a_key_that_is_not_the_qps_window_is_an_access_error),
		T(test_pending_answers_precede_the_nak_that_ends_the_qp),
		T(test_qp_in_error_answers_no_more_reads),
		T(test_full_cq_ends_the_qp),
		T(test_reset_forgets_the_message_in_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
