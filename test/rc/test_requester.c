/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The requester: how work requests become packets (rc-transport 2 to 4), and when these may be
 * sent.
 * test_completer.c tests the responses.
 */

#include <string.h>

#include "pair.h"

#define TTR(timeout) (UINT64_C(4096) << (timeout)) /* ns */

/* --- segmentation --- */

/* rc-transport 2 and 4: ceil(len / PMTU) packets, at least one; First, Middle ..., Last or Only */
static void
test_segmentation_at_every_pmtu(void **state)
{
	static const uint16_t pmtus[] = { 256, 512, 1024, 2048, 4096 };
	static const enum wr_opcode kinds[] = { WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ };
	uint32_t m, k, l, len, packets, psn;
	struct pair *p;

	for (m = 0; m < 5; m++) {
		const uint32_t lens[] = { 0, 1, 3, pmtus[m] - 1, pmtus[m], pmtus[m] + 1,
			2u * pmtus[m], 2u * pmtus[m] + 5, 7u * pmtus[m] - 2 };

		p = pair_create(&(struct pair_config){ .pmtu = pmtus[m], .retry_cnt = 7 });
		psn = FIRST_PSN;
		for (k = 0; k < 3; k++) {
			for (l = 0; l < 9; l++) {
				bool read = kinds[k] == WR_RDMA_READ;

				len = lens[l];
				packets = len == 0 ? 1 : (len + pmtus[m] - 1) / pmtus[m];
				memset(p->b.bytes, (int)(k * 9 + l), 8u * pmtus[m]);
				memset(p->a.bytes, 0x80 | (int)(k * 9 + l), 8u * pmtus[m]);
				if (kinds[k] == WR_SEND)
					post_recv(&p->b, 1, len);
				post(&p->a, kinds[k], l, len);
				exchange(p);
				expect_wc(&p->a, l, WC_SUCCESS);
				psn += packets;
				assert_int_equal(info_of(&p->a).attr.sq_psn, psn);
				assert_int_equal(p->a.sent_count - p->a.seen, read ? 1 : packets);
				p->a.seen = p->a.sent_count;
				assert_memory_equal(p->a.bytes, p->b.bytes, len);
				/* not a byte more */
				assert_true(p->a.bytes[len] != p->b.bytes[len]);
			}
		}
		pair_destroy(p);
	}
	*state = NULL;
}

/* rc-transport 2: a message of 0 bytes is one Only packet without payload; a Write's RETH says 0 */
static void
test_zero_length_messages(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_SEND, 1, 0);
	post(&p->a, WR_RDMA_WRITE, 2, 0);
	post(&p->a, WR_RDMA_READ, 3, 0);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201", "WRITE Only 202", "READ Request 203");
	assert_int_equal(sent_packet(&p->a, 0).payload_len, 0);
	assert_int_equal(sent_packet(&p->a, 1).payload_len, 0);
	assert_int_equal(sent_packet(&p->a, 1).dmalen, 0);
	assert_int_equal(sent_packet(&p->a, 2).dmalen, 0);
	ack(p, 202);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_SUCCESS);
	read_response(p, RC_READ_RESP_ONLY, 203, 0, 0);
	expect_wc(&p->a, 3, WC_SUCCESS);
}

/*
 * rc-transport 2: only the first packet has the RETH; only the last has immediate data, IETH and SE
 */
static void
test_headers_of_first_and_last_packets(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;
	struct packet pkt;

	make_wr(&p->a, &wr, &sge, WR_RDMA_WRITE_WITH_IMM, 1, 600);
	wr.imm_data = 0x01020304;
	wr.send_flags |= SEND_SOLICITED;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 201", "WRITE Middle 202", "WRITE Last Imm 203");
	pkt = sent_packet(&p->a, 0);
	assert_int_equal(pkt.va, p->b.va);
	assert_int_equal(pkt.rkey, p->b.key);
	assert_int_equal(pkt.dmalen, 600);
	assert_false(pkt.solicited);
	pkt = sent_packet(&p->a, 2);
	assert_int_equal(pkt.imm, 0x01020304);
	assert_int_equal(pkt.payload_len, 88);
	assert_true(pkt.solicited);
	ack(p, 203);

	make_wr(&p->a, &wr, &sge, WR_SEND_WITH_INV, 2, 257);
	wr.invalidate_rkey = 0xABCD12;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	make_wr(&p->a, &wr, &sge, WR_SEND_WITH_IMM, 3, 5);
	wr.imm_data = 77;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	/* a Write without immediate has no completion at the peer: no SE */
	make_wr(&p->a, &wr, &sge, WR_RDMA_WRITE, 4, 5);
	wr.send_flags |= SEND_SOLICITED;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	transmit(&p->a);
	expect_tx(&p->a, "SEND First 204", "SEND Last Inv 205", "SEND Only Imm 206",
		"WRITE Only 207");
	assert_int_equal(sent_packet(&p->a, 1).rkey, 0xABCD12);
	assert_int_equal(sent_packet(&p->a, 2).imm, 77);
	assert_int_equal(sent_packet(&p->a, 2).pad, 3);
	assert_false(sent_packet(&p->a, 3).solicited);
}

