/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* ECN CE on receipt is answered with a CNP: rc-transport 2 and 10 */

#include <string.h>

#include "peer.h"

static enum verdict
marked_send(struct peer *p, uint32_t psn, uint64_t now)
{
	request(p, RC_SEND_ONLY, psn)->ecn_ce = true;
	return rc_receive(p->w, &p->pkt, now);
}

static unsigned int
cnps(const struct peer *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->answer_count; i++)
		n += p->answers[i].opcode == OPCODE_CNP;
	return n;
}

static void
test_marked_packet_is_executed_and_answered_with_a_cnp(void **state)
{
	struct peer *p = *state;
	static const uint8_t zero[16];

	post(p, 1, 0, 100);
	assert_int_equal(marked_send(p, 201, 1000), VERDICT_REQUEST);
	assert_int_equal(p->answer_count, 1);
	assert_int_equal(p->answers[0].opcode, 0x81);
	assert_int_equal(p->frame[4] & 0x40, 0x40); /* BECN */
	assert_int_equal(p->answers[0].len, 16);
	assert_memory_equal(p->answers[0].data, zero, 16);
	run(p);
	assert_int_equal(p->answer_count, 2);
	assert_int_equal(p->answers[1].opcode, RC_ACK);
	assert_int_equal(counters_of(p).np_cnp_sent, 1);
	assert_int_equal(counters_of(p).np_ecn_marked_roce_packets, 1);
}

static void
test_unmarked_packet_gets_none(void **state)
{
	struct peer *p = *state;

	post(p, 1, 0, 100);
	assert_int_equal(in_send(p, RC_SEND_ONLY, 201, 10), VERDICT_REQUEST);
	run(p);
	assert_int_equal(cnps(p), 0);
}

/* One CNP in 50 us, however many packets are marked. */
static void
test_cnps_are_limited(void **state)
{
	struct peer *p = *state;

	for (unsigned int i = 0; i < 10; i++)
		post(p, i, 0, 100);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(marked_send(p, 201 + i, 1000 + i), VERDICT_REQUEST);
	assert_int_equal(cnps(p), 1);
	assert_int_equal(marked_send(p, 209, 1000 + 50000 - 1), VERDICT_REQUEST);
	assert_int_equal(cnps(p), 1);
	assert_int_equal(marked_send(p, 210, 1000 + 50000), VERDICT_REQUEST);
	assert_int_equal(cnps(p), 2);
	assert_int_equal(counters_of(p).np_ecn_marked_roce_packets, 10);
}

static void
test_full_sink_costs_only_the_cnp(void **state)
{
	struct peer *p = *state;

	post(p, 1, 0, 100);
	p->sink_room = 0;
	assert_int_equal(marked_send(p, 201, 1000), VERDICT_REQUEST);
	assert_int_equal(cnps(p), 0);
	assert_int_equal(counters_of(p).np_cnp_sent, 0);
	p->sink_room = UINT32_MAX;
	run(p);
	expect_tx(p, "ACK 201");
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, peer_setup, peer_teardown)
	const struct CMUnitTest tests[] = {
		T(test_marked_packet_is_executed_and_answered_with_a_cnp),
		T(test_unmarked_packet_gets_none),
		T(test_cnps_are_limited),
		T(test_full_sink_costs_only_the_cnp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
