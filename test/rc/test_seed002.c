/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Seed 002, "Message Transfer Overview Example": start PSN 201, six work requests, every packet in
 * both directions. The example's base case is one response for each request packet, so
 * ack_per_packet is on.
 */

#include <string.h>

#include "pair.h"

#define PMTU 256

static int
seed002_setup(void **state)
{
	*state = pair_create(&(struct pair_config){
		.psn = 201,
		.pmtu = PMTU,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ack_per_packet = true,
	});
	return 0;
}

/* Each work request has its own bytes at both ends. */
enum {
	AT_SEND0 = 0x1000,
	AT_SEND1 = 0x10000,
	AT_WRITE = 0x20000,
	AT_READ = 0x30000,
	AT_SEND4 = 0x40000,
	AT_ATOMIC = 0x50000,
};

#define LEN_SEND0 (4 * PMTU + 7) /* 5 packets */
#define LEN_SEND1 (51 * PMTU + 1) /* 52 packets */
#define LEN_WRITE (9 * PMTU) /* 9 packets */
#define LEN_READ  (5 * PMTU + 255) /* 6 responses */
#define LEN_SEND4 100

static void
post_at(struct node *n, enum wr_opcode opcode, uint64_t wr_id, uint32_t at, uint32_t len)
{
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	make_wr(n, &wr, &sge, opcode, wr_id, len);
	sge.addr += at;
	wr.remote_addr += at;
	wr.compare_add = 0x1122334455667788;
	wr.swap = 0xAABBCCDDEEFF0011;
	if (rc_post_send(n->w, n->qpn, &wr, &err) != 0)
		fail_msg("%s", err.text);
}

static void
recv_at(struct node *n, uint64_t wr_id, uint32_t at, uint32_t len)
{
	struct sge sge = { n->va + at, len, n->key };
	struct recv_wr wr = { .wr_id = wr_id, .num_sge = 1, .sg_list = &sge };
	struct error err = { "" };

	if (rc_post_recv(n->w, n->qpn, &wr, &err) != 0)
		fail_msg("%s", err.text);
}

