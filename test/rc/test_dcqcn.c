/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Reaction to CNPs: docs/spec/congestion.md. The port has 8 Gbit/s, one byte per nanosecond. A
 * packet of 1024 + 64 bytes takes 1088 ns; after the first CNP the rate is halved, so it takes
 * twice that.
 */

#include <string.h>

#include "../checked.h"
#include "pair.h"
#include "rc/dcqcn.h"
#include "rc/qp_directory.h"

#define US    1000u
#define NEVER 1000000000u /* microseconds */
#define MAX   8000

static struct pair *
dcqcn_make(void **state, const struct rc_congestion *congestion)
{
	struct pair *p = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.scripted = true,
		.pmtu = 1024,
		.no_timer = true,
		.congestion = *congestion,
	});

	*state = p;
	p->now = 1000000;
	return p;
}

static enum verdict
cnp(struct pair *p)
{
	static const uint8_t zero[16];

	return answer(p, &(struct wire_headers){ .opcode = OPCODE_CNP }, zero, sizeof(zero));
}

/* A CNP late enough after the last one to count. */
static void
dcqcn_cut(struct pair *p)
{
	p->now += 5 * US;
	assert_int_equal(cnp(p), VERDICT_CNP);
}

/* @return the rate in kbit/s after ns nanoseconds */
static uint32_t
rate_after(struct pair *p, uint64_t ns)
{
	pass(p, ns);
	transmit(&p->a);
	return info_of(&p->a).rate_limit;
}

static uint32_t
rate(struct pair *p)
{
	return rate_after(p, 0);
}

/* --- the rate --- */

/* congestion 3.1: R_T = R_C; R_C = R_C (1 - alpha / 2); alpha = (1 - g) alpha + g, first alpha 1 */
static void
test_first_cnps_halve_the_rate(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	assert_int_equal(rate(p), 0);
	dcqcn_cut(p);
	assert_int_equal(rate(p), 4000000);
	dcqcn_cut(p);
	assert_int_equal(rate(p), 2000000);
	assert_int_equal(counters_of(&p->a).rp_cnp_handled, 2);
}

/* congestion 3.1: alpha = (1 - g) alpha each 55 us without a CNP */
static void
test_alpha_decays_without_cnps(void **state)
{
	struct rc_congestion c = usual_congestion;
	struct pair *p;

	c.increase_timer = NEVER;
	p = dcqcn_make(state, &c);
	dcqcn_cut(p);
	assert_int_equal(rate_after(p, 50 * US - 1), 4000000);
	p->now += 1;
	dcqcn_cut(p); /* 55 us: alpha 255/256, 4000 * (1 - 255/512) */
	assert_int_equal(rate(p), 2007812);
	dcqcn_cut(p); /* alpha 65281/65536 */
	assert_int_equal(rate(p), 1007812);
}

static void
test_no_decay_before_its_time(void **state)
{
	struct rc_congestion c = usual_congestion;
	struct pair *p;

	c.increase_timer = NEVER;
	p = dcqcn_make(state, &c);
	dcqcn_cut(p);
	p->now += 50 * US - 1;
	dcqcn_cut(p);
	assert_int_equal(rate(p), 2000000);
}

/*
 * congestion 3.2: four times the rate goes half of the way to the target; the fifth time the target
 * grows by 40 Mbit/s first.
 */
static void
test_fast_recovery_then_additive_increase(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	dcqcn_cut(p); /* from 4000 to 2000 */
	assert_int_equal(rate_after(p, 55 * US), 3000000);
	assert_int_equal(rate_after(p, 55 * US), 3500000);
	assert_int_equal(rate_after(p, 55 * US), 3750000);
	assert_int_equal(rate_after(p, 55 * US), 3875000);
	assert_int_equal(rate_after(p, 55 * US), 3957500); /* to 4040 */
	assert_int_equal(rate_after(p, 55 * US), 4018750); /* to 4080 */
}

/* The same if the QP was idle, so that all timer expiries are computed at once. */
static void
test_expiries_of_an_idle_qp_are_made_up_for(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	dcqcn_cut(p);
	assert_int_equal(rate_after(p, 6 * 55 * US), 4018750);
}