/* rc-transport 1: operands of Atomics */
static void
test_atomic_operands(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;
	struct packet pkt;

	make_wr(&p->a, &wr, &sge, WR_ATOMIC_CMP_AND_SWP, 1, 8);
	wr.compare_add = 0x1111;
	wr.swap = 0x2222;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	make_wr(&p->a, &wr, &sge, WR_ATOMIC_FETCH_AND_ADD, 2, 8);
	wr.compare_add = 0x3333;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	transmit(&p->a);
	expect_tx(&p->a, "CmpSwap 201", "FetchAdd 202");
	pkt = sent_packet(&p->a, 0);
	assert_int_equal(pkt.compare, 0x1111);
	assert_int_equal(pkt.swap_add, 0x2222);
	pkt = sent_packet(&p->a, 1);
	assert_int_equal(pkt.swap_add, 0x3333);
	assert_int_equal(pkt.va, p->b.va);
	assert_int_equal(pkt.rkey, p->b.key);
}

/*
 * Packets take the bytes of a gather list in order and skip empty entries, also when they are sent
 * again from the middle of the list.
 */
static void
test_gather_list_across_packets(void **state)
{
	struct pair *p = *state;
	struct sge list[4] = {
		{ p->a.va, 100, p->a.key },
		{ p->a.va + 5000, 0, p->a.key },
		{ p->a.va + 1000, 300, p->a.key },
		{ p->a.va + 3000, 300, p->a.key },
	};
	struct send_wr wr = {
		.wr_id = 1,
		.opcode = WR_SEND,
		.num_sge = 4,
		.sg_list = list,
		.send_flags = SEND_SIGNALED,
	};
	struct error err = { "" };
	uint8_t want[700];

	memcpy(want, p->a.bytes, 100);
	memcpy(want + 100, p->a.bytes + 1000, 300);
	memcpy(want + 400, p->a.bytes + 3000, 300);
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	transmit(&p->a);
	expect_tx(&p->a, "SEND First 201", "SEND Middle 202", "SEND Last 203");
	assert_memory_equal(sent_packet(&p->a, 0).payload, want, 256);
	assert_memory_equal(sent_packet(&p->a, 1).payload, want + 256, 256);
	assert_memory_equal(sent_packet(&p->a, 2).payload, want + 512, 188);

	nak(p, AETH_NAK_PSN_SEQUENCE, 202);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Middle 202", "SEND Last 203");
	assert_memory_equal(sent_packet(&p->a, 0).payload, want + 256, 256);
	assert_memory_equal(sent_packet(&p->a, 1).payload, want + 512, 188);
}

/* rc-transport 4: PSNs are 24 bits and wrap */
static void
test_psn_wraps(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .psn = 0xFFFFFE, .retry_cnt = 7 });

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 1, 1024);
	post(&p->a, WR_RDMA_READ, 2, 512);
	exchange(p);
	expect_tx(&p->a, "WRITE First 16777214", "WRITE Middle 16777215", "WRITE Middle 0",
		"WRITE Last 1", "READ Request 2");
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_SUCCESS);
	assert_int_equal(info_of(&p->a).attr.sq_psn, 4);
}

/* rc-cases: a READ whose PSN span crosses 0xFFFFFF -> 0 */
static void
test_read_span_wraps(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .psn = 0xFFFFFE, .retry_cnt = 7 });

	*state = p;
	post(&p->a, WR_RDMA_READ, 1, 1024);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	exchange(p);
	expect_tx(&p->a, "READ Request 16777214", "WRITE Only 2");
	expect_tx(&p->b, "READ Response First 16777214", "READ Response Middle 16777215",
		"READ Response Middle 0", "READ Response Last 1", "ACK 2");
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_SUCCESS);
}