static void
test_message_transfer_overview(void **state)
{
	struct pair *p = *state;
	struct node *a = &p->a, *b = &p->b;
	uint64_t target = 0x1122334455667788;
	uint8_t read_back[LEN_READ];
	struct packet pkt;
	struct wc wc;

	memcpy(b->bytes + AT_ATOMIC, &target, sizeof(target));
	memcpy(read_back, b->bytes + AT_READ, LEN_READ);
	recv_at(b, 100, AT_SEND0, LEN_SEND0);
	recv_at(b, 101, AT_SEND1, LEN_SEND1);
	recv_at(b, 104, AT_SEND4, LEN_SEND4);

	/* a series of WRs has been posted to the SQ */
	post_at(a, WR_SEND, 0, AT_SEND0, LEN_SEND0);
	post_at(a, WR_SEND, 1, AT_SEND1, LEN_SEND1);
	post_at(a, WR_RDMA_WRITE, 2, AT_WRITE, LEN_WRITE);
	post_at(a, WR_RDMA_READ, 3, AT_READ, LEN_READ);
	post_at(a, WR_SEND, 4, AT_SEND4, LEN_SEND4);
	post_at(a, WR_ATOMIC_CMP_AND_SWP, 5, AT_ATOMIC, 8);

	/*
	 * WQE 0: five packets, 201 to 205. The peer's credits are not known yet: one Send may go
	 * (rc-transport 3)
	 */
	transmit(a);
	expect_run(a, "SEND First", 201, 201);
	expect_run(a, "SEND Middle", 202, 204);
	expect_run(a, "SEND Last", 205, 205);
	expect_silence(a);

	/* an ACK of its own PSN answers each */
	deliver(a);
	transmit(b);
	expect_run(b, "ACK", 201, 205);
	expect_silence(b);
	wc = expect_recv(b, 100, WC_SUCCESS);
	assert_int_equal(wc.byte_len, LEN_SEND0);
	deliver(b);
	expect_wc(a, 0, WC_SUCCESS);

	/* from now on packets are sent without waiting. WQE 1: 52 packets, 206 to 257 */
	transmit(a);
	expect_run(a, "SEND First", 206, 206);
	expect_run(a, "SEND Middle", 207, 256);
	expect_run(a, "SEND Last", 257, 257);
	/* WQE 2: 9 packets, 258 to 266 */
	expect_run(a, "WRITE First", 258, 258);
	pkt = sent_packet(a, 0);
	assert_int_equal(pkt.dmalen, LEN_WRITE);
	assert_int_equal(pkt.va, b->va + AT_WRITE);
	expect_run(a, "WRITE Middle", 259, 265);
	expect_run(a, "WRITE Last", 266, 266);
	/* WQE 3: one Read request, 267; its six responses take 267 to 272 */
	expect_run(a, "READ Request", 267, 267);
	pkt = sent_packet(a, 0);
	assert_int_equal(pkt.dmalen, LEN_READ);
	/* WQE 4 and 5; nPSN after the Read is 273 */
	expect_run(a, "SEND Only", 273, 273);
	expect_run(a, "CmpSwap", 274, 274);
	expect_silence(a);
	assert_int_equal(info_of(a).attr.sq_psn, 275);

	deliver(a);
	transmit(b);
	expect_run(b, "ACK", 206, 257);
	expect_run(b, "ACK", 258, 266);
	expect_run(b, "READ Response First", 267, 267);
	expect_run(b, "READ Response Middle", 268, 271);
	expect_run(b, "READ Response Last", 272, 272);
	expect_run(b, "ACK", 273, 273);
	expect_run(b, "ATOMIC Acknowledge", 274, 274);
	expect_silence(b);
	assert_int_equal(info_of(b).attr.rq_psn, 275);

	/* on the receiving end only the Sends complete */
	wc = expect_recv(b, 101, WC_SUCCESS);
	assert_int_equal(wc.byte_len, LEN_SEND1);
	wc = expect_recv(b, 104, WC_SUCCESS);
	assert_int_equal(wc.byte_len, LEN_SEND4);
	expect_no_wc(b);

	deliver(b);
	assert_int_equal(expect_wc(a, 1, WC_SUCCESS).opcode, WC_SEND);
	assert_int_equal(expect_wc(a, 2, WC_SUCCESS).opcode, WC_RDMA_WRITE);
	assert_int_equal(expect_wc(a, 3, WC_SUCCESS).opcode, WC_RDMA_READ);
	assert_int_equal(expect_wc(a, 4, WC_SUCCESS).opcode, WC_SEND);
	assert_int_equal(expect_wc(a, 5, WC_SUCCESS).opcode, WC_COMP_SWAP);
	expect_no_wc(a);
	assert_int_equal(info_of(a).sq_unacked, 0);

	/* every byte has arrived */
	assert_memory_equal(b->bytes + AT_SEND0, a->bytes + AT_SEND0, LEN_SEND0);
	assert_memory_equal(b->bytes + AT_SEND1, a->bytes + AT_SEND1, LEN_SEND1);
	assert_memory_equal(b->bytes + AT_WRITE, a->bytes + AT_WRITE, LEN_WRITE);
	assert_memory_equal(a->bytes + AT_READ, read_back, LEN_READ);
	assert_memory_equal(b->bytes + AT_SEND4, a->bytes + AT_SEND4, LEN_SEND4);
	assert_memory_equal(a->bytes + AT_ATOMIC, &target, sizeof(target));
	target = 0xAABBCCDDEEFF0011;
	assert_memory_equal(b->bytes + AT_ATOMIC, &target, sizeof(target));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_message_transfer_overview, seed002_setup,
			pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