/* A CNP during an increase begins fast recovery again, from the present rate. */
static void
test_cnp_ends_an_increase(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	dcqcn_cut(p);
	rate_after(p, 4 * 55 * US); /* 3875; alpha (255/256)^4 */
	assert_int_equal(cnp(p), VERDICT_CNP);
	assert_int_equal(rate(p), 1967596);
	assert_int_equal(rate_after(p, 55 * US), 2921298);
}

static void
send_packets(struct pair *p, unsigned int n)
{
	unsigned int before = p->a.sent_count;

	post(&p->a, WR_RDMA_WRITE, 1, n * 1024);
	while (p->a.sent_count < before + n) {
		pass(p, 100);
		transmit(&p->a);
	}
	ack(p, FIRST_PSN + p->a.sent_count - 1);
}

/* congestion 3.2: the byte counter does the same; 10 packets of 1024 + 64 bytes */
static void
test_byte_counter_raises_the_rate(void **state)
{
	struct rc_congestion c = usual_congestion;
	struct pair *p;

	c.increase_timer = NEVER;
	c.byte_counter = 10880;
	p = dcqcn_make(state, &c);
	dcqcn_cut(p);
	send_packets(p, 9);
	assert_int_equal(rate(p), 4000000);
	send_packets(p, 1);
	assert_int_equal(rate(p), 6000000);
	send_packets(p, 10);
	assert_int_equal(rate(p), 7000000);
}

/* congestion 3.2: both beyond F: R_T += (min(T, BC) - F) R_HAI; here F is 1 */
static void
test_hyper_increase_needs_both(void **state)
{
	struct rc_congestion c = usual_congestion;
	struct pair *p;

	c.fast_recovery = 1;
	c.byte_counter = 1088;
	p = dcqcn_make(state, &c);
	dcqcn_cut(p);
	dcqcn_cut(p);
	dcqcn_cut(p); /* 1000, to 2000 */
	send_packets(p, 1); /* BC 1: additive, 2040 */
	assert_int_equal(rate(p), 1520000);
	send_packets(p, 1); /* BC 2, T 0: additive, 2080 */
	assert_int_equal(rate(p), 1800000);
	assert_int_equal(rate_after(p, 55 * US), 1960000); /* T 1: 2120 */
	assert_int_equal(rate_after(p, 55 * US), 2240000); /* T 2: 2120 + 400 */
	assert_int_equal(rate_after(p, 55 * US), 2580000); /* T 3, BC 2: 2520 + 400 */
}

/* congestion 2: CNPs closer than 4 us tell of the same congestion */
static void
test_cnps_too_close_are_ignored(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	p->now += 4 * US - 1;
	assert_int_equal(cnp(p), VERDICT_CNP);
	assert_int_equal(rate(p), 4000000);
	p->now += 1;
	assert_int_equal(cnp(p), VERDICT_CNP);
	assert_int_equal(rate(p), 2000000);
	assert_int_equal(counters_of(&p->a).rp_cnp_handled, 2);
	assert_int_equal(counters_of(&p->a).rp_cnp_ignored, 1);
}

static void
test_never_below_the_least_rate(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);
	unsigned int i;

	for (i = 0; i < 20; i++)
		dcqcn_cut(p);
	assert_int_equal(rate(p), 10000);
}

/* congestion 3.3: back at the port's rate the limit ends, and alpha is reset. */
static void
test_recovered_qp_is_not_limited(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);
	unsigned int before;

	dcqcn_cut(p);
	assert_int_equal(rate_after(p, 11 * 55 * US), 7998046);
	assert_int_equal(rate_after(p, 55 * US), 0);
	before = p->a.sent_count;
	post(&p->a, WR_RDMA_WRITE, 1, 64 * 1024);
	transmit(&p->a);
	assert_int_equal(p->a.sent_count - before, 64);
	dcqcn_cut(p);
	assert_int_equal(rate(p), 4000000);
}

/* --- pacing --- */