/* rc-transport 1: M is as configured, by default 1 on native IB and 0 on RoCE. */
static void
test_migreq_as_configured(void **state)
{
	static const struct {
		enum encap encap;
		enum migreq configured;
		bool m;
	} rows[] = {
		{ ENCAP_ROCEV2_IPV4, MIGREQ_OF_LINK, false },
		{ ENCAP_ROCEV1, MIGREQ_OF_LINK, false },
		{ ENCAP_IB, MIGREQ_OF_LINK, true },
		{ ENCAP_ROCEV2_IPV4, MIGREQ_1, true },
		{ ENCAP_IB, MIGREQ_1, true },
		{ ENCAP_ROCEV2_IPV4, MIGREQ_0, false },
		{ ENCAP_IB, MIGREQ_0, false },
	};
	struct pair *p;
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pair_destroy(*state);
		*state = p = pair_create(&(struct pair_config){
			.encap = rows[i].encap,
			.migreq = rows[i].configured,
			.scripted = true,
		});
		post(&p->a, WR_RDMA_WRITE, 1, 1);
		post(&p->a, WR_RDMA_READ, 2, 1);
		transmit(&p->a);
		expect_tx(&p->a, "WRITE Only 201", "READ Request 202");
		assert_int_equal(sent_packet(&p->a, 0).migreq, rows[i].m);
		assert_int_equal(sent_packet(&p->a, 1).migreq, rows[i].m);
	}
}

/* --- when packets may be sent --- */

static bool
asks(const struct node *n, unsigned int i)
{
	return sent_packet(n, i).ackreq;
}

/* rc-transport 4: AckReq on last and only packets, and every ack_interval packets */
static void
test_ackreq_on_last_and_every_interval(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .ack_interval = 4, .scripted = true });
	unsigned int i;

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 1, 6 * 256);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 201", "WRITE Middle 202", "WRITE Middle 203",
		"WRITE Middle 204", "WRITE Middle 205", "WRITE Last 206", "WRITE Only 207");
	for (i = 0; i < 7; i++)
		assert_int_equal(asks(&p->a, i), i == 3 || i == 5 || i == 6);
}

/*
 * The last packet that fits the window has AckReq, else no ACK might come; then the QP waits.
 */
static void
test_window_stalls_with_ackreq(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .window = 3, .scripted = true });

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 1, 6 * 256);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 201", "WRITE Middle 202", "WRITE Middle 203");
	assert_false(asks(&p->a, 0));
	assert_false(asks(&p->a, 1));
	assert_true(asks(&p->a, 2));
	ack(p, 202);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 204", "WRITE Middle 205");
}

/* rc-transport 4: at most 2^23 unacknowledged PSNs */
static void
test_at_most_2_23_psns_in_flight(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.psn = 0x900000,
		.window = 1 << 23,
		.scripted = true,
	});

	*state = p;
	post(&p->a, WR_RDMA_READ, 1, 1u << 31); /* 2^23 responses of 256 */
	post(&p->a, WR_RDMA_READ, 2, 1);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 9437184");
	assert_int_equal(info_of(&p->a).sq_unacked, 1 << 23);
	assert_int_equal(sent_packet(&p->a, 0).dmalen, 1u << 31);
	/* one response makes room for one PSN */
	assert_int_equal(read_response(p, RC_READ_RESP_FIRST, 0x900000, 0, 256), VERDICT_RESPONSE);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 1048576"); /* 0x900000 + 2^23 - 2^24 */
}

/* one Read of 2^23 responses waits for an empty window, then fills it */
static void
test_long_read_waits_for_room(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .window = 1 << 23, .scripted = true });

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_READ, 2, 1u << 31);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	ack(p, 201);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 202");
}

/* At most max_rd_atomic Reads and Atomics are outstanding; later requests wait behind them. */
static void
test_max_rd_atomic(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .rd_atomic = 2, .scripted = true });

	*state = p;
	post(&p->a, WR_RDMA_READ, 1, 1);
	post(&p->a, WR_ATOMIC_FETCH_AND_ADD, 2, 8);
	post(&p->a, WR_RDMA_READ, 3, 1);
	post(&p->a, WR_SEND, 4, 1);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 201", "FetchAdd 202");
	read_response(p, RC_READ_RESP_ONLY, 201, 0, 1);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 203", "SEND Only 204");
}

