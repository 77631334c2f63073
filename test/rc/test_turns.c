/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Turns of the QPs of a worker (lib/rc/schedule.c): 9216 bytes each, a packet costs its payload and
 * 512. So two packets of 4096 bytes are worth 16 of 64.
 */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "pair.h"
#include "rc/qp_directory.h"

#define GIB (1u << 30)

struct rivals {
	struct pair *p;
	uint32_t other; /* a's second QP, to QPN 0x777 */
};

static uint32_t
second_qp(struct pair *p, uint16_t pmtu)
{
	struct qp_attr attr = qp_attr_of(&p->a);
	struct error err = { "" };
	struct qp_init_attr init;
	uint32_t qpn;

	init_attr(&p->a, &init);
	assert_int_equal(rc_qp_create(p->a.w, &init, &qpn, &err), 0);
	attr.qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(p->a.w, qpn, &attr, MASK_INIT, &err), 0);
	attr.qp_state = QPS_RTR;
	attr.dest_qp_num = 0x777;
	attr.path_mtu = pmtu;
	assert_int_equal(rc_qp_modify(p->a.w, qpn, &attr, MASK_RTR, &err), 0);
	attr.qp_state = QPS_RTS;
	assert_int_equal(rc_qp_modify(p->a.w, qpn, &attr, MASK_RTS, &err), 0);
	return qpn;
}

/* One Send, whose ACK says that the peer has no limit of credits. */
static void
no_credits(struct pair *p, uint32_t qpn)
{
	uint32_t first = p->a.qpn;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	make_wr(&p->a, &wr, &sge, WR_SEND, 1, 0);
	assert_int_equal(rc_post_send(p->a.w, qpn, &wr, &err), 0);
	assert_int_equal(rc_run(p->a.w, p->now, 64), 1);
	p->a.qpn = qpn;
	assert_int_equal(ack(p, FIRST_PSN), VERDICT_RESPONSE);
	p->a.qpn = first;
}

/* Create both QPs. Each has its full turn. */
static void
turns_setup(void **state, struct rivals *r)
{
	r->p = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.scripted = true,
		.pmtu = 4096,
		.no_timer = true,
		.send_wr = 256,
	});
	*state = r->p;
	r->other = second_qp(r->p, 4096);
	no_credits(r->p, r->p->a.qpn);
	no_credits(r->p, r->other);
	r->p->a.seen = r->p->a.sent_count;
}