/* congestion 4: a packet of 1024 + 64 bytes at 4 Gbit/s takes 2176 ns */
static void
test_packets_keep_their_distance(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	post(&p->a, WR_RDMA_WRITE, 1, 3 * 1024);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 201");
	pass(p, 2175);
	transmit(&p->a);
	expect_silence(&p->a);
	pass(p, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Middle 202");
	pass(p, 2176);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Last 203");
	assert_int_equal(counters_of(&p->a).rp_rate_limited, 2);
}

/* A QP that waits for its rate is not on the run queue; a timer puts it back. */
static void
test_waiting_qp_leaves_the_run_queue(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	post(&p->a, WR_RDMA_WRITE, 1, 2 * 1024);
	transmit(&p->a);
	assert_false(rc_pending(p->a.w));
	assert_in_range(timer_wheel_next(p->a.wheel), p->now, p->now + 2176);
	pass(p, 2176);
	assert_true(rc_pending(p->a.w));
}

/* congestion 4: a late QP may catch up 16 KiB, 32768 ns: 15 packets and the one that is due. */
static void
test_lateness_is_made_up_for(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);
	unsigned int before;

	dcqcn_cut(p);
	pass(p, 50 * US);
	before = p->a.sent_count;
	post(&p->a, WR_RDMA_WRITE, 1, 64 * 1024);
	transmit(&p->a);
	assert_int_equal(p->a.sent_count - before, 16);
}

static enum verdict
dcqcn_request(struct pair *p, uint8_t opcode, uint32_t psn, uint32_t len)
{
	return answer(p,
		&(struct wire_headers){
			.opcode = opcode,
			.psn = psn,
			.ackreq = true,
			.va = p->a.va,
			.rkey = p->a.key,
			.dmalen = len,
		},
		NULL, 0);
}

/* congestion 4 */
static void
test_acks_do_not_wait(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	post(&p->a, WR_RDMA_WRITE, 1, 2 * 1024);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE First 201");
	post_recv(&p->a, 2, 64);
	assert_int_equal(dcqcn_request(p, RC_SEND_ONLY, FIRST_PSN, 0), VERDICT_REQUEST);
	transmit(&p->a);
	expect_tx(&p->a, "ACK 201");
}

static void
test_read_responses_are_limited(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	assert_int_equal(dcqcn_request(p, RC_READ_REQUEST, FIRST_PSN, 3 * 1024), VERDICT_REQUEST);
	transmit(&p->a);
	expect_tx(&p->a, "READ Response First 201");
	pass(p, 2176);
	transmit(&p->a);
	expect_tx(&p->a, "READ Response Middle 202");
	pass(p, 2176);
	transmit(&p->a);
	expect_tx(&p->a, "READ Response Last 203");
}

static void
test_full_sink_costs_no_rate(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	post(&p->a, WR_RDMA_WRITE, 1, 1024);
	p->a.room = 0;
	transmit(&p->a);
	expect_silence(&p->a);
	assert_true(rc_pending(p->a.w));
	p->a.room = 1;
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
}

/* --- life --- */

static void
test_destroyed_while_it_waits(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);
	struct error err = { "" };

	dcqcn_cut(p);
	post(&p->a, WR_RDMA_WRITE, 1, 2 * 1024);
	transmit(&p->a);
	assert_int_equal(rc_qp_destroy(p->a.w, p->a.qpn, &err), 0);
	assert_int_equal(timer_wheel_run(p->a.wheel, p->now + 10000), 0);
}

static void
test_reset_forgets_the_limit(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	dcqcn_cut(p);
	post(&p->a, WR_RDMA_WRITE, 1, 2 * 1024);
	transmit(&p->a);
	must_modify(&p->a, QPS_RESET, QP_ATTR_STATE);
	assert_int_equal(rate(p), 0);
	assert_int_equal(timer_wheel_run(p->a.wheel, p->now + 10000), 0);
}

/* --- checks --- */

static void
expire_damaged(void *pair, void *unused)
{
	struct pair *p = pair;
	struct rc_qp *qp = rc_qp_at(p->a.w, p->a.qpn);

	(void)unused;
	qp->resp.wqe_taken = true; /* without a message */
	timer_wheel_run(p->a.wheel, p->now + 1000000);
}

/* The end of a wait is an event of the queue pair. */
static void
test_the_end_of_a_wait_checks_the_queue_pair(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);
	const struct rc_qp *qp = rc_qp_at(p->a.w, p->a.qpn);

	dcqcn_cut(p);
	while (!timer_armed(&qp->rp->timer)) {
		post(&p->a, WR_SEND, 1, 1024);
		transmit(&p->a);
	}
	assert_int_equal(ends_process(expire_damaged, p, NULL), CHECKED);
}

/* --- which CNPs --- */