/*
 * A fenced request starts when all earlier Reads and Atomics are complete; it does not wait for
 * earlier Sends.
 */
static void
test_fence_waits_for_reads_and_atomics(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post_flags(&p->a, WR_RDMA_WRITE, 2, 1, SEND_SIGNALED | SEND_FENCE);
	post(&p->a, WR_RDMA_READ, 3, 300);
	post(&p->a, WR_RDMA_WRITE, 4, 1);
	post_flags(&p->a, WR_RDMA_WRITE, 5, 1, SEND_SIGNALED | SEND_FENCE);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "WRITE Only 202", "READ Request 203", "WRITE Only 205");
	read_response(p, RC_READ_RESP_FIRST, 203, 0, 256);
	transmit(&p->a);
	expect_silence(&p->a);
	read_response(p, RC_READ_RESP_LAST, 204, 256, 44);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 206");
}

/* --- end-to-end credits: rc-transport 3 --- */

/* LSN starts at 0: one Send may start as a probe; Reads and plain Writes need no credit */
static void
test_first_send_is_a_probe(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_SEND, 2, 1);
	post(&p->a, WR_SEND, 3, 1);
	transmit(&p->a);
	/* LSN 1 with the Write; the Sends have SSN 2 and 3 */
	expect_tx(&p->a, "WRITE Only 201", "SEND Only 202");
	assert_int_equal(counters_of(&p->a).credit_stall, 1);
	ack_credits(p, 202, 2, 0); /* LSN = 2 + 0 */
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 203");
}

/* A request that waits for credits is counted once, however often its QP has a turn meanwhile. */
static void
test_each_wait_for_credits_is_counted_once(void **state)
{
	struct pair *p = *state;
	unsigned int i;

	for (i = 0; i < 3; i++)
		post(&p->a, WR_SEND, i, 1);
	transmit(&p->a);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
	assert_int_equal(counters_of(&p->a).credit_stall, 1);
	ack_credits(p, 201, 1, 0); /* LSN 1: the probe with SSN 2, and the third Send waits */
	transmit(&p->a);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 202");
	assert_int_equal(counters_of(&p->a).credit_stall, 2);
}

/*
 * Writes, Reads and Atomics need no receive, so LSN advances with their SSN: they use none of the
 * credits that later Sends have.
 */
static void
test_lsn_advances_with_requests_that_need_no_credit(void **state)
{
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_SEND, 0, 1);
	transmit(&p->a);
	ack_credits(p, 201, 1, 4); /* LSN 5: four credits, and a probe */
	p->a.seen = p->a.sent_count;
	for (i = 0; i < 16; i++)
		post(&p->a, WR_RDMA_WRITE, i, 1);
	post(&p->a, WR_SEND, 16, 1);
	for (i = 0; i < 14; i++)
		post(&p->a, WR_RDMA_WRITE, i, 1);
	post(&p->a, WR_RDMA_WRITE, 14, 300); /* two packets */
	post(&p->a, WR_RDMA_READ, 15, 300);
	post(&p->a, WR_ATOMIC_FETCH_AND_ADD, 16, 8);
	for (i = 0; i < 5; i++)
		post(&p->a, i == 1 ? WR_RDMA_WRITE_WITH_IMM : WR_SEND, i, 1);
	transmit(&p->a);
	expect_run(&p->a, "WRITE Only", 202, 217);
	expect_run(&p->a, "SEND Only", 218, 218);
	expect_run(&p->a, "WRITE Only", 219, 232);
	expect_tx(&p->a, "WRITE First 233", "WRITE Last 234", "READ Request 235", "FetchAdd 237",
		"SEND Only 238", "WRITE Only Imm 239", "SEND Only 240", "SEND Only 241");
}