/* b reads 1 GiB from a's first QP. The region maps the same page again and again. */
static void
read_a_gib(struct pair *p)
{
	static uint8_t *gib;
	struct mem_mr_attr mr = {
		.pd = p->a.pd,
		.access = MEM_ACCESS_REMOTE_READ,
		.length = GIB,
		.va = 0x400000000,
		.backing = MEM_EXTERNAL,
		.numa_node = -1,
	};
	struct mem_mr_info info;
	struct error err = { "" };

	if (gib == NULL)
		gib = mmap(NULL, GIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			0);
	assert_true(gib != MAP_FAILED);
	mr.base = gib;
	if (mem_mr_register(p->a.mem, &mr, &info, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(answer(p,
				 &(struct wire_headers){
					 .opcode = RC_READ_REQUEST,
					 .psn = FIRST_PSN,
					 .va = mr.va,
					 .rkey = info.key,
					 .dmalen = GIB,
				 },
				 NULL, 0),
		VERDICT_REQUEST);
}

static void
post_small_to(struct rivals *r, uint32_t qpn, unsigned int n)
{
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;

	make_wr(&r->p->a, &wr, &sge, WR_SEND, 1, 64);
	while (n-- > 0)
		assert_int_equal(rc_post_send(r->p->a.w, qpn, &wr, &err), 0);
}

static void
post_small(struct rivals *r, unsigned int n)
{
	post_small_to(r, r->other, n);
}

/* Expect runs of packets from a: "2R" two Read responses of 4096 bytes, "16s" 16 Sends of 64. */
static void
expect_order(struct pair *p, const char *want)
{
	char got[256] = "";
	unsigned int i, run = 0;
	char kind, last = 0;

	for (i = p->a.seen; i <= p->a.sent_count; i++) {
		kind = i == p->a.sent_count ? 0 : p->a.sent[i].text[0] == 'R' ? 'R' : 's';
		if (kind != last && run > 0) {
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%u%c",
				got[0] == 0 ? "" : " ", run, last);
			run = 0;
		}
		last = kind;
		run++;
	}
	p->a.seen = p->a.sent_count;
	assert_string_equal(got, want);
}

/*
 * A Read of 1 GiB and endless Sends get the same number of bytes, with 512 for each packet.
 */
static void
test_read_responses_and_sends_get_equal_shares(void **state)
{
	struct rivals r;

	turns_setup(state, &r);
	read_a_gib(r.p);
	post_small(&r, 100);
	assert_int_equal(rc_run(r.p->a.w, r.p->now, 54), 54);
	expect_order(r.p, "2R 16s 2R 16s 2R 16s");
}

/* A QP with one small message waits for one turn of the other QP at most. */
static void
test_small_message_waits_for_at_most_one_turn(void **state)
{
	struct rivals r;

	turns_setup(state, &r);
	read_a_gib(r.p);
	rc_run(r.p->a.w, r.p->now, 2);
	expect_order(r.p, "2R");
	post_small(&r, 1);
	rc_run(r.p->a.w, r.p->now, 9);
	expect_order(r.p, "2R 1s 6R");
	/* now QPs have short turns */
	post_small(&r, 1);
	rc_run(r.p->a.w, r.p->now, 9);
	rc_run(r.p->a.w, r.p->now, 9);
	expect_order(r.p, "2R 1s 2R");
}

/*
 * If the worker's budget ends within a QP's turn, the turn goes on later with the rest of its
 * bytes.
 */
static void
test_budget_does_not_end_a_turn(void **state)
{
	struct rivals r;
	unsigned int i;

	turns_setup(state, &r);
	read_a_gib(r.p);
	post_small(&r, 100);
	for (i = 0; i < 36; i++)
		assert_int_equal(rc_run(r.p->a.w, r.p->now, 1), 1);
	expect_order(r.p, "2R 16s 2R 16s");
}

/* a turn of the worker is 4096 bytes for each packet of its budget: 32 are 29 of 4096, 32 of 64 */
static void
test_worker_turn_is_short_in_bytes(void **state)
{
	struct rivals r;
	unsigned int i;

	turns_setup(state, &r);
	post_small(&r, 100);
	for (i = 0; i < 3; i++)
		assert_int_equal(rc_run(r.p->a.w, r.p->now, 32), 32);
	assert_int_equal(rc_run(r.p->a.w, r.p->now, 32), 4);
	r.p->a.seen = r.p->a.sent_count;
	read_a_gib(r.p);
	assert_in_range(rc_run(r.p->a.w, r.p->now, 32), 29, 30);
	assert_true(rc_pending(r.p->a.w));
}

/*
 * After a small message a Read's packets cost sixteenfold from the next turn on, until 64 turns
 * after the last small message.
 */
static void
test_turns_are_short_beside_small_messages(void **state)
{
	struct rivals r;
	unsigned int i;

	turns_setup(state, &r);
	read_a_gib(r.p);
	post_small(&r, 1);
	assert_in_range(rc_run(r.p->a.w, r.p->now, 32), 29, 31);
	for (i = 0; i < 50; i++) {
		assert_int_equal(rc_run(r.p->a.w, r.p->now, 32), 2);
		r.p->a.sent_count = r.p->a.seen;
	}
	post_small(&r, 1);
	assert_int_equal(rc_run(r.p->a.w, r.p->now, 32), 2);
	assert_int_equal(rc_run(r.p->a.w, r.p->now, 32), 3);
	expect_order(r.p, "2R 1s 2R");
	for (i = 0; i < 64; i++) {
		assert_int_equal(rc_run(r.p->a.w, r.p->now, 32), 2);
		r.p->a.sent_count = r.p->a.seen;
	}
	assert_in_range(rc_run(r.p->a.w, r.p->now, 32), 29, 30);
}

/* One small message now and then leaves a Read most of its long turns. */
static void
test_turns_are_long_beside_rare_small_messages(void **state)
{
	static const unsigned int cycles[] = { 128, 256 };
	struct rivals r;
	unsigned int i, c, packets;

	turns_setup(state, &r);
	read_a_gib(r.p);
	for (c = 0; c < RTE_DIM(cycles); c++) {
		packets = 0;
		for (i = 0; i < 3 * cycles[c]; i++) {
			if (i % cycles[c] == 0)
				post_small(&r, 1);
			packets += rc_run(r.p->a.w, r.p->now, 32);
			r.p->a.sent_count = r.p->a.seen;
		}
		assert_true(packets >= 3 * ((cycles[c] - 65) * 29 + 65 * 2));
	}
}

/* A message of a packet's size, or one of many, does not shorten the turns. */
static void
test_turns_are_long_beside_others(void **state)
{
	struct rivals r;

	turns_setup(state, &r);
	read_a_gib(r.p);
	post_small(&r, 16 + 4);
	assert_int_equal(rc_run(r.p->a.w, r.p->now, 32), 32);
	assert_in_range(rc_run(r.p->a.w, r.p->now, 32), 29, 30);
}

/* Within one QP, Read responses and requests take turns to go first. */
static void
test_own_requests_beside_a_read(void **state)
{
	struct rivals r;
	unsigned int i;

	turns_setup(state, &r);
	read_a_gib(r.p);
	for (i = 0; i < 40; i++)
		post_flags(&r.p->a, WR_SEND, 1, 64, 0);
	rc_run(r.p->a.w, r.p->now, 38);
	expect_order(r.p, "16s 2R 16s 2R 2s");
}

/* Duplicates are charged to their QP's turn, but leave it at least one packet. */
static void
test_duplicates_are_charged(void **state)
{
	struct rivals r;
	unsigned int i;

	turns_setup(state, &r);
	read_a_gib(r.p);
	post_small(&r, 100);
	for (i = 0; i < 100; i++)
		answer(r.p,
			&(struct wire_headers){
				.opcode = RC_READ_REQUEST,
				.psn = FIRST_PSN,
				.va = 0x400000000,
				.rkey = 1,
				.dmalen = GIB,
			},
			NULL, 0);
	rc_run(r.p->a.w, r.p->now, 35);
	expect_order(r.p, "1R 16s 2R 16s");
}

/* A full sink does not shorten any QP's turn. */
static void
test_full_sink_keeps_the_credit(void **state)
{
	struct rivals r;

	turns_setup(state, &r);
	read_a_gib(r.p);
	post_small(&r, 100);
	r.p->a.room = 1;
	rc_run(r.p->a.w, r.p->now, 32);
	expect_order(r.p, "1R");
	r.p->a.room = 1000;
	rc_run(r.p->a.w, r.p->now, 35);
	expect_order(r.p, "16s 1R 16s 2R");
}

/* --- shares: QPs of one owner --- */

#define SHARED_QPS 4

static struct rc_share share;
static uint32_t shared_qp[SHARED_QPS];

/* b reads 1 GiB from a's first QP; the others have one share. */
static void
shared_qps_setup(void **state, struct rivals *r)
{
	unsigned int i;

	turns_setup(state, r);
	rc_share_init(&share);
	for (i = 0; i < SHARED_QPS; i++) {
		shared_qp[i] = i == 0 ? r->other : second_qp(r->p, 4096);
		if (i > 0)
			no_credits(r->p, shared_qp[i]);
		assert_int_equal(rc_qp_join(r->p->a.w, shared_qp[i], &share), 0);
	}
	r->p->a.seen = r->p->a.sent_count;
	read_a_gib(r->p);
}

static void
post_small_to_all(struct rivals *r, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < SHARED_QPS; i++)
		post_small_to(r, shared_qp[i], n);
}