static void
test_off_by_default(void **state)
{
	struct rc_congestion off = usual_congestion;
	struct pair *p;

	off.dcqcn = false;
	p = dcqcn_make(state, &off);
	assert_int_equal(cnp(p), VERDICT_CNP);
	assert_int_equal(rate(p), 0);
	assert_int_equal(counters_of(&p->a).rp_cnp_handled, 0);
	assert_int_equal(counters_of(&p->a).rp_cnp_ignored, 1);
}

/* congestion 2: only its peer can slow a QP down */
static void
test_cnp_from_another_address_is_ignored(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);
	struct av av = av_of(&p->b, 0);

	av.sgid.raw[15] = 99;
	path_init(&p->b.back, &av, p->b.qpn, p->a.qpn);
	assert_int_equal(cnp(p), VERDICT_ADDRESS);
	assert_int_equal(rate(p), 0);
}

/* Nor may a packet of another partition, or a damaged one. */
static void
test_cnp_of_another_partition_or_damaged_is_dropped(void **state)
{
	static const uint8_t zero[16];
	struct pair *p = dcqcn_make(state, &usual_congestion);

	assert_int_equal(answer(p, &(struct wire_headers){ .opcode = OPCODE_CNP, .pkey = 0x8001 },
				 zero, sizeof(zero)),
		VERDICT_PKEY);
	p->damage = 1;
	assert_int_equal(cnp(p), VERDICT_ICRC);
	p->damage = 0;
	assert_int_equal(rate(p), 0);
	assert_int_equal(cnp(p), VERDICT_CNP);
	assert_int_equal(rate(p), 4000000);
}

static void
test_cnp_for_a_qp_that_sends_nothing(void **state)
{
	struct pair *p = dcqcn_make(state, &usual_congestion);

	must_modify(&p->a, QPS_ERR, QP_ATTR_STATE);
	assert_int_equal(cnp(p), VERDICT_QP_STATE);
}

/* congestion 2: native InfiniBand has no CNPs. */
static void
test_native_ib_ignores_cnps(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.scripted = true,
		.encap = ENCAP_IB,
		.congestion = usual_congestion,
	});

	*state = p;
	assert_int_equal(cnp(p), VERDICT_CNP);
	assert_int_equal(counters_of(&p->a).rp_cnp_ignored, 1);
	assert_int_equal(rate(p), 0);
}

/* congestion 1: packets are sent as ECT(0), else no switch would mark them. */
static void
test_packets_are_ecn_capable(void **state)
{
	struct rc_congestion off = usual_congestion;
	struct pair *p = dcqcn_make(state, &usual_congestion);

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	assert_int_equal(sent_packet(&p->a, 0).tclass, 2);
	pair_destroy(p);
	off.dcqcn = false;
	p = dcqcn_make(state, &off);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	assert_int_equal(sent_packet(&p->a, 0).tclass, 0);
}

#define OWN(t) cmocka_unit_test_teardown(t, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		OWN(test_first_cnps_halve_the_rate),
		OWN(test_alpha_decays_without_cnps),
		OWN(test_no_decay_before_its_time),
		OWN(test_fast_recovery_then_additive_increase),
		OWN(test_expiries_of_an_idle_qp_are_made_up_for),
		OWN(test_cnp_ends_an_increase),
		OWN(test_byte_counter_raises_the_rate),
		OWN(test_hyper_increase_needs_both),
		OWN(test_cnps_too_close_are_ignored),
		OWN(test_never_below_the_least_rate),
		OWN(test_recovered_qp_is_not_limited),
		OWN(test_packets_keep_their_distance),
		OWN(test_waiting_qp_leaves_the_run_queue),
		OWN(test_lateness_is_made_up_for),
		OWN(test_acks_do_not_wait),
		OWN(test_read_responses_are_limited),
		OWN(test_full_sink_costs_no_rate),
		OWN(test_destroyed_while_it_waits),
		OWN(test_reset_forgets_the_limit),
		OWN(test_off_by_default),
		OWN(test_the_end_of_a_wait_checks_the_queue_pair),
		OWN(test_cnp_from_another_address_is_ignored),
		OWN(test_cnp_of_another_partition_or_damaged_is_dropped),
		OWN(test_cnp_for_a_qp_that_sends_nothing),
		OWN(test_native_ib_ignores_cnps),
		OWN(test_packets_are_ecn_capable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