/* LSN advances when a request gets its SSN, not when it is sent again. */
static void
test_lsn_does_not_advance_on_a_resend(void **state)
{
	struct pair *p = *state;
	unsigned int i;

	for (i = 0; i < 3; i++)
		post(&p->a, WR_RDMA_WRITE, i, i == 0 ? 600 : 1); /* 201 to 203, 204, 205 */
	post(&p->a, WR_SEND, 3, 1);
	post(&p->a, WR_SEND, 4, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 201", "WRITE Middle 202", "WRITE Last 203", "WRITE Only 204",
		"WRITE Only 205", "SEND Only 206");
	for (i = 0; i < 3; i++) {
		pass(p, TTR(14));
		transmit(&p->a);
		expect_tx(&p->a, "WRITE First 201", "WRITE Middle 202", "WRITE Last 203",
			"WRITE Only 204", "WRITE Only 205", "SEND Only 206");
	}
}

/* a Send or Write with Immediate whose SSN <= LSN + 1 may start; LSN = MSN + credits */
static void
test_credits_limit_messages(void **state)
{
	struct pair *p = *state;
	unsigned int i;

	for (i = 0; i < 6; i++)
		post(&p->a, i == 3 ? WR_RDMA_WRITE_WITH_IMM : WR_SEND, i, 1);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
	ack_credits(p, 201, 1, 2); /* LSN 3: SSN 2, 3 and the probe 4 */
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 202", "SEND Only 203", "WRITE Only Imm 204");
	ack_credits(p, 202, 2, 0); /* LSN 2 would be behind: it never moves back */
	transmit(&p->a);
	expect_silence(&p->a);
	ack_credits(p, 203, 3, 0);
	transmit(&p->a);
	expect_silence(&p->a);
	/* the newest ACK again brings credits (code 5 is 6 of them) */
	assert_int_equal(ack_credits(p, 203, 3, 5), VERDICT_RESPONSE);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 205", "SEND Only 206");
}

/* LSN never moves back: an ACK with fewer credits takes none away. */
static void
test_lsn_never_moves_back(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_SEND, 1, 1);
	post(&p->a, WR_SEND, 2, 1);
	transmit(&p->a);
	ack_credits(p, 201, 1, 4); /* LSN 5 */
	transmit(&p->a);
	ack_credits(p, 202, 2, 0);
	p->a.seen = p->a.sent_count;
	post(&p->a, WR_SEND, 3, 1);
	post(&p->a, WR_SEND, 4, 1);
	post(&p->a, WR_SEND, 5, 1);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 203", "SEND Only 204", "SEND Only 205");
}

/* "no credit information" (31) lifts the limit for good */
static void
test_no_credit_information_is_no_limit(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_SEND, 1, 1);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
	ack(p, 201);
	post(&p->a, WR_SEND, 2, 1);
	post(&p->a, WR_SEND, 3, 1);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 202", "SEND Only 203");
}

/* SSN, LSN and MSN have 24 bits: a limit past the wrap is ahead, not behind. */
static void
test_lsn_arithmetic_wraps(void **state)
{
	struct pair *p = *state;
	uint32_t psn;

	/* the peer's MSN jumps by large steps */
	for (psn = 201; psn <= 203; psn++) {
		post(&p->a, WR_SEND, psn, 1);
		transmit(&p->a);
		ack_credits(p, psn, (psn - 200) * 0x400000, 0); /* LSN up to 0xC00000 */
		expect_wc(&p->a, psn, WC_SUCCESS);
	}
	p->a.seen = p->a.sent_count;
	/* SSN 4 is 0x400004 ahead of LSN 0xC00000 */
	post(&p->a, WR_SEND, 204, 1);
	transmit(&p->a);
	expect_silence(&p->a);
	ack_credits(p, 203, 0xFFFFFF, 4); /* LSN 3, after the wrap */
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 204");
}

/* With advertised credits a stream of Sends gets no RNR NAK. */
static void
test_credits_end_to_end(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.flow_control = true,
		.retry_cnt = 7,
		.rnr_retry = 7,
	});
	unsigned int i;

	*state = p;
	for (i = 0; i < 10; i++)
		post(&p->a, WR_SEND, i, 100);
	for (i = 0; i < 3; i++)
		post_recv(&p->b, i, 100);
	exchange(p);
	for (i = 0; i < 3; i++)
		expect_wc(&p->a, i, WC_SUCCESS);
	expect_no_wc(&p->a);
	/* only the probe found the receive queue empty */
	assert_int_equal(counters_of(&p->b).send_rnr_err, 1);
	for (i = 3; i < 10; i++)
		post_recv(&p->b, i, 100);
	pass(p, 2000000); /* the probe's RNR wait */
	exchange(p);
	for (i = 3; i < 10; i++)
		expect_wc(&p->a, i, WC_SUCCESS);
	assert_int_equal(counters_of(&p->b).send_rnr_err, 1);
}