/* Four QPs of one owner with endless Sends get no more than the one QP of another. */
static void
test_share_counts_as_one_qp(void **state)
{
	struct rivals r;
	unsigned int i;

	shared_qps_setup(state, &r);
	post_small_to_all(&r, 40);
	rc_run(r.p->a.w, r.p->now, 54);
	expect_order(r.p, "2R 16s 2R 16s 2R 16s");
	for (i = 0; i < 20; i++)
		assert_int_equal(rc_run(r.p->a.w, r.p->now, 1), 1);
	expect_order(r.p, "2R 16s 2R");
}

/* What one QP of a share leaves of a turn, the others get at once. */
static void
test_share_passes_its_credit(void **state)
{
	struct rivals r;

	shared_qps_setup(state, &r);
	post_small_to_all(&r, 4);
	rc_run(r.p->a.w, r.p->now, 20);
	expect_order(r.p, "2R 16s 2R");
	post_small_to_all(&r, 6);
	rc_run(r.p->a.w, r.p->now, 28);
	expect_order(r.p, "2R 16s 2R 8s");
}

/* A QP that owes for duplicates sends one packet in its turn, although its share has overdrawn. */
static void
test_share_that_owes_sends_a_packet(void **state)
{
	struct rivals r;

	shared_qps_setup(state, &r);
	rc_qp_at(r.p->a.w, shared_qp[0])->credit = 1 - RC_QUANTUM;
	share.credit = 1 - RC_PACKET_COST;
	post_small_to(&r, shared_qp[0], 4);
	rc_run(r.p->a.w, r.p->now, 3);
	expect_order(r.p, "2R 1s");
}

/* QPs of a share are destroyed while they have the turn, and while they wait for it. */
static void
test_share_outlives_its_qps(void **state)
{
	struct error err = { "" };
	struct rivals r;

	shared_qps_setup(state, &r);
	post_small_to_all(&r, 8);
	assert_int_equal(rc_qp_destroy(r.p->a.w, shared_qp[0], &err), 0);
	assert_int_equal(rc_qp_destroy(r.p->a.w, shared_qp[2], &err), 0);
	rc_run(r.p->a.w, r.p->now, 20);
	expect_order(r.p, "2R 16s 2R");
	assert_null(share.turn);
	assert_true(STAILQ_EMPTY(&share.waiting));
}

#define OWN(t) cmocka_unit_test_teardown(t, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		OWN(test_read_responses_and_sends_get_equal_shares),
		OWN(test_small_message_waits_for_at_most_one_turn),
		OWN(test_budget_does_not_end_a_turn),
		OWN(test_worker_turn_is_short_in_bytes),
		OWN(test_turns_are_short_beside_small_messages),
		OWN(test_turns_are_long_beside_rare_small_messages),
		OWN(test_turns_are_long_beside_others),
		OWN(test_own_requests_beside_a_read),
		OWN(test_share_counts_as_one_qp),
		OWN(test_share_passes_its_credit),
		OWN(test_share_that_owes_sends_a_packet),
		OWN(test_share_outlives_its_qps),
		OWN(test_duplicates_are_charged),
		OWN(test_full_sink_keeps_the_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