/* --- the transport timer: seed 002 --- */

/* Ttr <= To <= 4 Ttr, from the sending of the first unanswered packet */
static void
test_timeout_between_ttr_and_4_ttr(void **state)
{
	struct pair *p = *state;

	pass(p, 12345);
	post(&p->a, WR_SEND, 1, 600);
	transmit(&p->a);
	expect_tx(&p->a, "SEND First 201", "SEND Middle 202", "SEND Last 203");
	pass(p, TTR(14) - 1);
	transmit(&p->a);
	expect_silence(&p->a);
	pass(p, 3 * TTR(14) + 1);
	transmit(&p->a);
	expect_tx(&p->a, "SEND First 201", "SEND Middle 202", "SEND Last 203");
	assert_true(asks(&p->a, 0)); /* AckReq on retry */
	assert_int_equal(counters_of(&p->a).local_ack_timeout_err, 1);
	assert_int_equal(counters_of(&p->a).retransmitted_pkts, 3);
	assert_int_equal(counters_of(&p->a).completer_retry_err, 1);
}

/* One timer per QP: any progress restarts it. */
static void
test_timer_restarts_on_progress(void **state)
{
	struct pair *p = *state;
	unsigned int i;

	post(&p->a, WR_RDMA_WRITE, 1, 5 * 256);
	transmit(&p->a);
	p->a.seen = p->a.sent_count;
	for (i = 0; i < 4; i++) {
		pass(p, TTR(14) - 1);
		ack(p, FIRST_PSN + i);
		transmit(&p->a);
		expect_silence(&p->a);
	}
	/* a duplicate is no progress */
	pass(p, TTR(14) / 2);
	assert_int_equal(ack(p, FIRST_PSN), VERDICT_DUPLICATE_RESPONSE);
	pass(p, TTR(14) / 2);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Last 205"); /* from the oldest unacknowledged */
}

/* Without outstanding requests the timer is off; a later request gets the full Ttr. */
static void
test_timer_is_off_while_idle(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	ack(p, 201);
	pass(p, TTR(14) - 1);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "WRITE Only 202");
	pass(p, TTR(14) - 1);
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(counters_of(&p->a).local_ack_timeout_err, 0);
	pass(p, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 202");
}

/* A rewind restarts the timer with the first packet sent again. */
static void
test_timer_starts_anew_with_a_rewind(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	pass(p, TTR(14) - 1);
	nak(p, AETH_NAK_PSN_SEQUENCE, 201);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "WRITE Only 201");
	pass(p, TTR(14) - 1);
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(counters_of(&p->a).local_ack_timeout_err, 0);
	pass(p, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
}

/* seed 002: a value below the CA's minimum, but not 0, is raised to it */
static void
test_minimum_ack_timeout(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.timeout = 1,
		.min_ack_timeout = 10,
		.retry_cnt = 7,
		.scripted = true,
	});

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	pass(p, TTR(10) - 1);
	transmit(&p->a);
	expect_silence(&p->a);
	pass(p, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
}

/* Local ACK Timeout 0 turns the timer off */
static void
test_timeout_zero_is_off(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .no_timer = true, .scripted = true });

	*state = p;
	post(&p->a, WR_SEND, 1, 1);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
	pass(p, UINT64_C(1) << 50);
	transmit(&p->a);
	expect_silence(&p->a);
	assert_int_equal(state_of(&p->a), QPS_RTS);
}

/*
 * rc-transport 8: N retries for retry_cnt N, then RETRY_EXC_ERR, QP to ERR, the rest flushed in
 * order
 */
static void
test_retry_count_exhausted(void **state)
{
	uint8_t n, i;

	for (n = 0; n <= 7;
		n += n == 0 ? 1 : 6) { /* 0, 1 and 7: unlike rnr_retry, 7 is not infinite */
		struct pair *p = pair_create(&(struct pair_config){
			.retry_cnt = n,
			.scripted = true,
		});

		post(&p->a, WR_RDMA_WRITE, 1, 1);
		post_flags(&p->a, WR_RDMA_WRITE, 2, 1,
			0); /* unsignaled, but a failure always completes */
		post(&p->a, WR_RDMA_READ, 3, 1);
		transmit(&p->a);
		expect_tx(&p->a, "WRITE Only 201", "WRITE Only 202", "READ Request 203");
		for (i = 0; i < n; i++) {
			pass(p, TTR(14));
			transmit(&p->a);
			expect_tx(&p->a, "WRITE Only 201", "WRITE Only 202", "READ Request 203");
		}
		expect_no_wc(&p->a);
		pass(p, TTR(14));
		transmit(&p->a);
		expect_silence(&p->a);
		expect_wc(&p->a, 1, WC_RETRY_EXC_ERR);
		expect_wc(&p->a, 2, WC_WR_FLUSH_ERR);
		expect_wc(&p->a, 3, WC_WR_FLUSH_ERR);
		expect_no_wc(&p->a);
		assert_int_equal(state_of(&p->a), QPS_ERR);
		assert_int_equal(counters_of(&p->a).retry_exceeded_err, 1);
		assert_int_equal(counters_of(&p->a).req_cqe_error, 1);
		assert_int_equal(counters_of(&p->a).req_cqe_flush_error, 2);
		pair_destroy(p);
	}
	*state = NULL;
}

/* rc-transport 8: the counter is reloaded whenever a response retires an outstanding request */
static void
test_retry_counter_reloads(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .retry_cnt = 2, .scripted = true });

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	transmit(&p->a);
	pass(p, TTR(14));
	transmit(&p->a);
	pass(p, TTR(14));
	transmit(&p->a);
	assert_int_equal(info_of(&p->a).retry_left, 0);
	ack(p, 201);
	assert_int_equal(info_of(&p->a).retry_left, 2);
	expect_wc(&p->a, 1, WC_SUCCESS);
	pass(p, TTR(14));
	transmit(&p->a);
	assert_int_equal(info_of(&p->a).retry_left, 1);
	assert_int_equal(state_of(&p->a), QPS_RTS);
}

/* --- local errors and a full sink --- */

/*
 * A local key that does not allow the access: earlier requests complete, then LOC_PROT_ERR; no
 * later packet is sent.
 */
static void
test_local_protection_error_waits_its_turn(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	make_wr(&p->a, &wr, &sge, WR_RDMA_WRITE, 2, 600);
	sge.addr += PAIR_MEM - 300; /* the second packet reads beyond the region */
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "WRITE First 202");
	expect_no_wc(&p->a);
	assert_int_equal(state_of(&p->a), QPS_RTS);
	ack(p, 201);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->a, 2, WC_LOC_PROT_ERR);
	expect_wc(&p->a, 3, WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(&p->a), QPS_ERR);
	transmit(&p->a);
	expect_silence(&p->a);
}

/* The same with messages of one packet and a peer that counts no credits. */
static void
test_local_protection_error_behind_an_ack(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	ack(p, 201);
	expect_wc(&p->a, 1, WC_SUCCESS);
	post(&p->a, WR_SEND, 2, 1);
	make_wr(&p->a, &wr, &sge, WR_SEND, 3, 100);
	sge.addr += PAIR_MEM - 99;
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	post(&p->a, WR_SEND, 4, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "SEND Only 202");
	expect_no_wc(&p->a);
	ack(p, 202);
	expect_wc(&p->a, 2, WC_SUCCESS);
	expect_wc(&p->a, 3, WC_LOC_PROT_ERR);
	expect_wc(&p->a, 4, WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(&p->a), QPS_ERR);
}

/* Within one turn of a QP the window limits short messages, too (peer without credits). */
static void
test_window_of_short_messages(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.scripted = true,
		.window = 4,
	});
	unsigned int i;

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	ack(p, 201);
	for (i = 2; i < 10; i++)
		post(&p->a, WR_SEND, i, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201", "SEND Only 202", "SEND Only 203", "SEND Only 204",
		"SEND Only 205");
	ack(p, 203);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 206", "SEND Only 207");
}

/* After a full sink has room again, sending continues where it stopped. */
static void
test_full_sink_resumes(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 4 * 256);
	p->a.room = 2;
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 201", "WRITE Middle 202");
	assert_true(rc_pending(p->a.w));
	assert_true(counters_of(&p->a).tx_stall >= 1);
	p->a.room = 100;
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 203", "WRITE Last 204");
	assert_memory_equal(sent_packet(&p->a, 0).payload, p->a.bytes + 512, 256);
	assert_false(rc_pending(p->a.w));
}

/*
 * Lose each packet once, in each direction, with every operation: all requests complete, and every
 * byte arrives (rc-transport 4 and 8 together).
 */
static void
test_every_single_loss_is_repaired(void **state)
{
	static const enum wr_opcode kinds[] = { WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ, WR_SEND,
		WR_RDMA_READ };
	uint32_t psn, side;
	unsigned int i, k;

	/* 5 messages of 1000 bytes: PSNs 201..220; lose each, in each direction */
	for (psn = 201; psn <= 220; psn++) {
		for (side = 0; side < 2; side++) {
			struct pair *p = pair_create(&(struct pair_config){
				.retry_cnt = 7,
				.rnr_retry = 7,
			});

			lose(side == 0 ? &p->a : &p->b, psn);
			for (k = 0; k < 5; k++) {
				struct error err = { "" };
				struct send_wr wr;
				struct sge sge;

				if (kinds[k] == WR_SEND)
					post_recv(&p->b, k, 1000);
				make_wr(&p->a, &wr, &sge, kinds[k], k, 1000);
				sge.addr += 0x1000 * (k + 1);
				wr.remote_addr += 0x10000 + 0x1000 * (k + 1);
				assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
			}
			exchange(p);
			for (i = 0; i < 20; i++) {
				pass(p, TTR(14));
				exchange(p);
			}
			for (k = 0; k < 5; k++) {
				expect_wc(&p->a, k, WC_SUCCESS);
				if (kinds[k] != WR_SEND)
					assert_memory_equal(p->a.bytes + 0x1000 * (k + 1),
						p->b.bytes + 0x10000 + 0x1000 * (k + 1), 1000);
			}
			expect_no_wc(&p->a);
			expect_recv(&p->b, 0, WC_SUCCESS);
			expect_recv(&p->b, 3, WC_SUCCESS);
			expect_no_wc(&p->b);
			pair_destroy(p);
		}
	}
	*state = NULL;
}

#define SCRIPTED(t) cmocka_unit_test_setup_teardown(t, scripted_setup, pair_teardown)
#define OWN(t)      cmocka_unit_test_teardown(t, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		OWN(test_segmentation_at_every_pmtu),
		SCRIPTED(test_zero_length_messages),
		SCRIPTED(test_headers_of_first_and_last_packets),
		SCRIPTED(test_atomic_operands),
		SCRIPTED(test_gather_list_across_packets),
		OWN(test_psn_wraps),
		OWN(test_read_span_wraps),
		SCRIPTED(test_migreq_as_configured),
		OWN(test_ackreq_on_last_and_every_interval),
		OWN(test_window_stalls_with_ackreq),
		OWN(test_at_most_2_23_psns_in_flight),
		OWN(test_long_read_waits_for_room),
		OWN(test_max_rd_atomic),
		SCRIPTED(test_fence_waits_for_reads_and_atomics),
		SCRIPTED(test_first_send_is_a_probe),
		SCRIPTED(test_each_wait_for_credits_is_counted_once),
		SCRIPTED(test_credits_limit_messages),
		SCRIPTED(test_lsn_advances_with_requests_that_need_no_credit),
		SCRIPTED(test_lsn_does_not_advance_on_a_resend),
		SCRIPTED(test_lsn_never_moves_back),
		SCRIPTED(test_no_credit_information_is_no_limit),
		SCRIPTED(test_lsn_arithmetic_wraps),
		OWN(test_credits_end_to_end),
		SCRIPTED(test_timeout_between_ttr_and_4_ttr),
		SCRIPTED(test_timer_restarts_on_progress),
		SCRIPTED(test_timer_is_off_while_idle),
		SCRIPTED(test_timer_starts_anew_with_a_rewind),
		OWN(test_minimum_ack_timeout),
		OWN(test_timeout_zero_is_off),
		OWN(test_retry_count_exhausted),
		OWN(test_retry_counter_reloads),
		SCRIPTED(test_local_protection_error_waits_its_turn),
		SCRIPTED(test_local_protection_error_behind_an_ack),
		OWN(test_window_of_short_messages),
		SCRIPTED(test_full_sink_resumes),
		OWN(test_every_single_loss_is_repaired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
